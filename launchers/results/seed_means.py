"""Recorded results as means over seeds."""

import decimal
import math

import pandas as pd

from tff_fair.launchers.results import records

KEY = ['cell', 'method', 'metric', 'data', 'scale', 'clients', 'rounds']


def compute(rows: pd.DataFrame) -> pd.DataFrame:
  """Computes the means of a table.

  What is transcribed of a number counts only if none of its runs is recorded.

  Args:
    rows: The recorded rows of one table.

  Returns:
    A row for each number, with the columns of `KEY` and

    value: its mean over the seeds that define it; NaN if none does;
    sd: its standard deviation over them; NaN if there is one, or if a
      transcribed mean came without;
    seeds: the number of seeds;
    undefined: how many of them do not define it;
    printed: the digits after the point of what is transcribed; NaN of runs.
  """
  is_run = rows['source'] == records.RUN
  has_run = is_run.groupby([rows[name] for name in KEY]).transform('any')
  rows, is_run = rows[is_run | ~has_run], is_run[is_run | ~has_run]
  seeds = rows['seed'].map(lambda seed: len(records.seeds_of(seed)))
  digits = rows[['value', 'sd']].map(count_decimals).max(axis=1)
  groups = rows.assign(
    seeds=seeds,
    undefined=seeds.where(rows['value'].isna(), 0),
    printed=digits.mask(is_run),
  ).groupby(KEY, sort=False)
  means = groups.agg(
    value=('value', 'mean'),
    sd=('value', 'std'),
    printed_sd=('sd', 'first'),
    seeds=('seeds', 'sum'),
    undefined=('undefined', 'sum'),
    printed=('printed', 'max'),
  )
  means['sd'] = means['sd'].fillna(means.pop('printed_sd'))
  return means.reset_index()


def count_decimals(value: float) -> int:
  """Counts the digits after the point that a number needs; 0 for NaN."""
  if math.isnan(value):
    return 0
  exact = decimal.Decimal(repr(float(value))).normalize()
  return max(0, -exact.as_tuple().exponent)
