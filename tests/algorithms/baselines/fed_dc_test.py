import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tests.algorithms import quadratic_task
from tff_fair import algorithms
from tff_fair import client

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 7, 0, 6)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, _EMPTY, 3, _BROKEN], [1, 3, 0])


def _clients():
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


@functools.cache
def _process(decay=1.0, **options):
  def learning_rate_fn(round_number):
    return 0.1 * decay ** tf.cast(round_number, tf.float32)

  return algorithms.build_fed_dc(
    linear_task.model_fn,
    **{
      'num_clients': len(_SIZES),
      'client_optimizer': linear_task.sgd(0.1),
      'client_learning_rate_fn': None if decay == 1.0 else learning_rate_fn,
      'local_epochs': 2,
      'batch_size': 50,
      **options,
    },
  )


def _zero():
  model = linear_task.initial_model()
  return model.plus(model, -1.0)


def _square(model):
  return np.sum(model.kernel**2) + np.sum(model.bias**2)


class _FedDc:
  """The algorithm in NumPy, for full batches: an epoch is a step.

  The server's gradient is added up from round to round.
  """

  def __init__(
    self,
    decay=1.0,
    drift_weight=1.0,
    grad_correction=True,
    variant='original',
  ):
    self.model = linear_task.initial_model()
    self.gradient = _zero()
    self.gradients = [_zero() for _ in _SIZES]
    self.drifts = [_zero() for _ in _SIZES]
    self._decay = decay
    self._alpha = drift_weight
    self._original = variant == 'original'
    self._corrects = grad_correction and self._original
    self._num_rounds = 0

  def next(self, clients):
    """One round of those who count, a dictionary from ids to data.

    Returns:
      The mean over examples of the loss without the term of the gradient.
    """
    rate = 0.1 * self._decay**self._num_rounds
    models, changes, losses = [], [], []
    for i, data in clients.items():
      shift = self.gradient.plus(self.gradients[i], -1.0)
      y = self.model
      for _ in range(2):
        pull = y.plus(self.drifts[i]).plus(self.model, -1.0)
        losses.append(_entropy(y, data) + self._alpha / 2 * _square(pull))
        slope = numpy_reference.focal_gradient(y, data.x, data.y, 0.0)
        y = y.plus(slope.plus(pull, self._alpha).plus(shift), -rate)
      self.drifts[i] = self.drifts[i].plus(y).plus(self.model, -1.0)
      if self._corrects:
        moved = self.model.plus(y, -1.0)
        changes.append(_zero().plus(moved, 1 / (2 * rate)))
        changes[-1] = changes[-1].plus(self.gradient, -1.0)
        self.gradients[i] = self.gradients[i].plus(changes[-1])
      models.append(y if self._original else y.plus(self.drifts[i]))
    for change in changes:
      self.gradient = self.gradient.plus(change, 1 / len(_SIZES))
    self.model = numpy_reference.weighted_mean(models, np.ones(len(models)))
    if self._original:
      for drift in self.drifts:
        self.model = self.model.plus(drift, 1 / len(_SIZES))
    self._num_rounds += 1
    sizes = np.repeat([len(data.y) for data in clients.values()], 2)
    return np.average(losses, weights=sizes)


def _entropy(model, data):
  logits = model.logits(data.x)
  true = logits[np.arange(len(data.y)), data.y]
  return np.mean(np.log(np.exp(logits).sum(axis=1)) - true)


def _assert_rounds(**options):
  """Both give the same weights, rows and losses in every round."""
  clients = _clients()
  process, expected = _process(**options), _FedDc(**options)
  state = process.initialize()
  for cohort in _COHORTS:
    data = [linear_task.client_data(i, clients[i]) for i in cohort]
    output = process.next(state, data)
    state = output.state
    loss = expected.next(
      {i: clients[i] for i in cohort if i not in (_EMPTY, _BROKEN)}
    )
    linear_task.assert_model(process.get_model_weights(state), expected.model)
    table = state.client_work['table']
    _assert_rows(table['drift'], expected.drifts)
    _assert_rows(table['gradient'], expected.gradients)
    found = output.metrics['client_work']
    assert found['loss'] == pytest.approx(loss, rel=1e-5)
    assert found['num_empty_clients'] == (_EMPTY in cohort)
    assert found['num_rejected_clients'] == (_BROKEN in cohort)
  return expected


