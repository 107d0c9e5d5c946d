import functools
import math

import numpy as np
import pytest
from scipy import optimize
import tensorflow as tf

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import min_norm

_THREE = np.array([[1, 0], [0, 1], [-0.6, 0.8]])
_solve = tf.function(
  min_norm.min_norm,
  input_signature=[
    tf.TensorSpec([None, None], tf.float64),
    *[tf.TensorSpec([None], tf.float64)] * 3,
  ],
)


def _mix(rows, shares, deviation):
  """The weights lambda, and their mix of the rows."""
  rows, shares = np.asarray(rows, float), np.asarray(shares, float)
  weights = _solve(
    rows @ rows.T,
    np.maximum(shares - deviation, 0),
    np.minimum(shares + deviation, 1),
    shares,
  ).numpy()
  return weights, weights @ rows


def test_project():
  for point, lower, upper, expected in (
    # Within the bounds it moves along the ones.
    ([0.5, 0.3, 0.8], [0, 0, 0], [1, 1, 1], [0.3, 0.1, 0.6]),
    # tau = -0.1: 0.9 and 0.3 reach the bounds 0.5 and 0.2.
    ([0.9, 0.1, 0.2], [0, 0.2, 0], [0.5] * 3, [0.5, 0.2, 0.3]),
    # A single point.
    ([9.0, -4.0], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]),
  ):
    found = min_norm.project(*map(np.float64, (point, lower, upper)))
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_project_is_the_nearest_point():
  """Those between their bounds move by one tau, no other would move further."""
  generator = np.random.default_rng(0)
  for number in range(40):
    size = generator.integers(1, 30)
    point = generator.normal(size=size) * 10.0 ** generator.integers(-3, 3)
    lower = generator.uniform(0, 1 / size, size) * (number % 2)
    upper = np.minimum(1, lower + generator.uniform(0, 1, size))
    upper[0] = 1  # Otherwise there may be no such point.
    if number % 5 == 0:
      point = point.round()  # Ties.
    found = min_norm.project(point, lower, upper).numpy()
    error = 1e-13 * max(1, abs(point).max())
    assert found.sum() == pytest.approx(1, abs=error)
    assert (lower <= found).all() and (found <= upper).all()
    moved = point - found
    tau = moved[(found > lower + error) & (found < upper - error)]
    if tau.size:
      assert np.ptp(tau) <= error
      assert (moved[found <= lower] <= tau[0] + error).all()
      assert (moved[found >= upper] >= tau[0] - error).all()


class TestMinNorm:
  def test_by_hand(self):
    two, third = np.eye(2), np.full(3, 1 / 3)
    for rows, shares, deviation, weights, mix in (
      ([[2, 0], [0, 1]], [0.5, 0.5], 1, [0.2, 0.8], [0.4, 0.8]),
      (_THREE, third, 0.1, [13 / 30, 7 / 30, 1 / 3], [7 / 30, 0.5]),
      (_THREE, third, 1.0, [0.5, 0, 0.5], [0.2, 0.4]),
      (two, [0.8, 0.2], 0.1, [0.7, 0.3], [0.7, 0.3]),
    ):
      found = _mix(rows, shares, deviation)
      np.testing.assert_allclose(found[0], weights, atol=1e-9)
      np.testing.assert_allclose(found[1], mix, atol=1e-9)
    # Without deviation it is the start.
    weights, mix = _mix(_THREE, third, 0.0)
    np.testing.assert_allclose(weights, third, rtol=1e-15)
    assert np.linalg.norm(mix) == pytest.approx(0.614636, abs=1e-6)

  def test_against_sequential_quadratic_programming(self):
    for size in (4, 30):
      for deviation in (0.05, 1.0):
        self._compare_with_scipy(size, deviation)

  def _compare_with_scipy(self, size, deviation):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=[size, 20]) + rng.normal(size=20)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    shares = rng.dirichlet(np.ones(size))
    weights, mix = _mix(rows, shares, deviation)
    lower = np.maximum(shares - deviation, 0)
    upper = np.minimum(shares + deviation, 1)
    best = optimize.minimize(
      lambda w: np.sum((w @ rows) ** 2),
      shares,
      jac=lambda w: 2 * rows @ (w @ rows),
      bounds=list(zip(lower, upper, strict=True)),
      constraints={'type': 'eq', 'fun': lambda w: w.sum() - 1},
      method='SLSQP',
      options={'ftol': 1e-15, 'maxiter': 1000},
    )
    assert mix @ mix <= best.fun + 1e-12
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert np.all((weights >= lower - 1e-15) & (weights <= upper + 1e-15))
    if deviation == 1:
      assert np.min(rows @ mix) >= mix @ mix - 1e-9


