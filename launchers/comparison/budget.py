"""Fits a comparison into a wall time, by fewer trials, seeds and rounds."""

from collections.abc import Callable, Iterator, Mapping
import math
from typing import NamedTuple

import pandas as pd

# The floors of each pass over trials, seeds and the share of rounds: what costs
# the answer least is cut first.
_PASSES = ((4, 3, 0.5), (2, 2, 0.1), (0, 1, 0.0))
# Workers do not end at the same moment, and the pages take a while.
_MARGIN = 1.1


class Size(NamedTuple):
  """How large a comparison is.

  Attributes:
    rounds: Rounds of each run.
    seeds: Number of seeds.
    tune: Number of trials; 0 for none.
  """

  rounds: int
  seeds: int
  tune: int

  @property
  def runs(self) -> int:
    """Runs of each method: a trial is the run of the first seed."""
    return max(self.tune, 1) + self.seeds - 1


class Cost(NamedTuple):
  """The seconds of a method's run.

  Attributes:
    start: Of all but its rounds.
    round: Of a round, with its share of the evaluations.
  """

  start: float
  round: float


class BudgetError(ValueError):
  """The budget is no time, or too small; the message is one sentence."""


def parse(text: str) -> float:
  """The seconds of a budget.

  Args:
    text: For example `2h`, `90min` or `1h30m`.

  Raises:
    BudgetError: If it is not a positive time with its unit.
  """
  try:
    # Without a unit, pandas takes nanoseconds.
    float(text)
  except ValueError:
    pass
  else:
    raise BudgetError(
      f'--budget must be a time with its unit, such as 2h, found {text!r}.'
    )
  try:
    seconds = pd.Timedelta(text).total_seconds()
  except ValueError:
    seconds = 0.0
  if not seconds > 0:
    raise BudgetError(
      f'--budget must be a positive time, such as 2h or 90min, found {text!r}.'
    )
  return seconds


def seconds(size: Size, costs: Mapping[str, Cost], workers: int) -> float:
  """What a comparison takes.

  Args:
    size: Its size.
    costs: Method -> seconds of its run.
    workers: Number of processes.
  """
  run = sum(cost.start + size.rounds * cost.round for cost in costs.values())
  return _MARGIN * size.runs * run / workers


def fit(
  asked: Size,
  costs: Mapping[str, Cost],
  workers: int,
  budget: float,
  spent: float = 0.0,
) -> Size:
  """The largest comparison within a budget.

  Trials are cut first, down to 4, then seeds, down to 3, then rounds, down to
  half of them; then, in the same order, down to 2, 2 and a tenth; then to none,
  one and one.

  Args:
    asked: The size without a budget.
    costs: Method -> seconds of its run.
    workers: Number of processes.
    budget: In seconds.
    spent: Seconds of it that are gone already.

  Returns:
    A size, at most the one asked for in each respect.

  Raises:
    BudgetError: If one round of each method does not fit.
  """
  for size in _smaller(asked):
    if spent + seconds(size, costs, workers) <= budget:
      return size
  # Rounded so that the time that is named is enough.
  needed = in_words(spent + seconds(Size(1, 1, 0), costs, workers), math.ceil)
  raise BudgetError(
    f'--budget must be at least {needed} for one round of each of {len(costs)}'
    f' methods, found {in_words(budget, math.floor)}.'
  )


def cuts(asked: Size, used: Size) -> list[str]:
  """What a budget has cut, in a sentence; none if nothing.

  Args:
    asked: The size without a budget.
    used: The size with it.
  """
  names = {'tune': 'trials', 'seeds': 'seeds', 'rounds': 'rounds'}
  found = [
    f'{words} from {getattr(asked, name)} to {getattr(used, name)}'
    for name, words in names.items()
    if getattr(asked, name) != getattr(used, name)
  ]
  return [f'To keep to --budget, cut are {", ".join(found)}.'] if found else []


def in_words(duration: float, rounded: Callable[[float], int] = round) -> str:
  """A time with one or two units.

  Args:
    duration: In seconds.
    rounded: To the last of its units.
  """
  if rounded(duration) < 60:
    return f'{rounded(duration)} s'
  minutes = rounded(duration / 60)
  if minutes < 60:
    return f'{minutes} min'
  return f'{minutes // 60} h {minutes % 60} min'


def _smaller(asked: Size) -> Iterator[Size]:
  """Sizes, the one asked for first, each smaller than the one before."""
  size = asked
  yield size
  for trials, seeds, share in _PASSES:
    while size.tune > trials:
      # One trial alone chooses nothing.
      size = size._replace(tune=0 if size.tune == 2 else size.tune - 1)
      yield size
    while size.seeds > seeds:
      size = size._replace(seeds=size.seeds - 1)
      yield size
    while size.rounds > max(1, share * asked.rounds):
      size = size._replace(rounds=size.rounds - 1)
      yield size
