"""Times a start: from the start of Python to the end of the first round."""

from collections.abc import Mapping, Sequence
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import pandas as pd
import tqdm

_REPEATS = 3
_TOTAL = 'total'
_ROOT = pathlib.Path(__file__).parents[2]


class StartError(RuntimeError):
  """A contender does not start; the message is one sentence."""


def time_starts(
  contenders: Sequence[str], options: Mapping[str, Any]
) -> pd.DataFrame:
  """Starts each contender three times in a process of its own, in turn.

  Args:
    contenders: Names that `launchers.timing.workloads.Setup` knows.
    options: Options of the device runtime.

  Returns:
    A row a contender and phase: `contender`, `phase`, `seconds`, the median.
    The last phase, `total`, is the whole. `build process` holds the data as
    well, and `first round` compiling and, on TFF's worker, its start.

  Raises:
    StartError: If a start fails.
  """
  turns = [name for _ in range(_REPEATS) for name in contenders]
  starts = [
    (name, _time_start(name, options))
    for name in tqdm.tqdm(turns, desc='start', unit='start', disable=None)
  ]
  return _medians(starts)


def to_text(table: pd.DataFrame) -> str:
  """The table of `time_starts` to be printed, a column a contender."""
  wide = table.pivot(index='phase', columns='contender', values='seconds')
  wide = wide.loc[table['phase'].unique(), table['contender'].unique()]
  return wide.rename_axis(index=None, columns=None).to_string(
    float_format='{:.2f}'.format
  )


def _time_start(name, options) -> dict[str, float]:
  """Phase -> seconds, of one start."""
  began = time.time()
  result = subprocess.run(
    [
      sys.executable,
      '-m',
      'launchers.timing.startup_once',
      json.dumps([name, options]),
    ],
    cwd=_ROOT,
    stdin=subprocess.DEVNULL,
    capture_output=True,
    text=True,
    check=False,
  )
  if result.returncode:
    said = (result.stderr.splitlines() or ['nothing'])[-1]
    raise StartError(f'A start of {name} must end without error, found: {said}')
  return _durations(began, json.loads(result.stdout.splitlines()[-1]))


def _durations(began, ends) -> dict[str, float]:
  """Phase -> seconds, from the time of the start and the end of each phase."""
  times = [began, *ends.values()]
  phases = {
    phase: end - start
    for phase, start, end in zip(ends, times[:-1], times[1:], strict=True)
  }
  return {**phases, _TOTAL: times[-1] - began}


def _medians(starts) -> pd.DataFrame:
  rows = pd.DataFrame(
    {'contender': name, 'phase': phase, 'seconds': seconds}
    for name, phases in starts
    for phase, seconds in phases.items()
  )
  groups = rows.groupby(['contender', 'phase'], sort=False, as_index=False)
  return groups.median()
