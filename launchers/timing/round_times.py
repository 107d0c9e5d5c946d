"""Times the rounds of contenders that take turns, and sums the times up."""

from collections.abc import Callable, Mapping, Sequence
import time

import pandas as pd
import tqdm

# The first round compiles, the second may still warm up.
_NOT_COUNTED = 2


def time_rounds(
  work: str, contenders: Mapping[str, Callable[[], None]], rounds: int
) -> dict[str, list[float]]:
  """Runs the contenders in turn, one round each, again and again.

  Args:
    work: The work's name, shown on a terminal.
    contenders: Name -> function that runs one round.
    rounds: Rounds of each contender.

  Returns:
    Name -> the seconds of each of its rounds.
  """
  seconds = {name: [] for name in contenders}
  turns = [name for _ in range(rounds) for name in contenders]
  for name in tqdm.tqdm(turns, desc=work, unit='round', disable=None):
    began = time.perf_counter()
    contenders[name]()
    seconds[name].append(time.perf_counter() - began)
  return seconds


def summarize(
  seconds: Mapping[str, Mapping[str, Sequence[float]]],
) -> pd.DataFrame:
  """The table of all works; a work's first contender is its reference.

  Args:
    seconds: Work -> contender -> the seconds of at least three rounds.

  Returns:
    A row a work and contender. `rounds` counts all rounds, the other columns
    leave out the first two. `ratio` is the reference's median by the
    contender's: how many times as fast it is.
  """
  return pd.DataFrame(
    row for work in seconds for row in _rows(work, seconds[work])
  )


def to_text(table: pd.DataFrame) -> str:
  """The table of `summarize` to be printed."""
  return table.to_string(
    index=False,
    float_format='{:.4f}'.format,
    formatters={'ratio': '{:.2f}'.format},
  )


def _rows(work, seconds):
  counted = {
    name: pd.Series(times[_NOT_COUNTED:]) for name, times in seconds.items()
  }
  reference = next(iter(counted))
  for name, times in counted.items():
    yield {
      'work': work,
      'contender': name,
      'reference': reference,
      'median_seconds': times.median(),
      'min_seconds': times.min(),
      'max_seconds': times.max(),
      'ratio': counted[reference].median() / times.median(),
      'rounds': len(seconds[name]),
    }
