"""CoRe-Fed's public script against rounds by hand."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tests.launchers.scripts import minibatches
from tff_fair import algorithms
from tff_fair.launchers.scripts import corefed_c6a8c8cf

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_NETWORK = reference.Network((4, 3, 3), tf.nn.relu)
_EPOCHS, _BATCH = 2, 4
_model_fn = functools.partial(linear_task.embedding_model_fn, 'relu')


def _build(model_fn=_model_fn, **options):
  return linear_task.build_process(
    corefed_c6a8c8cf.build_corefed,
    model_fn,
    **{'num_clients': len(linear_task.SIZES), 'batch_size': _BATCH, **options},
  )


def _cosines(embeddings):
  """With the first."""
  units = [z / np.linalg.norm(z) for z in embeddings]
  return np.array([unit @ units[0] for unit in units])


def _script(rounds, rate, decay, sharpness):
  w = linear_task.start(_model_fn)
  for number, clients in enumerate(rounds):
    trained, embeddings = [], []
    for data in clients.values():
      v, batches = w, minibatches.fixed(data, _BATCH)
      for batch in _EPOCHS * batches:
        g = minibatches.gradient(_NETWORK, v, batch)
        v = v - rate * decay**number * g
      trained.append(v)
      features = _NETWORK.outputs(w, batches[0].x)[0]
      embeddings.append(features.numpy().mean(axis=0))
    cosines = _cosines(embeddings)
    shares = 1 / (1 + np.exp(-sharpness * cosines))
    shares = shares / shares.sum()
    w = shares @ np.array(trained)
    yield {
      'weights': w,
      'aggregator/all/alignment': cosines,
      'aggregator/all/weight': shares,
      'aggregator/num_stale': 0,
    }


def test_rounds_by_hand():
  options = {'rate': 0.5, 'decay': 0.5, 'sharpness': 3.0}
  outputs = linear_task.assert_rounds(
    _build(learning_rate=0.5, decay=0.5, sharpness=3.0, local_epochs=_EPOCHS),
    functools.partial(_script, **options),
    linear_task.rounds(),
  )
  cosines = outputs[0].metrics['aggregator']['clients']['alignment']
  assert min(cosines) < 0.95  # Weights that are not equal.


def test_embeddings_are_of_training_mode():
  def model_fn():
    x = tf.keras.Input([linear_task.NUM_FEATURES])
    return tf.keras.Model(
      x, _model_fn()(tf.keras.layers.BatchNormalization()(x))
    )

  clients = linear_task.make_clients(linear_task.SIZES)
  process = _build(model_fn)
  output = linear_task.run(process, clients, [[0, 1, 2]])
  embeddings = []
  for data in clients[:3]:
    x = data.x[:_BATCH]
    x = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-3)
    features = _NETWORK.outputs(linear_task.start(_model_fn), x)[0]
    embeddings.append(features.numpy().mean(axis=0))
  found = output.metrics['aggregator']['clients']['alignment']
  linear_task.assert_close(found, _cosines(embeddings), rtol=1e-4)


@pytest.mark.parametrize('sharpness', [0.0, 2.0])
def test_equal_embeddings_or_no_sharpness_make_it_uniform_fed_avg(sharpness):
  clients = linear_task.make_clients(linear_task.SIZES)
  if sharpness:
    for data in clients:
      data.x[:_BATCH] = clients[0].x[:_BATCH][: len(data.x)]
  cohorts = [[0, 1, 2], [1, 3]]
  uniform = linear_task.build_process(
    algorithms.build_fed_avg,
    _model_fn,
    uniform=True,
    num_clients=len(clients),
    batch_size=_BATCH,
  )
  found = _build(sharpness=sharpness, reshuffle=True)
  linear_task.assert_close(
    *(
      linear_task.weights(p, linear_task.run(p, clients, cohorts).state)
      for p in (found, uniform)
    )
  )


def test_it_needs_an_embedding():
  with pytest.raises(ValueError, match="output 'embedding' for CoRe-Fed's"):
    _build(linear_task.model_fn)
