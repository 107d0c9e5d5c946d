"""Flags of the programs that train many runs, and what a budget is."""

from collections.abc import Collection, Mapping
import contextlib
import os
import pathlib
import re
from typing import Any

from absl import flags
import pandas as pd

from tff_fair.launchers.options import paths
from tff_fair.launchers.options import settings as settings_lib

# Where Linux lists them. A process takes the memory of all that it sees.
_GPUS = pathlib.Path('/proc/driver/nvidia/gpus')


def define_flags(
  flag_values: flags.FlagValues, *, seeds: int, output_dir: str
) -> None:
  """Defines the flags that these programs share, with two defaults."""
  flags.DEFINE_integer(
    'seeds',
    seeds,
    'Number of seeds: every method is trained with all its seeds at 0, 1, ...',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'parallel',
    None,
    'Number of runs at the same time; the default is one for each CPU core, or'
    ' one with GPUs or the runtime cluster.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'budget',
    None,
    'Wall time, such as 2h or 90min, after which no run is started. One that'
    ' has begun is finished; the page lists what was not started.',
    flag_values=flag_values,
  )
  paths.define(
    'output_dir',
    None,
    f'Where the results go; the default is {output_dir}.',
    flag_values=flag_values,
  )


def budget(flag_values: flags.FlagValues) -> float | None:
  """Returns the seconds of `--budget`; None if it is not given."""
  text = flag_values['budget'].value
  return None if text is None else parse_budget(text)


def usual_parallel(settings: Mapping[str, Any]) -> int:
  """Returns one for each CPU core, or 1 if a run has all GPUs or workers."""
  if settings.get('runtime', 'device') == 'cluster':
    return 1
  gpus = settings.get('device') != 'cpu' and _GPUS.is_dir()
  return 1 if gpus else os.cpu_count() or 1


def parse_budget(text: str) -> float:
  """Returns the seconds of a budget such as `2h`, `90min` or `1h30m`.

  Raises:
    SettingsError: If it is not a positive time with its unit.
  """
  seconds = 0.0
  # Of a number without a unit, pandas takes nanoseconds.
  if re.search('[a-z]', text):
    with contextlib.suppress(ValueError):
      seconds = pd.Timedelta(text).total_seconds()
  if not seconds > 0:
    raise settings_lib.SettingsError(
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
