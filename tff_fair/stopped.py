"""Ends processes that this one has started, and that something has stopped.

A process that gets SIGSTOP is there, and never answers. Ray, gRPC and executors
of the standard library wait for it without a limit. If it is killed instead,
they find that it is gone, which they and their callers can handle. Linux only:
elsewhere no process is found to be stopped.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

SECONDS = 10.0
"""A process that is stopped for so long is ended: long enough to stop one and
let it go on by hand."""

_LOOK_SECONDS = 1.0
# After a longer pause this process has been stopped, too, as by Ctrl-Z.
_PAUSE_SECONDS = 5.0

# Process id -> what it is called, and when it started: ids are used again.
_watched: dict[int, tuple[str, str]] = {}
_thread: threading.Thread | None = None


def watch(process_id: int, name: str) -> None:
  """Ends a process, with a line on stderr, if it is stopped for `SECONDS`.

  Args:
    process_id: A process that this one has started.
    name: What the line calls it.
  """
  global _thread
  found = _state(process_id)
  if found is None:
    return
  _watched[process_id] = name, found[1]
  if _thread is None:
    _thread = threading.Thread(target=_follow, daemon=True)
    _thread.start()


def children(process_id: int) -> list[int]:
  """The ids of the processes that a process has started."""
  found = []
  for path in pathlib.Path('/proc').glob('[0-9]*'):
    fields = _fields(int(path.name))
    if fields and int(fields[1]) == process_id:
      found.append(int(path.name))
  return sorted(found)


def end_all() -> None:
  """Ends all processes that are watched."""
  for process_id in tuple(_watched):
    _kill(process_id)


def end_guard(guard: subprocess.Popen) -> None:
  """Ends a shell that waits for the end of its input, and waits for it.

  If it does not end within `SECONDS`, since a part of it is stopped, its whole
  session is killed.

  Args:
    guard: The shell, in a session of its own, with a pipe as its input.
  """
  guard.stdin.close()
  try:
    guard.wait(SECONDS)
  except subprocess.TimeoutExpired:
    os.killpg(guard.pid, signal.SIGKILL)
    guard.wait()


class Clock:
  """Finds the processes that have been stopped for `SECONDS`."""

  def __init__(self) -> None:
    """Has seen no process."""
    self._since: dict[int, float] = {}
    self._last = -float('inf')

  def look(self, stopped: set[int], now: float) -> list[int]:
    """Those that have been stopped for long, of those that are stopped now.

    Args:
      stopped: The ids of the processes that are stopped.
      now: The time in seconds.
    """
    if now - self._last > _PAUSE_SECONDS:
      self._since.clear()
    self._last = now
    self._since = {one: self._since.get(one, now) for one in stopped}
    return [one for one, then in self._since.items() if now - then >= SECONDS]


def _follow() -> None:
  clock = Clock()
  while True:
    time.sleep(_LOOK_SECONDS)
    states = {one: _state(one) for one in tuple(_watched)}
    for one, found in states.items():
      if found is None or found[1] != _watched[one][1]:
        del _watched[one]
    stopped = {
      one
      for one, found in states.items()
      if one in _watched and found[0] == 'T'
    }
    for one in clock.look(stopped, time.monotonic()):
      print(
        f'{_watched[one][0]} (process {one}) was stopped, and is ended after'
        f' {SECONDS:g} seconds',
        file=sys.stderr,
        flush=True,
      )
      _kill(one)


def _state(process_id) -> tuple[str, str] | None:
  """The state of a process, a letter, and when it started."""
  fields = _fields(process_id)
  return (fields[0], fields[19]) if fields else None


def _fields(process_id) -> list[str]:
  """Returns the fields of /proc after a process's name, which may be spaced."""
  try:
    text = pathlib.Path(f'/proc/{process_id}/stat').read_text(
      'utf-8', 'replace'
    )
  except OSError:
    return []
  return text.rpartition(')')[2].split()


def _kill(process_id) -> None:
  with contextlib.suppress(OSError):
    os.kill(process_id, signal.SIGKILL)


def _forget() -> None:
  """In a fork: the processes are the parent's."""
  global _thread
  _watched.clear()
  _thread = None


os.register_at_fork(after_in_child=_forget)
