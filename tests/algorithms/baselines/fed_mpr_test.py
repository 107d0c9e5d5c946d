import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms
from tff_fair.algorithms.baselines import fed_mpr

pytestmark = pytest.mark.usefixtures('default_runtime')

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 0, 6)
_EMPTY, _BROKEN = 3, 4


def _clients():
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


_process = functools.partial(
  linear_task.build_process, algorithms.build_fed_mpr, num_clients=len(_SIZES)
)


class TestPrune:
  def test_fractions_by_hand(self):
    weights = [0.05, -0.3, 0.01, 0.8, 0.2, -0.02, 0.4, 0.6, -0.7, 0.1]
    for fraction, pruned in (
      (0.1, [2]),
      (0.19, [2]),
      (0.2, [2, 5]),
      (0.55, [2, 5, 0, 9, 4]),
      (0.95, [0, 1, 2, 4, 5, 6, 7, 8, 9]),
      (0.0, []),
      (0.09, []),
    ):
      expected = np.array(weights, np.float32)
      expected[pruned] = 0
      (found,) = fed_mpr.prune([tf.constant(weights)], fraction)
      np.testing.assert_array_equal(found, expected)

  def test_of_equal_magnitudes_the_lower_index_stays(self):
    (found,) = fed_mpr.prune([tf.constant([0.5, -1.0, 1.0, -1.0, 2.0])], 0.6)
    np.testing.assert_array_equal(found, [0, -1, 0, 0, 2])

  def test_all_tensors_are_ranked_together(self):
    weights = [
      tf.constant([[1.0, -5.0], [0.2, 4.0]]),
      tf.constant([0.1, 3.0]),
      tf.constant(-0.3),
      tf.constant([7.0, 6.0, -8.0]),
    ]
    found = fed_mpr.prune(weights, 0.4)
    expected = [[[0, -5], [0, 4]], [0, 3], 0, [7, 6, -8]]
    for a, b in zip(found, expected, strict=True):
      np.testing.assert_array_equal(a, b)

  def test_products_that_are_nearly_integers_are_rounded(self):
    # .29 * 100 is 28.999...
    (found,) = fed_mpr.prune([tf.range(1.0, 101.0)], 0.29)
    np.testing.assert_array_equal(found, [0] * 29 + list(range(30, 101)))

  def test_non_finite_weights_are_not_hidden(self):
    for bad in (np.nan, np.inf):
      (found,) = fed_mpr.prune([tf.constant([1.0, bad, 0.1, 2.0])], 0.5)
      np.testing.assert_array_equal(found, np.float32([1, bad, 0.1, 2]))


def _pruned(model, number):
  """The model without this number of its smallest weights."""
  vector = model.vector
  vector[np.argsort(np.abs(vector), kind='stable')[:number]] = 0
  return numpy_reference.Linear.of(vector)


def _trained(model, data, velocity, epochs, momentum):
  """Some steps on all examples, with momentum."""
  for _ in range(epochs):
    gradient = numpy_reference.focal_gradient(model, data.x, data.y, 0.0)
    velocity = gradient.plus(velocity, momentum)
    model = model.plus(velocity, -0.1)
  return model, velocity


@pytest.mark.parametrize(
  ('options', 'stages'),
  [
    # Pairs of the number of epochs, and of how many of 15 weights then go.
    ({'prune_fraction': 0.4}, [(1, 6)]),
    pytest.param(
      {'prune_fraction': 0.5, 'local_epochs': 4, 'prune_stages': 3},
      [(2, 2), (1, 5), (1, 7)],
      marks=pytest.mark.full,
    ),
  ],
  ids=['one stage', 'three stages'],
)
def test_two_rounds_against_numpy(options, stages):
  """The optimiser's state is carried from stage to stage."""
  process = _process(
    client_optimizer=linear_task.sgd(0.1, momentum=0.9), **options
  )
  clients = _clients()
  expected, state = linear_task.initial_model(), process.initialize()
  for cohort in ([0, 1, 2], [2, _EMPTY, _BROKEN, 0]):
    output = linear_task.next_round(
      process, state, linear_task.pick(clients, cohort)
    )
    state = output.state
    models = []
    for i in set(cohort) - {_EMPTY, _BROKEN}:
      model, velocity = expected, expected.plus(expected, -1.0)
      for epochs, number in stages:
        model, velocity = _trained(model, clients[i], velocity, epochs, 0.9)
        model = _pruned(model, number)
      models.append(model)
    # The mean over clients, zeros included.
    expected = numpy_reference.weighted_mean(models, np.ones(len(models)))
    linear_task.assert_model(process.get_model_weights(state), expected)
    found = output.metrics['client_work']
    assert found['num_rejected_clients'] == (_BROKEN in cohort)
    assert found['num_empty_clients'] == (_EMPTY in cohort)
  # A client alone sends exactly its zeros.
  state = linear_task.run(process, clients, [[1]]).state
  zeros = np.sum(linear_task.weights(process, state) == 0)
  assert zeros == stages[-1][1]


@pytest.mark.full
def test_a_client_that_diverged_is_rejected_and_not_pruned():
  """Even if all of its values that are not finite could be pruned."""
  process = _process(prune_fraction=0.95)
  clients = _clients()
  clients[2].x[0, 0] = np.inf
  outputs = [
    linear_task.run(process, clients, [cohort])
    for cohort in ([0, 1], [0, _BROKEN, 2, 1])
  ]
  assert outputs[1].metrics['client_work']['num_rejected_clients'] == 2
  one, other = (process.get_model_weights(o.state) for o in outputs)
  linear_task.assert_equal(one, other)


@pytest.mark.full
def test_nothing_pruned_is_uniform_fed_avg_bit_for_bit():
  linear_task.assert_is_fed_avg(
    algorithms.build_fed_mpr, 'adam', uniform=True, prune_fraction=0
  )


@pytest.mark.full
def test_scales_and_shifts_are_pruned_and_statistics_are_not():
  """All but one weight are pruned: the scales are 1, the others smaller."""
  process = algorithms.build_fed_mpr(
    linear_task.batch_norm_model_fn,
    num_clients=1,
    client_optimizer=linear_task.sgd(1e-3),
    prune_fraction=0.95,
  )
  (data,) = linear_task.make_clients((8,))
  state = linear_task.run(process, [data], [[0]]).state
  weights = process.get_model_weights(state)
  # floor(.95 * (4 + 4 + 12 + 3)) of 23.
  scale, *others = weights.trainable
  assert np.sum(scale == 0) == 2 and not any(w.any() for w in others)
  mean, _ = weights.non_trainable
  np.testing.assert_allclose(mean, data.x.mean(axis=0) / 2, rtol=1e-4)


def test_bad_arguments():
  linear_task.assert_refused(
    _process, ('prune_stages', 3, r'in 1\.\.2, found 3'), local_epochs=2
  )
