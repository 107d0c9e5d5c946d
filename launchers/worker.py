"""Starts a TFF worker on this machine, for launchers that run on another.

  python -m launchers.worker --port=8000

It serves until Ctrl-C or SIGTERM. **Anyone who can reach the port can run
TensorFlow code in the worker**, and nothing is encrypted: open the port only to
a private network, or use a tunnel.
"""

import signal
import socket
import threading

from absl import flags

from launchers import cli
from tff_fair import worker_process

_POLL_SECONDS = 1


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
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
  """Serves until a signal arrives.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  port = flag_values['port'].value
  if not _is_free(port):
    cli.fail(f'--port must be free, found that {port} is in use.')
  end = threading.Event()
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: end.set())
  _serve(port, end)


def _serve(port, end) -> None:
  """Runs a worker until it dies or `end` is set."""
  with cli.one_sentence_errors(RuntimeError):
    worker = worker_process.WorkerProcess(port)
  try:
    print(f'a worker listens on port {port}; Ctrl-C stops it', flush=True)
    while worker.is_alive and not end.wait(_POLL_SECONDS):
      pass
  finally:
    worker.stop()
  if not end.is_set():
    cli.fail('the worker must run until it is stopped, found it dead.')


def _is_free(port) -> bool:
  try:
    socket.create_server(('', port)).close()
  except OSError:
    return False
  return True


if __name__ == '__main__':
  cli.run(main, define_flags)
