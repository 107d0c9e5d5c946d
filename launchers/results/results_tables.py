"""A table of recorded results as Markdown, beside the paper's numbers."""

from collections.abc import Iterable, Mapping
import decimal
import functools
import re
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import seed_means
from tff_fair.launchers.results import titles
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.show import markdown
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics

MARK = '‡'
"""Marks a number of which at least a part is transcribed."""

NOTHING = 'No run is recorded yet.'
"""Stands in place of a table without results."""

_NO_ENTRY = '-'
_DECIMALS = re.compile(r'^(-?)0\.')


class _Key(NamedTuple):
  """The place of a number in the tables."""

  setting: titles.Setting
  method: str
  metric: str


def render(
  layout: layouts.Layout,
  frame: pd.DataFrame,
  numbers: Mapping[tuple[str, str, str, str], published.Number],
) -> str:
  """Renders a table.

  Args:
    layout: What it shows.
    frame: All recorded rows.
    numbers: The published numbers, from `published.read`.

  Returns:
    A Markdown table for each grid, each under a line that says what it is.
  """
  means = _means(layout, frame)
  if not means:
    return NOTHING
  return '\n\n'.join(_Grids(layout, means, numbers).grids())


class Entry(NamedTuple):
  """A number as a table shows it.

  Attributes:
    setting: The title of its setting.
    cell: Its cell.
    method: Its method.
    metric: Its metric.
    text: Our number and the paper's.
    seeds: The number of seeds behind ours.
  """

  setting: str
  cell: str
  method: str
  metric: str
  text: str
  seeds: int


def entries(
  layout: layouts.Layout,
  frame: pd.DataFrame,
  numbers: Mapping[tuple[str, str, str, str], published.Number],
) -> list[Entry]:
  """The numbers of a table, those of a cell's fullest setting first.

  Args:
    layout: What it shows.
    frame: All recorded rows.
    numbers: The published numbers, from `published.read`.
  """
  return _Grids(layout, _means(layout, frame), numbers).all_entries()


def _means(layout, frame) -> dict[_Key, seed_means.Mean]:
  """The means that a table shows."""
  wanted = frame[frame['table'] == layout.table]
  wanted = wanted[wanted['cell'].isin(list(layout.cells))]
  found = {}
  for key, mean in seed_means.of_table(wanted).items():
    cell, method, metric, data, scale, rounds = key
    setting = _setting(layout.table, cell, method, data, scale, rounds)
    found[_Key(setting, method, metric)] = mean
  return found


def _setting(table, cell, method, data, scale, rounds) -> titles.Setting:
  paper_data = definitions.TABLES[table].cells[cell].data
  paper_rounds = _paper_rounds(table, cell, method)
  differs = rounds != paper_rounds
  return titles.Setting(
    cell=cell,
    data=data if data != paper_data else None,
    scale=scale,
    rounds=rounds if differs else None,
    paper_rounds=paper_rounds if differs else None,
  )


@functools.cache
def _paper_rounds(table, cell, method) -> int:
  definition = definitions.TABLES[table]
  setting = definition.cells[cell]
  flags = {**setting.flags, **definition.flags_of(cell, method)}
  return planned_run.resolve({'preset': setting.preset, **flags})['rounds']


