"""A wall time after which no run is started."""

from collections.abc import Collection
import contextlib
import re

import pandas as pd


class BudgetError(ValueError):
  """The budget is no time; the message is one sentence."""


def parse(text: str) -> float:
  """Returns the seconds of a budget such as `2h`, `90min` or `1h30m`.

  Raises:
    BudgetError: If it is not a positive time with its unit.
  """
  seconds = 0.0
  # Of a number without a unit, pandas takes nanoseconds.
  if re.search('[a-z]', text):
    with contextlib.suppress(ValueError):
      seconds = pd.Timedelta(text).total_seconds()
  if not seconds > 0:
    raise BudgetError(
      '--budget must be a positive time with its unit, such as 2h or 90min,'
      f' found {text!r}.'
    )
  return seconds


def not_started(budget: float, methods: Collection[str]) -> str:
  """Says of which methods runs were not started within so many seconds."""
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
