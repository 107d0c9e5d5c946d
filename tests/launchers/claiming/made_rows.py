"""Recorded rows by hand, of FedQuad's table 1 unless told otherwise."""

import pandas as pd

from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import statements

TABLE, CELL, METRIC = 'fedquad_table1', 'cifar10_a03_c10', 'global_accuracy'
_ROW = {
  'table': TABLE,
  'cell': CELL,
  'data': 'cifar10',
  'scale': 1.0,
  'clients': 1.0,
  'rounds': 20,
  'metric': METRIC,
  'source': 'run',
  'seconds': 90.0,
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


def group(*groups):
  """The rows of some groups, as the claims read them."""
  return evidence.group(
    pd.DataFrame([row for group in groups for row in group])
  )


def both(ours, other, **others):
  """Rows of FedQuad and of FedAvg."""
  return [*rows('fedquad', ours, **others), *rows('fed_avg', other, **others)]


def parse(relation, *, any_rounds=False):
  """A comparison of FedQuad, such as "above moon"."""
  statistic = f'{TABLE}: {METRIC} of fedquad {relation} in {CELL}'
  (comparison,) = statements.parse(statistic, any_rounds)
  return comparison


def cf(ours, other, relation='above cffl'):
  """A comparison of CF coefficients of FedAKD and CFFL, and its rows."""
  (comparison,) = statements.parse(
    f'fedakd_table1: cf of fedakd {relation} in cifar10_pow'
  )
  place = {'table': 'fedakd_table1', 'cell': 'cifar10_pow', 'metric': 'cf'}
  groups = [rows('fedakd', ours, **place), rows('cffl', other, **place)]
  return comparison, group(*groups)


def claim(*relations, **others):
  """A claim of comparisons of FedQuad."""
  return statements.Claim(
    place='table 1',
    text='It is best.',
    statistic='',
    comparisons=tuple(map(parse, relations)),
    others=tuple(map(parse, others.pop('others', ()))),
    **others,
  )
