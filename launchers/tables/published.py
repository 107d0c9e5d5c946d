"""The published numbers, under the names that the launchers use.

`published.csv` has a row per number: a table as in `--table`, a cell and a
method of the table, a metric, and the value with its standard deviation as
printed, accuracies in per cent or as fractions.
"""

from collections.abc import Mapping
import functools
import pathlib
from typing import NamedTuple

import pandas as pd

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


Numbers = Mapping[tuple[str, str, str, str], Number]
"""(table, cell, method, metric) -> number."""


@functools.cache
def read() -> Numbers:
  """Reads the numbers."""
  frame = pd.read_csv(_PATH, float_precision='round_trip')
  return {
    tuple(key): Number(value, sd)
    for *key, value, sd in frame.itertuples(index=False)
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
