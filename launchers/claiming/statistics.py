"""The difference of each comparison, paired over seeds, with its interval."""

from collections.abc import Iterable
import dataclasses
import math
from typing import Literal

from tff_fair.launchers import statistics
from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import recorded as recorded_lib

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
  estimate: statistics.Estimate | None
  outcome: Outcome

  @property
  def support(self) -> float:
    """The difference beyond the claimed, as a share of what it is against.

    Infinite without rows, and if the difference is undefined.
    """
    if self.estimate is None or math.isnan(self.estimate.mean):
      return math.inf
    size = abs(self.pairs.right) or 1.0
    lead = self.estimate.mean if self.comparison.above else -self.estimate.mean
    return (lead - self.comparison.margin) / size


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
  return {c: _measured(c, recorded.pairs(c)) for c in comparisons}


def _measured(comparison, pairs) -> Measured:
  if pairs is None:
    return Measured(comparison, None, None, 'missing')
  estimate = statistics.student([*pairs.differences.values()])
  outcome = _outcome(pairs, comparison, estimate)
  return Measured(comparison, pairs, estimate, outcome)


def _outcome(pairs, comparison, estimate) -> Outcome:
  ends = (estimate.low, estimate.high)
  ends = ends if comparison.above else (-ends[1], -ends[0])
  low, high = (end - comparison.margin for end in ends)
  if isinstance(comparison.right, float):
    # The claimed level itself is enough.
    low += 2 * _ROUNDING
    unit = 0.0
  else:
    unit = pairs.unit
  if low > unit + _ROUNDING:
    return 'for'
  return 'against' if high < -unit - _ROUNDING else 'open'
