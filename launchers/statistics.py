"""Means over seeds with intervals, and tests of paired differences.

Comparisons and claims share it. Seeds are paired and their differences normal
(Student's t); coefficients of correlation are compared on Fisher's z scale.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import TypeVar

import numpy as np
from numpy import typing as npt
from scipy import special
from scipy import stats

_Key = TypeVar('_Key')
_LEVEL = 0.95
LOOKS = (3, 6, 9)
"""Numbers of seeds at which a question is looked at, if it is in steps."""
LOOK_LEVEL = 0.98
"""The level of each look's interval: 5 % is the chance of any wrong one."""
# Differences below this are rounding: scores are at most 100, bytes are whole.
_ROUNDING = 1e-9
# Fisher's z is infinite at 1; that of the nearest recorded one is 5.6.
_MOST_CORRELATED = 1 - 1e-6
_MOST_SEEDS = 10_000


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A mean over seeds with its interval, of 95 % unless told otherwise.

  Attributes:
    mean: The mean over the seeds that define the value; NaN if none does.
    low: The lower end of the interval; NaN for fewer than two such seeds.
    high: The upper end, likewise.
    values: The value of every seed, in the order of the seeds; NaN where it is
      not defined.
    reached: The number of seeds that define it.
  """

  mean: float
  low: float
  high: float
  values: tuple[float, ...]
  reached: int


def student(values: npt.ArrayLike, level: float = _LEVEL) -> Estimate:
  """A mean over seeds with Student's interval, which supposes normal values.

  `mean +- t sd / sqrt(n)`; t is the quantile for n - 1 degrees of freedom. A
  seed that is NaN does not define the value, and does not count. `level` is
  the interval's, in (0, 1).
  """
  row = np.asarray(values, np.float64)
  mean, error, count = _moments(row)
  half = math.nan
  if count >= 2:
    half = float(_quantile(level, count)) * error
  return Estimate(mean, mean - half, mean + half, tuple(row.tolist()), count)


def difference(
  values: npt.ArrayLike, others: npt.ArrayLike, level: float = _LEVEL
) -> Estimate:
  """The mean over seeds of `values - others`, of the same seeds."""
  return student(np.subtract(values, others), level)


def fisher_z(coefficients: npt.ArrayLike) -> np.ndarray:
  """Fisher's z of coefficients of correlation, `artanh(r)`.

  Coefficients crowd below 1, where their spread vanishes; that of z depends
  hardly on r, and is about `1 / sqrt(n - 3)` for n normal pairs. z is cut off
  at that of `1 - 1e-6`, so that it is finite. NaN stays.
  """
  bounded = np.clip(coefficients, -_MOST_CORRELATED, _MOST_CORRELATED)
  return np.arctanh(bounded)


def correlation_difference(
  values: npt.ArrayLike, others: npt.ArrayLike, level: float = _LEVEL
) -> Estimate:
  """The difference of coefficients of correlation, of the same seeds.

  The paired differences of Fisher's z have Student's interval, and its ends,
  as its mean, are written as differences of coefficients: for an end e, each
  side's mean z moves by a part of `e - mean`, in proportion to the variance of
  its z over the seeds, and `tanh` of one less `tanh` of the other is between
  -2 and 2. It has the sign of e, so 0 is inside the one interval just where it
  is inside the other. The mean is not that of the differences of coefficients,
  which are `values`.
  """
  sides = fisher_z(np.broadcast_arrays(values, others))
  sides = np.where(np.isnan(sides).any(axis=0), np.nan, sides)
  on_z = difference(*sides, level)
  left, right = (_moments(side) for side in sides)
  spread = left[1] ** 2 + right[1] ** 2
  share = left[1] ** 2 / spread if spread > 0 else 0.5

  def written(end):
    moved = end - on_z.mean
    return float(
      np.tanh(left[0] + share * moved) - np.tanh(right[0] - (1 - share) * moved)
    )

  low, mean, high = map(written, (on_z.low, on_z.mean, on_z.high))
  raw = np.subtract(values, others)
  return Estimate(mean, low, high, tuple(raw.tolist()), on_z.reached)


def correlation_mean(coefficients: npt.ArrayLike) -> float:
  """The mean of coefficients of correlation on Fisher's z scale; NaN of none.

  The difference of two of them is the mean of `correlation_difference`.
  """
  return math.tanh(_moments(fisher_z(coefficients))[0])


def p_value(differences: npt.ArrayLike) -> float:
  """The two-sided p value of the paired t test that the mean difference is 0.

  It is below 5 % where Student's interval leaves out 0. If all differences are
  equal, there is no t statistic: p is 1 if they are 0, and otherwise that of
  the sign test, `2^(1 - n)`, so that scores of few possible values that happen
  to agree are not taken for certain. It is NaN for fewer than two that are
  defined.
  """
  row = np.asarray(differences, np.float64)
  return float(np.minimum(1, 2 * min(p_above(row), p_above(-row))))


def p_above(differences: npt.ArrayLike) -> float:
  """The one-sided p value of the paired t test that the mean is 0 or less.

  It is small if the differences are clearly above 0; `p_value` says what
  happens if they are all equal, with `2^-n` for those above 0.
  """
  mean, error, count = _moments(np.asarray(differences, np.float64))
  if count < 2:
    return math.nan
  if error <= _ROUNDING:
    return 2.0**-count if mean > _ROUNDING else 1.0
  return float(stats.t.sf(mean / error, count - 1))


def signed_rank_p_value(differences: npt.ArrayLike) -> float:
  """The two-sided p value of Wilcoxon's signed-rank test that the median is 0.

  For differences of unlike spread, such as those of several data sets, of which
  no normal distribution can be supposed. Zeros are left out (Wilcoxon, 1945);
  p is 1 if all are zero, and NaN if none is defined. It is exact for at most
  50 differences without ties.
  """
  row = np.asarray(differences, np.float64)
  # Equal ones that differ by rounding would not tie.
  row = row[~np.isnan(row)].round(-round(math.log10(_ROUNDING)))
  if not row.any():
    return 1.0 if len(row) else math.nan
  return float(stats.wilcoxon(row[row != 0]).pvalue)


def equivalence_p_value(
  values: npt.ArrayLike,
  others: npt.ArrayLike,
  margin: float,
  scale: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> float:
  """The p value of two one-sided tests that sides differ by the margin or more.

  The larger of those that the values are above the others by `margin` or more,
  and below them (Schuirmann, 1987). If it is small, there is no difference
  larger than the margin, which has to be fixed before the values are known.
  The margin is in the unit of the values; `scale`, such as `fisher_z`, is that
  on which they are compared.
  """
  values, others = np.asarray(values), np.asarray(others)
  above = scale(values) - scale(others - margin)
  below = scale(others + margin) - scale(values)
  return max(p_above(above), p_above(below))


def holm(p_values: Mapping[_Key, float]) -> dict[_Key, float]:
  """Corrects p values for their number (Holm, 1979).

  The k-th smallest of m becomes `(m - k + 1) p`, at least what the one before
  became, and at most 1. If those below 5 % are marked, the chance of a wrong
  mark among all m is at most 5 %. NaN stays, and is not counted.
  """
  tests = [key for key, p in p_values.items() if not math.isnan(p)]
  corrected, highest = dict(p_values), 0.0
  for rank, key in enumerate(sorted(tests, key=p_values.get)):
    highest = max(highest, min(1.0, (len(tests) - rank) * p_values[key]))
    corrected[key] = highest
  return corrected


def planned(count: int) -> int:
  """The largest of `LOOKS` that a number of seeds reaches; 0 before the first.

  Who looks after every seed, and stops when the answer is clear, is wrong far
  more often than the level says. Three looks at 98 % are wrong in 5 % of the
  cases, as long as other numbers of seeds are not looked at.
  """
  return max((look for look in LOOKS if look <= count), default=0)


def smallest_lead(count: int, level: float = _LEVEL) -> float:
  """The smallest mean that an interval of as many seeds tells from 0.

  In standard deviations of the values, `t / sqrt(n)`; NaN for fewer than two
  seeds.
  """
  if count < 2:
    return math.nan
  return float(_quantile(level, count)) / math.sqrt(count)


def seeds_needed(
  differences: npt.ArrayLike, level: float = LOOK_LEVEL
) -> float:
  """The number of seeds that would tell this mean difference from 0.

  The smallest n of 2 or more at which Student's interval, with the mean and
  the standard deviation that the differences have now, leaves out 0: a guess,
  for both will change. If they are all equal, that of the sign test. Infinite
  if the mean is 0 or it would be more than 10000; NaN for fewer than two
  differences.
  """
  mean, error, count = _moments(np.asarray(differences, np.float64))
  if count < 2:
    return math.nan
  if abs(mean) <= _ROUNDING:
    return math.inf
  if error <= _ROUNDING:
    return float(math.ceil(1 - math.log2(1 - level)))
  ratio = abs(mean) / (error * math.sqrt(count))
  numbers = np.arange(2, _MOST_SEEDS + 1)
  clear = _quantile(level, numbers) / np.sqrt(numbers) < ratio
  return float(numbers[clear.argmax()]) if clear.any() else math.inf


def share(count: int, total: int, level: float = _LEVEL) -> tuple[float, float]:
  """The interval of a share, by Clopper and Pearson (1934), in [0, 1].

  The shares of which `count` or fewer, or `count` or more, of `total` are not
  unlikely, if each of them is independent of the others.
  """
  interval = stats.binomtest(count, total).proportion_ci(level, 'exact')
  return float(interval.low), float(interval.high)


def _quantile(level, count):
  """Student's quantile of a two-sided interval over a number of seeds."""
  # As `stats.t.ppf`, in a thirtieth of its time.
  return special.stdtrit(count - 1, (1 + level) / 2)


def _moments(row: Sequence[float]) -> tuple[float, float, int]:
  """The mean, its standard error, and the number of defined values."""
  defined = row[~np.isnan(row)]
  count = len(defined)
  mean = float(defined.mean()) if count else math.nan
  error = float(stats.sem(defined)) if count >= 2 else math.nan
  return mean, error, count
