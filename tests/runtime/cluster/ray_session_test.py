"""A Ray is started, joined and ended, and nothing of it is left."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import psutil
import pytest

from tests import refusals
from tests.runtime.cluster import two_nodes
from tff_fair import runtime
from tff_fair.runtime.cluster import ray_session

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_END_SECONDS = 60
_DRIVER = """
import importlib.machinery, importlib.util, os, signal, sys, time

# The package, without what it imports: TensorFlow would take most of the time.
spec = importlib.machinery.ModuleSpec('tff_fair.runtime', None, is_package=True)
spec.submodule_search_locations = [os.path.abspath('tff_fair/runtime')]
sys.modules['tff_fair.runtime'] = importlib.util.module_from_spec(spec)

from tff_fair.runtime.cluster import ray_session

ray = ray_session.import_ray()
ray_session.connect(num_cpus=2)

@ray.remote(num_cpus=1)
class Worker:
  def ready(self, seconds=0):
    time.sleep(seconds)

  def stop(self):
    os.kill(os.getpid(), signal.SIGSTOP)

workers = [Worker.remote() for _ in range(2)]
ray.get([worker.ready.remote() for worker in workers])
print(ray.nodes()[0]['RayletSocketName'], flush=True)
"""
# Ctrl-C does not end a round; then a stopped worker and a fork are left alone.
_FINISH_THE_ROUND_AND_STOP_A_WORKER = """
signal.signal(signal.SIGINT, lambda *_: None)
round_ = [worker.ready.remote(2) for worker in workers]
print('waits', flush=True)
ray.get(round_)
workers[0].stop.remote()
if not os.fork():  # Must neither keep Ray alive nor end it.
  print('finished', flush=True)
