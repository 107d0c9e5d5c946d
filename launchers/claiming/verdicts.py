"""The verdict on each claim, from the outcomes of its comparisons."""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
from typing import Literal

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import papers
from tff_fair.launchers.claiming import recorded as recorded_lib
from tff_fair.launchers.claiming import statistics

HOLDS = 'holds'
IN_PART = 'holds in part'
FAILS = 'does not hold'
UNDECIDED = 'undecided at this scale'
VERDICTS = (HOLDS, IN_PART, FAILS, UNDECIDED)
"""The verdicts that count, the best first."""
UNCOUNTED = 'not counted'
"""In place of a verdict on a claim that no run of ours can decide."""

Verdict = Literal[
  'holds',
  'holds in part',
  'does not hold',
  'undecided at this scale',
  'not counted',
]

# What speaks against a claim comes first, what is open for want of seeds last.
_TELLING = ('against', 'open', 'for', 'missing')


@dataclasses.dataclass(frozen=True)
class Judged:
  """The comparisons of a claim, or of a claim under another reading.

  Attributes:
    measured: The comparisons.
    counts: Outcome -> number of comparisons.
    verdict: What follows.
  """

  measured: tuple[statistics.Measured, ...]
  counts: Mapping[statistics.Outcome, int]
  verdict: Verdict

  @property
  def run(self) -> tuple[statistics.Measured, ...]:
    """The comparisons that have rows."""
    return tuple(m for m in self.measured if m.outcome != 'missing')

  @property
  def telling(self) -> statistics.Measured | None:
    """The comparison that speaks most against the claim; None without rows."""
    return min(self.run, key=_against_first, default=None)


@dataclasses.dataclass(frozen=True)
class Result:
  """The verdict of the results on a claim.

  Attributes:
    claim: The claim.
    ours: The verdict on it.
    other: The verdict on it under its other reading; None if it has none, or
      if that has no answer to any comparison.
  """

  claim: definitions.Claim
  ours: Judged
  other: Judged | None


def judge(
  recorded: recorded_lib.Recorded,
  claims: Mapping[str, definitions.Claim] = papers.CLAIMS,
) -> dict[str, Result]:
  """Computes the verdicts.

  Args:
    recorded: The recorded results.
    claims: Name -> claim.

  Returns:
    Name -> result.
  """
  others = {
    name: definitions.under(claim.reading, claim.comparisons)
    for name, claim in claims.items()
    if claim.reading
  }
  wanted = [c for claim in claims.values() for c in claim.comparisons]
  wanted += [c for comparisons in others.values() for c in comparisons]
  found = statistics.measure(wanted, recorded)

  def judged(comparisons, claim):
    measured = [found[comparison] for comparison in comparisons]
    return _judged(measured, claim)

  return {
    name: Result(
      claim,
      judged(claim.comparisons, claim),
      judged(others[name], claim) if others.get(name) else None,
    )
    for name, claim in claims.items()
  }


def verdict(
  outcomes: Iterable[statistics.Outcome], most: bool = False
) -> Verdict:
  """The verdict on a claim.

  Args:
    outcomes: Those of its comparisons.
    most: Whether it speaks of most of them.

  Returns:
    It holds if all are for it; in part if some are for it and some against it;
    not, if some are against it and none for it; otherwise it is undecided. One
    of most holds if more than half are for it, not if at least half are against
    it, and is undecided otherwise.
  """
  outcomes = list(outcomes)
  if most:
    if 2 * outcomes.count('for') > len(outcomes):
      return HOLDS
    return (
      FAILS if 2 * outcomes.count('against') >= len(outcomes) else UNDECIDED
    )
  outcomes = set(outcomes)
  if outcomes == {'for'}:
    return HOLDS
  if 'against' in outcomes:
    return IN_PART if 'for' in outcomes else FAILS
  return UNDECIDED


def _judged(measured, claim) -> Judged:
  outcomes = [m.outcome for m in measured]
  found = UNCOUNTED if claim.uncounted else verdict(outcomes, claim.most)
  return Judged(tuple(measured), collections.Counter(outcomes), found)


def _against_first(measured):
  has_interval = measured.estimate.reached >= 2
  order = _TELLING.index(measured.outcome) if has_interval else len(_TELLING)
  return order, measured.support
