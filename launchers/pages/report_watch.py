"""Follows runs that are training: the report is written after each round.

Nothing here imports TensorFlow.
"""

from collections.abc import Callable, Sequence
import pathlib
import time
from typing import NamedTuple

from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.pages import report_answer
from tff_fair.launchers.pages import report_runs

# What a run writes at its start, last in each round, and at its end.
_FILES = (settings_lib.FLAGS_FILE, 'metrics.csv', 'summary.json')
# A run is called silent after so many seconds, and after so many rounds' time.
_SILENCE, _SILENT_ROUNDS = 60, 5


class Watched(NamedTuple):
  """What a page says of runs that are in progress.

  Attributes:
    every: Seconds after which the page reloads itself; 0 for never.
    lines: A sentence per run that has not finished.
  """

  every: int
  lines: Sequence[str]


class Watch:
  """Writes the page of some runs until all of them have finished."""

  def __init__(
    self,
    directories: Sequence[str],
    write: Callable[[Sequence[report_runs.Run], Watched | None], None],
    every: int,
    *,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
  ):
    """Starts to watch.

    Args:
      directories: The directories of the runs.
      write: Writes the page of the runs that have a round; with None, the last
        one.
      every: Seconds between two looks at the files.
      wait: Waits for some seconds.
      now: The time, in seconds since 1970.

    Raises:
      report_runs.ReportError: If there is no such directory.
    """
    for directory in directories:
      report_runs.check_directory(pathlib.Path(directory))
    self._directories = [str(pathlib.Path(path)) for path in directories]
    self._write = write
    self._every = every
    self._wait = wait
    self._now = now
    self._runs, self._waiting = [], []
    self._written = {}  # Directory -> its stamps.
    # The first round that was seen of each run, and its time.
    self._first = {}

  def follow(self) -> None:
    """Writes the page whenever a run has a new round, and a last one.

    Raises:
      report_runs.ReportError: If a directory holds no run, or files that stay
        damaged.
    """
    read = shown = failed = None
    while True:
      stamps = [_stamps(directory) for directory in self._directories]
      if stamps != read:
        try:
          self._runs, self._waiting = report_runs.read_started(
            self._directories
          )
          read, failed = stamps, None
          self._written = dict(zip(self._directories, stamps, strict=True))
        except report_runs.ReportError:
          # Later, it may be a file in the midst of a restart.
          if read is None or failed == stamps:
            raise
          failed = stamps
      if not self._waiting and all(r.finished for r in self._runs):
        self._write(self._runs, None)
        return
      lines = self._lines()
      if (read, lines) != shown:
        self._write(self._runs, Watched(self._every, lines))
        shown = read, lines
      self._wait(self._every)

  def stop(self) -> None:
    """Writes a page that does not reload itself."""
    watched = None if self._runs else Watched(0, self._lines())
    self._write(self._runs, watched)

  def _lines(self) -> list[str]:
    going = [run for run in self._runs if not run.finished]
    return [
      *map(self._progress, going),
      *(f'{path} waits for its first round.' for path in self._waiting),
    ]

  def _progress(self, run) -> str:
    """How far a run is, and how its clients are."""
    written = self._last_round(run)
    rounds = int(run.settings['rounds'])
    first, began = self._first.setdefault(run.directory, (run.round, written))
    seconds = 0.0
    if run.round > first:
      seconds = (written - began) / (run.round - first)
    said = f'{run.label}: training, round {run.round} of {rounds}'
    if self._now() - written > max(_SILENCE, _SILENT_ROUNDS * seconds):
      since = time.strftime('%H:%M:%S', time.localtime(written))
      said = (
        f'{run.label}: no round since {since}, round {run.round} of {rounds}'
      )
    elif seconds and run.round < rounds:
      left = _duration(seconds * (rounds - run.round))
      said += f', about {left} left'
    if run.scores('accuracy').size:
      said += f'; {report_answer.worst_and_mean(run)}'
    return f'{said}.'

  def _last_round(self, run) -> float:
    """When the last round of a run was written, in seconds since 1970."""
    stamp = self._written[str(run.directory)][_FILES.index('metrics.csv')]
    return stamp[0] / 1e9 if stamp else self._now()


def _stamps(directory) -> list[tuple[int, int] | None]:
  """When the files of a run were last written, and their sizes."""
  found = []
  for name in _FILES:
    try:
      status = (pathlib.Path(directory) / name).stat()
    except OSError:
      found.append(None)
    else:
      found.append((status.st_mtime_ns, status.st_size))
  return found


def _duration(seconds: float) -> str:
  if seconds < 90:
    return f'{max(seconds, 1):.0f} s'
  if seconds < 90 * 60:
    return f'{seconds / 60:.0f} min'
  return f'{seconds / 3600:.1f} h'
