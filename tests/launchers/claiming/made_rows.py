"""Recorded rows by hand, of FedQuad's table 1 unless told otherwise."""

import pandas as pd

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import recorded

TABLE, CELL, METRIC = 'fedquad_table1', 'cifar10_a03_c10', 'global_accuracy'
_ROW = {
  'table': TABLE,
  'cell': CELL,
  'data': 'cifar10',
  'scale': 1.0,
  'rounds': 20,
  'metric': METRIC,
  'source': 'run',
}


def rows(method, values, **others):
  """A row for each seed.

  Args:
    method: The method.
    values: Seed -> value, or the values of the seeds 0, 1, ...
    **others: Other columns.
  """
  if not isinstance(values, dict):
    values = {str(seed): value for seed, value in enumerate(values)}
  return [
    {**_ROW, 'method': method, 'seed': seed, 'value': value, **others}
    for seed, value in values.items()
  ]


def frame(*groups):
  """The rows of some groups, as `records.read` returns them."""
  return pd.DataFrame([row for group in groups for row in group])


def made(*groups):
  """The same rows for the claims."""
  return recorded.Recorded(frame(*groups))


def side(method, cell=CELL, table=TABLE, metric=METRIC):
  """A side of a comparison."""
  return definitions.Side(table, cell, method, metric)


def against(other='fed_avg', *, above=True):
  """FedQuad against a method, or against a number."""
  right = side(other) if isinstance(other, str) else other
  return definitions.Comparison(side('fedquad'), right, above)
