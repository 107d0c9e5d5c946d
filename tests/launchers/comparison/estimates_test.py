import math

import numpy as np
import pytest

from tff_fair.launchers.comparison import estimates

_NAN = math.nan


class TestEstimate:
  def test_equal_values_have_an_interval_of_length_zero(self):
    (found,) = estimates.estimate([[0.1, 0.1, 0.1]])
    assert found.low == found.high == pytest.approx(0.1, abs=1e-15)

  def test_one_seed_has_no_interval(self):
    (found,) = estimates.estimate([[0.5]])
    assert (found.mean, found.reached, found.sign) == (0.5, 1, 0)
    assert np.isnan([found.low, found.high]).all()

  def test_three_seeds_have_their_range(self):
    # All three resampled values are the lowest in 1 of 27, more than 2.5 %.
    (found,) = estimates.estimate([[4.0, 1.0, 2.0]])
    assert (found.low, found.high) == (1, 4)
    assert found.mean == pytest.approx(7 / 3)

  def test_undefined_seeds_are_left_out(self):
    found = estimates.estimate(
      [[_NAN, 1, 3], [_NAN, 5, _NAN], [_NAN, _NAN, _NAN], [1, 2, 3]]
    )
    assert [e.reached for e in found] == [2, 1, 0, 3]
    assert [e.mean for e in found[:2]] == [2, 5]
    assert math.isnan(found[2].mean)
    assert (found[0].low, found[0].high) == (1, 3)
    # A row's interval does not depend on the others.
    (alone,) = estimates.estimate([[1, 2, 3]])
    assert found[3] == alone

  def test_approaches_the_normal_interval(self):
    values = np.random.default_rng(0).normal(5.0, 2.0, (1, 400))
    (found,) = estimates.estimate(values)
    half = 1.96 * values.std() / 20
    assert found.high - found.mean == pytest.approx(half, rel=0.05)
    assert found.mean - found.low == pytest.approx(half, rel=0.05)


@pytest.mark.parametrize(
  'values,others,sign',
  [
    ([3, 4, 5], [1, 3, 4], 1),
    ([1, 3, 4], [3, 4, 5], -1),
    ([3, 4, 5], [1, 5, 4], 0),
    ([3, 4, 5], [3, 3, 3], 0),  # One seed has no difference.
    ([0.1 + 0.2], [0.3], 0),
    ([0.1 + 0.2, 0.1 + 0.2], [0.3, 0.3], 0),  # 5.6e-17 is rounding.
    ([3, _NAN, 5], [1, 3, _NAN], 0),  # One pair is left.
  ],
)
def test_the_sign_of_paired_differences(values, others, sign):
  assert estimates.difference(values, others).sign == sign
