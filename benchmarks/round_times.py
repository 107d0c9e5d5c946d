"""Times the rounds of implementations that take turns, and summarises them."""

from collections.abc import Callable, Mapping, Sequence
import time
from typing import NamedTuple

import pandas as pd
import tqdm

# The first round compiles, the second may still warm up.
NOT_COUNTED = 2
_TRAFFIC = ('sent_mb', 'received_mb')


class Round(NamedTuple):
  """The seconds of a round, and the bytes to and from all workers, if known."""

  seconds: float
  bytes_sent: int | None = None
  bytes_received: int | None = None


def time_rounds(
  workload: str, implementations: Mapping[str, Callable[[], None]], rounds: int
) -> dict[str, list[Round]]:
  """Runs the implementations in turn, one round each, repeatedly.

  A function that has an attribute `traffic` counts bytes: `(sent, received)` in
  all rounds so far, or None.
  """
  found = {name: [] for name in implementations}
  turns = [name for _ in range(rounds) for name in implementations]
  for name in tqdm.tqdm(turns, desc=workload, unit='round', disable=None):
    found[name].append(_time_round(implementations[name]))
  return found


def summarize(
  times: Mapping[str, Mapping[str, Sequence[Round]]],
) -> pd.DataFrame:
  """Summarises workload -> implementation, the reference first, -> its rounds.

  Returns:
    A row per workload and implementation. `rounds` counts all rounds, the other
    columns exclude the first two. `ratio` is the median of the reference
    divided by that of the implementation. `sent_mb` and `received_mb` are
    medians in units of 10^6 bytes; there are none if no round has counted any.
  """
  table = pd.DataFrame(
    row for workload in times for row in _rows(workload, times[workload])
  )
  unknown = [name for name in _TRAFFIC if table[name].isna().all()]
  return table.drop(columns=unknown)


def to_text(table: pd.DataFrame) -> str:
  """The table of `summarize` for printing."""
  return table.to_string(
    index=False,
    float_format='{:.4f}'.format,
    formatters={
      'ratio': '{:.2f}'.format,
      **dict.fromkeys(_TRAFFIC, '{:.3f}'.format),
    },
    na_rep='-',
  )


def _time_round(run_round) -> Round:
  before = getattr(run_round, 'traffic', None)
  began = time.perf_counter()
  run_round()
  seconds = time.perf_counter() - began
  if before is None:
    return Round(seconds)
  sent, received = (
    total - earlier
    for total, earlier in zip(run_round.traffic, before, strict=True)
  )
  return Round(seconds, sent, received)


def _rows(workload, rounds):
  counted = {
    name: pd.DataFrame(found[NOT_COUNTED:], columns=Round._fields)
    for name, found in rounds.items()
  }
  reference = next(iter(counted))
  for name, found in counted.items():
    seconds = found['seconds']
    traffic = found[['bytes_sent', 'bytes_received']].astype(float).median()
    yield {
      'workload': workload,
      'implementation': name,
      'reference': reference,
      'median_seconds': seconds.median(),
      'min_seconds': seconds.min(),
      'max_seconds': seconds.max(),
      'ratio': counted[reference]['seconds'].median() / seconds.median(),
      'rounds': len(rounds[name]),
      **dict(zip(_TRAFFIC, traffic / 1e6, strict=True)),
    }
