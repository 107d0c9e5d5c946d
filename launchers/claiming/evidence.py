"""The recorded numbers that can answer a comparison, by their size.

Rows of one setting can be compared: of the same data, shares of the data and of
the clients, and length of the training. A length is a number of rounds, or "the
method's own" if its table fixes that, as FedAKD's protocols and its equal time
do.
"""

import collections
from collections.abc import Iterable, Mapping
import itertools
import math
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers import statistics
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics

PAPERS, REDUCED, STAND_IN = "the paper's", 'reduced', 'stand-in'
SIZES = (PAPERS, REDUCED, STAND_IN)
"""The sizes, the largest first.

All of the paper's data and at least its rounds; its data with fewer examples or
rounds; and other data, such as MNIST for Fashion-MNIST, of any size.
"""
_OWN_LENGTH = math.inf


class Setting(NamedTuple):
  """The settings rows must share; an infinite length is the method's own."""

  data: str
  scale: float
  length: float
  clients: float = 1.0

  @property
  def share(self) -> float:
    """The share of the data that all clients together have."""
    return self.scale * self.clients


class Number(NamedTuple):
  """A recorded value, or a number that a claim says."""

  value: float
  rounds: int | None = None
  is_transcribed: bool = False
  seconds: float = math.nan


Pairs = Mapping[str, tuple[Number, Number]]
"""Seed, or seeds of a mean such as '0-1' -> the left and the right number."""
Recorded = Mapping[statements.Side, Mapping[Setting, Mapping[str, Number]]]
"""Side -> setting -> seed -> number."""


class Evidence(NamedTuple):
  """The numbers of a comparison in one setting."""

  size: str
  setting: Setting
  pairs: Pairs

  @property
  def defined(self) -> Pairs:
    """The seeds that define a difference; a mean over seeds is none."""
    return {
      seed: (left, right)
      for seed, (left, right) in self.pairs.items()
      if seed.isdigit() and not math.isnan(left.value - right.value)
    }

  @property
  def used(self) -> Pairs:
    """The first 3, 6 or 9 of the seeds that define it; else all numbers."""
    look = statistics.planned(len(self.defined))
    return dict([*self.defined.items()][:look]) if look else self.pairs

  @property
  def left_aside(self) -> int:
    """The number of seeds that define it and are not used."""
    return max(0, len(self.defined) - len(self.used))


def group(frame: pd.DataFrame) -> Recorded:
  """Groups the rows of `records.read` by what a comparison reads."""
  found = collections.defaultdict(lambda: collections.defaultdict(dict))
  for row in frame.itertuples():
    side = statements.Side(row.table, row.cell, row.method, row.metric)
    own = definitions.TABLES[row.table].flags_of(row.cell, row.method)
    length = _OWN_LENGTH if row.rounds == own.get('rounds') else row.rounds
    # What never happened happens after the last round.
    never = table_metrics.METRICS[row.metric].undefined == 'never'
    value = row.rounds + 1 if never and math.isnan(row.value) else row.value
    is_transcribed = row.source == records.TRANSCRIBED
    number = Number(value, row.rounds, is_transcribed, row.seconds)
    setting = Setting(row.data, row.scale, length, row.clients)
    found[side][setting][row.seed] = number
  return found


def find(
  comparison: statements.Comparison, recorded: Recorded, sizes: Iterable[str]
) -> list[Evidence]:
  """Finds what answers a comparison, at the first of some sizes that has any.

  Within a size, a setting with the seeds of a look comes before one without,
  then more data before less, then more rounds. All are returned, so that none
  is passed over in silence.
  """
  found = []
  for setting, left in recorded.get(comparison.left, {}).items():
    pairs = _pair(left, _right(comparison, setting, recorded))
    if pairs:
      found.append(Evidence(_size(comparison, setting, pairs), setting, pairs))

  def rank(evidence):
    enough = statistics.planned(len(evidence.defined)) > 0
    return enough, evidence.setting.share, evidence.setting.length

  of_sizes = ([e for e in found if e.size == size] for size in sizes)
  return sorted(next(filter(None, of_sizes), []), key=rank, reverse=True)


def _size(comparison, setting, pairs) -> str:
  """The size of the numbers of a comparison; see `SIZES`."""
  left = comparison.left
  if setting.data != definitions.TABLES[left.table].cells[left.cell].data:
    return STAND_IN
  sides = zip(comparison[:2], zip(*pairs.values(), strict=True), strict=True)
  is_short = any(
    number.rounds < published.rounds(side.table, side.cell, side.method)
    for side, numbers in sides
    if isinstance(side, statements.Side)
    for number in numbers
  )
  return REDUCED if setting.share < 1 or is_short else PAPERS


def _right(comparison, setting, recorded) -> Mapping[str, Number] | float:
  """The right side in the setting of the left."""
  right = comparison.right
  if not isinstance(right, statements.Side):
    return right
  settings = recorded.get(right, {})
  if comparison.any_rounds:
    alike = [
      s for s in settings if s._replace(length=setting.length) == setting
    ]
    setting = max(alike, key=lambda s: s.length, default=None)
  return settings.get(setting, {})


def _pair(left, right) -> Pairs:
  """The seeds that both sides have; a mean over seeds only without any."""
  if isinstance(right, float):
    right = dict.fromkeys(left, Number(right))
  common = [seed for seed in left if seed in right]
  seeds = sorted(filter(str.isdigit, common), key=int) or common[:1]
  return {seed: (left[seed], right[seed]) for seed in seeds}


def numbers_of(pairs: Pairs) -> list[Number]:
  """The numbers of both sides."""
  return [*itertools.chain(*pairs.values())]
