"""Times the rounds of implementations that take turns, and summarises them."""

from collections.abc import Callable, Mapping, Sequence
import time

import pandas as pd
import tqdm

# The first round compiles, the second may still warm up.
_NOT_COUNTED = 2


def time_rounds(
  workload: str, implementations: Mapping[str, Callable[[], None]], rounds: int
) -> dict[str, list[float]]:
  """Runs the implementations in turn, one round each, repeatedly.

  Args:
    workload: The name of the workload, shown on a terminal.
    implementations: Name -> function that runs one round.
    rounds: Rounds of each implementation.

  Returns:
    Name -> the seconds of each of its rounds.
  """
  seconds = {name: [] for name in implementations}
  turns = [name for _ in range(rounds) for name in implementations]
  for name in tqdm.tqdm(turns, desc=workload, unit='round', disable=None):
    began = time.perf_counter()
    implementations[name]()
    seconds[name].append(time.perf_counter() - began)
  return seconds


def summarize(
  seconds: Mapping[str, Mapping[str, Sequence[float]]],
) -> pd.DataFrame:
  """The table of all workloads.

  The reference of a workload is its first implementation.

  Args:
    seconds: Workload -> implementation -> the seconds of at least three rounds.

  Returns:
    A row per workload and implementation. `rounds` counts all rounds, the other
    columns exclude the first two. `ratio` is the median of the reference
    divided by that of the implementation.
  """
  return pd.DataFrame(
    row for workload in seconds for row in _rows(workload, seconds[workload])
  )


def to_text(table: pd.DataFrame) -> str:
  """The table of `summarize` for printing."""
  return table.to_string(
    index=False,
    float_format='{:.4f}'.format,
    formatters={'ratio': '{:.2f}'.format},
  )


def _rows(workload, seconds):
  counted = {
    name: pd.Series(times[_NOT_COUNTED:]) for name, times in seconds.items()
  }
  reference = next(iter(counted))
  for name, times in counted.items():
    yield {
      'workload': workload,
      'implementation': name,
      'reference': reference,
      'median_seconds': times.median(),
      'min_seconds': times.min(),
      'max_seconds': times.max(),
      'ratio': counted[reference].median() / times.median(),
      'rounds': len(seconds[name]),
    }
