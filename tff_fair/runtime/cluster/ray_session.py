"""Starts a Ray on this machine, or joins one that runs, and ends that again.

A Ray that is started here ends with Python. Its server and its node manager are
children of this process, and ask the kernel to be killed when their parent
dies, so that `kill -9` leaves nothing. They ignore Ctrl-C, which goes to
Python: that may finish a round and save it.
"""

import atexit
from collections.abc import Callable, Iterator
import contextlib
import logging
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from typing import Any
import warnings

from tff_fair import stopped
from tff_fair.runtime import log_lines
from tff_fair.runtime import worker_error

_LOOPBACK = '127.0.0.1'
_ANSWER_SECONDS = 5
_CHECK_SECONDS = 15
# Ray puts sockets some 65 bytes below its folder; Linux allows 107 in all.
_FOLDER_BYTES = 40
_END_SECONDS = 2
# Waits until its input ends, which it does however Python ends. The kernel ends
# Ray's server and its node manager then. Their children have the manager's log
# open; some would end only after half a minute, and one that is stopped never.
_GUARD = """
cat >/dev/null
find /proc/[0-9]*/fd -lname "$0/*/raylet.*" | cut -d / -f 3 | sort -u |
  xargs -r kill -KILL
until rm -rf "$0"; do sleep 0.1; done
"""
_LOG_LEVEL = 'RAY_BACKEND_LOG_LEVEL'
_LEVEL_SET = re.compile(rb'^\[.*\] logging\.cc:\d+: Set ray log level ')
_STORE_SHARE = 0.3
_SHARED_MEMORY_SHARE = 0.95
# What a Ray of one machine does without: the autoscaler, the program that sends
# logs to the driver, and the dashboard. Each is a Python that imports Ray, more
# than a second of a core at the start.
_UNUSED_SERVICES = ('start_monitor', 'start_log_monitor', 'start_api_server')
_LOCAL_SETTINGS = {
  'worker_niceness': 0,  # Ray's is 15: any other program would slow a round.
  # Workers are started when they are asked for, not before: each is a Python
  # that imports Ray.
  'prestart_worker_first_driver': False,
  'enable_worker_prestart': False,
  'enable_metrics_collection': False,  # Nobody reads them.
}

# What `disconnect` ends, innermost last. None: there is nothing to end.
_session: contextlib.ExitStack | None = None
# Those of a Ray that was started here, without which it does not work -> name.
_processes: dict[Any, str] = {}


def import_ray() -> types.ModuleType:
  """Imports Ray, which is installed only with the extra `cluster`.

  Returns:
    The module `ray`.

  Raises:
    ImportError: If Ray is not installed.
  """
  try:
    with _handlers_kept():
      import ray
  except ImportError as error:
    raise ImportError(
      "The runtime 'cluster' needs Ray, found none: install it with"
      " `uv sync --extra cluster` or `pip install 'tff-fair[cluster]'`."
    ) from error
  return ray


def connect(
  address: str | None = None, num_cpus: float = 1, num_gpus: float = 0
) -> None:
  """Starts a Ray on this machine, or joins one that runs.

  What an earlier call began ends first. If the program itself has called
  `ray.init`, that connection is used whatever `address` is, and `disconnect`
  leaves it alone. The thread that calls this must live as long as a Ray that is
  started: the kernel takes the end of the thread for that of the process.

  Args:
    address: None: starts a Ray that listens on loopback only. `host:port`:
      joins the Ray whose head listens there; this machine must be one of its
      nodes. 'auto': joins the Ray that runs on this machine.
    num_cpus: The logical CPUs that are needed: those that a started Ray has,
      whatever the machine has, and the fewest that a joined one must have.
    num_gpus: The GPUs that are needed: the fewest that the machine, or the
      joined Ray, must have.

  Raises:
    ImportError: If Ray is not installed.
    ValueError: If `address` has another form.
    WorkerError: If Ray cannot start, cannot be reached, runs other versions of
      Ray or Python than this process, or lacks the CPUs or GPUs.
  """
  global _session
  if address not in (None, 'auto'):
    _check_address(address)
  ray = import_ray()
  disconnect()
  # Last, to run before what Ray registers: the exits of processes are awaited.
  atexit.unregister(disconnect)
  atexit.register(disconnect)
  with contextlib.ExitStack() as session:
    if not ray.is_initialized():
      session.enter_context(_quiet(logging.getLogger('ray')))
      if address is None:
        folder = _folder(session)
        session.callback(_stop, ray, folder)
        _start(ray, folder, num_cpus, num_gpus)
        for process in _own(folder):
          name = f"Ray's {process.name()}"
          stopped.watch(process.pid, name)
          _processes[process] = name
      else:
        session.callback(ray.shutdown)
        _join(ray, address)
    _check_resources(ray, num_cpus, num_gpus)
    _session = session.pop_all()


