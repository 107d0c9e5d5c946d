"""Three workers on two nodes return the bits of `device`, whatever they run."""

import collections
import gc
import random
import threading
import time

import numpy as np
import pytest
import ray
import tensorflow as tf
import tensorflow_federated as tff

from tests.runtime import equivalence
from tests.runtime import equivalence_test
from tests.runtime import stock_equivalence_test
from tests.runtime.cluster import rounds
from tests.runtime.cluster import two_nodes
from tff_fair import runtime
from tff_fair.runtime.cluster import ray_session

pytestmark = pytest.mark.full

_DATA = tff.SequenceType(np.float32)
# Cohorts in turn, and processes whose rounds differ in structure.
_COHORTS = (0, 1, 9, 40, 17, 2, 0)
_METHODS = ('cffl', 'corefed', 'pfed_ck')
_STOCK = ('weighted_mime_lite', 'federated_select', 'client_placed_result')


@pytest.fixture(scope='module', name='nodes')
def _nodes():
  with two_nodes.start(num_cpus=2) as nodes:
    yield nodes
    ray_session.disconnect()


@pytest.fixture(scope='module', name='contexts')
def _contexts(nodes):
  return [
    runtime.create_execution_context('device', client_threads=1),
    runtime.create_execution_context(
      'cluster', num_workers=3, address=nodes.address, timeout=20
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
  tf.keras.utils.set_random_seed(0)
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
  kept = sum(sum(worker.data_sets.values()) for worker in workers)
  del data
  gc.collect()
  rounds.invoke(cluster, [rounds.data_set(i) for i in range(9)])
  left = sum(sum(worker.data_sets.values()) for worker in workers)
  assert kept - left > 3 * 4 * size - 5000


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
  assert cluster.bytes_sent - sent < 3 * 5000
  calls = loader.calls()
  homes = {i: processes[0] for i, processes in calls.items()}
  assert [len(processes) for processes in calls.values()] == [2] * 20
  assert len(set(homes.values())) == 3
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

  assert held() == [(0, True)] * 3
  del round_
  gc.collect()
  rounds.invoke(cluster, [rounds.data_set(i) for i in range(3)])
  assert held() == [(0, False)] * 3
  deadline = time.monotonic() + 20
  total = ray.cluster_resources()['object_store_memory']
  while ray.available_resources()['object_store_memory'] < total:
    assert time.monotonic() < deadline
    time.sleep(0.2)


def test_a_node_is_lost(contexts, nodes, loader, caplog):
  _, cluster = contexts
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
  assert 'The cluster lost worker' in caplog.text
  rounds.assert_same_bits(
    rounds.invoke(cluster, loader.references(ids)), expected
  )
