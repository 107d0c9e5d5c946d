"""Two workers on two nodes: the bits of `device`, and workers that end.

The tests share one Ray; the last ones end its nodes and its workers.
"""

import collections
import gc
import logging
import os
import random
import re
import signal
import threading
import time

import numpy as np
import psutil
import pytest
import ray
from ray import exceptions
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.runtime import equivalence
from tests.runtime import equivalence_test
from tests.runtime import stock_equivalence_test
from tests.runtime.cluster import rounds
from tests.runtime.cluster import two_nodes
from tff_fair import algorithms
from tff_fair import client
from tff_fair import runtime
from tff_fair.runtime import element_dataset
from tff_fair.runtime.cluster import execution
from tff_fair.runtime.cluster import pool as pool_lib
from tff_fair.runtime.cluster import ray_session
from tff_fair.runtime.device import local_clients

pytestmark = pytest.mark.full

_DATA = tff.SequenceType(np.float32)
# Cohorts in turn, and processes whose rounds differ in structure.
_COHORTS = (0, 1, 9, 40, 17, 2, 0)
_METHODS = ('cffl', 'pfed_ck')
_STOCK = ('federated_select', 'client_placed_result')
_IDS = range(11)  # The second group of clients is divided, or the first.
_ONEDNN = 'TF_ENABLE_ONEDNN_OPTS'
# Of tests in which workers do not answer.
_TIMEOUT = 3
# Within which another worker starts, if the machine has much else to do.
_START_SECONDS = 300


@pytest.fixture(scope='module', name='nodes')
def _nodes():
  with pytest.MonkeyPatch.context() as started_elsewhere:
    started_elsewhere.delenv(_ONEDNN)
    with two_nodes.start() as nodes:
      started_elsewhere.undo()
      yield nodes
      ray_session.disconnect()


@pytest.fixture(scope='module', name='contexts')
def _contexts(nodes):
  return [
    runtime.create_execution_context('device', client_threads=1),
    runtime.create_execution_context(
      'cluster', num_workers=2, address=nodes.address, timeout=60
    ),
  ]


@pytest.fixture(name='loader')
def _loader(tmp_path):
  return rounds.Loader(tmp_path)


@pytest.mark.parametrize('name', _METHODS)
def test_methods(name, contexts):
  process, data = equivalence_test.build(name)
  equivalence.assert_same_rounds(process, data, contexts, tolerance=0)


@pytest.mark.parametrize('name', _STOCK)
def test_stock_processes(name, contexts):
  build, make_data = stock_equivalence_test.PROCESSES[name]
  equivalence.assert_same_rounds(build(), make_data(), contexts, tolerance=0)


def test_changing_cohorts(contexts):
  device, cluster = contexts
  data = [rounds.data_set(i) for i in range(50)]
  rng = random.Random(0)
  for size in _COHORTS:
    # Workers have some of them, which divides groups.
    cohort = rng.sample(data, size)
    rounds.assert_same_bits(
      rounds.invoke(cluster, cohort), rounds.invoke(device, cohort)
    )


def test_data_are_sent_once_and_dropped_with_the_callers(contexts):
  device, cluster = contexts
  size = 20_000
  data = [
    tf.data.Dataset.from_tensor_slices(np.full([size], 0.5, np.float32))
    for _ in range(3)
  ]
  start = cluster.bytes_sent
  first = rounds.invoke(cluster, data)
  middle = cluster.bytes_sent
  rounds.assert_same_bits(rounds.invoke(cluster, data[::-1]), first)
  assert middle - start > 3 * 4 * size > 500 > cluster.bytes_sent - middle
  workers = cluster._pool.workers
  kept = sum(sum(worker.values.values()) for worker in workers)
  del data
  gc.collect()
  rounds.invoke(cluster, [rounds.data_set(i) for i in range(9)])
  left = sum(sum(worker.values.values()) for worker in workers)
  assert kept - left > 3 * 4 * size - 5000


