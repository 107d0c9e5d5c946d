"""Outcomes of comparisons: a difference with its interval, and its tests.

claims_page.md has the rules.
"""

import math
from typing import NamedTuple

import numpy as np

from tff_fair.launchers import statistics
from tff_fair.launchers.claiming import evidence as evidence_lib
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.results import seed_means
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics

FOR, AGAINST, TIE, OPEN = 'for', 'against', 'tie', 'open'
MISSING, UNDEFINED = 'missing', 'undefined'
OUTCOMES = (FOR, AGAINST, TIE, OPEN, MISSING, UNDEFINED)
"""The possible outcomes of a comparison.

'missing' if nothing was run; 'undefined' if it cannot exist.
"""
LEVEL = statistics.LOOK_LEVEL
"""The level of all intervals of claims."""
ALPHA = (1 - LEVEL) / 2
"""The chance of a wrong outcome of one comparison, in one direction."""
_SHARES_OF_CLIENTS = ('above_standalone', 'below_standalone')
# Seeds with a counter-example that refute what is said of every client: one
# may be an accident.
_REFUTING = 2


class Tests(NamedTuple):
  """The p values of a comparison, which are small if it is so; else 1.

  Attributes:
    above: That it is for the claim.
    below: That it is against it.
    level: That there is no difference larger than what is negligible.
  """

  above: float = 1.0
  below: float = 1.0
  level: float = 1.0


class Measured(NamedTuple):
  """A comparison, its outcome, and the numbers that answer it, if any.

  Attributes:
    comparison: The comparison.
    outcome: One of `OUTCOMES`.
    evidence: The numbers; None without.
    estimate: The difference with its interval, in the paper's unit.
    means: Those of both sides, on Fisher's z scale for coefficients.
    tests: Its p values.
    leads: By how much each seed is on the claimed side, beyond the amount that
      is claimed; on Fisher's z scale for coefficients.
    counted: How many of all seeds' clients are as claimed, and all of them, if
      the claim is about every client.
    passed_over: Other settings of the same size.
  """

  comparison: statements.Comparison
  outcome: str = MISSING
  evidence: evidence_lib.Evidence | None = None
  estimate: statistics.Estimate | None = None
  means: tuple[float, float] = (math.nan, math.nan)
  tests: Tests = Tests()
  leads: tuple[float, ...] = ()
  counted: tuple[int, int] | None = None
  passed_over: tuple[evidence_lib.Evidence, ...] = ()

  @property
  def numbers(self) -> list[evidence_lib.Number]:
    """The numbers of both sides that are used."""
    return evidence_lib.numbers_of(self.evidence.used) if self.evidence else []

  @property
  def is_transcribed(self) -> bool:
    """Whether the files of a run behind the numbers no longer exist."""
    return any(number.is_transcribed for number in self.numbers)

  @property
  def shown_seeds(self) -> str:
    """The number of seeds; "means" if only means over seeds are known."""
    if self.seeds or not self.evidence:
      return str(self.seeds)
    return 'means' if all('-' in seed for seed in self.evidence.pairs) else '0'

  @property
  def seeds(self) -> int:
    """The number of seeds that are used; a mean over several is none."""
    defined = self.evidence.defined if self.evidence else {}
    return sum(seed in defined for seed in self.evidence.used) if defined else 0

  @property
  def support(self) -> float:
    """The lead beyond the claimed, as a share of the right; or infinity."""
    if math.isnan(self.estimate.mean):
      return math.inf
    sign = 1 if self.comparison.above else -1
    lead = sign * self.estimate.mean - self.comparison.margin
    return lead / (abs(self.means[1]) or 1.0)

  def decided(self, below: float) -> 'Measured':
    """The same with its outcome, given the corrected p value against it."""
    if self.outcome in (MISSING, UNDEFINED):
      return self
    is_looked_at = self.seeds in statistics.LOOKS
    tests = [(FOR, self.tests.above), (AGAINST, below), (TIE, self.tests.level)]
    found = [outcome for outcome, p in tests if is_looked_at and p < ALPHA]
    return self._replace(outcome=found[0] if found else OPEN)


def measure(
  comparison: statements.Comparison,
  recorded: evidence_lib.Recorded,
  sizes: tuple[str, ...] = evidence_lib.SIZES,
) -> Measured:
  """Measures a comparison at the first of some sizes that has numbers.

  Its outcome is that of the comparison alone, see `Measured.decided`.
  """
  if comparison.undefined:
    return Measured(comparison, UNDEFINED)
  found = evidence_lib.find(comparison, recorded, sizes)
  if not found:
    return Measured(comparison)
  chosen, *others = found
  left, right = _sides(chosen.used)
  measured = Measured(comparison, OPEN, chosen, passed_over=tuple(others))
  clients = _clients(comparison)
  if clients and not np.isnan(left).any():
    measured = _count(measured, left, right, clients)
  else:
    measured = _test(measured, left, right)
  return measured.decided(measured.tests.below)