def disconnect() -> None:
  """Ends a Ray that `connect` started, or leaves one that it joined.

  Does nothing if there is none. Python calls it when it ends.
  """
  global _session
  session, _session = _session, None
  _processes.clear()
  if session is not None:
    session.close()


def check_processes() -> None:
  """Checks that the processes of a Ray that `connect` started are there.

  Without its server Ray ends this process after a minute, without a word.

  Raises:
    WorkerError: If one of them has ended.
  """
  for process, name in _processes.items():
    if _has_ended(process):
      raise worker_error.WorkerError(
        f'{name} must run until the computation ends, found that it has ended.'
      )


def _leave_to_parent():
  """In a fork: the Ray is the parent's, which alone may end it."""
  global _session
  if _session is not None:
    _session = None
    atexit.unregister(import_ray().shutdown)


os.register_at_fork(after_in_child=_leave_to_parent)


def _check_address(address):
  host, _, port = address.rpartition(':')
  if not host or '/' in host or not port.isdecimal():
    raise ValueError(
      "The cluster's address must be of the form host:port, or 'auto', found"
      f' {address!r}.'
    )


def _start(ray, folder, num_cpus, num_gpus):
  from ray._private import node

  unused = {name: lambda *_, **__: None for name in _UNUSED_SERVICES}
  with _replaced(node.Node, **unused):
    _init(
      ray,
      'local',  # None would join the Ray that RAY_ADDRESS names.
      num_cpus=math.ceil(num_cpus),
      # None: those of the machine, as Ray finds them.
      num_gpus=None if num_gpus else 0,
      object_store_memory=_store_bytes(),
      include_dashboard=False,
      _temp_dir=folder,
      _system_config=_LOCAL_SETTINGS,
    )


def _stop(ray, folder):
  """Ends a Ray that was started here, and waits for each of its processes."""
  import psutil

  own = _own(folder)
  below = [one for process in own for one in process.children(recursive=True)]
  ray.shutdown()
  # Left are those that are stopped, and all of a Ray that started half.
  _, left = psutil.wait_procs(own + below, _END_SECONDS)
  for process in left:
    with contextlib.suppress(psutil.NoSuchProcess):
      process.kill()
  psutil.wait_procs(left)


def _own(folder):
  """The processes of a Ray that were started here."""
  import psutil

  return [
    process
    for process in psutil.Process().children()
    if any(folder + os.sep in argument for argument in _arguments(process))
  ]


def _has_ended(process) -> bool:
  import psutil

  try:
    is_zombie = process.status() == psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return True
  return is_zombie or not process.is_running()


def _arguments(process):
  import psutil

  try:
    return process.cmdline()
  except psutil.Error:  # It has ended.
    return []


def _join(ray, address):
  from ray._private import services

  # Ray would replace a loopback address by this machine's, where a head that
  # listens on loopback cannot be reached.
  with _replaced(services, resolve_ip_for_localhost=lambda host: host):
    if address == 'auto':
      address = _find_address(services)
    _check_reachable(ray, address)
    _init(ray, address)


def _find_address(services):
  try:
    return services.canonicalize_bootstrap_address('auto')
  except ConnectionError as error:
    raise worker_error.WorkerError(
      'A Ray must run on this machine to be joined, found none: start one with'
      ' `ray start`, or name the address of its head.'
    ) from error


def _init(ray, address: str, **options: Any) -> None:
  """Calls `ray.init` without its messages and its changes to this process."""
  from ray._private import ray_constants
  from ray._private import worker

  with (
    # Ray would print its node manager's log when that ends; an error here says
    # in one sentence what it means.
    _replaced(worker, listen_error_messages=lambda *_: None),
    # Ray would replace the program's handlers of SIGTERM and of exceptions.
    _handlers_kept(),
    # Under `uv run`, Ray would send the working directory to the workers and
    # have uv make an environment there. They run this environment.
    _replaced(ray_constants, RAY_ENABLE_UV_RUN_RUNTIME_ENV=False),
    _quiet_log(),
    warnings.catch_warnings(),
  ):
    warnings.simplefilter('ignore', FutureWarning)
    # The node to join is then the one that has this address, not just any.
    on_loopback = address.partition(':')[0] in ('local', _LOOPBACK)
    try:
      ray.init(
        address,
        log_to_driver=False,
        configure_logging=False,
        _node_ip_address=_LOOPBACK if on_loopback else None,
        **options,
      )
    except Exception as error:
      reason = ' '.join(str(error).split()) or type(error).__name__
      action = 'start' if address == 'local' else f'be joined at {address}'
      raise worker_error.WorkerError(
        f'Ray must {action}, found: {reason}'
      ) from error


