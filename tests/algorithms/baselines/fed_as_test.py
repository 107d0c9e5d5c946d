import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import client

pytestmark = pytest.mark.usefixtures('default_runtime')

# Of three classes, of two, of one, of three; no data; and not finite.
_LABELS = (
  [0, 1, 2, 1, 0, 2, 2, 0, 1],
  [0, 2, 2, 0, 0],
  [1, 1, 1],
  [2, 0, 1, 1],
  [],
  [0, 0, 1, 2],
)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, _EMPTY, 3, _BROKEN], [1, 3, 0])
_HEAD = 2  # The last arrays.


def _clients():
  clients = [
    linear_task.labelled_client(labels, seed=i)
    for i, labels in enumerate(_LABELS)
  ]
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


_process = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_as,
  model_fn=linear_task.embedding_model_fn,
  num_clients=len(_LABELS),
  local_epochs=2,
  alignment_learning_rate=0.5,
  alignment_batch_size=50,
)


def _aligned(weights, old, data, learning_rate):
  """One step from `weights` to the prototypes of `old`, and its loss."""
  found = fedquad_reference.embeddings(weights, data.x)
  of_old = fedquad_reference.embeddings(old, data.x)
  loss, slope = 0.0, np.zeros_like(found)
  for label in set(data.y):
    of_class = data.y == label
    error = found[of_class] - of_old[of_class].mean(axis=0)
    loss += np.mean(error**2)
    slope[of_class] = 2 * error / error.size
  kernel, bias, *head = weights
  return [
    kernel - learning_rate * data.x.T @ slope,
    bias - learning_rate * slope.sum(axis=0),
    *head,
  ], loss


def _gradient(weights, x, y):
  """Of the mean cross-entropy, and its value."""
  z = fedquad_reference.embeddings(weights, x)
  entropy, of_logits, _ = fedquad_reference.cross_entropy(
    z @ weights[2] + weights[3], y
  )
  of_z = of_logits @ weights[2].T
  return [
    x.T @ of_z,
    of_z.sum(axis=0),
    z.T @ of_logits,
    of_logits.sum(axis=0),
  ], entropy


class _FedAs:
  """The algorithm in NumPy, for full batches: an epoch is a step."""

  def __init__(self):
    start = linear_task.embedding_model_fn().get_weights()
    self.weights = [w.astype(np.float64) for w in start]
    self.models = [self.weights for _ in _LABELS]

  def next(self, clients):
    """One round of the clients that count, a dictionary from ids to data.

    Returns:
      A dictionary of the metrics, a value for each client.
    """
    found = {'alignment_loss': [], 'loss': [], 'fisher_trace': []}
    for i, data in clients.items():
      own = self.models[i]
      model, loss = _aligned(self.weights, own, data, 0.5)
      found['alignment_loss'].append(loss)
      model = model[:-_HEAD] + own[-_HEAD:]
      losses = []
      for _ in range(2):
        slope, entropy = _gradient(model, data.x, data.y)
        losses.append(entropy)
        model = [w - 0.1 * s for w, s in zip(model, slope, strict=True)]
      found['loss'].append(np.mean(losses))
      slope, _ = _gradient(model, data.x, data.y)
      found['fisher_trace'].append(sum(np.sum(s**2) for s in slope))
      self.models[i] = model
    bases = zip(*(self.models[i][:-_HEAD] for i in clients), strict=True)
    traces = found['fisher_trace']
    self.weights = [
      *(np.average(rows, axis=0, weights=traces) for rows in bases),
      *self.weights[-_HEAD:],
    ]
    return found


def _model(process, state, i):
  return process.get_client_model_weights(state, i).trainable


def test_three_rounds_against_numpy():
  clients, process, expected = _clients(), _process(), _FedAs()
  state = process.initialize()
  head = process.get_model_weights(state).trainable[-_HEAD:]
  for cohort in _COHORTS:
    output = linear_task.next_round(
      process, state, linear_task.pick(clients, cohort)
    )
    state = output.state
    present = [i for i in cohort if i not in (_EMPTY, _BROKEN)]
    report = expected.next(linear_task.pick(clients, present))
    server = process.get_model_weights(state).trainable
    linear_task.assert_close(server, expected.weights)
    for i, model in enumerate(expected.models):
      linear_task.assert_close(_model(process, state, i), model)
    found = output.metrics['client_work']
    assert found['num_empty_clients'] == (_EMPTY in cohort)
    assert found['num_rejected_clients'] == (_BROKEN in cohort)
    rows = [list(found['clients']['client_id']).index(i) for i in present]
    sizes = [len(_LABELS[i]) for i in present]
    for name, values in report.items():
      np.testing.assert_allclose(
        found['clients'][name][rows], values, rtol=1e-4
      )
      mean = np.average(values, weights=sizes)
      assert found[name] == pytest.approx(mean, rel=1e-4)
  # Heads never leave the clients.
  linear_task.assert_equal(server[-_HEAD:], head)
  for i in range(4):
    kernel = _model(process, state, i)[-_HEAD]
    assert np.abs(kernel - head[0]).min() > 1e-5


@pytest.mark.full
def test_bases_are_averaged_uniformly_if_all_traces_are_0():
  clients = _clients()[:3]
  with mock.patch.object(client, 'fisher_trace', lambda *_: tf.constant(0.0)):
    process = _process()
  state = linear_task.run(process, clients, [[0, 1, 2]]).state
  bases = [_model(process, state, i)[:-_HEAD] for i in range(3)]
  linear_task.assert_close(
    process.get_model_weights(state).trainable[:-_HEAD],
    [np.mean(rows, axis=0) for rows in zip(*bases, strict=True)],
    rtol=1e-4,
    atol=1e-5,
  )


@pytest.mark.full
def test_the_trace_is_over_minibatches_of_the_trained_model():
  process = _process(batch_size=4)
  data = _clients()[0]
  output = linear_task.run(process, [data], [[0]])
  weights = _model(process, output.state, 0)
  expected = 0.0
  for start in (0, 4, 8):
    rows = slice(start, start + 4)
    slope, _ = _gradient(weights, data.x[rows], data.y[rows])
    expected += sum(np.sum(s**2) for s in slope)
  found = output.metrics['client_work']['fisher_trace']
  assert found == pytest.approx(expected, rel=1e-4)


def _head_elsewhere_model_fn():
  """A model whose last weights come before its embedding."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  h = tf.keras.layers.Dense(linear_task.EMBEDDING_SIZE)(x)
  embedding = tf.keras.layers.BatchNormalization()(h)
  logits = embedding[:, : linear_task.NUM_CLASSES]
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


def test_bad_arguments():
  linear_task.assert_refused(
    _process,
    ('model_fn', linear_task.model_fn, "'embedding' for build_fed_as"),
    ('model_fn', _head_elsewhere_model_fn, 'dense layer.*, found the sh'),
  )
