"""Means over seeds with 95 % intervals, and tests of paired differences."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import TypeVar

import numpy as np
from numpy import typing as npt
from scipy import stats

_Key = TypeVar('_Key')
_LEVEL = 0.95
# Differences below this are rounding: scores are at most 100, bytes are whole.
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A mean over seeds with its 95 % interval.

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


def student(values: npt.ArrayLike) -> Estimate:
  """A mean over seeds with Student's interval, which supposes normal values.

  `mean +- t sd / sqrt(n)`; t is the quantile for n - 1 degrees of freedom. A
  seed that is NaN does not define the value, and does not count.
  """
  row = np.asarray(values, np.float64)
  mean, error, count = _moments(row)
  half = math.nan
  if count >= 2:
    half = float(stats.t.ppf((1 + _LEVEL) / 2, count - 1)) * error
  return Estimate(mean, mean - half, mean + half, tuple(row.tolist()), count)


def difference(values: npt.ArrayLike, others: npt.ArrayLike) -> Estimate:
  """The mean over seeds of `values - others`, of the same seeds."""
  return student(np.subtract(values, others))


def p_value(differences: npt.ArrayLike) -> float:
  """The two-sided p value of the paired t test that the mean difference is 0.

  It is below 5 % where Student's interval leaves out 0. If all differences are
  equal, there is no t statistic: p is 1 if they are 0, and otherwise that of
  the sign test, `2^(1 - n)`, so that scores of few possible values that happen
  to agree are not taken for certain. It is NaN for fewer than two that are
  defined.
  """
  mean, error, count = _moments(np.asarray(differences, np.float64))
  if count < 2:
    return math.nan
  if error <= _ROUNDING:
    return 1.0 if abs(mean) <= _ROUNDING else 2.0 ** (1 - count)
  return float(2 * stats.t.sf(abs(mean) / error, count - 1))


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


def _moments(row: Sequence[float]) -> tuple[float, float, int]:
  """The mean, its standard error, and the number of defined values."""
  defined = row[~np.isnan(row)]
  count = len(defined)
  mean = float(defined.mean()) if count else math.nan
  error = float(stats.sem(defined)) if count >= 2 else math.nan
  return mean, error, count
