"""Means over seeds with 95 % intervals."""

from collections.abc import Sequence
import dataclasses
import math

import numpy as np
from numpy import typing as npt
from scipy import stats

_LEVEL = 0.95
_NUM_RESAMPLES = 9999
_BATCH = 500  # Resamples at a time; all of them would take hundreds of MB.
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

  @property
  def sign(self) -> int:
    """1 or -1 if the interval lies above or below 0; otherwise 0."""
    return int(self.low > _ROUNDING) - int(self.high < -_ROUNDING)


def estimate(values: npt.ArrayLike) -> list[Estimate]:
  """Means over seeds with intervals by the percentile bootstrap over seeds.

  With two or three seeds the interval is the range of the values.

  Args:
    values: `float[n, seeds]`, NaN where a seed does not define the value.

  Returns:
    n estimates, the same for the same values.
  """
  values = np.asarray(values, np.float64)
  low, high = intervals(values)
  return [
    Estimate(_mean(row), *ends, tuple(row.tolist()), _reached(row))
    for row, *ends in zip(values, low.tolist(), high.tolist(), strict=True)
  ]


def student(values: Sequence[float]) -> Estimate:
  """A mean over seeds with Student's interval, which supposes normal values.

  For few seeds: the bootstrap's interval of two is only their range, and has
  the mean inside in one case of two.

  Args:
    values: A value a seed, NaN where it is not defined.

  Returns:
    The estimate.
  """
  row = np.asarray(values, np.float64)
  defined = row[~np.isnan(row)]
  mean, half = _mean(row), math.nan
  if len(defined) >= 2:
    quantile = stats.t.ppf((1 + _LEVEL) / 2, len(defined) - 1)
    half = float(quantile * stats.sem(defined))
  return Estimate(
    mean, mean - half, mean + half, tuple(row.tolist()), len(defined)
  )


def intervals(
  values: np.ndarray, num_resamples: int = _NUM_RESAMPLES
) -> tuple[np.ndarray, np.ndarray]:
  """The 95 % intervals of means over seeds.

  Args:
    values: `float64[n, seeds]`, NaN where a seed does not define the value.
    num_resamples: The number of resamples.

  Returns:
    The lower and the upper ends, `float64[n]` each; NaN for fewer than two
    defined values.
  """
  ends = np.full((2, len(values)), np.nan)
  counts = (~np.isnan(values)).sum(axis=1)
  # Rows with as many values share the resamples and one call.
  for count in np.unique(counts[counts >= 2]).tolist():
    rows = counts == count
    ends[:, rows] = stats.bootstrap(
      (_without_nan(values[rows], count),),
      np.mean,
      n_resamples=num_resamples,
      batch=_BATCH,
      vectorized=True,
      axis=-1,
      confidence_level=_LEVEL,
      method='percentile',
      random_state=0,
    ).confidence_interval
  return ends[0], ends[1]


def difference(values: Sequence[float], others: Sequence[float]) -> Estimate:
  """The mean over seeds of the paired difference of two methods.

  Args:
    values: A method's value of every seed.
    others: The other's, for the same seeds.

  Returns:
    The estimate of `values - others`.
  """
  return estimate([np.subtract(values, others)])[0]


def _without_nan(values, count) -> np.ndarray:
  """Rows of `count` defined values, as `float64[n, count]`."""
  return values[~np.isnan(values)].reshape(-1, count)


def _reached(row) -> int:
  return int((~np.isnan(row)).sum())


def _mean(row) -> float:
  return float(np.nanmean(row)) if _reached(row) else math.nan
