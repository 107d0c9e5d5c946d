"""The tables of docs/results.md, from layouts.csv: what each shows, and how.

A table has three dimensions, settings, methods and metrics. One makes its rows,
one its columns, and there is a grid for each entry of the third. A row of the
file is a cell that a table shows, with its title. Methods and settings appear
when a result of theirs is recorded.
"""

from collections.abc import Mapping, Sequence
import pathlib
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

_PATH = pathlib.Path(__file__).with_name('layouts.csv')
_TENTHS = dict.fromkeys(
  ('cf', 'client_accuracy_max', 'client_accuracy_mean', 'global_accuracy'), 1
)
# Paper -> metric -> digits, if not those of the metric.
_DIGITS = {
  'cffl': {'above_standalone': 0},
  'fedquad': _TENTHS,
  'fedakd': _TENTHS,
}


# Layout -> the metrics that it shows, if not all; `results/` has the others.
_SHOWN = {
  'fedaboost_why': (
    'global_f1',
    'global_f1_lead',
    'client_f1_own_labels_median',
    'client_f1_own_labels_variance',
  ),
  'cffl_why': ('cf', 'client_accuracy_max'),
  'cffl_why_script': ('cf', 'client_accuracy_max'),
  'fedakd_protocols': ('cf', 'client_accuracy_mean'),
}


class Layout(NamedTuple):
  """One table of the page.

  Attributes:
    table: The table in `definitions.TABLES`.
    rows: The dimension of its rows.
    columns: The dimension of its columns.
    cells: Name -> title, of the cells that it shows.
    metrics: The metrics that it shows.
  """

  table: str
  rows: str
  columns: str
  cells: Mapping[str, str]
  metrics: Sequence[str]

  @property
  def grids(self) -> str:
    """The dimension that gets one grid per entry."""
    (name,) = {'setting', 'method', 'metric'} - {self.rows, self.columns}
    return name

  def digits(self, metric: str) -> int:
    """The digits of a metric after the point, in the paper's unit."""
    percent = definitions.TABLES[self.table].percent
    usual = table_metrics.METRICS[metric].shown_digits(percent)
    return _DIGITS.get(self.table.split('_')[0], {}).get(metric, usual)


LAYOUTS: dict[str, Layout] = {
  name: Layout(
    *rows[['table', 'rows', 'columns']].iloc[0],
    dict(zip(rows['cell'], rows['title'], strict=True)),
    _SHOWN.get(name) or definitions.TABLES[rows['table'].iloc[0]].metrics,
  )
  for name, rows in pd.read_csv(_PATH, dtype=str).groupby('layout', sort=False)
}
