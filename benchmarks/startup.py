"""Times a start: from the start of Python to the end of the first round."""

from collections.abc import Mapping, Sequence
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import pandas as pd
import tqdm

_REPEATS = 3
_TOTAL = 'total'


class StartError(RuntimeError):
  """An implementation does not start; the message is one sentence."""


def time_starts(
  implementations: Sequence[str], options: Mapping[str, Any]
) -> pd.DataFrame:
  """Starts each implementation three times, in turn, in separate processes.

  Args:
    implementations: Names, see `benchmarks.workloads.Setup`.
    options: Kind of runtime -> its options.

  Returns:
    A row per implementation and phase: `implementation`, `phase`, and the
    median `seconds`. The last phase, `total`, is the sum. `create runtime`
    includes the start of a cluster's workers, `build process` the data, and
    `first round` compiling and the start of TFF's worker.

  Raises:
    StartError: If a start fails.
  """
  turns = [name for _ in range(_REPEATS) for name in implementations]
  starts = [
    (name, _time_start(name, options))
    for name in tqdm.tqdm(turns, desc='start', unit='start', disable=None)
  ]
  return _medians(starts)


def to_text(table: pd.DataFrame) -> str:
  """The table of `time_starts` for printing, a column per implementation."""
  wide = table.pivot(index='phase', columns='implementation', values='seconds')
  wide = wide.loc[table['phase'].unique(), table['implementation'].unique()]
  return wide.rename_axis(index=None, columns=None).to_string(
    float_format='{:.2f}'.format
  )


def _time_start(name, options) -> dict[str, float]:
  """Phase -> seconds, for one start."""
  # Files, not pipes, which a process that outlives Python would keep open.
  with (
    tempfile.TemporaryFile('w+') as output,
    tempfile.TemporaryFile('w+') as errors,
  ):
    began = time.time()
    result = subprocess.run(
      [
        sys.executable,
        '-m',
        'benchmarks.startup_once',
        json.dumps([name, options]),
      ],
      stdin=subprocess.DEVNULL,
      stdout=output,
      stderr=errors,
      check=False,
    )
    printed, complaints = map(_lines, (output, errors))
  if result.returncode:
    last = (complaints or ['nothing'])[-1]
    raise StartError(f'A start of {name} must end without error, found: {last}')
  return _durations(began, json.loads(printed[-1]))


def _lines(file) -> list[str]:
  file.seek(0)
  return file.read().splitlines()


def _durations(began, ends) -> dict[str, float]:
  """Phase -> seconds, from the times of the start and of each phase's end."""
  times = [began, *ends.values()]
  phases = {
    phase: end - start
    for phase, start, end in zip(ends, times[:-1], times[1:], strict=True)
  }
  return {**phases, _TOTAL: times[-1] - began}


def _medians(starts) -> pd.DataFrame:
  rows = pd.DataFrame(
    {'implementation': name, 'phase': phase, 'seconds': seconds}
    for name, phases in starts
    for phase, seconds in phases.items()
  )
  groups = rows.groupby(['implementation', 'phase'], sort=False, as_index=False)
  return groups.median()
