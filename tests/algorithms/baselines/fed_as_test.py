import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_ENCODER = reference.ENCODER
_BASE = slice(0, 15)  # Then comes the head.


def _rounds(*cohorts):
  rounds = linear_task.rounds(*cohorts)
  for clients in rounds:
    for i, labels in ((0, [0, 2]), (1, [1])):  # All there are.
      if i in clients:
        clients[i].y[:] = np.resize(labels, len(clients[i].y))
  return rounds


_process = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_as,
  model_fn=linear_task.embedding_model_fn,
  num_clients=6,
  local_epochs=2,
  alignment_learning_rate=0.5,
  alignment_batch_size=50,
)


def _from_prototypes(w, old, data):
  """The sum over classes of the mean squared difference."""
  of_old = _ENCODER.outputs(old, data.x)[0].numpy()
  z, _ = _ENCODER.outputs(w, data.x)
  loss = 0.0
  for label in set(data.y):
    (rows,) = np.nonzero(data.y == label)
    error = tf.gather(z, rows) - of_old[rows].mean(axis=0)
    loss += tf.reduce_mean(error**2)
  return loss


def _squared_slope(w, data):
  slope = reference.gradient(lambda v: _ENCODER.loss(v, data), w)
  return slope @ slope


def _fed_as(rounds):
  w = linear_task.start(linear_task.embedding_model_fn)
  models = np.tile(w, (6, 1))
  for clients in rounds:
    measured = {'alignment_loss': [], 'loss': [], 'fisher_trace': []}
    for i, data in clients.items():
      aligned, _, alignment = reference.descend(
        lambda v, i=i, data=data: _from_prototypes(v, models[i], data),
        w,
        0.5,
        1,
      )
      # The base is the aligned one, the head the client's.
      models[i, _BASE] = aligned[_BASE]
      models[i], _, training = reference.descend(
        functools.partial(_ENCODER.loss, data=data), models[i], 0.1, 2
      )
      measured['alignment_loss'].append(alignment['loss'])
      measured['loss'].append(training['loss'])
      measured['fisher_trace'].append(_squared_slope(models[i], data))
    bases = models[list(clients), _BASE]
    w[_BASE] = reference.mean(bases, measured['fisher_trace'])
    sizes = [len(data.y) for data in clients.values()]
    yield {
      'weights': w,
      'models': models.copy(),
      **{f'client_work/clients/{k}': each for k, each in measured.items()},
      **{
        f'client_work/{k}': np.average(each, weights=sizes)
        for k, each in measured.items()
      },
    }


def test_three_rounds():
  """Heads, which the reference never sends, stay with the clients."""
  linear_task.assert_rounds(_process(), _fed_as, _rounds())


def test_bases_are_averaged_uniformly_if_all_traces_are_0():
  with mock.patch.object(client, 'fisher_trace', lambda *_: tf.constant(0.0)):
    process = _process()
  (clients,) = _rounds([[0, 1, 2]])
  state = linear_task.run(process, clients, [clients]).state
  linear_task.assert_close(
    linear_task.weights(process, state)[_BASE],
    linear_task.client_weights(process, state)[:3, _BASE].mean(axis=0),
    rtol=1e-4,
    atol=1e-5,
  )


def test_the_trace_is_over_minibatches_of_the_trained_model():
  process = _process(batch_size=4)
  (clients,) = _rounds([[1]])
  output = linear_task.run(process, clients, [[1]])
  trained = linear_task.client_weights(process, output.state)[1]
  x, y = clients[1].x, clients[1].y
  expected = sum(
    _squared_slope(trained, linear_task.Client(x[r], y[r], None, None))
    for r in (slice(0, 4), slice(4, 8), slice(8, 9))
  )
  found = output.metrics['client_work']['fisher_trace']
  assert found == pytest.approx(expected, rel=1e-4)


def _head_elsewhere_model_fn():
  """A model whose last weights come before its embedding."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  h = tf.keras.layers.Dense(linear_task.EMBEDDING_SIZE)(x)
  embedding = tf.keras.layers.BatchNormalization()(h)
  logits = embedding[:, : linear_task.NUM_CLASSES]
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


def test_the_head_must_be_a_dense_layer_on_the_embedding():
  linear_task.assert_refused(
    _process,
    ('model_fn', _head_elsewhere_model_fn, 'dense layer.*, found the sh'),
  )
