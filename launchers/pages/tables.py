"""Tables of numbers with marks, for web pages and for Markdown."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math

from tff_fair.launchers import measures
from tff_fair.launchers import summary as summary_lib
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers

MARKS = {1: '▲', -1: '▼', 0: ''}
"""Separably better than the baseline, separably worse, and neither."""


@dataclasses.dataclass(frozen=True)
class Cell:
  """A cell of a table.

  Attributes:
    text: What it says.
    detail: Text below it, or in brackets; may be empty.
    best: Whether no other number looks better, and some look worse.
    verdict: 1 if it is separably better than the baseline's, -1 if worse,
      otherwise 0.
  """

  text: str
  detail: str = ''
  best: bool = False
  verdict: int = 0


@dataclasses.dataclass(frozen=True)
class Row:
  """A row: its title, a text below it, its cells, and what it is marked as.

  A mark is 'baseline', 'worst', 'differs' or nothing.
  """

  title: str
  cells: Sequence[Cell]
  note: str = ''
  mark: str = ''


@dataclasses.dataclass(frozen=True)
class Table:
  """A table.

  Attributes:
    name: What it shows.
    header: The headings of its columns, that of the titles first.
    groups: Heading, or nothing -> rows.
    style: Classes of the web page's style.
  """

  name: str
  header: Sequence[str]
  groups: Mapping[str, Sequence[Row]]
  style: str = ''

  @property
  def rows(self) -> list[Row]:
    """All rows."""
    return [row for rows in self.groups.values() for row in rows]

  @property
  def has_best(self) -> bool:
    """Whether a cell is marked as best."""
    return any(cell.best for row in self.rows for cell in row.cells)


def make_cells(
  summary: summary_lib.Summary, measure: measures.Measure, names: Iterable[str]
) -> list[Cell]:
  """Makes the cells of a measure.

  Args:
    summary: The numbers.
    measure: The measure.
    names: The runs or methods of the cells.

  Returns:
    A cell for each, with its interval, the number of seeds if not all define
    it, and its marks. Numbers that look equal are marked alike.
  """
  order = summary.order(measure.column) if measure.direction else ()
  looks = {m: _look(summary, m, measure) for m in order}
  best = {m for m in order if looks[m] == looks[order[0]]}
  if len(best) == len(order):
    best = set()
  return [_cell(summary, m, measure, m in best) for m in names]


def texts(*values: str) -> list[Cell]:
  """Makes cells without marks."""
  return [Cell(value) for value in values]


def to_markdown(table: Table, with_details: bool = True) -> str:
  """Renders a table, whose texts are escaped, without headings of groups."""
  rows = [
    [
      markdown.bold(markdown.escape(row.title), row.mark == 'baseline'),
      *(_cell_to_markdown(cell, with_details) for cell in row.cells),
    ]
    for row in table.rows
  ]
  return markdown.table(table.header, rows)


def _cell_to_markdown(cell, with_details) -> str:
  text = markdown.bold(markdown.escape(cell.text), cell.best)
  text = f'{text} {MARKS[cell.verdict]}'.strip()
  if with_details and cell.detail:
    return f'{text} ({cell.detail})'
  return text


def _look(summary, name, measure) -> tuple[int, str]:
  estimate = summary.estimates[name, measure.column]
  return estimate.reached, summary.show(name, measure.column)


def _cell(summary, name, measure, is_best) -> Cell:
  estimate = summary.estimates[name, measure.column]
  if not estimate.reached:
    return Cell(numbers.MISSING)
  details, seeds = [], len(estimate.values)
  if not math.isnan(estimate.low):
    low, high = (
      summary.format(measure.column, v) for v in (estimate.low, estimate.high)
    )
    # Of costs that are always the same there is nothing to say.
    if low != high or measure.direction:
      details.append(f'{low} to {high}')
  if estimate.reached < seeds:
    details.append(f'{estimate.reached} of {seeds} seeds')
  return Cell(
    summary.show(name, measure.column),
    '; '.join(details),
    is_best,
    summary.verdict(name, measure.column) if measure.direction else 0,
  )
