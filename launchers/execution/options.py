"""Flags of the programs that train many runs."""

from collections.abc import Mapping
import os
import pathlib
from typing import Any

from absl import flags

from tff_fair.launchers.execution import budget as budget_lib

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
    ' has begun is finished; what was not started is said.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'output_dir',
    None,
    f'Where the results go; the default is {output_dir}.',
    flag_values=flag_values,
  )


def budget(flag_values: flags.FlagValues) -> float | None:
  """Returns the seconds of `--budget`; None if it is not given."""
  text = flag_values['budget'].value
  return None if text is None else budget_lib.parse(text)


def usual_parallel(settings: Mapping[str, Any]) -> int:
  """Returns one for each CPU core, or 1 if a run has all GPUs or workers."""
  if settings.get('runtime', 'device') == 'cluster':
    return 1
  gpus = settings.get('device') != 'cpu' and _GPUS.is_dir()
  return 1 if gpus else os.cpu_count() or 1