def test_workers_use_the_kernels_of_this_process(contexts):
  _, cluster = contexts
  rounds.invoke(cluster, [rounds.data_set(0)])  # Starts them.
  found = ray.get(
    [
      worker.actor.__ray_call__.remote(lambda _: os.environ.get(_ONEDNN))
      for worker in cluster._pool.workers
    ]
  )
  assert found == [os.environ[_ONEDNN]] * 2


def test_references(contexts, loader):
  device, cluster = contexts
  ids = list(range(20))
  expected = rounds.expected(device, ids)
  sent = cluster.bytes_sent
  rounds.assert_same_bits(
    rounds.invoke(cluster, loader.references(ids)), expected
  )
  rounds.assert_same_bits(
    rounds.invoke(device, loader.references(ids)), expected
  )
  # The function, once for each worker, but no data.
  assert cluster.bytes_sent - sent < 2 * 5000
  calls = loader.calls()
  homes = {i: processes[0] for i, processes in calls.items()}
  assert [len(processes) for processes in calls.values()] == [2] * 20
  assert len(set(homes.values())) == 2
  # Again, in another order and with others: the workers have these clients.
  sent = cluster.bytes_sent
  later = [*ids[::-1], 20, 21]
  rounds.assert_same_bits(
    rounds.invoke(cluster, loader.references(later)),
    rounds.expected(device, later),
  )
  assert cluster.bytes_sent - sent < 100
  assert sorted(loader.calls()) == [20, 21]
  # Far too many that are at home at one worker: others load some of them.
  process = homes[0]
  same = [i for i in ids if homes[i] == process]
  rounds.assert_same_bits(
    rounds.invoke(cluster, loader.references(same)),
    rounds.expected(device, same),
  )
  assert 0 < len(loader.calls()) < len(same)


def test_functions_that_load(contexts):
  device, cluster = contexts
  lock = threading.Lock()

  class Unhashable:
    __hash__ = None

    def __call__(self, client_id):
      return tf.data.Dataset.from_tensors(np.float32(client_id))

  def refer(load):
    return [runtime.ClientReference(load, i) for i in range(2)]

  rounds.assert_same_bits(
    rounds.invoke(cluster, refer(Unhashable())),
    rounds.invoke(device, refer(Unhashable())),
  )
  with pytest.raises(TypeError, match='can be pickled, found <function'):
    rounds.invoke(cluster, refer(lambda i: lock and rounds.data_set(i)))


@pytest.fixture(name='many')
def _many(monkeypatch):
  """Ten groups, the last of five clients, which are many for two workers."""
  monkeypatch.setattr(local_clients, '_GROUPS_PER_THREAD', 5)
  return range(77)


def _in_groups(cluster):
  """Whether the newest computation ran in groups, for each worker."""
  return ray.get(
    [
      worker.actor.__ray_call__.remote(
        lambda self: any(
          group is not None
          for stage in self._programs[max(self._programs)].stages
          for group in stage.groups.values()
        )
      )
      for worker in cluster._pool.workers
    ]
  )


def test_small_clients_run_in_groups(contexts, many):
  device, cluster = contexts
  data = [rounds.at_hand(i) for i in many]
  computations = rounds.variance, rounds.build_rows_and_sum()
  for cohort in (data, data[::-1], data[:70]):
    for computation in computations:
      rounds.assert_same_bits(
        rounds.invoke(cluster, cohort, computation),
        rounds.invoke(device, cohort, computation),
      )
  assert _in_groups(cluster) == [True, True]


def test_rounds_of_small_clients_of_unlike_sizes(contexts, many):
  process = algorithms.build_scaffold(
    linear_task.model_fn,
    num_clients=len(many),
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
    batch_size=3,
  )
  clients = linear_task.make_clients([i % 7 for i in many])  # Some are empty.
  data = [
    client.build_client_data(i, (d.x, d.y), (d.x[:2], d.y[:2]))
    for i, d in enumerate(clients)
  ]
  equivalence.assert_same_rounds(process, data, contexts, tolerance=0)


