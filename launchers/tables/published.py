"""The published numbers, under the names that the launchers use.

`published.csv` has a row per number: a table as in `--table`, a cell and a
method of the table, a metric, and the value with its standard deviation as
printed, accuracies in per cent or as fractions.
"""

import os
import pathlib
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

PATH = pathlib.Path(__file__).with_name('published.csv')

_KEY = ['table', 'cell', 'method', 'metric']
_NUMBERS = ['value', 'sd']


class Number(NamedTuple):
  """A published number.

  Attributes:
    value: As printed.
    sd: Its standard deviation over seeds; NaN if the paper prints none.
  """

  value: float
  sd: float


def read(
  path: str | os.PathLike[str] = PATH,
) -> dict[tuple[str, str, str, str], Number]:
  """Reads and checks the numbers.

  Args:
    path: The file.

  Returns:
    (table, cell, method, metric) -> number.

  Raises:
    ValueError: If the file has other columns, a repeated key, a missing name or
      value, or a value that is not a number.
  """
  frame = pd.read_csv(path, dtype=str, keep_default_na=False)
  if list(frame) != [*_KEY, *_NUMBERS]:
    raise ValueError(
      f'{path} must have the columns {", ".join([*_KEY, *_NUMBERS])}, found'
      f' {", ".join(frame)}.'
    )
  for _, row in frame.iterrows():
    _check_row(path, row)
  twice = frame[frame.duplicated(_KEY)]
  if len(twice):
    raise ValueError(
      f'{path} must hold each number once, found {_describe(twice.iloc[0])}'
      ' again.'
    )
  return {
    tuple(row[_KEY]): Number(float(row['value']), float(row['sd'] or 'nan'))
    for _, row in frame.iterrows()
  }


def key(
  table: str, cell: str, method: str, metric: str
) -> tuple[str, str, str, str]:
  """Returns the key of the paper's number for a row of a table.

  Args:
    table: The name of our table.
    cell: A cell of it.
    method: A method of it.
    metric: A metric of `table_metrics.METRICS`.

  Returns:
    A key of what `read` returns, which has it if the paper has the number.
  """
  ours = definitions.TABLES[table]
  return (
    ours.published_as or table,
    ours.cells[cell].published_as or cell,
    ours.printed_as.get(method, method),
    table_metrics.METRICS[metric].published or metric,
  )


def _check_row(path, row) -> None:
  if '' in row[_KEY].tolist():
    raise ValueError(f'{path} must name all of {_KEY}, found {_describe(row)}.')
  for number in (row['value'], row['sd'] or '0'):
    if not _is_finite(number):
      raise ValueError(
        f'{path} must hold finite numbers, found {number!r} for'
        f' {_describe(row)}.'
      )


def _is_finite(text: str) -> bool:
  try:
    return bool(np.isfinite(float(text)))
  except ValueError:
    return False


def _describe(row) -> str:
  return ', '.join(row[_KEY])
