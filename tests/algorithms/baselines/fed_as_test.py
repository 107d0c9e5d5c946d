import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import client

# Of three classes, of two, of one, of three; nobody; and not finite.
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
_HEAD = 2  # Arrays, the last ones.


def _clients():
  clients = [
    linear_task.labelled_client(labels, seed=i)
    for i, labels in enumerate(_LABELS)
  ]
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


@functools.cache
def _process(**options):
  return algorithms.build_fed_as(
    linear_task.embedding_model_fn,
    **{
      'num_clients': len(_LABELS),
      'client_optimizer': linear_task.sgd(0.1),
      'local_epochs': 2,
      'batch_size': 50,
      'alignment_learning_rate': 0.5,
      'alignment_batch_size': 50,
      **options,
    },
  )


_FIRST = linear_task.embedding_model_fn().get_weights()


def _initial():
  return [w.astype(np.float64) for w in _FIRST]


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
    self.weights = _initial()
    self.models = [self.weights for _ in _LABELS]

  def next(self, clients):
    """One round of those who count, a dictionary from ids to data.

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


def _next(process, state, clients, cohort):
  data = [linear_task.client_data(i, clients[i]) for i in cohort]
  return process.next(state, data)


def _assert_weights(found, expected):
  for a, b in zip(found.trainable, expected, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def _models(process, state, ids):
  return [process.get_client_model_weights(state, i) for i in ids]


class TestReference:
  """The reference itself."""

  def test_alignment_by_hand(self):
    """Two of a class at 1 and 3, one of another at 5, and one entry each."""
    data = linear_task.labelled_client([0, 0, 1])
    data.x = np.array([[1.0], [3], [5]])
    own = [np.array([[2.0]]), np.array([1.0])]  # 3, 7 and 11: 5 and 11.
    weights = [np.array([[1.0]]), np.array([0.0])]
    (kernel, bias), loss = _aligned(weights, own, data, 0.1)
    assert loss == pytest.approx((16 + 4) / 2 + 36)
    # Slopes -4, -2 and -12 by embedding.
    assert kernel == pytest.approx(1 + 0.1 * (4 + 6 + 60))
    assert bias == pytest.approx(0.1 * 18)

  @pytest.mark.parametrize('which', ['align', 'train'])
  def test_gradients_by_differences(self, which):
    data = _clients()[0]
    old = [w + 0.3 for w in _initial()]

    def loss(weights):
      if which == 'align':
        return _aligned(weights, old, data, 0.0)[1]
      return _gradient(weights, data.x, data.y)[1]

    if which == 'align':
      moved, _ = _aligned(_initial(), old, data, 1.0)
      found = [a - b for a, b in zip(_initial(), moved, strict=True)]
    else:
      found, _ = _gradient(_initial(), data.x, data.y)
    for i, slope in enumerate(found):
      for entry in np.ndindex(slope.shape):
        values = []
        for step in (1e-6, -1e-6):
          weights = _initial()
          weights[i][entry] += step
          values.append(loss(weights))
        expected = (values[0] - values[1]) / 2e-6
        assert slope[entry] == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.usefixtures('default_runtime')
class TestRounds:
  _CLIENTS = _clients()

  def test_three_rounds_against_numpy(self):
    process, expected = _process(), _FedAs()
    state = process.initialize()
    for cohort in _COHORTS:
      before, output = state, _next(process, state, self._CLIENTS, cohort)
      state = output.state
      present = [i for i in cohort if i not in (_EMPTY, _BROKEN)]
      report = expected.next({i: self._CLIENTS[i] for i in present})
      _assert_weights(process.get_model_weights(state), expected.weights)
      for i, model in enumerate(expected.models):
        _assert_weights(process.get_client_model_weights(state, i), model)
      # The absent, and who does not count, keep theirs bit for bit.
      absent = set(range(len(_LABELS))) - set(present)
      linear_task.assert_equal(
        _models(process, state, absent), _models(process, before, absent)
      )
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

  def test_heads_never_leave_the_clients(self):
    process = _process()
    state = linear_task.run(process, self._CLIENTS, [[0, 1], [1, 2]]).state
    *_, kernel, bias = _FIRST
    server = process.get_model_weights(state).trainable
    linear_task.assert_equal(server[-_HEAD:], [kernel, bias])
    for weights in _models(process, state, (0, 1, 2)):
      assert np.abs(weights.trainable[-_HEAD] - kernel).min() > 1e-5

  def test_each_client_aligns_a_copy_of_its_own(self):
    process = _process()
    before = linear_task.run(process, self._CLIENTS, [[0, 1, 2]]).state
    models = [
      process.get_client_model_weights(
        _next(process, before, self._CLIENTS, cohort).state, 1
      )
      for cohort in ([1], [0, 1, 2], [2, 0, 1])
    ]
    linear_task.assert_equal(models[0], models[1])
    linear_task.assert_equal(models[0], models[2])

  def test_nobody_changes_nothing(self):
    process = _process()
    before = linear_task.run(process, self._CLIENTS, [[0, 1]]).state
    for cohort in ([], [_EMPTY, _BROKEN]):
      after = _next(process, before, self._CLIENTS, cohort).state
      linear_task.assert_equal(
        process.get_model_weights(after), process.get_model_weights(before)
      )
      linear_task.assert_equal(
        after.client_work['table'], before.client_work['table']
      )


@pytest.mark.usefixtures('default_runtime')
class TestWeights:
  """Traces that are put in: of clients with 2, 6 and 1 examples."""

  _CLIENTS = [
    linear_task.labelled_client(labels, seed=i)
    for i, labels in enumerate(([0, 1], [0, 1, 2, 2, 1, 0], [1]))
  ]

  @functools.cached_property
  def _counting(self):
    """Whose traces are the numbers of examples, or 0 for just one."""

    def fisher_trace(model, weights, examples, batch_size):
      del model, weights, batch_size  # Unused.
      size = tf.cast(tf.size(examples['y']), tf.float32)
      return tf.where(size > 1, size, 0.0)

    with mock.patch.object(client, 'fisher_trace', fisher_trace):
      return _process.__wrapped__()

  def test_of_all_kinds_of_traces(self):
    process = self._counting
    for cohort, weights in (
      ([0, 1], (0.25, 0.75)),  # F = (2, 6)
      ([0, 1, 2], (0.25, 0.75, 0.0)),
      ([2], (1.0,)),  # All are 0.
    ):
      state = linear_task.run(process, self._CLIENTS, [cohort]).state
      bases = zip(
        *(m.trainable[:-_HEAD] for m in _models(process, state, cohort)),
        strict=True,
      )
      found = process.get_model_weights(state).trainable[:-_HEAD]
      for base, rows in zip(found, bases, strict=True):
        expected = np.average(rows, axis=0, weights=weights)
        np.testing.assert_allclose(base, expected, rtol=1e-5, atol=1e-6)

  def test_all_traces_0_are_uniform(self):
    with mock.patch.object(client, 'fisher_trace', lambda *_: tf.constant(0.0)):
      process = _process.__wrapped__()
    output = linear_task.run(process, self._CLIENTS, [[0, 1, 2]])
    bases = zip(
      *(m.trainable[:-_HEAD] for m in _models(process, output.state, range(3))),
      strict=True,
    )
    found = process.get_model_weights(output.state).trainable[:-_HEAD]
    for base, rows in zip(found, bases, strict=True):
      expected = np.mean(rows, axis=0)
      np.testing.assert_allclose(base, expected, rtol=1e-4, atol=1e-5)
    assert output.metrics['client_work']['fisher_trace'] == 0

  def test_the_trace_is_over_minibatches_of_the_trained_model(self):
    process = _process(batch_size=4)
    data = _clients()[0]
    output = linear_task.run(process, [data], [[0]])
    weights = process.get_client_model_weights(output.state, 0).trainable
    expected = 0.0
    for start in (0, 4, 8):
      rows = slice(start, start + 4)
      slope, _ = _gradient(weights, data.x[rows], data.y[rows])
      expected += sum(np.sum(s**2) for s in slope)
    found = output.metrics['client_work']['fisher_trace']
    assert found == pytest.approx(expected, rel=1e-4)


def _head_elsewhere_model_fn():
  """A model whose last weights are before its embedding."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  h = tf.keras.layers.Dense(linear_task.EMBEDDING_SIZE)(x)
  embedding = tf.keras.layers.BatchNormalization()(h)
  logits = embedding[:, : linear_task.NUM_CLASSES]
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


@pytest.mark.parametrize(
  ('model_fn', 'message'),
  [
    (linear_task.model_fn, "model_fn must .*'embedding' for build_fed_as"),
    (_head_elsewhere_model_fn, 'model_fn must .*dense layer.*, found the sh'),
  ],
)
def test_models_without_embedding_or_head_are_refused(model_fn, message):
  with pytest.raises(ValueError, match=message):
    algorithms.build_fed_as(
      model_fn, num_clients=2, client_optimizer=linear_task.sgd(0.1)
    )


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    (
      {'alignment_learning_rate': 0},
      ValueError,
      'alignment_learning_rate must be positive, found 0',
    ),
    (
      {'alignment_learning_rate': 'no'},
      TypeError,
      "alignment_learning_rate must be a real number, found 'no'",
    ),
    (
      {'alignment_batch_size': 0},
      ValueError,
      'alignment_batch_size must be at least 1, found 0',
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _process(**options)