def test_small_clients_by_reference_run_in_groups(contexts, many):
  device, cluster = contexts

  def load(client_id):
    # As `rounds.at_hand`, which workers do not have.
    return element_dataset.ElementDataset(np.float32(client_id / 7))

  rows_and_sum = rounds.build_rows_and_sum()
  clients = [runtime.ClientReference(load, i) for i in many]
  expected = rounds.invoke(device, clients, rows_and_sum)
  for is_known in (False, True):  # The size, which workers say.
    result = rounds.invoke(cluster, clients, rows_and_sum)
    rounds.assert_same_bits(result, expected)
    assert _in_groups(cluster) == [is_known] * 2


@pytest.mark.parametrize(
  ('make', 'limit'),
  [
    (rounds.data_set, 2**18),  # A small graph, but it has to be run.
    (rounds.at_hand, 3),
  ],
)
def test_other_clients_run_one_by_one(make, limit, contexts, many, monkeypatch):
  device, cluster = contexts
  monkeypatch.setattr(local_clients, '_SMALL_CLIENT', limit)
  data = [make(i) for i in many]
  computation = rounds.build_rows_and_sum()
  rounds.assert_same_bits(
    rounds.invoke(cluster, data, computation),
    rounds.invoke(device, data, computation),
  )
  assert _in_groups(cluster) == [False, False]


def test_errors_arrive_once_and_as_they_are(contexts, loader):
  data = [rounds.data_set(0), tf.data.Dataset.from_tensors(np.float32(1e7))]
  for context in contexts:
    with pytest.raises(RuntimeError, match=r'^A computation failed: .*too lar'):
      rounds.invoke(context, data)
    for trouble, error, sentence in (
      ('raise', LookupError, 'Client 3 must have data, found none.'),
      (
        'exhaust',
        RuntimeError,
        'A computation failed: OOM when allocating tensor with shape[9]',
      ),
    ):
      loader.order(3, trouble)
      with pytest.raises(error) as found:
        rounds.invoke(context, loader.references(range(6)))
      assert str(found.value) == sentence
      assert len(loader.calls()[3]) == 1
  rounds.assert_same_bits(*(rounds.invoke(c, data[:1]) for c in contexts))
  python = tf.data.Dataset.from_generator(
    lambda: [2.0], output_signature=tf.TensorSpec([], tf.float32)
  )
  with pytest.raises(ValueError, match=r'not call Python .*ClientReference'):
    rounds.invoke(contexts[1], [python])


def test_values_of_all_kinds(contexts):
  texts = tff.TensorType(np.str_, [None])
  table = tff.TensorType(np.float64, [None])

  @tff.tensorflow.computation(_DATA, _DATA, texts, table)
  def work(shared, own, words, numbers):
    return collections.OrderedDict(
      words=tf.concat([words, ['\0']], 0),
      total=own.concatenate(shared).reduce(0.0, tf.add),
      large=tf.reduce_sum(numbers),
      half=tf.cast(tf.reduce_sum(numbers), tf.bfloat16),
      flag=tf.size(words) > 1,
    )

  @tff.federated_computation(
    tff.FederatedType(_DATA, tff.SERVER),
    tff.FederatedType(table, tff.SERVER),
    tff.FederatedType(_DATA, tff.CLIENTS),
    tff.FederatedType(texts, tff.CLIENTS),
  )
  def round_(shared, numbers, own, words):
    sent = map(tff.federated_broadcast, (shared, numbers))
    shared_at, numbers_at = sent
    made = tff.federated_map(work, (shared_at, own, words, numbers_at))
    return made, tff.federated_sum(made.total), numbers, shared

  words = [[b'a', b'\xff\0'], np.array([], object), ['c'], ['d'] * 9]
  arguments = (
    tf.data.Dataset.range(5).map(lambda i: tf.cast(i, tf.float32)),
    np.linspace(0, 1, 100_000),
    [[float(i)] * i for i in range(4)],
    [tf.constant(w, tf.string) for w in words],
  )
  double = tff.tensorflow.computation(lambda x: 2 * x, np.int32)
  results = []
  for context in contexts:
    with tff.framework.get_context_stack().install(context):
      *result, data_set = round_(*arguments)
      results.append([result, list(data_set.as_numpy_iterator())])
      assert double(4) == 8  # Without clients.
  rounds.assert_same_bits(*results)