def _check_reachable(ray, address):
  """Raises unless a Ray answers; `ray.init` would try for ten minutes."""
  from ray._private.authentication import authentication_token_setup

  try:
    # The next steps would abort this process.
    authentication_token_setup.ensure_token_if_auth_enabled(
      create_token_if_missing=False
    )
  except ray.exceptions.AuthenticationError as error:
    raise worker_error.WorkerError(
      'RAY_AUTH_MODE=token needs a token, found none in RAY_AUTH_TOKEN, in the'
      ' file of RAY_AUTH_TOKEN_PATH and in ~/.ray/auth_token.'
    ) from error
  host, _, port = address.rpartition(':')
  try:
    # An IPv6 address stands in brackets.
    peer = host.strip('[]'), int(port)
    socket.create_connection(peer, _ANSWER_SECONDS).close()
  except (OSError, OverflowError) as error:
    raise worker_error.WorkerError(
      f'A Ray must run at {address}, found no answer: {error}.'
    ) from error
  if not _ends_within(
    _CHECK_SECONDS, lambda: ray._raylet.GcsClient(address=address)
  ):
    raise worker_error.WorkerError(
      f'A Ray must run at {address}, found something else there, or a Ray that'
      ' needs other certificates or another token.'
    )


def _ends_within(seconds: float, call: Callable[[], Any]) -> bool:
  """Returns whether a call returns without an exception within the time."""
  done = threading.Event()

  def run():
    with contextlib.suppress(Exception):
      call()
      done.set()

  thread = threading.Thread(target=run, daemon=True)
  thread.start()
  thread.join(seconds)
  return done.is_set()


def _check_resources(ray, num_cpus, num_gpus):
  found = ray.cluster_resources()
  needs = {'CPU': num_cpus, 'GPU': num_gpus}
  if any(found.get(name, 0) < need for name, need in needs.items()):
    raise worker_error.WorkerError(
      f'Ray must have {num_cpus:g} CPUs and {num_gpus:g} GPUs for the workers,'
      f' found {found.get("CPU", 0):g} and {found.get("GPU", 0):g}.'
    )


def _folder(session: contextlib.ExitStack) -> str:
  """A folder for Ray's logs and sockets, which goes when Python ends.

  Its end is a callback of the session: a context manager that is a generator
  would also end in a fork, which drops the session without closing it.
  """
  parent = tempfile.gettempdir()
  if len(os.fsencode(parent)) > _FOLDER_BYTES - len('/ray_12345678'):
    parent = '/tmp'
  folder = tempfile.mkdtemp(prefix='ray_', dir=parent)
  session.callback(shutil.rmtree, folder, ignore_errors=True)  # If it is left.
  guard = subprocess.Popen(
    ['sh', '-c', _GUARD, folder],
    stdin=subprocess.PIPE,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    start_new_session=True,  # Ctrl-C goes to Python.
  )
  session.callback(stopped.end_guard, guard)
  # Else a fork would keep the guard's input open.
  os.register_at_fork(after_in_child=guard.stdin.close)
  return folder


def _store_bytes() -> int | None:
  """The size of the object store, so that it fits into shared memory.

  Returns:
    Bytes, or None, for Ray's own choice, if there is hardly any shared memory:
    Ray then says that it uses the disk.
  """
  from ray._private import ray_constants
  from ray._private import utils

  size = min(
    _STORE_SHARE * utils.estimate_available_memory(),
    _SHARED_MEMORY_SHARE * utils.get_shared_memory_bytes(),
  )
  least = ray_constants.OBJECT_STORE_MINIMUM_MEMORY_BYTES
  return int(size) if size >= least else None


@contextlib.contextmanager
def _replaced(owner: Any, **attributes: Any) -> Iterator[None]:
  """Gives a module or a class other attributes for a while."""
  before = {name: getattr(owner, name) for name in attributes}
  for name, value in attributes.items():
    setattr(owner, name, value)
  try:
    yield
  finally:
    for name, value in before.items():
      setattr(owner, name, value)


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
  """A context in which Ray starts without a log, unless the user wants one.

  After 30 seconds it would print that nothing collects its metrics, for which
  it has no setting. Of the level of its log it says that it was set.
  """
  if _LOG_LEVEL in os.environ:
    yield
    return
  os.environ[_LOG_LEVEL] = 'fatal'
  try:
    with log_lines.left_out(_LEVEL_SET):
      yield
  finally:
    del os.environ[_LOG_LEVEL]


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
  excepthook, sigterm = sys.excepthook, signal.getsignal(signal.SIGTERM)
  try:
    yield
  finally:
    sys.excepthook = excepthook
    # Only the main thread can have changed it. None: it is not Python's.
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and sigterm is not None:
      signal.signal(signal.SIGTERM, sigterm)


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
  level = logger.level
  logger.setLevel(logging.CRITICAL)
  try:
    yield
  finally:
    logger.setLevel(level)
