"""Finds the recorded rows that answer a comparison.

Rows of one setting can be compared: of the same data, share of the data, and
length of the training. A length is a number of rounds, or "the method's own" if
its table fixes that, as FedAKD's protocols and its equal time do.
"""

from collections.abc import Mapping
import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.results import seed_means
from tff_fair.launchers.tables import definitions as tables
from tff_fair.launchers.tables import table_metrics

_OWN_LENGTH = math.inf


class Setting(NamedTuple):
  """The setting that rows must share to be compared.

  Attributes:
    data: The data set that was used.
    scale: The share of it.
    length: The number of rounds; infinity for the method's own.
  """

  data: str
  scale: float
  length: float


class Values(NamedTuple):
  """The recorded values of a side in a setting.

  Attributes:
    by_seed: Seed -> value; a mean over seeds has a seed such as "0-2". NaN is
      undefined.
    rounds: The number of rounds.
    transcribed: Those of them that are not from runs at hand.
  """

  by_seed: dict[str, float]
  rounds: int
  transcribed: dict[str, float]


class Pairs(NamedTuple):
  """The rows that answer a comparison.

  Attributes:
    setting: Their setting.
    differences: Seed -> left less right; a single entry "0-2" for means over
      seeds, if there is nothing else.
    left: The mean of the left over these seeds.
    right: That of the right, or the number.
    rounds: The numbers of rounds of the two sides, each once.
    transcribed: Whether some values are not from runs at hand.
    unit: The last printed digit of these; 0 if all are from runs.
  """

  setting: Setting
  differences: Mapping[str, float]
  left: float
  right: float
  rounds: tuple[int, ...]
  transcribed: bool
  unit: float

  @property
  def num_seeds(self) -> int:
    """The number of seeds that define it; 0 for means over seeds."""
    return sum(
      _is_single(seed) and not math.isnan(difference)
      for seed, difference in self.differences.items()
    )


class Recorded:
  """The rows of `results/`, by what a comparison reads."""

  def __init__(self, frame: pd.DataFrame):
    """Sorts the rows.

    Args:
      frame: The result of `records.read`.
    """
    self._by_side: dict[definitions.Side, dict[Setting, Values]] = {}
    for row in frame.itertuples():
      side = definitions.Side(row.table, row.cell, row.method, row.metric)
      settings = self._by_side.setdefault(side, {})
      found = settings.setdefault(
        _setting(row), Values({}, int(row.rounds), {})
      )
      found.by_seed[row.seed] = _value(row)
      if row.source == 'transcribed':
        found.transcribed[row.seed] = float(row.value)

  def pairs(self, comparison: definitions.Comparison) -> Pairs | None:
    """The rows that answer a comparison best.

    Settings with two or more seeds come first, then the paper's data before
    those that stand in for them, then more data, then more rounds.

    Args:
      comparison: The comparison.

    Returns:
      The rows of one setting; None if there are none.
    """
    left = comparison.left
    found = [
      _paired(setting, values, other)
      for setting, values in self._by_side.get(left, {}).items()
      if (other := self._values(comparison, setting)) is not None
    ]
    found = [pairs for pairs in found if pairs.differences]
    return max(found, key=lambda p: _rank(p, left), default=None)

  def _values(self, comparison, setting) -> Values | float | None:
    """Those of the right, in the setting of the left."""
    right = comparison.right
    if not isinstance(right, definitions.Side):
      return right
    settings = self._by_side.get(right, {})
    if not comparison.any_rounds:
      return settings.get(setting)
    alike = [s for s in settings if s[:2] == setting[:2]]
    longest = max(alike, key=lambda s: s.length, default=None)
    return settings.get(longest)


def _setting(row) -> Setting:
  own = tables.TABLES[row.table].flags_of(row.cell, row.method).get('rounds')
  length = _OWN_LENGTH if row.rounds == own else row.rounds
  return Setting(row.data, row.scale, length)


def _value(row) -> float:
  """The value; what never happened happens after the last round."""
  value = float(row.value)
  never = table_metrics.METRICS[row.metric].undefined == 'never'
  return row.rounds + 1 if never and math.isnan(value) else value


def _paired(setting, left, right) -> Pairs:
  """The pairs of a setting; none if the sides have no seeds in common."""
  others = right if isinstance(right, Values) else None
  common = [
    seed for seed in left.by_seed if others is None or seed in others.by_seed
  ]
  seeds = sorted(filter(_is_single, common), key=int) or common[:1]
  minuends = np.array([left.by_seed[seed] for seed in seeds])
  subtrahends = (
    np.full(len(seeds), right)
    if others is None
    else np.array([others.by_seed[seed] for seed in seeds])
  )
  sides = [left] if others is None else [left, others]
  transcribed = [
    side.transcribed[seed]
    for side in sides
    for seed in seeds
    if seed in side.transcribed
  ]
  return Pairs(
    setting,
    dict(zip(seeds, (minuends - subtrahends).tolist(), strict=True)),
    _mean(minuends),
    _mean(subtrahends),
    tuple(dict.fromkeys(side.rounds for side in sides)),
    bool(transcribed),
    _unit(transcribed),
  )


def _unit(transcribed) -> float:
  """The largest rounding error of a difference of transcribed values."""
  if not transcribed:
    return 0.0
  return 10.0 ** -max(map(seed_means.decimals, transcribed))


def _rank(pairs, left):
  own = tables.TABLES[left.table].cells[left.cell].data
  setting = pairs.setting
  return (
    pairs.num_seeds >= 2,
    setting.data == own,
    setting.scale,
    setting.length,
  )


def _is_single(seed: str) -> bool:
  return seed.isdigit()


def _mean(values) -> float:
  return float(np.nanmean(values)) if (~np.isnan(values)).any() else math.nan
