"""TFF's C++ worker as a process that ends when this one does.

TFF starts the same worker, but leaves it running when Python ends. The worker
then keeps Python's output open, and a program that reads the output through a
pipe never returns. Here the worker is the child of a shell that waits on a pipe
from Python. The pipe closes when Python ends, by return, exception, signal or
`kill -9`, and the shell then ends the worker.
"""

import contextlib
import importlib.util
import os
import pathlib
import socket
import subprocess
import time

from tff_fair import stopped

# Ends when the worker does, and ends the worker when its input ends.
_GUARD = """
exec 3<&0
"$0" "$@" </dev/null 3<&- &
worker=$!
exec 2>/dev/null # The shell would print how the worker ended.
{ cat >/dev/null; kill -KILL $worker; } <&3 &
wait $worker
"""
_START_SECONDS = 60
_POLL_SECONDS = 0.05


def worker_binary() -> pathlib.Path:
  """The path of the worker in TFF's package."""
  # TFF is not imported, which would take seconds and much memory.
  package = importlib.util.find_spec('tensorflow_federated')
  folder = pathlib.Path(package.submodule_search_locations[0])
  return folder / 'data' / 'worker_binary'


class WorkerProcess:
  """A worker on this machine."""

  def __init__(self, port: int) -> None:
    """Starts the worker, and waits until it listens.

    Raises:
      RuntimeError: If it does not start.
    """
    binary = worker_binary()
    self._process = subprocess.Popen(
      ['sh', '-c', _GUARD, str(binary), f'--port={port}'],
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      # Errors are returned through the connection; level 3 logs fatal ones.
      env=os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3'},
      start_new_session=True,  # Ctrl-C goes to Python, which may save its work.
    )
    try:
      self._wait(port, binary)
      for child in stopped.children(self._process.pid):
        # Not what waits to end it, which is harmless if it is stopped.
        if _runs(child, binary):
          stopped.watch(child, "TFF's worker")
    except BaseException:
      self.stop()
      raise

  @property
  def is_alive(self) -> bool:
    """Whether the process is running."""
    return self._process.poll() is None

  def stop(self) -> None:
    """Ends the worker and waits for it."""
    stopped.end_guard(self._process)

  def _wait(self, port, binary):
    deadline = time.monotonic() + _START_SECONDS
    while self.is_alive and time.monotonic() < deadline:
      with contextlib.suppress(OSError):
        socket.create_connection(('localhost', port)).close()
        return
      time.sleep(_POLL_SECONDS)
    raise RuntimeError(
      f"TFF's worker must listen within {_START_SECONDS} seconds of its start,"
      f' found that {binary} does not.'
    )


def _runs(process_id, binary) -> bool:
  with contextlib.suppress(OSError):
    return os.path.samefile(f'/proc/{process_id}/exe', binary)
  return False