def _assert_rows(rows, expected):
  for found, name in zip(rows, ('kernel', 'bias'), strict=True):
    values = [getattr(model, name) for model in expected]
    np.testing.assert_allclose(found, values, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures('default_runtime')
def test_example_of_two_quadratics():
  process = quadratic_task.build_process(algorithms.build_fed_dc)
  data = quadratic_task.make_data()
  state = process.initialize()
  for w, drifts in ((1.36, (-0.18, 0.54)), (1.7056, (-0.0684, 0.594))):
    before = state
    state = process.next(state, data).state
    found = process.get_model_weights(state).trainable[0]
    np.testing.assert_allclose(found, [[w]], rtol=1e-5)
    table = state.client_work['table']
    np.testing.assert_allclose(table['drift'][0].ravel(), drifts, rtol=1e-5)
    # G_i - G + (w - y) / (K eta), from y = w plus what the drift has changed.
    old = before.client_work['table']
    moved = table['drift'][0] - old['drift'][0]
    gradients = old['gradient'][0] - np.mean(old['gradient'][0]) - moved / 0.2
    np.testing.assert_allclose(table['gradient'][0], gradients, atol=1e-5)
    if before.client_work['round'] == 0:
      np.testing.assert_allclose(gradients.ravel(), [0.9, -2.7], rtol=1e-5)


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  def test_three_rounds(self):
    expected = _assert_rounds()
    # The absent count in G as those who have not changed.
    mean = np.mean([g.kernel for g in expected.gradients], axis=0)
    np.testing.assert_allclose(mean, expected.gradient.kernel, atol=1e-12)
    assert np.abs(mean).max() > 0.01

  @pytest.mark.parametrize(
    'options',
    [
      {'drift_weight': 0.2, 'decay': 0.5},
      {'grad_correction': False},
      {'variant': 'fedakd'},
    ],
    ids=str,
  )
  def test_an_option(self, options):
    found, usual = _assert_rounds(**options), _FedDc()
    for cohort in _COHORTS:
      usual.next(
        {i: _clients()[i] for i in cohort if i not in (_EMPTY, _BROKEN)}
      )
    assert np.abs(found.model.kernel - usual.model.kernel).max() > 1e-3


@pytest.mark.usefixtures('default_runtime')
def test_without_pull_the_first_round_moves_twice_as_far_as_fed_avg():
  """Of all clients; dropout, batch statistics and minibatches included."""
  clients = linear_task.make_clients((5, 9, 12))
  moved = []
  for build, options in (
    (algorithms.build_fed_dc, {'drift_weight': 0}),
    (algorithms.build_fed_avg, {'uniform': True}),
  ):
    process = build(
      functools.partial(linear_task.embedding_behind_batch_norm_model_fn, 0.5),
      num_clients=3,
      client_optimizer=linear_task.sgd(0.1),
      local_epochs=2,
      batch_size=4,
      seed=3,
      focal_gamma=0.5,
      **options,
    )
    start, weights = (
      process.get_model_weights(state)
      for state in (
        process.initialize(),
        linear_task.run(process, clients, [[0, 1, 2]]).state,
      )
    )
    moved.append(tf.nest.map_structure(np.subtract, weights, start))
  for found, expected in zip(
    moved[0].trainable, moved[1].trainable, strict=True
  ):
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-4, atol=1e-6)
  # Batch statistics do not drift.
  for found, expected in zip(
    moved[0].non_trainable, moved[1].non_trainable, strict=True
  ):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures('default_runtime')
def test_the_number_of_steps_is_that_of_minibatches():
  """In two epochs over 5 and over 9 examples, at most 4 of them at once."""
  process = _process(batch_size=4)
  clients = _clients()
  for i, number in enumerate((4, 6)):
    table = linear_task.run(process, clients, [[i]]).state.client_work['table']
    for drift, gradient in zip(table['drift'], table['gradient'], strict=True):
      np.testing.assert_allclose(
        gradient[i] * number * 0.1, -drift[i], rtol=1e-4, atol=1e-6
      )


@pytest.mark.usefixtures('default_runtime')
def test_nobody_changes_nothing():
  process = _process()
  before = linear_task.run(process, _clients(), [[0, 1]]).state
  data = [linear_task.client_data(i, _clients()[i]) for i in (_EMPTY, _BROKEN)]
  for cohort in ([], data):
    after = process.next(before, cohort).state
    linear_task.assert_equal(
      process.get_model_weights(after), process.get_model_weights(before)
    )
    linear_task.assert_equal(
      after.client_work['table'], before.client_work['table']
    )
    linear_task.assert_equal(after.aggregator, before.aggregator)


@pytest.mark.usefixtures('default_runtime')
def test_variant_fedakd_takes_adam():
  """A first step of it is as long as the learning rate in every entry."""
  process = _process(
    variant='fedakd',
    client_optimizer=tff.learning.optimizers.build_adam(0.01),
    local_epochs=1,
  )
  state = linear_task.run(process, _clients(), [[0]]).state
  table = state.client_work['table']
  for drift, gradient, start, found in zip(
    table['drift'],
    table['gradient'],
    process.get_model_weights(process.initialize()).trainable,
    process.get_model_weights(state).trainable,
    strict=True,
  ):
    np.testing.assert_allclose(np.abs(drift[0]), 0.01, rtol=1e-2)
    # The client's model is y, and it sends y + h.
    np.testing.assert_allclose(found - start, 2 * drift[0], atol=1e-6)
    np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


_OTHERS = {
  'momentum': linear_task.sgd(0.1, momentum=0.9),
  'weight decay': client.with_weight_decay(linear_task.sgd(0.1), 1e-3),
  'adam': tff.learning.optimizers.build_adam(0.1),
}


@pytest.mark.parametrize('name', _OTHERS)
def test_to_correct_gradients_takes_plain_sgd(name):
  with pytest.raises(
    ValueError, match='client_optimizer must be plain SGD for FedDC.*found'
  ):
    _process(client_optimizer=_OTHERS[name])


def test_without_correction_any_optimizer_will_do():
  _process(client_optimizer=_OTHERS['momentum'], grad_correction=False)


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    (
      {'drift_weight': -0.1},
      ValueError,
      'drift_weight must be at least 0.*found -0.1',
    ),
    ({'drift_weight': np.nan}, ValueError, 'drift_weight must be .*found nan'),
    (
      {'grad_correction': 'no'},
      ValueError,
      "grad_correction must be one of False, True, found 'no'",
    ),
    (
      {'variant': 'other'},
      ValueError,
      "variant must be one of 'original', 'fedakd', found 'other'",
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _process(**options)
