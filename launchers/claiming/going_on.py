"""Computes how claims could be decided: seeds, core-hours and the commands."""

from collections.abc import Iterable
import itertools
import math
from typing import NamedTuple

import numpy as np

from tff_fair.launchers import statistics
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import outcomes
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published

# The recorded seconds are those of runs on two cores.
_CORES = 2


class Plan(NamedTuple):
  """The runs that would decide a claim.

  Attributes:
    seeds: The number of seeds that the spread at hand asks for, those that are
      recorded among them; NaN without a spread, infinite if no number would.
    look: The planned look that has them; 0 if it is beyond the last one.
    core_hours: Of the seeds up to that look, or beyond the last one up to the
      number that is needed, without those that are recorded; of the compared
      methods, by the recorded seconds. NaN if not known.
    commands: Flags of `launchers.reproduce`, one for each table.
  """

  seeds: float
  look: int
  core_hours: float
  commands: tuple[str, ...]


def plan(result: verdicts.Result) -> Plan | None:
  """Plans the runs for an undecided claim; None for the others.

  At the largest size of which numbers are recorded; at the paper's without any.
  """
  if result.verdict != verdicts.UNDECIDED:
    return None
  judged = next(iter(result.sizes.values()), None)
  if judged is None:
    wanted = [c for c in result.claim.comparisons if not c.undefined]
    setting, seeds, first = None, math.nan, statistics.LOOKS[0]
    return Plan(seeds, first, math.nan, _commands(wanted, setting, first))
  open_ones = [
    m for m in judged.measured if m.outcome in (outcomes.OPEN, outcomes.MISSING)
  ]
  number = len(judged.measured) - judged.counts[outcomes.UNDEFINED]
  needs = [_needed(m, number) for m in open_ones]
  wanted = _cheapest(result.claim, judged, open_ones, needs)
  chosen = [open_ones[place] for place in wanted]
  most = max(needs[place] for place in wanted)
  used = min(m.seeds for m in chosen)
  look = next((n for n in statistics.LOOKS if n > used and n >= most), 0)
  has_spread = any(m.seeds >= 2 for m in chosen)
  return Plan(
    most if has_spread else math.nan,
    look,
    _core_hours(chosen, look or most),
    _commands(
      [m.comparison for m in chosen],
      judged.telling.evidence,
      look or statistics.LOOKS[-1],
    ),
  )


def _cheapest(claim, judged, open_ones, needs) -> list[int]:
  """Chooses the open comparisons that would decide a claim, as they lean."""
  order = sorted(range(len(needs)), key=needs.__getitem__)
  against = [p for p in order if _leans_against(open_ones[p])]
  if claim.most:
    # More than half have to be for it.
    lacking = len(judged.measured) // 2 + 1 - judged.counts[outcomes.FOR]
    return [p for p in order if p not in against][:lacking] or order
  # One against it is enough.
  return against[:1] or sorted(order)


def _needed(measured, number) -> float:
  """The seeds at which a comparison would be decided as it leans.

  Without a spread, and for counts of clients, those of the next look.
  """
  following = [n for n in statistics.LOOKS if n > measured.seeds]
  if measured.seeds < 2 or measured.counted:
    return following[0] if following else math.inf
  level = outcomes.LEVEL
  if _leans_against(measured):
    level = 1 - (1 - level) / number
  return statistics.seeds_needed(measured.leads, level)


def _leans_against(measured) -> bool:
  return measured.seeds >= 2 and bool(np.nanmean(measured.leads or 0) < 0)


def _core_hours(chosen: Iterable[outcomes.Measured], seeds) -> float:
  """The core-hours up to a number of seeds; NaN if not known."""
  runs = {}
  for measured in chosen:
    pairs = measured.evidence.pairs.values() if measured.evidence else ()
    numbers = [*zip(*pairs, strict=True)] or ((), ())
    for side, own in zip(measured.comparison[:2], numbers, strict=True):
      if isinstance(side, statements.Side):
        # A run has several metrics.
        runs[side._replace(metric='')] = own
  if not all(runs.values()) or math.isinf(seeds):
    return math.nan
  seconds = [
    (seeds - len(own)) * np.mean([number.seconds for number in own])
    for own in runs.values()
  ]
  return float(np.sum(seconds)) * _CORES / 3600


def _commands(comparisons, found, seeds) -> tuple[str, ...]:
  """The flags that train both sides of comparisons, for each table."""
  sides = [
    side
    for comparison in comparisons
    for side in comparison[:2]
    if isinstance(side, statements.Side)
  ]
  by_table = itertools.groupby(
    sorted(sides, key=lambda side: side.table), key=lambda side: side.table
  )
  return tuple(
    ' '.join(
      [
        f'--table={table}',
        f'--cells={_distinct(side.cell for side in own)}',
        f'--methods={_distinct(side.method for side in own)}',
        *_size_flags(own[0], found),
        f'--seeds={seeds}',
      ]
    )
    for table, group in by_table
    if (own := [*group])
  )


def _size_flags(side, found: evidence.Evidence | None) -> list[str]:
  """The flags of a setting that is not the paper's."""
  if found is None or found.size == evidence.PAPERS:
    return []
  data, scale, length, clients = found.setting
  flags = [
    f'--{name}={share:g}'
    for name, share in (('scale', scale), ('scale_clients', clients))
    if share < 1
  ]
  papers = definitions.TABLES[side.table].cells[side.cell].data
  if definitions.STAND_INS.get(papers) == data:
    flags.append(f'--dataset={data}')
  if length < published.rounds(side.table, side.cell, side.method):
    flags.append(f'--rounds={length}')
  return flags


def _distinct(names: Iterable[str]) -> str:
  return ','.join(dict.fromkeys(names))
