"""The published numbers, under the names that the launchers use.

`published.csv` has a row per number: a table as in `--table`, a cell and a
method of the table, a metric, and the value with its standard deviation as
printed, accuracies in per cent or as fractions.
"""

from collections.abc import Mapping
import functools
import pathlib
from typing import Any, NamedTuple

import pandas as pd

from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

_PATH = pathlib.Path(__file__).with_name('published.csv')


class Number(NamedTuple):
  """A published number.

  Attributes:
    value: As printed.
    sd: Its standard deviation over seeds; NaN if the paper prints none.
  """

  value: float
  sd: float


Key = tuple[str, str, str, str]
"""Table, cell, method and metric."""


@functools.cache
def read() -> Mapping[Key, Number]:
  """Reads the numbers, by the names of the paper's table."""
  frame = pd.read_csv(_PATH, float_precision='round_trip')
  return {
    tuple(key): Number(value, sd)
    for *key, value, sd in frame.itertuples(index=False)
  }


def key(table: str, cell: str, method: str, metric: str) -> Key:
  """Returns the names that the paper has for a row of our table.

  Of several published tables, that which has the number, or else the first.
  """
  ours = definitions.TABLES[table]
  names = (
    ours.cells[cell].published_as or cell,
    ours.printed_as.get(method, method),
    table_metrics.METRICS[metric].published,
  )
  keys = [(other, *names) for other in ours.published_as or (table,)]
  return next((found for found in keys if found in read()), keys[0])


def number(table: str, cell: str, method: str, metric: str) -> Number | None:
  """Returns the paper's number for a row of our table, if it has one."""
  return read().get(key(table, cell, method, metric))


def rounds(table: str, cell: str, method: str) -> int:
  """Returns the number of rounds in the paper."""
  return _settings(table, cell, method)['rounds']


def clients(table: str, cell: str, method: str) -> int:
  """Returns the number of clients in the paper."""
  return _settings(table, cell, method)['num_clients']


@functools.cache
def _settings(table, cell, method) -> Mapping[str, Any]:
  """The settings of the paper's run."""
  ours = definitions.TABLES[table]
  setting, flags = ours.cells[cell], ours.flags_of(cell, method)
  command = {'preset': setting.preset, **setting.flags, **flags}
  return planned_run.resolve(command)
