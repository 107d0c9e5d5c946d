"""TFF's C++ worker as a process that ends when this one does.

TFF starts the same worker, but leaves it running when Python ends: the worker
then holds Python's output open, and whoever reads that through a pipe waits for
ever. Here the worker is the child of a shell that waits on a pipe from Python;
the pipe closes when Python ends, by return, exception, signal or `kill -9`, and
the shell then ends the worker.

Nothing here imports TensorFlow: a host that only serves does without.
"""

import contextlib
import importlib.util
import os
import pathlib
import socket
import subprocess
import time

# Ends when the worker does, and ends the worker when its input ends.
_GUARD = """
exec 3<&0
"$0" "$@" </dev/null 3<&- &
worker=$!
exec 2>/dev/null # The shell would tell how the worker ended.
{ cat >/dev/null; kill -KILL $worker; } <&3 &
wait $worker
"""
_START_SECONDS = 60
_POLL_SECONDS = 0.05


class WorkerProcess:
  """A worker on this machine."""

  def __init__(self, port: int):
    """Starts the worker, and waits until it listens.

    Args:
      port: Where it listens, on all interfaces of this machine.

    Raises:
      RuntimeError: If it does not start.
    """
    # Found, not imported: TFF takes seconds and much memory.
    package = importlib.util.find_spec('tensorflow_federated')
    folder = pathlib.Path(package.submodule_search_locations[0])
    binary = folder / 'data' / 'worker_binary'
    self._process = subprocess.Popen(
      ['sh', '-c', _GUARD, str(binary), f'--port={port}'],
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      # Errors come back through the connection; level 3 leaves fatal ones.
      env=os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3'},
      start_new_session=True,  # Ctrl-C is for Python: it may have work to save.
    )
    try:
      self._wait(port, binary)
    except BaseException:
      self.stop()
      raise

  @property
  def is_alive(self) -> bool:
    """Whether it has not ended."""
    return self._process.poll() is None

  def stop(self) -> None:
    """Ends the worker and waits for it."""
    self._process.stdin.close()
    self._process.wait()

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
