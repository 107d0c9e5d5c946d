"""What the recorded results say of each claim.

Rows of one setting can be compared: of the same data, share of the data, and
length of the training. A length is a number of rounds, or "the method's own" if
its table fixes that, as FedAKD's protocols and its equal time do.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import itertools
import math
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers import statistics
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.results import records
from tff_fair.launchers.results import seed_means
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

HOLDS, IN_PART, FAILS = 'holds', 'holds in part', 'does not hold'
UNDECIDED, UNCOUNTED = 'undecided at this scale', 'not counted'
SYMBOLS = {HOLDS: '✓', IN_PART: '◐', FAILS: '✗', UNDECIDED: '?', UNCOUNTED: '–'}
"""Verdict -> what stands for it, the best first; the last one is none."""
OUTCOMES = ('for', 'against', 'open', 'missing')
"""What a comparison can say: 'missing' if nothing was run."""

_OWN_LENGTH = math.inf
_ROUNDING = 1e-9
# What speaks against a claim comes first.
_TELLING = ('against', 'open', 'for')


class Setting(NamedTuple):
  """What rows must share; an infinite length is the method's own."""

  data: str
  scale: float
  length: float


class Number(NamedTuple):
  """A recorded value, or a number that a claim says."""

  value: float
  rounds: int | None = None
  is_transcribed: bool = False


Pairs = Mapping[str, tuple[Number, Number]]
"""Seed, or seeds of a mean such as '0-1' -> the left and the right number."""
Recorded = Mapping[statements.Side, Mapping[Setting, Mapping[str, Number]]]
"""Side -> setting -> seed -> number."""


class Measured(NamedTuple):
  """A comparison, its outcome, and the rows that answer it, if any."""

  comparison: statements.Comparison
  outcome: str = 'missing'
  setting: Setting | None = None
  pairs: Pairs = {}
  estimate: statistics.Estimate | None = None

  @property
  def numbers(self) -> list[Number]:
    """The numbers of both sides."""
    return [*itertools.chain(*self.pairs.values())]

  @property
  def means(self) -> tuple[float, float]:
    """The means of both sides over the seeds."""
    return tuple(statistics.student(side).mean for side in _values(self.pairs))

  @property
  def support(self) -> float:
    """The lead beyond the claimed, as a share of the right; or infinity."""
    if math.isnan(self.estimate.mean):
      return math.inf
    sign = 1 if self.comparison.above else -1
    lead = sign * self.estimate.mean - self.comparison.margin
    return lead / (abs(self.means[1]) or 1.0)


class Judged(NamedTuple):
  """The comparisons of a claim, or of one under another reading."""

  measured: Sequence[Measured]
  verdict: str

  @property
  def counts(self) -> Mapping[str, int]:
    """Outcome -> number of comparisons."""
    return collections.Counter(m.outcome for m in self.measured)

  @property
  def run(self) -> Sequence[Measured]:
    """The comparisons that have rows."""
    return [m for m in self.measured if m.outcome != 'missing']

  @property
  def telling(self) -> Measured | None:
    """The comparison that speaks most against the claim; None without rows."""
    return min(self.run, key=_against_first, default=None)


class Result(NamedTuple):
  """The verdict on a claim, and on it under its other reading, if any."""

  claim: statements.Claim
  ours: Judged
  other: Judged | None


def group(frame: pd.DataFrame) -> Recorded:
  """Groups the rows of `records.read` by what a comparison reads."""
  found = collections.defaultdict(lambda: collections.defaultdict(dict))
  for row in frame.itertuples():
    side = statements.Side(row.table, row.cell, row.method, row.metric)
    own = definitions.TABLES[row.table].flags_of(row.cell, row.method)
    length = _OWN_LENGTH if row.rounds == own.get('rounds') else row.rounds
    # What never happened happens after the last round.
    never = table_metrics.METRICS[row.metric].undefined == 'never'
    value = row.rounds + 1 if never and math.isnan(row.value) else row.value
    number = Number(value, row.rounds, row.source == records.TRANSCRIBED)
    found[side][Setting(row.data, row.scale, length)][row.seed] = number
  return found