time.sleep(600)
"""


@pytest.fixture
def session():
  """Ends what a test connects to."""
  yield ray_session
  ray_session.disconnect()


@pytest.fixture(scope='module')
def cluster():
  """A Ray of two nodes."""
  with two_nodes.start() as cluster:
    yield cluster


def _children():
  return set(psutil.Process().children(recursive=True))


def _listening(processes):
  """The addresses and ports on which processes listen."""
  found = set()
  for process in processes:
    with contextlib.suppress(psutil.NoSuchProcess):  # Has ended meanwhile.
      found.update(
        tuple(connection.laddr)
        for connection in process.net_connections('tcp')
        if connection.status == psutil.CONN_LISTEN
      )
  return found


@pytest.mark.full
def test_a_started_ray_has_what_was_asked_on_loopback_and_leaves_nothing(
  session, monkeypatch, tmp_path
):
  long = tmp_path / ('x' * 80)  # A socket's path may have 107 bytes.
  long.mkdir()
  monkeypatch.setattr('tempfile.tempdir', str(long))
  before = signal.getsignal(signal.SIGTERM), sys.excepthook
  # Another test's runtime may run in this process.
  children = _children()
  listening = _listening([psutil.Process()])
  ray = session.import_ray()
  session.connect(num_cpus=3)
  found = ray.cluster_resources()
  assert (found['CPU'], found.get('GPU')) == (3, None)
  assert (signal.getsignal(signal.SIGTERM), sys.excepthook) == before
  folder = pathlib.Path(ray.nodes()[0]['RayletSocketName']).parents[2]
  assert folder.exists()
  started = _children() - children
  ips = {ip for ip, _ in _listening([psutil.Process(), *started]) - listening}
  assert ips and ips <= {'127.0.0.1', '::ffff:127.0.0.1'}
  session.disconnect()
  session.disconnect()
  assert not ray.is_initialized()
  assert not folder.exists()
  assert not any(process.is_running() for process in started)


@pytest.mark.full
def test_ray_says_nothing_of_itself(session, capfd, monkeypatch):
  monkeypatch.delenv('RAY_BACKEND_LOG_LEVEL', raising=False)
  session.connect(num_cpus=1)
  time.sleep(35)  # It waits half a minute for who collects its metrics.
  session.disconnect()
  out, err = capfd.readouterr()
  # gRPC says so in a process that has run TFF's worker before.
  lines = [line for line in err.splitlines() if 'skipping fork()' not in line]
  assert (out, lines) == ('', [])
  assert 'RAY_BACKEND_LOG_LEVEL' not in os.environ


@pytest.mark.full
def test_ray_lives_through_ctrl_c_and_not_through_kill():
  """Kill leaves no process and no file, not even a stopped worker."""
  driver = subprocess.Popen(
    [sys.executable, '-c', _DRIVER + _FINISH_THE_ROUND_AND_STOP_A_WORKER],
    cwd=_ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
    start_new_session=True,
  )
  folder = pathlib.Path(driver.stdout.readline()).parents[2]
  assert driver.stdout.readline() == 'waits\n'
  os.killpg(driver.pid, signal.SIGINT)
  assert driver.stdout.readline() == 'finished\n'
  children = psutil.Process(driver.pid).children(recursive=True)
  assert folder.exists()
  # The server, the manager, two agents, two workers, the fork.
  assert len(children) >= 7
  (fork,) = (one for one in children if _DRIVER in one.cmdline()[-1])
  driver.kill()
  children.remove(fork)
  assert not psutil.wait_procs(children, _END_SECONDS)[1]
  assert not folder.exists()
  assert fork.is_running()
  fork.kill()


@pytest.mark.full
def test_a_joined_ray_goes_on(session, cluster):
  ray = session.import_ray()
  session.connect(cluster.address, num_cpus=2)
  assert len(ray.nodes()) == 2
  session.disconnect()
  assert not ray.is_initialized()
  session.connect(cluster.address, num_cpus=2)
  assert len(ray.nodes()) == 2


@pytest.mark.full
def test_a_joined_ray_must_have_the_resources_and_the_versions(
  session, cluster, monkeypatch
):
  def connect_as(version='2.52.1', **options):
    with monkeypatch.context() as context:
      if version != '2.52.1':
        context.setattr(
          'ray._private.utils.compute_version_info', lambda: (version, '3.9.1')
        )
      session.connect(cluster.address, **options)

  error = runtime.WorkerError
  refusals.check(
    connect_as,
    [
      ({'num_cpus': 3}, error, 'must have 3 CPUs and 0 GPUs .* found 2 and 0'),
      ({'num_gpus': 1}, error, 'must have 1 CPUs and 1 GPUs .* found 2 and 0'),
      ({'version': '1.2'}, error, 'Ray: 2.52.* started with: Ray: 1.2'),
    ],
  )
  assert not session.import_ray().is_initialized()


@pytest.mark.full
def test_a_ray_of_the_program_is_used_and_left_alone(session):
  ray = session.import_ray()
  with tempfile.TemporaryDirectory(dir='/tmp') as folder:
    ray.init('local', num_cpus=1, include_dashboard=False, _temp_dir=folder)
    try:
      session.connect(num_cpus=1)
      session.disconnect()
      assert ray.is_initialized()
    finally:
      ray.shutdown()


def test_what_cannot_be_joined_is_refused(session):
  with socket.create_server(('127.0.0.1', 0)) as server:
    port = server.getsockname()[1]
  error = runtime.WorkerError
  refusals.check(
    session.connect,
    [
      ({'address': 'here'}, ValueError, "form host:port, .* found 'here'"),
      ({'address': 'ray://here:1'}, ValueError, 'form host:port'),
      ({'address': f'127.0.0.1:{port}'}, error, 'must run at .* refused'),
      # Its brackets are no part of the name.
      ({'address': f'[::1]:{port}'}, error, r'at \[::1\]:\d+, .*Errno'),
      ({'address': 'no.invalid:1'}, error, 'must run at no.invalid:1, found'),
    ],
  )


def test_a_missing_ray_is_one_sentence(session, monkeypatch):
  monkeypatch.setitem(sys.modules, 'ray', None)
  with pytest.raises(ImportError, match='uv sync --extra cluster'):
    session.connect()
