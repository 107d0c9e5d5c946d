"""Groups of clients in one call have the bits of clients one by one."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.runtime import equivalence
from tff_fair import algorithms
from tff_fair import client
from tff_fair import runtime
from tff_fair.runtime.device import client_group
from tff_fair.runtime.device import local_clients
from tff_fair.runtime.device import program
from tff_fair.tensors import client_table

# Five groups, the last of them of three clients.
_NUM_CLIENTS = 35
VECTORS = tff.TensorType(np.int32, [None])


@pytest.fixture(name='sizes')
def _sizes(monkeypatch):
  """The number of clients of each call of a group."""
  monkeypatch.setattr(local_clients, '_GROUPS_PER_THREAD', 2)
  sizes = []
  call = client_group.ClientGroup.__call__

  def counted(self, columns, totals, size):
    sizes.append(size)
    return call(self, columns, totals, size)

  monkeypatch.setattr(client_group.ClientGroup, '__call__', counted)
  return sizes


def _sum_of(work):
  """The sum of what clients make of their numbers."""

  @tff.federated_computation(
    tff.FederatedType(work.type_signature.parameter, tff.CLIENTS)
  )
  def total(values):
    return tff.federated_sum(tff.federated_map(work, values))

  return total


def _run(computation, *arguments, threads=1):
  context = runtime.create_execution_context('device', client_threads=threads)
  with tff.framework.get_context_stack().install(context):
    return computation(*arguments)


@pytest.mark.full
@pytest.mark.parametrize(
  'build', [algorithms.build_fedaboost, algorithms.build_scaffold]
)
def test_rounds_of_clients_of_unlike_sizes(build, sizes, monkeypatch):
  process = build(
    linear_task.model_fn,
    num_clients=_NUM_CLIENTS,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
    local_epochs=2,
    batch_size=3,
  )
  sizes_of_clients = [i % 7 for i in range(_NUM_CLIENTS)]  # Some are empty.
  data = [
    client.build_client_data(i, (d.x, d.y), (d.x[:2], d.y[:2]))
    for i, d in enumerate(linear_task.make_clients(sizes_of_clients))
  ]

  def run(threads):
    context = runtime.create_execution_context('device', client_threads=threads)
    sizes.clear()
    return equivalence.run(process, data, context)

  found = [run(threads) for threads in (1, 2)]
  assert sizes.count(3) == len(sizes) / 5 > 0  # Groups that have sums.
  found.append(run(4))
  assert max(sizes) > 8  # Groups that have none.
  monkeypatch.setattr(local_clients, '_SMALL_CLIENT', -1)
  one_by_one = run(2)
  assert not sizes
  for in_groups in found:
    equivalence.assert_equal(in_groups, one_by_one, 0)


def test_rows_are_put_together_at_once(sizes):
  gather = client_table.build_gather(tff.TensorType(np.int32))
  square = tff.tensorflow.computation(lambda x: x * x, np.int32)

  @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
  def rows_and_sum(numbers):
    squares = tff.federated_map(square, numbers)
    return gather(squares), tff.federated_sum(squares)

  compiled = program.Program(program.compile_computation(rows_and_sum))
  (stage,) = compiled.stages
  assert sorted(a.is_gather for a in stage.aggregations) == [False, True]
  rows, total = _run(rows_and_sum, list(range(_NUM_CLIENTS)))
  assert sizes == [8, 8, 8, 8, 3]
  assert list(rows) == [i**2 for i in range(_NUM_CLIENTS)]
  assert total == sum(rows)


def test_what_clients_keep(sizes):
  @tff.tensorflow.computation(VECTORS, np.bool_)
  def halve(vector, is_first):
    return collections.OrderedDict(
      half=vector[: tf.size(vector) // 2], name=tf.strings.as_string(is_first)
    )

  @tff.federated_computation(
    tff.FederatedType(VECTORS, tff.CLIENTS),
    tff.FederatedType(np.bool_, tff.CLIENTS),
  )
  def keep(vectors, flags):
    return tff.federated_map(halve, (vectors, flags))

  vectors = [np.arange(i % 4, dtype=np.int32) for i in range(_NUM_CLIENTS)]
  kept = _run(keep, vectors, [i == 0 for i in range(_NUM_CLIENTS)])
  assert sizes == [8, 8, 8, 8, 3]
  halves = [list(range(i % 4 // 2)) for i in range(_NUM_CLIENTS)]
  assert [list(entry['half']) for entry in kept] == halves
  assert [entry['name'] for entry in kept] == [b'true', *[b'false'] * 34]


@pytest.mark.parametrize(
  ('lengths', 'cut'),
  [([], []), ([5], []), ([1] * 9, [5, 4]), ([9, 1, 1, 1], [1, 3])],
)
def test_few_clients_are_as_many_groups_as_threads(lengths, cut, sizes):
  add_up = tff.tensorflow.computation(lambda v: tf.reduce_sum(v), VECTORS)
  rows = [np.ones(length, np.int32) for length in lengths]
  assert _run(_sum_of(add_up), rows, threads=2) == sum(lengths)
  assert sizes == cut


def test_large_values_of_few_clients_are_not_stacked(monkeypatch, sizes):
  square = tff.tensorflow.computation(lambda x: x * x, np.int32)
  for limit, is_small in ((4, True), (3, False)):
    monkeypatch.setattr(local_clients, '_SMALL_VALUES', limit)
    sizes.clear()
    assert _run(_sum_of(square), list(range(9)), threads=2) == 204
    assert bool(sizes) == is_small


def test_clients_with_much_data_run_one_by_one(monkeypatch, sizes):
  monkeypatch.setattr(local_clients, '_SMALL_CLIENT', 7)
  add_up = tff.tensorflow.computation(lambda v: tf.reduce_sum(v), VECTORS)
  for length, is_small in ((1, True), (2, False)):
    sizes.clear()
    rows = [np.ones(length, np.int32)] * _NUM_CLIENTS
    assert _run(_sum_of(add_up), rows) == length * _NUM_CLIENTS
    assert bool(sizes) == is_small


def test_what_is_no_tensor_runs_one_by_one(sizes):
  @tff.tensorflow.computation(np.float32)
  def count_up(x):
    variable = tf.Variable(1.0)
    with tf.control_dependencies([variable.assign_add(x)]):
      return variable.read_value()

  @tff.tensorflow.computation(tff.SequenceType(np.float32))
  def add_up(numbers):
    return numbers.reduce(0.0, tf.add)

  for work, value in ((count_up, 1.0), (add_up, [1.0, 1.0])):
    found = _run(_sum_of(work), [value] * _NUM_CLIENTS)
    assert found == 2 * _NUM_CLIENTS
  assert not sizes


def test_an_error_of_a_client_in_a_group(sizes):
  process = algorithms.build_fed_avg(
    linear_task.model_fn,
    num_clients=_NUM_CLIENTS,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
  )
  (d,) = linear_task.make_clients([3])
  data = [
    client.build_client_data(i, (d.x, d.y), (d.x, d.y))
    for i in range(_NUM_CLIENTS)
  ]
  data[20] = client.build_client_data(20, (d.x, d.y + 9), (d.x, d.y))
  with pytest.raises(RuntimeError, match='Labels must lie in 0'):
    _run(process.next, _run(process.initialize), data)
  assert sizes
