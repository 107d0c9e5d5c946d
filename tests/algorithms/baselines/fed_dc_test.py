import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tests.algorithms import quadratic_task
from tff_fair import algorithms
from tff_fair import client

pytestmark = pytest.mark.usefixtures('default_runtime')

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 7, 0, 6)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, _EMPTY, 3, _BROKEN], [1, 3, 0])


def _clients():
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


_process = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_dc,
  num_clients=len(_SIZES),
  local_epochs=2,
)


def _zero():
  model = linear_task.initial_model()
  return model.plus(model, -1.0)


class _FedDc:
  """The algorithm in NumPy, for full batches: an epoch is a step.

  The server's gradient is accumulated from round to round.
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
    """One round of the clients that count, a dictionary from ids to data.

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
        entropies = numpy_reference.cross_entropies(y, data.x, data.y)
        square = np.sum(pull.vector**2)
        losses.append(np.mean(entropies) + self._alpha / 2 * square)
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


def _assert_rounds(**options):
  """Both give the same weights, rows and losses in every round."""
  clients = _clients()
  process, expected = _process(**options), _FedDc(**options)
  state = process.initialize()
  for cohort in _COHORTS:
    output = linear_task.next_round(
      process, state, linear_task.pick(clients, cohort)
    )
    state = output.state
    loss = expected.next(_counted(cohort))
    linear_task.assert_model(process.get_model_weights(state), expected.model)
    table = state.client_work['table']
    linear_task.assert_close(
      [linear_task.client_vectors(table[n]) for n in ('drift', 'gradient')],
      [
        np.array([model.vector for model in models])
        for models in (expected.drifts, expected.gradients)
      ],
      rtol=1e-4,
      atol=1e-5,
    )
    found = output.metrics['client_work']
    assert found['loss'] == pytest.approx(loss, rel=1e-5)
    assert found['num_empty_clients'] == (_EMPTY in cohort)
    assert found['num_rejected_clients'] == (_BROKEN in cohort)
  return expected


def _counted(cohort):
  ids = [i for i in cohort if i not in (_EMPTY, _BROKEN)]
  return linear_task.pick(_clients(), ids)


@pytest.mark.full
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
    # G_i - G + (w - y) / (K eta), where y is w plus the change of the drift.
    old = before.client_work['table']
    moved = table['drift'][0] - old['drift'][0]
    gradients = old['gradient'][0] - np.mean(old['gradient'][0]) - moved / 0.2
    np.testing.assert_allclose(table['gradient'][0], gradients, atol=1e-5)
    if before.client_work['round'] == 0:
      np.testing.assert_allclose(gradients.ravel(), [0.9, -2.7], rtol=1e-5)


def test_three_rounds_against_numpy():
  expected = _assert_rounds()
  # In G, absent clients count as unchanged.
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
def test_an_option_against_numpy(options):
  found, usual = _assert_rounds(**options), _FedDc()
  for cohort in _COHORTS:
    usual.next(_counted(cohort))
  assert np.abs(found.model.kernel - usual.model.kernel).max() > 1e-3


@pytest.mark.full
def test_without_pull_the_first_round_moves_twice_as_far_as_fed_avg():
  """Of all clients; with dropout, batch statistics and minibatches."""
  model = linear_task.embedding_behind_batch_norm_model_fn()
  start = [w.numpy() for w in model.trainable_weights]
  found, expected = (
    linear_task.regularised_rounds(build, 'plain', **options)[0][0]
    for build, options in (
      (algorithms.build_fed_dc, {'drift_weight': 0}),
      (algorithms.build_fed_avg, {'uniform': True}),
    )
  )
  moved = [
    [w - s for w, s in zip(weights.trainable, start, strict=True)]
    for weights in (found, expected)
  ]
  linear_task.assert_close(moved[0], [2 * m for m in moved[1]], rtol=1e-4)
  # Batch statistics do not drift.
  linear_task.assert_close(found.non_trainable, expected.non_trainable)


@pytest.mark.full
def test_the_number_of_steps_is_that_of_minibatches():
  """In two epochs over 5 and over 9 examples, in minibatches of 4."""
  process = _process(batch_size=4)
  for i, number in enumerate((4, 6)):
    state = linear_task.run(process, _clients(), [[i]]).state
    drifts, gradients = (
      linear_task.client_vectors(state.client_work['table'][name])
      for name in ('drift', 'gradient')
    )
    linear_task.assert_close(gradients[i] * number * 0.1, -drifts[i], rtol=1e-4)


@pytest.mark.full
def test_without_the_correction_any_optimizer_is_accepted():
  momentum = linear_task.sgd(0.1, momentum=0.9)
  for options in ({'grad_correction': False}, {'variant': 'fedakd'}):
    _process(client_optimizer=momentum, **options)


def test_bad_arguments():
  plain = 'plain SGD for FedDC.*found'
  linear_task.assert_refused(
    _process,
    ('client_optimizer', linear_task.sgd(0.1, momentum=0.9), plain),
    ('client_optimizer', tff.learning.optimizers.build_adam(0.1), plain),
    (
      'client_optimizer',
      client.with_weight_decay(linear_task.sgd(0.1), 1e-3),
      plain,
    ),
  )
