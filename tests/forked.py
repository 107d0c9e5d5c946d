"""Processes that have TensorFlow Federated imported already.

A fresh Python takes some ten seconds to import it. Here one process imports it
once and runs no operation; every program runs in a fork of that process, as the
main program of a Python that starts and ends like any other: with its own
arguments, folder, environment and output, exit handlers and return code.
For programs that shall start before the import there is `subprocess`.
"""

import atexit
from collections.abc import Mapping
import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types

_ROOT = pathlib.Path(__file__).parents[1]
_IMPORTED = (
  'tensorflow_federated',
  'matplotlib.pyplot',
  'sklearn.datasets',
  'launchers.runs.training',
)
_IMPORT_SECONDS = 300
_POLL_SECONDS = 0.02
_MESSAGE_BYTES = 2**20


class Process:
  """A program that runs in a fork."""

  def __init__(self, program, outputs):
    self._outputs = outputs
    self._returncode = None
    self.pid = _ask(program, [file.fileno() for file in outputs])

  @property
  def stdout(self) -> str:
    """What it has written so far."""
    return _read(self._outputs[0])

  @property
  def stderr(self) -> str:
    """What it has written so far."""
    return _read(self._outputs[1])

  @property
  def returncode(self) -> int | None:
    """That of `subprocess`: negative after a signal, None while it runs."""
    if self._returncode is None:
      self._returncode = _ask({'pid': self.pid})
    return self._returncode

  def wait(self, timeout: float = 300) -> int:
    """Waits for the end.

    Args:
      timeout: Seconds after which the program is killed.

    Returns:
      The return code.

    Raises:
      subprocess.TimeoutExpired: If the program has not ended by then.
    """
    deadline = time.monotonic() + timeout
    while self.returncode is None:
      if time.monotonic() > deadline:
        self.send_signal(signal.SIGKILL)
        raise subprocess.TimeoutExpired(f'process {self.pid}', timeout)
      time.sleep(_POLL_SECONDS)
    return self._returncode

  def send_signal(self, number: int) -> None:
    """Sends a signal to the program, unless it has ended."""
    if self.returncode is None:
      os.kill(self.pid, number)


def start(
  *arguments: str,
  code: str | None = None,
  cwd: str | os.PathLike = _ROOT,
  env: Mapping[str, str] | None = None,
) -> Process:
  """Starts a program.

  Args:
    *arguments: A module and its arguments, as after `python -m`; with `code`
      the arguments alone.
    code: What to run in place of a module, as after `python -c`.
    cwd: The folder in which it runs.
    env: Changes to the environment.

  Returns:
    The program, which may have ended already.
  """
  program = {
    'arguments': arguments if code is None else ['-c', *arguments],
    'code': code,
    'cwd': os.fspath(cwd),
    'env': dict(env or {}),
  }
  return Process(program, [tempfile.TemporaryFile() for _ in range(2)])


def run(*arguments: str, timeout: float = 300, **options) -> Process:
  """Runs a program to its end.

  Args:
    *arguments: Those of `start`.
    timeout: Seconds that it may take.
    **options: Those of `start`.

  Returns:
    The program, which has ended.
  """
  process = start(*arguments, **options)
  process.wait(timeout)
  return process


def _read(file):
  # Not `read`: the offset is the program's, too.
  return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


def _ask(message, files=()):
  server = _server()
  socket.send_fds(server, [json.dumps(message).encode()], files)
  return json.loads(server.recv(_MESSAGE_BYTES))


@functools.cache
def _server():
  """A socket to the process that forks; the process ends when it closes."""
  ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
  process = subprocess.Popen(
    [sys.executable, '-m', 'tests.forked', str(theirs.fileno())],
    cwd=_ROOT,
    stdin=subprocess.DEVNULL,
    pass_fds=[theirs.fileno()],
    start_new_session=True,  # Ctrl-C is for the tests.
  )
  theirs.close()
  ours.settimeout(_IMPORT_SECONDS)
  atexit.register(process.wait)
  atexit.register(ours.close)  # Runs first.
  return ours


def _serve(client) -> Mapping | None:
  """Forks and tells of the forks until `client` closes.

  Returns:
    In a fork: the program to run. In the process that forks: None, at the end.
  """
  running = set()
  # That is how it may close, too.
  with contextlib.suppress(ConnectionError):
    while True:
      text, files, _, _ = socket.recv_fds(client, _MESSAGE_BYTES, 2)
      if not text:
        break
      message = json.loads(text)
      if 'pid' in message:
        answer = _poll(message['pid'])
        if answer is not None:
          running.remove(message['pid'])
      else:
        answer = os.fork()
        if not answer:
          client.close()
          _redirect(files)
          return message
        running.add(answer)
        for file in files:
          os.close(file)
      client.send(json.dumps(answer).encode())
  for pid in running:
    os.kill(pid, signal.SIGKILL)
  return None


def _poll(pid):
  found, status = os.waitpid(pid, os.WNOHANG)
  return os.waitstatus_to_exitcode(status) if found else None


def _redirect(files):
  for target, file in enumerate(files, start=1):
    os.dup2(file, target)
    os.close(file)


def _run(program):
  """Runs a program as the main module, with the signals of a new Python."""
  signal.signal(signal.SIGINT, signal.default_int_handler)
  os.chdir(program['cwd'])
  os.environ.update(program['env'])
  sys.argv = program['arguments']
  sys.path.insert(0, os.getcwd())
  if program['code'] is None:
    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
  else:
    main = sys.modules['__main__'] = types.ModuleType('__main__')
    exec(compile(program['code'], '<string>', 'exec'), main.__dict__)


if __name__ == '__main__':
  for _name in _IMPORTED:
    importlib.import_module(_name)
  # A fork that need not visit them ends in a fifth of the time.
  gc.collect()
  gc.freeze()
  _program = _serve(socket.socket(fileno=int(sys.argv[1])))
  # Not within `_serve`: the end of the program is the end of this module.
  if _program is not None:
    _run(_program)