class _Grids:
  """The grids of a layout with results."""

  def __init__(self, layout, means, numbers):
    self._layout = layout
    self._table = definitions.TABLES[layout.table]
    self._means = means
    self._paper = {
      key: number for key in means if (number := self._published(key, numbers))
    }
    # Metric -> the digits that it is printed with, zeros included.
    self._transcribed_digits = _most_digits(
      (key.metric, mean.printed or 0) for key, mean in means.items()
    )
    self._paper_digits = _most_digits(
      (key.metric, seed_means.decimals(value))
      for key, number in self._paper.items()
      for value in number
    )
    self._seeds = {
      setting: _most(
        [mean.seeds for key, mean in means.items() if key.setting == setting]
      )
      for setting in {key.setting for key in means}
    }

  def grids(self) -> Iterable[str]:
    """Each grid with its caption, as Markdown."""
    for grid in self._entries(self._layout.grids, self._means):
      shown = {
        key: mean
        for key, mean in self._means.items()
        if getattr(key, self._layout.grids) == grid
      }
      yield self._grid(grid, shown)

  def all_entries(self) -> list[Entry]:
    """Each number."""
    keys = sorted(self._means, key=lambda key: self._fullest_first(key.setting))
    return [
      Entry(
        self._title('setting', key.setting),
        key.setting.cell,
        key.method,
        key.metric,
        self._format_entry(key),
        self._means[key].seeds,
      )
      for key in keys
    ]

  def _grid(self, grid, shown) -> str:
    rows = self._entries(self._layout.rows, shown)
    columns = self._entries(self._layout.columns, shown)
    at = {
      (getattr(k, self._layout.rows), getattr(k, self._layout.columns)): k
      for k in shown
    }
    caption = f'**{self._title(self._layout.grids, grid)}**'
    if any(key in self._paper for key in shown):
      caption += ", ours / the paper's"
    header = ['', *(self._title(self._layout.columns, c) for c in columns)]
    body = [
      [
        self._title(self._layout.rows, row),
        *(self._format_entry(at.get((row, column))) for column in columns),
      ]
      for row in rows
    ]
    return f'{caption}:\n\n{markdown.table(header, body)}'

  def _entries(self, dimension, keys) -> list:
    """The entries of a dimension that occur, in their order."""
    found = {getattr(key, dimension) for key in keys}
    if dimension == 'setting':
      return sorted(found, key=self._fullest_first)
    order = list(getattr(self._table, f'{dimension}s'))
    return sorted(found, key=order.index)

  def _fullest_first(self, setting) -> tuple:
    """The paper's setting of a cell comes before smaller ones."""
    return (
      list(self._layout.cells).index(setting.cell),
      -setting.scale,
      setting.rounds is not None,
      -(setting.rounds or 0),
      setting.data or '',
    )

  def _title(self, dimension, entry) -> str:
    if dimension == 'method':
      return titles.method(entry)
    if dimension == 'metric':
      return table_metrics.METRICS[entry].heading(self._table.percent)
    cell = self._layout.cells[entry.cell]
    return titles.setting(cell, entry, self._seeds[entry])

  def _format_entry(self, key) -> str:
    """Our number with its mark and what is special of it, and the paper's."""
    if key is None:
      return _NO_ENTRY
    mean = self._means[key]
    metric = table_metrics.METRICS[key.metric]
    notes = []
    if mean.seeds != self._seeds[key.setting]:
      notes.append(titles.number_of_seeds(mean.seeds))
    if 0 < mean.undefined < mean.seeds:
      notes.append(f'{mean.undefined} of {mean.seeds} {metric.undefined}')
    ours = self._ours(key, mean, metric.undefined)
    if notes:
      ours += f' ({", ".join(notes)})'
    if key.metric not in self._paper_digits:
      return ours
    return f'{ours} / {self._papers(key)}'

  def _ours(self, key, mean, undefined) -> str:
    digits = self._digits(key.metric)
    if mean.printed is not None:
      digits = min(digits, self._transcribed_digits[key.metric])
    text = self._number(mean.value, mean.sd, digits, undefined)
    return text if mean.printed is None else f'{text} {MARK}'

  def _papers(self, key) -> str:
    """The paper's number, in the digits of the paper."""
    if key not in self._paper:
      return _NO_ENTRY
    digits = min(self._digits(key.metric), self._paper_digits[key.metric])
    return self._number(*self._paper[key], digits)

  def _number(self, value, sd, digits, undefined='') -> str:
    texts = [_rounded(v, digits) for v in (value, sd) if not pd.isna(v)]
    if not self._table.percent:
      texts = [_DECIMALS.sub(r'\1.', text) for text in texts]
    return ' ± '.join(texts) or undefined

  def _digits(self, metric) -> int:
    own = table_metrics.METRICS[metric].shown_digits(self._table.percent)
    return self._layout.digits.get(metric, own)

  def _published(self, key, numbers) -> published.Number | None:
    return numbers.get(
      published.key(
        self._layout.table, key.setting.cell, key.method, key.metric
      )
    )


def _rounded(value: float, digits: int) -> str:
  """Half up, of the decimals that the number is printed with."""
  exact = decimal.Decimal(repr(float(value)))
  unit = decimal.Decimal(1).scaleb(-digits)
  return f'{exact.quantize(unit, decimal.ROUND_HALF_UP):f}'


def _most_digits(found: Iterable[tuple[str, int]]) -> dict[str, int]:
  """The largest number of digits of each metric."""
  most = {}
  for metric, digits in found:
    most[metric] = max(digits, most.get(metric, 0))
  return most


def _most(numbers) -> int:
  """The most frequent number; of several, the largest."""
  return max(numbers, key=lambda number: (numbers.count(number), number))
