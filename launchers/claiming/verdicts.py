"""The verdict on each claim, at each size at which numbers are recorded.

claims_page.md has the rules.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tff_fair.launchers import statistics
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import outcomes
from tff_fair.launchers.claiming import statements

HOLDS, IN_PART, FAILS = 'holds', 'holds in part', 'does not hold'
TIE = 'no difference'
UNDECIDED, UNCOUNTED = 'undecided', 'not counted'
SYMBOLS = {
  HOLDS: '✓',
  IN_PART: '◐',
  TIE: '≈',
  FAILS: '✗',
  UNDECIDED: '?',
  UNCOUNTED: '–',
}
"""Verdict -> what stands for it; the first four are decisions."""
DECISIONS = (HOLDS, IN_PART, TIE, FAILS)
"""The verdicts that decide a claim."""

# What speaks against a claim comes first.
_TELLING = (outcomes.AGAINST, outcomes.OPEN, outcomes.TIE, outcomes.FOR)


class Judged(NamedTuple):
  """The comparisons of a claim, or of one under another reading."""

  measured: Sequence[outcomes.Measured]
  verdict: str

  @property
  def counts(self) -> Mapping[str, int]:
    """Outcome -> number of comparisons."""
    return collections.Counter(m.outcome for m in self.measured)

  @property
  def run(self) -> Sequence[outcomes.Measured]:
    """The comparisons that have rows."""
    return [m for m in self.measured if m.evidence]

  @property
  def telling(self) -> outcomes.Measured | None:
    """The comparison that speaks most against the claim; None without rows."""
    return min(self.run, key=_against_first, default=None)


class Result(NamedTuple):
  """The verdict of the results on a claim.

  Attributes:
    claim: The claim.
    sizes: Size -> its comparisons there, for each of `evidence.SIZES` at which
      one has numbers, the largest first.
    others: The same under the claim's other reading, if any.
  """

  claim: statements.Claim
  sizes: Mapping[str, Judged]
  others: Mapping[str, Judged]

  @property
  def decided_at(self) -> str | None:
    """The largest size that decides the claim; None if none does."""
    found = (s for s, j in self.sizes.items() if j.verdict in DECISIONS)
    return next(found, None)

  @property
  def verdict(self) -> str:
    """The verdict at that size."""
    if self.claim.uncounted:
      return UNCOUNTED
    size = self.decided_at
    return self.sizes[size].verdict if size else UNDECIDED


def judge(
  recorded: evidence.Recorded,
  claims: Mapping[str, statements.Claim] = statements.CLAIMS,
) -> dict[str, Result]:
  """Computes what the results say of each claim: name -> result."""

  def judged(claim, comparisons):
    found = {
      size: _judge(claim, comparisons, recorded, place)
      for place, size in enumerate(evidence.SIZES)
    }
    return {
      size: at_size
      for size, at_size in found.items()
      if any(m.evidence.size == size for m in at_size.run)
    }

  return {
    name: Result(
      claim, judged(claim, claim.comparisons), judged(claim, claim.others)
    )
    for name, claim in claims.items()
  }


def verdict(found: Iterable[str], most: bool = False) -> str:
  """Computes the verdict on a claim from the outcomes of its comparisons."""
  found = [outcome for outcome in found if outcome != outcomes.UNDEFINED]
  number = collections.Counter(found)
  in_favor, against = number[outcomes.FOR], number[outcomes.AGAINST]
  ties = number[outcomes.TIE]
  if not found:
    return UNDECIDED
  if most:
    if 2 * in_favor > len(found):
      return HOLDS
    if 2 * (against + ties) < len(found):
      return UNDECIDED
    return FAILS if against else TIE
  if in_favor == len(found):
    return HOLDS
  if against:
    return IN_PART if in_favor else FAILS
  if in_favor + ties < len(found):
    return UNDECIDED
  return IN_PART if in_favor else TIE


def _judge(claim, comparisons, recorded, place) -> Judged:
  """Judges a claim at one size.

  A comparison without numbers there is answered by larger ones, the nearest
  first.
  """
  sizes = evidence.SIZES[place::-1]
  measured = [outcomes.measure(c, recorded, sizes) for c in comparisons]
  # That one of many is against a claim by chance is likely: Holm's correction
  # over all that can exist, also those that are not run yet.
  below = statistics.holm(
    {
      number: m.tests.below
      for number, m in enumerate(measured)
      if m.outcome != outcomes.UNDEFINED
    }
  )
  decided = [
    m.decided(below.get(number, 1.0)) for number, m in enumerate(measured)
  ]
  if claim.uncounted:
    return Judged(decided, UNCOUNTED)
  return Judged(decided, verdict([m.outcome for m in decided], claim.most))


def _against_first(measured) -> tuple[int, float]:
  decides = measured.seeds in statistics.LOOKS
  order = _TELLING.index(measured.outcome) if decides else len(_TELLING)
  return order, measured.support
