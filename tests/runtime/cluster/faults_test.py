"""Workers that end, stop or fail in the middle of a round."""

import gc
import logging
import os
import re
import signal
import threading
import time

import psutil
import pytest
import ray
from ray import exceptions

from tests.runtime.cluster import rounds
from tff_fair import runtime
from tff_fair.runtime.cluster import pool as pool_lib
from tff_fair.runtime.cluster import ray_session

pytestmark = pytest.mark.full

_IDS = range(11)  # The second group of clients is divided, or the first.
_TIMEOUT = 4
_START_SECONDS = 120


@pytest.fixture(scope='module', name='device')
def _device():
  return runtime.create_execution_context('device', client_threads=1)


@pytest.fixture(scope='module', name='expected')
def _expected(device):
  return rounds.expected(device, _IDS)


@pytest.fixture(scope='module', name='cluster')
def _cluster():
  yield runtime.create_execution_context(
    'cluster', num_workers=2, timeout=_TIMEOUT
  )
  ray_session.disconnect()


@pytest.fixture(name='loader')
def _loader(tmp_path):
  return rounds.Loader(tmp_path)


@pytest.fixture(name='both_workers')
def _both_workers(cluster):
  """Waits until both workers are there."""
  deadline = time.monotonic() + _START_SECONDS
  while len(cluster._pool.ready_workers()) < 2:
    assert time.monotonic() < deadline
    time.sleep(0.1)


@pytest.fixture(name='lost')
def _lost(caplog):
  """The warnings of workers that are lost."""
  caplog.set_level(logging.WARNING)
  return lambda: [
    record.getMessage()
    for record in caplog.records
    if 'The cluster lost' in record.getMessage()
  ]


def _processes(cluster):
  return [worker.process for worker in cluster._pool.workers]


def _round(cluster, loader):
  return rounds.invoke(cluster, loader.references(_IDS))


@pytest.mark.usefixtures('both_workers')
def test_a_killed_worker_is_replaced(cluster, loader, lost, expected):
  first, second = _processes(cluster)
  loader.order(10, 'kill')
  rounds.assert_same_bits(_round(cluster, loader), expected)
  (warning,) = lost()
  calls = loader.calls()
  killed, other = calls[10]
  assert {killed, other} == {first, second}
  assert f'process {killed} at 127.0.0.1' in warning
  assert '\n' not in warning
  # The other worker does not run its own clients again.
  assert all(p == [other] for p in calls.values() if killed not in p)
  assert any(killed not in p for p in calls.values())


@pytest.mark.usefixtures('both_workers')
def test_a_worker_killed_between_two_exchanges(
  cluster, loader, lost, expected, monkeypatch
):
  results = pool_lib.Pool.results
  calls = []

  def kill_at_second(self, pending, follow):
    calls.append(pending)
    if len(calls) == 2:
      os.kill(self.workers[0].process, signal.SIGKILL)
    return results(self, pending, follow)

  monkeypatch.setattr(pool_lib.Pool, 'results', kill_at_second)
  rounds.assert_same_bits(_round(cluster, loader), expected)
  assert len(lost()) == 1


@pytest.mark.usefixtures('both_workers')
def test_a_stopped_worker_is_noticed(cluster, loader, lost, expected):
  loader.order(0, 'stop')
  start = time.monotonic()
  rounds.assert_same_bits(_round(cluster, loader), expected)
  assert time.monotonic() - start < _TIMEOUT + 5
  (warning,) = lost()
  assert 'no answer in 4 seconds' in warning
  stopped = psutil.Process(int(re.search(r'process (\d+)', warning)[1]))
  assert psutil.wait_procs([stopped], 20)[1] == []


@pytest.mark.usefixtures('both_workers')
def test_slow_clients_are_no_fault(cluster, loader, lost, expected):
  # Whoever has the rest of a divided group waits for longer than the timeout.
  loader.order(0, f'sleep {_TIMEOUT + 2}')
  rounds.assert_same_bits(_round(cluster, loader), expected)
  assert not lost()


@pytest.mark.usefixtures('both_workers')
def test_an_interrupted_round_is_left(cluster, loader, lost, expected):
  for i in _IDS:
    loader.order(i, 'sleep 1')
  before = _processes(cluster)
  timer = threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGINT])
  timer.start()
  with pytest.raises(KeyboardInterrupt):
    _round(cluster, loader)
  rounds.assert_same_bits(
    rounds.invoke(cluster, [rounds.data_set(i) for i in _IDS]), expected
  )
  # The workers did not go on with it.
  assert len(loader.calls()) < len(_IDS) - 2
  assert not lost()
  assert _processes(cluster) == before


@pytest.mark.usefixtures('both_workers')
def test_rounds_in_threads(cluster, loader, expected, device):
  results = {}
  other = range(5, 20)

  def run(ids):
    for _ in range(3):
      results[ids] = rounds.invoke(cluster, loader.references(ids))

  threads = [threading.Thread(target=run, args=[ids]) for ids in (_IDS, other)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  rounds.assert_same_bits(results[_IDS], expected)
  rounds.assert_same_bits(results[other], rounds.expected(device, other))


def test_memory_that_ray_finds_full_is_named(cluster, loader, monkeypatch):
  def get(*_, **__):
    raise exceptions.OutOfMemoryError('Memory on the node was 15 / 16 GB.')

  with monkeypatch.context() as context:
    context.setattr(ray, 'get', get)
    with pytest.raises(
      runtime.WorkerError, match=r'must have the memory .* Ray ended worker \d'
    ) as error:
      _round(cluster, loader)
  assert '\n' not in str(error.value)


def test_a_client_that_always_ends_its_worker(cluster, loader, lost, expected):
  """Both workers are lost before there is another one."""
  loader.order(4, 'kill', always=True)
  with pytest.raises(
    runtime.WorkerError, match=r'must not end their workers, found that 3 '
  ) as error:
    _round(cluster, loader)
  assert '\n' not in str(error.value)
  assert len(loader.calls()[4]) == len(lost()) == 3
  loader.forgive(4)
  rounds.assert_same_bits(_round(cluster, loader), expected)


def test_contexts_end_their_workers():
  kind = {'kind': 'cluster', 'num_workers': 1, 'timeout': _TIMEOUT}
  clients = [rounds.data_set(0)]
  first = runtime.create_execution_context(**kind)
  rounds.invoke(first, clients)
  (worker,) = map(psutil.Process, _processes(first))
  second = runtime.create_execution_context(**kind)
  assert not worker.is_running()
  with pytest.raises(runtime.WorkerError, match='must run, found one that has'):
    rounds.invoke(first, clients)
  rounds.invoke(second, clients)
  (worker,) = map(psutil.Process, _processes(second))
  del first, second
  gc.collect()
  assert psutil.wait_procs([worker], 20)[1] == []
  with pytest.raises(runtime.WorkerError, match='1 GPUs .* found .* 0'):
    runtime.create_execution_context(**kind, gpus_per_worker=1)
  ray_session.disconnect()