def test_nothing_is_left_of_many_rounds(contexts):
  _, cluster = contexts
  table = tff.FederatedType(tff.TensorType(np.float32, [2**20]), tff.SERVER)

  @tff.tensorflow.computation(np.float32, tff.TensorType(np.float32, [2**20]))
  def add(x, numbers):
    return x + numbers

  @tff.federated_computation(table, tff.FederatedType(np.float32, tff.CLIENTS))
  def round_(numbers, own):
    return tff.federated_sum(
      tff.federated_map(add, (own, tff.federated_broadcast(numbers)))
    )

  numbers = np.zeros([2**20], np.float32)
  with tff.framework.get_context_stack().install(cluster):
    for _ in range(20):
      result = round_(numbers, [1.0, 2.0, 3.0])
  assert result[0] == 6
  del result
  workers = cluster._pool.workers
  number = max(n for worker in workers for n in worker.programs)

  def held():
    """The executions of all workers, and who has this computation."""
    states = [
      worker.actor.__ray_call__.remote(
        lambda self: (len(self._executions), number in self._programs)
      )
      for worker in workers
    ]
    return ray.get(states)

  assert held() == [(0, True)] * 2
  del round_
  gc.collect()
  rounds.invoke(cluster, [rounds.data_set(i) for i in range(3)])
  assert held() == [(0, False)] * 2
  deadline = time.monotonic() + 60
  total = ray.cluster_resources()['object_store_memory']
  while ray.available_resources()['object_store_memory'] < total:
    assert time.monotonic() < deadline
    time.sleep(0.2)


@pytest.fixture(name='cluster')
def _cluster(contexts):
  """The cluster, once both workers are there."""
  _, cluster = contexts
  deadline = time.monotonic() + _START_SECONDS
  while len(cluster._pool.ready_workers()) < 2:
    assert time.monotonic() < deadline
    time.sleep(0.1)
  return cluster


@pytest.fixture(scope='module', name='expected')
def _expected(contexts):
  return rounds.expected(contexts[0], _IDS)


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


def test_a_killed_worker_is_replaced(cluster, loader, lost, expected):
  first, second = _processes(cluster)
  loader.order(10, 'kill')
  rounds.assert_same_bits(_round(cluster, loader), expected)
  (warning,) = lost()
  calls = loader.calls()
  killed, other = calls[10]
  assert {killed, other} == {first, second}
  assert f'process {killed} at 127.0.0.' in warning
  assert '\n' not in warning
  # The other worker does not run its own clients again.
  assert all(p == [other] for p in calls.values() if killed not in p)
  assert any(killed not in p for p in calls.values())


def test_a_stopped_worker_is_noticed(
  cluster, loader, lost, expected, monkeypatch
):
  monkeypatch.setattr(cluster._pool, '_timeout', _TIMEOUT)
  loader.order(0, 'stop')
  rounds.assert_same_bits(_round(cluster, loader), expected)
  (warning,) = lost()
  assert 'no answer in 3 seconds' in warning
  stopped = psutil.Process(int(re.search(r'process (\d+)', warning)[1]))
  assert psutil.wait_procs([stopped], 20)[1] == []


def test_slow_clients_are_no_fault(
  cluster, loader, lost, expected, monkeypatch
):
  monkeypatch.setattr(cluster._pool, '_timeout', _TIMEOUT)
  # Whoever has the rest of a divided group waits for longer than the timeout.
  loader.order(0, f'sleep {_TIMEOUT + 2}')
  rounds.assert_same_bits(_round(cluster, loader), expected)
  assert not lost()


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