def judge(
  recorded: Recorded,
  claims: Mapping[str, statements.Claim] = statements.CLAIMS,
) -> dict[str, Result]:
  """Computes the verdict on each claim: name -> result."""

  def judged(claim, comparisons):
    measured = [measure(comparison, recorded) for comparison in comparisons]
    found = verdict([m.outcome for m in measured], claim.most)
    return Judged(measured, UNCOUNTED if claim.uncounted else found)

  return {
    name: Result(
      claim,
      judged(claim, claim.comparisons),
      judged(claim, claim.others) if claim.others else None,
    )
    for name, claim in claims.items()
  }


def verdict(outcomes: Iterable[str], most: bool = False) -> str:
  """Computes the verdict on a claim from the outcomes of its comparisons.

  claims_page.md has the rules, also those of `most`.
  """
  outcomes = list(outcomes)
  if most:
    if 2 * outcomes.count('for') > len(outcomes):
      return HOLDS
    fails = 2 * outcomes.count('against') >= len(outcomes)
    return FAILS if fails else UNDECIDED
  if set(outcomes) == {'for'}:
    return HOLDS
  if 'against' in outcomes:
    return IN_PART if 'for' in outcomes else FAILS
  return UNDECIDED


def measure(comparison: statements.Comparison, recorded: Recorded) -> Measured:
  """Measures a comparison in the setting that answers it best.

  Settings with two or more seeds come first, then the paper's data before those
  that stand in for them, then more data, then more rounds.
  """
  found = [
    (setting, pairs)
    for setting, left in recorded.get(comparison.left, {}).items()
    if (pairs := _pair(left, _right(comparison, setting, recorded)))
  ]
  if not found:
    return Measured(comparison)
  table, cell, *_ = comparison.left
  papers = definitions.TABLES[table].cells[cell].data

  def rank(candidate):
    (data, scale, length), pairs = candidate
    return count_seeds(pairs) >= 2, data == papers, scale, length

  setting, pairs = max(found, key=rank)
  estimate = statistics.difference(*_values(pairs))
  outcome = _outcome(comparison, pairs, estimate)
  return Measured(comparison, outcome, setting, pairs, estimate)


def count_seeds(pairs: Pairs) -> int:
  """Counts the seeds that define a difference; a mean over seeds is none."""
  return sum(
    seed.isdigit() and not math.isnan(left.value - right.value)
    for seed, (left, right) in pairs.items()
  )


def _values(pairs) -> tuple[list[float], list[float]]:
  """The values of the left and of the right."""
  return tuple([pair[side].value for pair in pairs.values()] for side in (0, 1))


def _right(comparison, setting, recorded) -> Mapping[str, Number] | float:
  """The right side in the setting of the left."""
  right = comparison.right
  if not isinstance(right, statements.Side):
    return right
  settings = recorded.get(right, {})
  if comparison.any_rounds:
    alike = [s for s in settings if s[:2] == setting[:2]]
    setting = max(alike, key=lambda s: s.length, default=None)
  return settings.get(setting, {})


def _pair(left, right) -> Pairs:
  """The seeds that both sides have; a mean over seeds only without any."""
  if isinstance(right, float):
    right = dict.fromkeys(left, Number(right))
  common = [seed for seed in left if seed in right]
  seeds = sorted(filter(str.isdigit, common), key=int) or common[:1]
  return {seed: (left[seed], right[seed]) for seed in seeds}


def _outcome(comparison, pairs, estimate) -> str:
  """For or against if the interval is; the claimed level itself is enough."""
  if isinstance(comparison.right, float):
    least = most = -_ROUNDING
  else:
    # What transcribed values lost by rounding decides nothing.
    digits = [
      seed_means.count_decimals(number.value)
      for number in itertools.chain(*pairs.values())
      if number.is_transcribed
    ]
    least = 10.0 ** -max(digits, default=math.inf) + _ROUNDING
    most = -least
  ends = estimate.low, estimate.high
  if not comparison.above:
    ends = -estimate.high, -estimate.low
  low, high = (end - comparison.margin for end in ends)
  if low > least:
    return 'for'
  return 'against' if high < most else 'open'


def _against_first(measured) -> tuple[int, float]:
  decides = measured.estimate.reached >= 2
  order = _TELLING.index(measured.outcome) if decides else len(_TELLING)
  return order, measured.support
