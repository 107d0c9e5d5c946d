"""The table of recorded runs that were trained again: `results/again.csv`.

It stands as Markdown between `<!-- trained again -->` and `<!-- end of trained
again -->`. A row of the file is a number of a run, see examples/train_again.py.
"""

import pathlib

import numpy as np
import pandas as pd

from tff_fair.launchers.results import records
from tff_fair.launchers.results import titles
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

FILE = 'again.csv'
RUN = ('table', 'cell', 'method', 'seed')
"""The columns that name a run."""

_HEADER = ('table: cell', 'method', 'seed', 'numbers', 'equal', 'most unlike')


def read(path: pathlib.Path) -> pd.DataFrame | None:
  """Reads the numbers.

  Args:
    path: The file.

  Returns:
    The file's columns; None if there is no such file.

  Raises:
    RecordsError: If the file is damaged.
  """
  values = ['recorded', 'again', 'recorded_by', 'again_by']
  return records.read_runs(path, [*RUN, 'metric'], values)


def render(page: str, rows: pd.DataFrame | None) -> str:
  """Renders the table of a page; without numbers the page stays.

  Args:
    page: The page's text.
    rows: What `read` gives.
  """
  if rows is None:
    return page
  return blocks.replace(
    page, 'trained again', 'end of trained again', lambda match: _table(rows)
  )


def _table(rows) -> str:
  lines = [_line(*run) for run in rows.groupby([*RUN], sort=False)]
  return markdown.table(_HEADER, lines, texts=len(_HEADER))


def _line(run, rows) -> list[str]:
  table, cell, method, seed = run
  equal = rows['again'] == rows['recorded']
  equal |= rows['again'].isna() & rows['recorded'].isna()
  return [
    f'`{table}`: `{cell}`',
    titles.method(method),
    str(seed),
    str(len(rows)),
    str(equal.sum()),
    _most_unlike(table, rows[~equal]),
  ]


def _most_unlike(table, rows) -> str:
  """The number that is the farthest from its record, as a share of it."""
  if rows.empty:
    return 'none'
  row = rows.loc[_distance(rows).idxmax()]
  title = table_metrics.METRICS[row['metric']].heading(
    definitions.TABLES[table].percent
  )
  again, recorded = (
    numbers.format_number(row[name], '.6g') for name in ('again', 'recorded')
  )
  return f'{title}: {again} in place of {recorded}'


def _distance(rows) -> pd.Series:
  """Differences as a share of the record; of an undefined one, infinite."""
  share = (rows['again'] - rows['recorded']).abs() / rows['recorded'].abs()
  return share.fillna(np.inf)