def test_rounds_in_threads(cluster, contexts, loader, expected):
  results = {}
  other = range(5, 20)

  def run(ids):
    for _ in range(2):
      results[ids] = rounds.invoke(cluster, loader.references(ids))

  threads = [threading.Thread(target=run, args=[ids]) for ids in (_IDS, other)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  rounds.assert_same_bits(results[_IDS], expected)
  rounds.assert_same_bits(results[other], rounds.expected(contexts[0], other))


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


def _kill_at(exchange, monkeypatch):
  """Lets a worker be killed when the driver waits for the n-th time."""
  results = pool_lib.Pool.results
  calls = []

  def kill(self, pending, follow):
    calls.append(pending)
    if len(calls) == exchange:
      os.kill(self.workers[0].process, signal.SIGKILL)
    return results(self, pending, follow)

  monkeypatch.setattr(pool_lib.Pool, 'results', kill)


def test_a_worker_killed_between_two_exchanges(
  cluster, loader, lost, expected, monkeypatch
):
  _kill_at(2, monkeypatch)
  rounds.assert_same_bits(_round(cluster, loader), expected)
  assert len(lost()) == 1


@pytest.mark.parametrize(
  ('computation', 'exchange'),
  [
    (rounds.variance, 1),
    (rounds.variance, 2),
    (rounds.build_rows_and_sum(), 1),
  ],
)
def test_a_worker_killed_that_has_groups(
  computation, exchange, cluster, contexts, many, lost, monkeypatch
):
  data = [rounds.at_hand(i) for i in many]
  expected = rounds.invoke(contexts[0], data, computation)
  _kill_at(exchange, monkeypatch)
  rounds.assert_same_bits(rounds.invoke(cluster, data, computation), expected)
  assert len(lost()) == 1


def test_a_client_that_always_ends_its_worker(
  cluster, loader, lost, expected, monkeypatch
):
  """Both workers are lost before there is another one."""
  monkeypatch.setattr(execution, '_ATTEMPTS', 2)
  loader.order(4, 'kill', always=True)
  with pytest.raises(
    runtime.WorkerError, match=r'must not end their workers, found that 2 '
  ) as error:
    _round(cluster, loader)
  assert '\n' not in str(error.value)
  assert len(loader.calls()[4]) == len(lost()) == 2
  loader.forgive(4)
  rounds.assert_same_bits(_round(cluster, loader), expected)


def test_a_node_is_lost(cluster, nodes, loader, lost):
  (node,) = nodes.worker_nodes
  ids = list(range(12))
  expected = rounds.invoke(cluster, [rounds.data_set(i) for i in ids])
  loader.order(0, 'sleep 5')
  loader.order(11, 'sleep 5')
  killer = threading.Timer(2, nodes.remove_node, [node])
  killer.start()
  rounds.assert_same_bits(
    rounds.invoke(cluster, loader.references(ids)), expected
  )
  killer.join()
  assert lost()
  rounds.assert_same_bits(
    rounds.invoke(cluster, loader.references(ids)), expected
  )


def test_contexts_end_their_workers(contexts, nodes):
  first = contexts.pop()
  clients = [rounds.data_set(0)]
  rounds.invoke(first, clients)
  (worker,) = map(psutil.Process, _processes(first))
  kind = {'kind': 'cluster', 'num_workers': 1, 'address': nodes.address}
  second = runtime.create_execution_context(**kind)
  assert psutil.wait_procs([worker], 60)[1] == []
  with pytest.raises(runtime.WorkerError, match='must run, found one that has'):
    rounds.invoke(first, clients)
  rounds.invoke(second, clients)
  (worker,) = map(psutil.Process, _processes(second))
  del first, second
  gc.collect()
  assert psutil.wait_procs([worker], 60)[1] == []
  with pytest.raises(runtime.WorkerError, match='1 GPUs .* found .* 0'):
    runtime.create_execution_context(**kind, gpus_per_worker=1)
