"""Claims as data: comparisons of recorded results.

The claims are in `fedaboost_claims`, `corefed_claims` and so on. They use the
names of `launchers.tables`. Neither these modules nor this one hold verdicts.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import NamedTuple

from tff_fair.launchers.tables import definitions


class Side(NamedTuple):
  """One side of a comparison: a metric of a method in a cell of a table."""

  table: str
  cell: str
  method: str
  metric: str


@dataclasses.dataclass(frozen=True)
class Comparison:
  """A difference whose sign supports a claim or speaks against it.

  Attributes:
    left: What the claim is about.
    right: What it is compared with, or a number, in the paper's unit.
    above: Whether the claim says that the left is above the right. Otherwise it
      says that it is below. A number itself is both, "at least" and "at most".
    margin: By how much, in the metric's unit; if negative, how far it may be on
      the other side.
    any_rounds: Whether the sides may have different numbers of rounds, each the
      most that were recorded.
  """

  left: Side
  right: Side | float
  above: bool = True
  margin: float = 0.0
  any_rounds: bool = False


@dataclasses.dataclass(frozen=True)
class Reading:
  """Another reading of a paper, under which a claim is tried as well.

  Attributes:
    title: What it is, as it stands behind "is".
    methods: Method -> the method of the same table that replaces it.
    table: Another table; comparisons of cells or methods that it does not have
      are left out. None for the claim's own.
  """

  title: str
  methods: Mapping[str, str]
  table: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
  """A statement of a paper, and the comparisons that decide it.

  Attributes:
    place: Where the paper says it.
    text: The claim in a sentence.
    comparisons: Its statistic; all must hold.
    most: Whether it is enough that more than half of them hold.
    reading: Another reading of the paper to try it with.
    note: What else a reader must know, such as a number that is ours.
    uncounted: Why no run of ours can decide it, in a sentence: it is listed
      without a verdict. Empty if one can.
  """

  place: str
  text: str
  comparisons: tuple[Comparison, ...]
  most: bool = False
  reading: Reading | None = None
  note: str = ''
  uncounted: str = ''


def versus(
  table: str,
  cells: Sequence[str],
  methods: Sequence[str],
  baselines: Sequence[str],
  metrics: Sequence[str],
  *,
  above: bool = True,
  margin: float = 0.0,
) -> tuple[Comparison, ...]:
  """Each method against each baseline, in each cell, by each metric.

  Args:
    table: The table.
    cells: Some of its cells.
    methods: The methods that the claim is about.
    baselines: Those that it compares them with.
    metrics: The metrics.
    above: Whether the methods' values are above those of the baselines.
    margin: By how much, see `Comparison`.

  Returns:
    The comparisons.
  """
  return tuple(
    Comparison(
      Side(table, cell, method, metric),
      Side(table, cell, baseline, metric),
      above,
      margin,
    )
    for cell in cells
    for method in methods
    for baseline in baselines
    for metric in metrics
  )


def level(
  table: str,
  cells: Sequence[str],
  methods: Sequence[str],
  metric: str,
  number: float,
  *,
  above: bool = True,
) -> tuple[Comparison, ...]:
  """Each method, in each cell, against a number.

  Args:
    table: The table.
    cells: Some of its cells.
    methods: The methods that the claim is about.
    metric: The metric.
    number: Its least value, or its largest.
    above: Whether it is the least.

  Returns:
    The comparisons.
  """
  return tuple(
    Comparison(Side(table, cell, method, metric), number, above)
    for cell in cells
    for method in methods
  )


def order(
  sides: Sequence[Side], *, above: bool = True
) -> tuple[Comparison, ...]:
  """A chain: each against the next.

  Args:
    sides: What is compared, first to last.
    above: Whether each is above the next.

  Returns:
    The comparisons.
  """
  return tuple(
    Comparison(left, right, above)
    for left, right in zip(sides, sides[1:], strict=False)
  )


def under(
  reading: Reading, comparisons: Iterable[Comparison]
) -> tuple[Comparison, ...]:
  """The comparisons under another reading.

  Args:
    reading: The reading.
    comparisons: Those of a claim.

  Returns:
    The comparisons that it has an answer to; it may be none.
  """
  replaced = (
    dataclasses.replace(
      comparison,
      left=_replaced(reading, comparison.left),
      right=comparison.right
      if isinstance(comparison.right, float)
      else _replaced(reading, comparison.right),
    )
    for comparison in comparisons
  )
  return tuple(c for c in replaced if all(map(exists, sides_of(c))))


def sides_of(comparison: Comparison) -> tuple[Side, ...]:
  """Returns the one or two sides that a comparison reads."""
  sides = (comparison.left, comparison.right)
  return tuple(side for side in sides if isinstance(side, Side))


def exists(side: Side) -> bool:
  """Returns whether the tables have the cell, method and metric of a side.

  Args:
    side: A side.
  """
  table = definitions.TABLES.get(side.table)
  return (
    table is not None
    and side.cell in table.cells
    and side.method in table.methods_of(side.cell)
    and side.metric in table.metrics
  )


def _replaced(reading, side) -> Side:
  return side._replace(
    table=reading.table or side.table,
    method=reading.methods.get(side.method, side.method),
  )
