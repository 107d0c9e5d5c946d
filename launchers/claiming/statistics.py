"""The difference of each comparison, paired over seeds, with its interval."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
from typing import Literal

import numpy as np

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import recorded as recorded_lib
from tff_fair.launchers.comparison import estimates

Outcome = Literal['for', 'against', 'open', 'missing']

# Differences below this are rounding, as in `estimates`.
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Measured:
  """A comparison with what the recorded results say.

  Attributes:
    comparison: The comparison.
    pairs: The rows; None if there are none.
    estimate: The difference over the seeds, left less right; None without rows.
      Its interval is undefined for fewer than two seeds.
    outcome: For the claim, against it, or open: the interval has 0 inside, or
      there is none, or an end is within what transcribed values lost by
      rounding. Missing without rows.
  """

  comparison: definitions.Comparison
  pairs: recorded_lib.Pairs | None
  estimate: estimates.Estimate | None
  outcome: Outcome

  @property
  def support(self) -> float:
    """The difference as the claim has it, as a share of what it is against.

    Infinite without rows, and if the difference is undefined.
    """
    if self.estimate is None or math.isnan(self.estimate.mean):
      return math.inf
    size = abs(self.pairs.right) or 1.0
    return (1 if self.comparison.above else -1) * self.estimate.mean / size


def measure(
  comparisons: Iterable[definitions.Comparison],
  recorded: recorded_lib.Recorded,
) -> dict[definitions.Comparison, Measured]:
  """Measures comparisons.

  Args:
    comparisons: The comparisons.
    recorded: The recorded results.

  Returns:
    Comparison -> what was found.
  """
  pairs = {c: recorded.pairs(c) for c in comparisons}
  found = _estimates(pairs)
  return {
    comparison: Measured(
      comparison,
      rows,
      found.get(comparison),
      _outcome(rows, comparison, found.get(comparison)),
    )
    for comparison, rows in pairs.items()
  }


def _estimates(
  pairs: Mapping[definitions.Comparison, recorded_lib.Pairs | None],
) -> dict[definitions.Comparison, estimates.Estimate]:
  """All differences in one call, which shares the resamples."""
  rows = {c: [*p.differences.values()] for c, p in pairs.items() if p}
  if not rows:
    return {}
  width = max(map(len, rows.values()))
  return dict(
    zip(rows, estimates.estimate(_padded(rows.values(), width)), strict=True)
  )


def _padded(rows: Iterable[Sequence[float]], width: int) -> np.ndarray:
  return np.array([[*row, *[math.nan] * (width - len(row))] for row in rows])


def _outcome(pairs, comparison, estimate) -> Outcome:
  if pairs is None:
    return 'missing'
  ends = (estimate.low, estimate.high)
  low, high = ends if comparison.above else (-ends[1], -ends[0])
  if isinstance(comparison.right, float):
    # The claimed level itself is enough.
    low += 2 * _ROUNDING
    unit = 0.0
  else:
    unit = pairs.unit
  if low > unit + _ROUNDING:
    return 'for'
  return 'against' if high < -unit - _ROUNDING else 'open'
