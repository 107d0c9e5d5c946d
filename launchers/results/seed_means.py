"""Recorded results as means over seeds.

A transcribed mean counts as long as one of its seeds has no run of its own; the
runs of its other seeds then do not, so that no seed counts twice.
"""

import decimal
import math
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers.results import records

KEY = ['cell', 'method', 'metric', 'data', 'scale', 'rounds']


class Mean(NamedTuple):
  """A number over seeds.

  Attributes:
    value: Its mean over the seeds that define it; NaN if none does.
    sd: Its standard deviation over them; NaN if there is one, or if a
      transcribed mean came without.
    seeds: The number of seeds.
    undefined: How many of them do not define it.
    printed: The digits after the point of what is transcribed of it; None if
      all of it is of recorded runs.
  """

  value: float
  sd: float
  seeds: int
  undefined: int
  printed: int | None


class _Part(NamedTuple):
  """A row: a run, or a mean that was transcribed."""

  seeds: frozenset[int]
  value: float
  sd: float
  transcribed: bool


def of_table(rows: pd.DataFrame) -> dict[tuple, Mean]:
  """The means of a table.

  Args:
    rows: The recorded rows of one table.

  Returns:
    (cell, method, metric, data, scale, rounds) -> mean.
  """
  found = {}
  for key, group in rows.groupby(KEY, sort=False):
    parts = [
      _Part(
        frozenset(records.seeds_of(row.seed)),
        row.value,
        row.sd,
        row.source == records.TRANSCRIBED,
      )
      for row in group.itertuples()
    ]
    found[key] = _pooled(_counted(parts))
  return found


def decimals(value: float) -> int:
  """The digits after the point that a number needs; 0 for NaN."""
  if math.isnan(value):
    return 0
  exact = decimal.Decimal(repr(float(value))).normalize()
  return max(0, -exact.as_tuple().exponent)


def _counted(parts) -> list[_Part]:
  """The parts that together have every seed once."""
  run = {seed for part in parts if not part.transcribed for seed in part.seeds}
  means = [p for p in parts if p.transcribed and not p.seeds <= run]
  means.sort(key=lambda part: -len(part.seeds))
  counted, seen = [], set()
  for part in (*means, *(p for p in parts if not p.transcribed)):
    if seen.isdisjoint(part.seeds):
      counted.append(part)
      seen |= part.seeds
  return counted


def _pooled(parts) -> Mean:
  """The mean and the deviation of all seeds, from those of the parts."""
  defined = [part for part in parts if not math.isnan(part.value)]
  number = sum(len(part.seeds) for part in defined)
  seeds = sum(len(part.seeds) for part in parts)
  printed = [
    max(decimals(part.value), decimals(part.sd))
    for part in parts
    if part.transcribed
  ]
  value = sd = math.nan
  if number:
    value = sum(len(part.seeds) * part.value for part in defined) / number
  if number > 1:
    squares = sum(
      _squares(part) + len(part.seeds) * (part.value - value) ** 2
      for part in defined
    )
    sd = math.sqrt(squares / (number - 1))
  return Mean(value, sd, seeds, seeds - number, max(printed, default=None))


def _squares(part) -> float:
  """The squared deviations within a part; of one seed there are none."""
  degrees = len(part.seeds) - 1
  return degrees * part.sd**2 if degrees else 0.0
