"""Starts a TFF worker on this machine, for launchers that run on another.

  python -m launchers.worker --port=8000

It serves until it gets Ctrl-C or SIGTERM. **Whoever
reaches the port may run TensorFlow code in the worker**, and nothing is
encrypted: open it to a network of your own only, or through a tunnel.
"""

import signal
import socket
import sys
import threading

from absl import app
from absl import flags

from tff_fair import worker_process

_POLL_SECONDS = 1


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where they go.
  """
  flags.DEFINE_integer(
    'port',
    8000,
    'The port to listen on, on all interfaces.',
    lower_bound=1,
    upper_bound=65535,
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Serves until told to end.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  if len(argv) > 1:
    sys.exit(f'Error: every argument must be a flag, found {argv[1]!r}.')
  port = flag_values['port'].value
  if not _is_free(port):
    sys.exit(f'Error: --port must be free, found that {port} is in use.')
  end = threading.Event()
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: end.set())
  _serve(port, end)


def _serve(port, end) -> None:
  """Runs a worker until it dies or `end` is set."""
  try:
    worker = worker_process.WorkerProcess(port)
  except RuntimeError as error:
    sys.exit(f'Error: {error}')
  try:
    print(f'a worker listens on port {port}; Ctrl-C ends it', flush=True)
    while worker.is_alive and not end.wait(_POLL_SECONDS):
      pass
  finally:
    worker.stop()
  if not end.is_set():
    sys.exit('Error: the worker must run until told to end, found it dead.')


def _is_free(port) -> bool:
  try:
    socket.create_server(('', port)).close()
  except OSError:
    return False
  return True


if __name__ == '__main__':
  # Not `app.run`, for the reason given in `launchers.train`.
  define_flags(flags.FLAGS)
  app.define_help_flags()
  main(app.parse_flags_with_usage(sys.argv))