@functools.cache
def _process(deviation):
  """With a rate of 1 in the first round, then 1/2, 1/4, ..."""
  factory = aggregators.MinNormFactory(
    deviation,
    learning_rate_fn=lambda number: 0.5 ** tf.cast(number, tf.float32),
  )
  return rounds.create(factory, np.float32([0, 0]), np.float32(1))


def _aggregate(deviation, values, weights, num_rounds=1):
  process, state = _process(deviation), None
  for _ in range(num_rounds):
    values, weights = np.float32(values), np.float32(weights)
    output = rounds.run(process, values, weights, state)
    state = output.state
  return output


@pytest.mark.usefixtures('default_runtime')
class TestExecution:
  def test_two_clients_in_closed_form(self):
    a, b = np.array([3.0, 4.0]), np.array([-2.0, 0.0])
    output = _aggregate(1.0, [a, b], [1, 9])
    u, v = a / 5, b / 2
    # Both are of length 1, so the middle is nearest to 0.
    np.testing.assert_allclose(output.result, (u + v) / 2, atol=1e-6)
    found = output.measurements
    assert found['num_aggregated'] == 2
    assert found['norm'] == pytest.approx(np.linalg.norm(u + v) / 2)
    assert found['largest_weight'] == pytest.approx(0.5)
    assert found['descent_violation'] < 1e-9

  def test_without_deviation_it_is_the_mean_of_unit_updates(self):
    # Statistics are averaged with the same weights.
    values = [
      rounds.ModelWeights([np.float32([3, 4])], [np.float32(8)]),
      rounds.ModelWeights([np.float32([0, -2])], [np.float32(-4)]),
    ]
    weights = np.float32([3, 1])
    factory = aggregators.MinNormFactory(0.0)
    process = rounds.create(factory, values[0], weights[0])
    output = rounds.run(process, values, weights)
    np.testing.assert_allclose(
      output.result.trainable[0], [0.75 * 0.6, 0.75 * 0.8 - 0.25], atol=1e-6
    )
    assert output.result.non_trainable[0] == pytest.approx(5)
    assert output.measurements['largest_weight'] == pytest.approx(0.75)
    assert output.measurements['smallest_weight'] == pytest.approx(0.25)
    # |d|^2 = .325, the second's product .125 - .35 * 1 < 0.
    assert output.measurements['descent_violation'] > 0.3

  def test_the_rate_follows_the_round(self):
    output = _aggregate(0.1, [[3, 4]], [7], num_rounds=3)
    assert output.state == 3
    np.testing.assert_allclose(output.result, [0.15, 0.2], rtol=1e-6)

  def test_excluded_clients_do_not_matter(self):
    some = [[1, 0], [0, 2], [-3, 4]]
    alone = _aggregate(0.1, some, [1, 1, 1])
    together = _aggregate(
      0.1,
      # Too short for a direction is too short for a unit update.
      [[9, 9], *some, [math.nan, 0], [1e-13, 0], [0, 0], [1, 0]],
      [0, 1, 1, 1, 5, 5, 5, math.inf],
    )
    np.testing.assert_array_equal(together.result, alone.result)
    # NaN and the infinite weight; the others are weightless or short.
    assert together.measurements.pop('num_non_finite') == 2
    assert alone.measurements.pop('num_non_finite') == 0
    assert together.measurements == alone.measurements
    assert alone.measurements['largest_weight'] == pytest.approx(0.433333)

  def test_no_client_remains(self):
    output = _aggregate(1.0, [[1, 1], [0, 0]], [0, 1])
    np.testing.assert_array_equal(output.result, [0, 0])
    assert output.measurements['num_aggregated'] == 0
    assert np.isnan(output.measurements['largest_weight'])
    # Nor is there a direction: the start stays.
    weights, _ = _mix(np.zeros([2, 3]), [0.3, 0.7], 1)
    np.testing.assert_array_equal(weights, [0.3, 0.7])


def test_products_that_are_not_finite_have_no_minimum():
  for bad in (np.nan, np.inf):
    gram = np.array([[1.0, bad], [bad, 1.0]])
    half = np.full(2, 0.5)
    assert np.isnan(_solve(gram, 0 * half, 2 * half, half)).all()
