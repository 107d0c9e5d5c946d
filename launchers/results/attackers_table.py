"""The table of methods with attackers: `results/attackers.csv` as Markdown.

It stands between `<!-- attackers -->` and `<!-- end of attackers -->`. A row of
the file is a run, see examples/attackers.py.
"""

import pathlib

import pandas as pd

from tff_fair.launchers.results import records
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers

FILE = 'attackers.csv'
_KEY = ['method', 'attack', 'seed']
_SCORES = ('mean', 'worst')
_DIGITS = 2


def read(folder: pathlib.Path) -> pd.DataFrame | None:
  """Reads the runs.

  Args:
    folder: The folder of the results.

  Returns:
    The file's columns; None if there is no such file.

  Raises:
    RecordsError: If the file is damaged.
  """
  return records.read_runs(folder / FILE, _KEY, [*_SCORES, 'command'])


def render(page: str, runs: pd.DataFrame | None) -> str:
  """Renders the table of a page; without runs the page stays.

  Args:
    page: The page's text.
    runs: What `read` gives.
  """
  if runs is None:
    return page
  return blocks.replace(
    page, 'attackers', 'end of attackers', lambda match: _table(runs)
  )


def _table(runs) -> str:
  attacks = list(dict.fromkeys(runs['attack']))
  rows = [
    [method, *(_cell(part[part['attack'] == name]) for name in attacks)]
    for method, part in runs.groupby('method', sort=False)
  ]
  return markdown.table(['method', *(f'`{name}`' for name in attacks)], rows)


def _cell(runs) -> str:
  """The mean and the worst client, each with its deviation over the seeds."""
  diverged = runs['mean'].isna().sum()
  if diverged == len(runs):
    return 'diverged'
  text = ', '.join(_with_spread(runs[name].dropna()) for name in _SCORES)
  return f'{text} ({diverged} diverged)' if diverged else text


def _with_spread(values) -> str:
  mean = numbers.format_rounded(values.mean(), _DIGITS)
  if len(values) < 2:
    return mean
  return f'{mean} ± {numbers.format_rounded(values.std(), _DIGITS)}'