def difference(
  comparison: statements.Comparison, pairs: evidence_lib.Pairs
) -> tuple[statistics.Estimate, tuple[float, float]]:
  """The difference of pairs with its interval, and the means of both sides.

  In the paper's unit; coefficients of correlation are compared on Fisher's z
  scale.
  """
  left, right = _sides(pairs)
  if not table_metrics.METRICS[comparison.left.metric].is_correlation:
    means = (statistics.student(side).mean for side in (left, right))
    return statistics.difference(left, right, LEVEL), tuple(means)
  left, right = left / 100, right / 100
  found = statistics.correlation_difference(left, right, LEVEL)
  ends = (100 * end for end in (found.mean, found.low, found.high))
  values = tuple(100 * value for value in found.values)
  means = (100 * statistics.correlation_mean(side) for side in (left, right))
  return statistics.Estimate(*ends, values, found.reached), tuple(means)


def _sides(pairs) -> tuple[np.ndarray, np.ndarray]:
  """The values of the left and of the right."""
  return tuple(
    np.array([pair[side].value for pair in pairs.values()]) for side in (0, 1)
  )


def _clients(comparison) -> int | None:
  """The number of clients, if the claim is about every one of them.

  An interval cannot lie beyond the largest possible value, so a share of the
  clients that should be 0 or 1 is decided by counting.
  """
  table, cell, method, metric = comparison.left
  is_level = isinstance(comparison.right, float)
  if not is_level or metric not in _SHARES_OF_CLIENTS:
    return None
  limit = _unit(comparison) if comparison.above else 0.0
  if comparison.right != limit:
    return None
  return published.clients(table, cell, method)


def _count(measured, left, right, clients) -> Measured:
  """Counts the clients of all seeds; their share has Clopper's interval."""
  above, unit = measured.comparison.above, _unit(measured.comparison)
  as_claimed = left if above else unit - left
  counts = np.round(as_claimed / unit * clients)
  total, count = clients * len(left), int(counts.sum())
  refuting = int((counts < clients).sum())
  low, high = (unit * end for end in statistics.share(count, total, LEVEL))
  if not above:
    low, high = unit - high, unit - low
  mean = float(left.mean())
  estimate = statistics.Estimate(
    mean - right[0],
    low - right[0],
    high - right[0],
    tuple((left - right).tolist()),
    len(left),
  )
  return measured._replace(
    estimate=estimate,
    means=(mean, float(right[0])),
    tests=Tests(
      above=0.0 if refuting == 0 else 1.0,
      below=0.0 if refuting >= _REFUTING else 1.0,
    ),
    counted=(count, total),
  )


def _unit(comparison) -> float:
  """Returns the value of "all clients" in the unit of a share."""
  return 100.0 if definitions.TABLES[comparison.left.table].percent else 1.0


def _test(measured, left, right) -> Measured:
  """Student's t test of the paired differences, on the metric's scale."""
  comparison = measured.comparison
  about = table_metrics.METRICS[comparison.left.metric]
  scale = _fisher_z if about.is_correlation else np.asarray
  high, low = (left, right) if comparison.above else (right, left)
  # What transcribed values lost by rounding decides nothing.
  lost = _lost_digits(measured)

  def p_above(larger, smaller):
    return statistics.p_above(scale(larger) - scale(smaller))

  tests = Tests(
    p_above(high, low + comparison.margin + lost),
    p_above(low, high - comparison.margin + lost),
    statistics.equivalence_p_value(
      left, right, comparison.negligible - lost, scale
    ),
  )
  leads = scale(high) - scale(low + comparison.margin)
  estimate, means = difference(comparison, measured.evidence.used)
  return measured._replace(
    estimate=estimate,
    means=means,
    tests=Tests(*(1.0 if math.isnan(p) else p for p in tests)),
    leads=tuple(leads.tolist()),
  )


def _fisher_z(per_cent):
  return statistics.fisher_z(np.divide(per_cent, 100))


def _lost_digits(measured) -> float:
  digits = [
    seed_means.count_decimals(number.value)
    for number in measured.numbers
    if number.is_transcribed
  ]
  return 10.0 ** -max(digits, default=math.inf)
