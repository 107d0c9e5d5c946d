"""Times a start: from the start of Python to the end of the first round."""

from collections.abc import Mapping, Sequence
import time
from typing import Any

import pandas as pd
import tqdm

from benchmarks import own_process

_REPEATS = 3


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
  ends = own_process.run(
    'benchmarks.startup_once', [name, options], f'A start of {name}'
  )
  return _durations(began, ends)


def _durations(began, ends) -> dict[str, float]:
  """Phase -> seconds, from the times of the start and of each phase's end."""
  times = pd.Series({'start': began, **ends})
  return {**times.diff()[1:], 'total': times.iloc[-1] - began}
