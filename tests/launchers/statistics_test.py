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


class TestLevels:
  def test_of_an_interval_by_hand(self):
    # 6.96456 is the quantile of a 98 % interval with two degrees of freedom.
    found = statistics.student([1, 2, 3], 0.98)
    half = 6.96456 / math.sqrt(3)
    ends = pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert (found.low, found.high) == ends
    paired = statistics.difference([2, 4, 6], [1, 2, 3], 0.98)
    assert (paired.low, paired.high) == (found.low, found.high)


class TestOneSided:
  @pytest.mark.parametrize(
    'differences', [[1, 2, 3], [-1, 5, 2, 0.5], [0.3, 0.3, 0.3], [0, 0]]
  )
  def test_is_half_of_the_two_sided(self, differences):
    above = statistics.p_above(differences)
    below = statistics.p_above(np.negative(differences))
    two_sided = statistics.p_value(differences)
    assert two_sided == pytest.approx(min(1, 2 * min(above, below)))

  def test_by_hand(self):
    # t is 2; with one degree of freedom it has Cauchy's distribution.
    expected = 0.5 - math.atan(2) / math.pi
    assert statistics.p_above([1, 3]) == pytest.approx(expected)
    assert statistics.p_above([-1, -3]) == pytest.approx(1 - expected)
    assert statistics.p_above([5, 5, 5]) == 1 / 8
    assert statistics.p_above([-5, -5, -5]) == 1
    assert math.isnan(statistics.p_above([5, _NAN]))


class TestEquivalence:
  def test_by_hand(self):
    # Mean 0 and standard error 1: against a margin of 2, t is 2 on both sides.
    expected = 0.5 - math.atan(2) / math.pi
    found = statistics.equivalence_p_value([3, 5], [4, 4], 2)
    assert found == pytest.approx(expected)
    # Mean 1: the side where t is 1 decides.
    found = statistics.equivalence_p_value([4, 6], [4, 4], 2)
    assert found == pytest.approx(0.5 - math.atan(1) / math.pi)

  def test_the_interval_within_the_margin_is_the_same(self):
    """Each of the two tests at 1 %: an interval of 98 %."""
    rng = np.random.default_rng(1)
    found = []
    for values in rng.normal(0.3, 1, (60, 6)):
      interval = statistics.student(values, 0.98)
      is_within = interval.low > -1.5 and interval.high < 1.5
      assert (
        statistics.equivalence_p_value(values, 0, 1.5) < 0.01
      ) == is_within
      found.append(is_within)
    assert 5 < sum(found) < 55

  def test_outside_the_margin_there_is_no_equivalence(self):
    assert statistics.equivalence_p_value([9, 9.1, 9.2], 0, 1) > 0.99
    assert math.isnan(statistics.equivalence_p_value([1], [1], 2))

  def test_on_another_scale_the_margin_keeps_its_unit(self):
    """Of the squares 1 and 4 less (2 - 1)^2, and (2 + 1)^2 less them."""
    found = statistics.equivalence_p_value([1, 2], [2, 2], 1, np.square)
    expected = max(statistics.p_above([0, 3]), statistics.p_above([8, 5]))
    assert found == expected


class TestCorrelations:
  def test_z_by_hand(self):
    # artanh(r) = log((1 + r) / (1 - r)) / 2.
    found = statistics.fisher_z([0, 0.5, -0.5, 0.8])
    third, ninth = math.log(3) / 2, math.log(9) / 2
    assert found == pytest.approx([0, third, -third, ninth])
    assert np.isfinite(statistics.fisher_z([1, -1])).all()
    assert np.isnan(statistics.fisher_z([_NAN])).all()

  def test_a_difference_by_hand(self):
    """All of the spread is on the left: z is log 3 / 2 and log 9 / 2, less 0.

    Their mean is .75 log 3, and tanh of it (27^.5 - 1) / (27^.5 + 1).
    """
    found = statistics.correlation_difference([0.5, 0.8], 0)
    root = math.sqrt(27)
    assert found.mean == pytest.approx((root - 1) / (root + 1))
    half = 12.7062 * math.log(3) / 4  # The standard error is log 3 / 4.
    ends = (
      math.tanh(0.75 * math.log(3) - half),
      math.tanh(0.75 * math.log(3) + half),
    )
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-5)
    assert (found.values, found.reached) == ((0.5, 0.8), 2)

  def test_the_spread_is_shared_by_the_variances(self):
    # Equal variances and the same sign: both sides move, by a half each.
    found = statistics.correlation_difference([0.5, 0], [0, -0.5])
    third = math.log(3) / 2
    assert found.mean == pytest.approx(2 * math.tanh(third / 2))
    assert found.low == found.high == pytest.approx(found.mean)
    assert found.mean == pytest.approx(
      statistics.correlation_mean([0.5, 0])
      - statistics.correlation_mean([0, -0.5])
    )

  def test_intervals_are_bounded_and_decide_as_z_does(self):
    rng = np.random.default_rng(2)
    for left, right in np.tanh(rng.normal(0, 2, (60, 2, 3))):
      found = statistics.correlation_difference(left, right)
      assert -2 <= found.low <= found.mean <= found.high <= 2
      on_z = np.subtract(*statistics.fisher_z([left, right]))
      is_apart = found.low > 0 or found.high < 0
      assert is_apart == (statistics.p_value(on_z) < 0.05)

  def test_a_seed_that_one_side_lacks_is_left_out_of_both(self):
    found = statistics.correlation_difference([0.5, _NAN, 0.5], [0, 0.9, 0])
    assert found.mean == pytest.approx(0.5) and found.reached == 2
    alone = statistics.correlation_difference([0.5], [0.1])
    assert alone.mean == pytest.approx(0.4) and math.isnan(alone.low)


