"""A wall time after which no run is started."""

from collections.abc import Collection

import pandas as pd


class BudgetError(ValueError):
  """The budget is no time; the message is one sentence."""


def parse(text: str) -> float:
  """Returns the seconds of a budget.

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


def not_started(budget: float, methods: Collection[str]) -> str:
  """Says what a budget was too short for.

  Args:
    budget: In seconds.
    methods: The method of each run that was not started.
  """
  runs, distinct = len(methods), len(set(methods))
  return (
    f'not started within {in_words(budget)}: {runs} run{"s" * (runs > 1)} of'
    f' {distinct} method{"s" * (distinct > 1)}; run the same command again,'
    ' perhaps with a larger --budget, to go on'
  )


def in_words(seconds: float) -> str:
  """A time with one or two units."""
  if round(seconds) < 60:
    return f'{round(seconds)} s'
  minutes = round(seconds / 60)
  if minutes < 60:
    return f'{minutes} min'
  return f'{minutes // 60} h {minutes % 60} min'
