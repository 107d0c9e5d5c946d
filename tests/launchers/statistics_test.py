import math

import numpy as np
import pytest

from tff_fair.launchers import statistics

_NAN = math.nan


class TestStudent:
  def test_by_hand(self):
    # The standard deviation is 1; 4.30265 is the quantile of 2 degrees.
    found = statistics.student([1, 2, 3])
    half = 4.30265 / math.sqrt(3)
    ends = pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert (found.low, found.high) == ends
    assert (found.mean, found.values, found.reached) == (2, (1, 2, 3), 3)

  def test_equal_values_have_an_interval_of_length_zero(self):
    found = statistics.student([0.1, 0.1, 0.1])
    assert found.low == pytest.approx(0.1, abs=1e-15)
    assert found.high == pytest.approx(0.1, abs=1e-15)

  def test_undefined_seeds_are_left_out(self):
    found = statistics.student([_NAN, 1, 3])
    assert (found.mean, found.reached) == (2, 2)
    # 12.7062 is the quantile of one degree, and the standard error is 1.
    ends = pytest.approx((2 - 12.7062, 2 + 12.7062), rel=1e-5)
    assert (found.low, found.high) == ends
    assert found.values == pytest.approx((_NAN, 1, 3), nan_ok=True)

  @pytest.mark.parametrize(('values', 'mean'), [([0.5, _NAN], 0.5), ([], _NAN)])
  def test_fewer_than_two_seeds_have_no_interval(self, values, mean):
    found = statistics.student(values)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize(
  ('values', 'others'),
  [
    ([4, _NAN, 5], [1, 3, 4]),
    ([4, 3, 5], [1, _NAN, 4]),
  ],
)
def test_differences_are_paired(values, others):
  """A seed that one of the two lacks is left out of both.

  Of the others, 3 and 1 differ from their mean by 1: the standard error is 1.
  """
  found = statistics.difference(values, others)
  assert found.values == pytest.approx((3, _NAN, 1), nan_ok=True)
  assert (found.mean, found.reached) == (2, 2)
  ends = pytest.approx((2 - 12.7062, 2 + 12.7062), rel=1e-5)
  assert (found.low, found.high) == ends
  # One common seed has no interval.
  alone = statistics.difference(values, [1, _NAN, _NAN])
  assert (alone.mean, alone.reached) == (3, 1)
  assert np.isnan([alone.low, alone.high]).all()


class TestPValue:
  def test_of_two_seeds_by_hand(self):
    # t is 2; with one degree of freedom it has Cauchy's distribution.
    expected = 1 - 2 * math.atan(2) / math.pi
    assert statistics.p_value([1, 3]) == pytest.approx(expected)
    assert statistics.p_value([_NAN, -1, -3]) == pytest.approx(expected)

  def test_of_three_seeds_by_hand(self):
    # With two degrees of freedom p = 1 - t / sqrt(2 + t^2), and t^2 is 12.
    expected = 1 - math.sqrt(12 / 14)
    assert statistics.p_value([1, 2, 3]) == pytest.approx(expected)

  def test_is_below_the_level_where_the_interval_leaves_out_zero(self):
    rng = np.random.default_rng(0)
    found = []
    for values in rng.normal(1, 1, (50, 4)):
      interval = statistics.student(values)
      is_apart = interval.low > 0 or interval.high < 0
      assert (statistics.p_value(values) < 0.05) == is_apart
      found.append(is_apart)
    assert 5 < sum(found) < 45

  @pytest.mark.parametrize(
    ('differences', 'expected'),
    [
      ([0, 0, 0], 1),
      ([0.1 + 0.2 - 0.3] * 3, 1),  # 5.6e-17 is rounding.
      ([0.05, 0.05], 1 / 2),  # The sign test: both agree.
      ([-0.05] * 5, 1 / 16),
      ([-0.2, 0.5 - 0.7], 1 / 2),  # They differ by rounding.
      ([0.5], _NAN),
      ([0.5, _NAN], _NAN),
      ([], _NAN),
    ],
  )
  def test_without_a_t_statistic(self, differences, expected):
    found = statistics.p_value(differences)
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
  ('p_values', 'expected'),
  [
    # 4 x .005, 3 x .01, 2 x .03, and .04, which is not below the one before.
    ((0.01, 0.04, 0.03, 0.005), (0.03, 0.06, 0.06, 0.02)),
    # Ties: 3 x .02 and 2 x .02, raised to it. NaN is not counted.
    ((0.02, 0.02, _NAN, 0.5), (0.06, 0.06, _NAN, 0.5)),
    ((0.6, 0.7), (1, 1)),
    ((_NAN,), (_NAN,)),
    ((), ()),
  ],
)
def test_holm_by_hand(p_values, expected):
  found = statistics.holm(dict(enumerate(p_values)))
  assert list(found) == list(range(len(p_values)))
  assert tuple(found.values()) == pytest.approx(expected, nan_ok=True)