class TestLooks:
  def test_only_the_planned_numbers_of_seeds_count(self):
    looks = [statistics.planned(count) for count in (0, 2, 3, 5, 6, 8, 9, 40)]
    assert looks == [0, 0, 3, 3, 6, 6, 9, 9]

  def test_all_looks_together_are_wrong_in_five_per_cent(self):
    """Of 20000 questions without a difference; the standard error is .15 %."""
    rows = np.random.default_rng(3).normal(size=(20_000, max(statistics.LOOKS)))
    wrong = np.zeros(len(rows), bool)
    for look in statistics.LOOKS:
      seen = rows[:, :look]
      error = seen.std(axis=1, ddof=1) / math.sqrt(look)
      half = statistics.student([0] * (look - 2) + [-1, 1], 0.98)
      quantile = half.high / np.std([0] * (look - 2) + [-1, 1], ddof=1)
      wrong |= np.abs(seen.mean(axis=1)) > quantile * math.sqrt(look) * error
    assert wrong.mean() == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize(
  ('differences', 'level', 'expected'),
  [
    # The standard deviation is the mean, which is 1: t of 95 % over the root
    # of n is 1.050 at 6 and .925 at 7.
    ([1 - math.sqrt(0.5), 1 + math.sqrt(0.5)], 0.95, 7),
    ([0, 1, 2], 0.95, 7),
    ([0, -1, -2], 0.95, 7),
    # A tenth of it: 12.7 over the root of 2 is 9.0, below 10.
    ([9, 10, 11], 0.95, 2),
    # The sign test: 2^(1 - 7) is the first below 2 %.
    ([0.5, 0.5], 0.98, 7),
    ([0, 0], 0.98, math.inf),
    ([-1, 1], 0.98, math.inf),
    ([-1, 1.001], 0.98, math.inf),
    ([1], 0.98, _NAN),
  ],
)
def test_seeds_needed_by_hand(differences, level, expected):
  found = statistics.seeds_needed(differences, level)
  assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
  ('count', 'total', 'level', 'expected'),
  [
    # None of n: 1 - alpha^(1 / n), with half of alpha at this end.
    (0, 10, 0.95, (0, 1 - 0.025**0.1)),
    (10, 10, 0.95, (0.025**0.1, 1)),
    (1, 1, 0.98, (0.01, 1)),
  ],
)
def test_a_share_by_hand(count, total, level, expected):
  assert statistics.share(count, total, level) == pytest.approx(expected)


class TestSignedRank:
  def test_by_hand(self):
    # All five are above 0: one of the 2^5 signs, on either side.
    assert statistics.signed_rank_p_value([1, 2, 3, 4, 5]) == 2 / 32
    # The rank below 0 is 1: signs with a sum of ranks of at most 1 are two.
    assert statistics.signed_rank_p_value([-1, 2, 3, 4, 5]) == 4 / 32
    assert statistics.signed_rank_p_value([-1, -2, -3, -4, -5]) == 2 / 32

  def test_zeros_and_undefined_ones_are_left_out(self):
    rest = [1, 2, 3, 4, 5]
    assert statistics.signed_rank_p_value([0, 1e-12, _NAN, *rest]) == 2 / 32
    assert statistics.signed_rank_p_value([0, _NAN]) == 1
    assert math.isnan(statistics.signed_rank_p_value([_NAN]))
