"""Ranks of methods over clients and seeds, and what tests say of them."""

import dataclasses
import math

import numpy as np
from scipy import stats

_LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Ranking:
  """Average ranks of the methods over blocks (a client of a seed each).

  Attributes:
    methods: The methods, best average rank first.
    average_ranks: Their average ranks; 1 is best, ties share a rank.
    num_blocks: The number of blocks.
    p_value: Of Friedman's test that all methods are alike; of two methods, of
      the sign test, which it then is.
    critical_difference: Nemenyi's: average ranks that differ by at least this
      are separable at the 5 % level.
    groups: Sets of at least two methods that Nemenyi's test cannot separate
      from each other, each as large as possible, best first.
  """

  methods: tuple[str, ...]
  average_ranks: tuple[float, ...]
  num_blocks: int
  p_value: float
  critical_difference: float
  groups: tuple[tuple[str, ...], ...]

  def separates(self, method: str, other: str) -> bool:
    """Whether Nemenyi's test separates two methods.

    Args:
      method: A ranked method.
      other: Another.

    Returns:
      Whether their average ranks differ by the critical difference.
    """
    ranks = dict(zip(self.methods, self.average_ranks, strict=True))
    gap = abs(ranks[method] - ranks[other])
    return gap >= self.critical_difference


def rank(methods: tuple[str, ...], scores: np.ndarray) -> Ranking | None:
  """Ranks methods by their scores in blocks.

  Args:
    methods: The methods.
    scores: `float64[blocks, methods]`, higher is better, without NaN.

  Returns:
    The ranking; None for fewer than two methods or fewer than two blocks, of
    which the tests say nothing.
  """
  num_blocks = len(scores)
  if len(methods) < 2 or num_blocks < 2:
    return None
  average = stats.rankdata(-scores, axis=1).mean(axis=0)
  order = np.argsort(average, kind='stable')
  names = tuple(methods[i] for i in order)
  ranks = tuple(average[order].tolist())
  difference = critical_difference(len(methods), num_blocks)
  return Ranking(
    names,
    ranks,
    num_blocks,
    _p_value(scores),
    difference,
    groups(names, ranks, difference),
  )


def critical_difference(num_methods: int, num_blocks: int) -> float:
  """Nemenyi's critical difference of average ranks at the 5 % level.

  Demsar (2006): `q sqrt(k (k + 1) / (6 N))`, q being the quantile of the
  studentized range for infinite degrees of freedom, divided by `sqrt(2)`.

  Args:
    num_methods: k, at least 2.
    num_blocks: N.

  Returns:
    The difference.
  """
  quantile = stats.studentized_range.ppf(_LEVEL, num_methods, np.inf)
  spread = num_methods * (num_methods + 1) / (6 * num_blocks)
  return float(quantile / math.sqrt(2) * math.sqrt(spread))


def groups(
  methods: tuple[str, ...], ranks: tuple[float, ...], difference: float
) -> tuple[tuple[str, ...], ...]:
  """The largest sets of methods whose ranks are closer than a difference.

  Args:
    methods: The methods, best rank first.
    ranks: Their average ranks, ascending.
    difference: The critical difference.

  Returns:
    Sets of at least two methods, in the order of the methods.
  """
  found, last_end = [], 0
  for start, best in enumerate(ranks):
    end = start + sum(other - best < difference for other in ranks[start:])
    # A set that ends where the one before ends is a part of that.
    if end > last_end and end - start > 1:
      found.append(methods[start:end])
    last_end = end
  return tuple(found)


def _p_value(scores) -> float:
  if (scores == scores[:, :1]).all():
    return 1.0  # The statistic would be 0 / 0.
  if scores.shape[1] > 2:
    return float(stats.friedmanchisquare(*scores.T).pvalue)
  # SciPy refuses two methods; ties say nothing in a sign test.
  gaps = scores[:, 0] - scores[:, 1]
  wins, decided = np.count_nonzero(gaps > 0), np.count_nonzero(gaps)
  return float(stats.binomtest(wins, decided).pvalue)
