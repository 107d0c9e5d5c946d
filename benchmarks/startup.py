"""Times a start: from the start of Python to the end of the first round."""

from collections.abc import Mapping, Sequence
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import pandas as pd
import tqdm

_REPEATS = 3
_ROOT = pathlib.Path(__file__).parents[1]


class ProgramError(RuntimeError):
  """A start has failed; the message is one sentence."""


def time_starts(
  implementations: Sequence[str], options: Mapping[str, Any]
) -> pd.DataFrame:
  """Starts each implementation three times, in turn, in separate processes.

  Returns:
    A row per implementation and phase: `implementation`, `phase`, and the
    median `seconds`. The last phase, `total`, is the sum. `create runtime`
    includes the start of a cluster's workers, `build process` the data, and
    `first round` compiling and the start of TFF's worker.
  """
  turns = [name for _ in range(_REPEATS) for name in implementations]
  rows = pd.DataFrame(
    {'implementation': name, 'phase': phase, 'seconds': seconds}
    for name in tqdm.tqdm(turns, desc='start', unit='start', disable=None)
    for phase, seconds in _time_start(name, options).items()
  )
  groups = rows.groupby(['implementation', 'phase'], sort=False, as_index=False)
  return groups.median()


def to_text(table: pd.DataFrame) -> str:
  """The table of `time_starts` for printing, a column per implementation."""
  wide = table.pivot(index='phase', columns='implementation', values='seconds')
  wide = wide.loc[table['phase'].unique(), table['implementation'].unique()]
  return wide.rename_axis(index=None, columns=None).to_string(
    float_format='{:.2f}'.format
  )


def _time_start(name, options) -> dict[str, float]:
  """Phase -> seconds, for one start."""
  began = time.time()
  command = [sys.executable, '-m', 'benchmarks.startup_once']
  # Files, not pipes, which a process that outlives Python would keep open.
  with (
    tempfile.TemporaryFile('w+') as output,
    tempfile.TemporaryFile('w+') as errors,
  ):
    result = subprocess.run(
      [*command, json.dumps([name, options])],
      cwd=_ROOT,
      stdin=subprocess.DEVNULL,
      stdout=output,
      stderr=errors,
      check=False,
    )
    output.seek(0), errors.seek(0)
    printed, complaints = output.read(), errors.read()
  if result.returncode:
    last = (complaints or 'nothing').splitlines()[-1]
    raise ProgramError(
      f'A start of {name} must end without error, found: {last}'
    )
  return _durations(began, json.loads(printed.splitlines()[-1]))


def _durations(began, ends) -> dict[str, float]:
  """Phase -> seconds, from the times of the start and of each phase's end."""
  times = pd.Series({'start': began, **ends})
  return {**times.diff()[1:], 'total': times.iloc[-1] - began}
