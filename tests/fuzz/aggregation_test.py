"""The arithmetic of the aggregation rules, against NumPy."""

import collections

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf

from tests.fuzz import strategies
from tff_fair.aggregators import clustering
from tff_fair.aggregators import fair_descent
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.aggregators import min_norm
from tff_fair.tensors import summable

pytestmark = pytest.mark.full


_K = 4
_SHARE = st.floats(0, 1)


def _doubles(shape, elements=strategies.MODERATE):
  return strategies.arrays(shape, elements, np.float64)


def _close(found, expected, rtol=1e-6, atol=1e-9):
  np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


@given(strategies.arrays([_K, 2], strategies.EXTREME))
def test_cosine_distances(vectors):
  found = clustering.cosine_distances(vectors).numpy()
  lengths = np.linalg.norm(np.float64(vectors), axis=1, keepdims=True)
  units = vectors / np.where(lengths > 0, lengths, 1)
  expected = 1 - units @ units.T
  _close(found, expected, atol=1e-12)
  assert -1e-12 <= found.min() <= found.max() <= 2 + 1e-12


@given(st.integers(1, 100), st.integers(0, 10**6), st.integers(0, 10))
def test_num_kept_is_exact_in_percent(percent, size, minimum):
  found = largest_values.num_kept(percent / 100, size, minimum)
  assert found == min(size, max(minimum, percent * size // 100))


_VECTOR = tf.TensorSpec([None], tf.float64)
_ROWS = tf.TensorSpec([None, 2], tf.float64)
_minimum = tf.function(
  min_norm.min_norm,
  input_signature=[tf.TensorSpec([None, None], tf.float64), *[_VECTOR] * 3],
)
_projection = tf.function(min_norm.project, input_signature=[_VECTOR] * 3)
_direction = tf.function(
  lambda gradients, losses, absent: fair_descent.fair_direction(
    gradients, losses, absent, angle=0.1, forced=tf.constant(False)
  ),
  input_signature=[_ROWS, _VECTOR, _ROWS],
)


def _cheapest(prices, lower, upper):
  """The least `prices x` with `lower <= x <= upper` and `sum x = 1`."""
  x = lower.copy()
  for i in np.argsort(prices):
    x[i] += min(upper[i] - x[i], 1 - x.sum())
  return prices @ x


@st.composite
def _bounds(draw):
  """Shares, and bounds around them as `MinNormFactory` has them."""
  counts = draw(_doubles([_K], st.floats(1e-3, 10)))
  deviation = draw(_SHARE)
  shares = counts / counts.sum()
  return (
    shares,
    np.maximum(shares - deviation, 0),
    np.minimum(shares + deviation, 1),
  )


class TestMinNorm:
  @given(_doubles([_K], st.floats(-1e3, 1e3)), _bounds())
  def test_project(self, vector, bounds):
    _, lower, upper = bounds
    found = _projection(vector, lower, upper).numpy()
    assert np.all((lower <= found) & (found <= upper))
    assert found.sum() == pytest.approx(1)
    # No feasible point lies further along what was cut off.
    away = vector - found
    assert -_cheapest(-away, lower, upper) <= away @ found + 1e-6
    again = _projection(found, lower, upper)
    _close(again, found, atol=1e-9)

  @given(_doubles([_K, 3]), _bounds())
  def test_min_norm(self, rows, bounds):
    shares, lower, upper = bounds
    gram = rows @ rows.T
    found = _minimum(gram, lower, upper, shares).numpy()
    assert np.all((lower - 1e-12 <= found) & (found <= upper + 1e-12))
    assert found.sum() == pytest.approx(1)
    slope = gram @ found
    gap = slope @ found - _cheapest(slope, lower, upper)
    assert gap <= 1e-6 * max(np.trace(gram), 1e-12)


@given(
  _doubles([_K], st.floats(0, 6)),
  _doubles([_K], st.floats(0.1, 10)),
  _doubles([1, 2], st.floats(-1, 1)),
  st.sampled_from([0, 1, _K]),
)
def test_nobody_climbs(angles, losses, absent, number):
  gradients = 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
  gradients, losses = gradients[:number], losses[:number]
  found = _direction(gradients, losses, absent)
  direction = found['direction'].numpy()
  assert np.isfinite(direction).all()
  assert np.all(np.vstack([gradients, absent]) @ direction >= -1e-4)
  mean = gradients.mean(axis=0) if number else np.zeros(2)
  assert np.linalg.norm(direction) <= np.linalg.norm(mean) + 3 + 1e-6
  assert found['scale'].numpy() >= 0
  if not number:
    assert not direction.any()


@given(
  strategies.arrays([2], strategies.ANYTHING),
  strategies.arrays([], strategies.ANYTHING),
)
def test_summable_or_zeros(value, number):
  weight = collections.OrderedDict(
    client_id=tf.constant(3), number=tf.constant(number)
  )
  found = gathered.summable_or_zeros([tf.constant(value)], weight)
  # NaN is not below the bound either.
  finite = np.all(np.abs([*value, number]) <= summable.LARGEST)
  np.testing.assert_array_equal(found['value'][0], value * 1 if finite else 0)
  assert found['weight']['client_id'] == 3
  assert found['weight']['number'] == (number if finite else 0)
