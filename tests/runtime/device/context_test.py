"""Computations in this runtime, other than learning processes."""

import collections
import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import runtime

computation = tff.tensorflow.computation
INTS = tff.FederatedType(np.int32, tff.CLIENTS)
FLOATS = tff.FederatedType(np.float32, tff.CLIENTS)

pytestmark = pytest.mark.usefixtures('default_runtime')


@computation(np.int32, np.int32)
def add(a, b):
  return a + b


@computation(np.float32)
def count_up(x):
  """Adds to a variable that starts at 1; more than once would show."""
  variable = tf.Variable(1.0)
  with tf.control_dependencies([variable.assign_add(x)]):
    return variable.read_value()


def test_variables_are_initialized_at_each_call():
  assert [count_up(1.0), count_up(2.0), count_up(1.0)] == [2, 3, 2]


def test_tables_are_initialized():
  @computation(np.int64)
  def look_up(key):
    table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer([1, 2], [10, 20], tf.int64, tf.int64),
      default_value=-1,
    )
    return table.lookup(key)

  assert [look_up(np.int64(k)) for k in (1, 2, 3)] == [10, 20, -1]


def test_a_data_set_as_a_result():
  @computation
  def make():
    return tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(b=[1, 2], a=[3.0, 4.0])
    )

  assert list(make().as_numpy_iterator()) == [
    {'b': 1, 'a': 3.0},
    {'b': 2, 'a': 4.0},
  ]


def test_sequence_reduce():
  sequence = tff.SequenceType(np.int32)
  total = tff.federated_computation(
    lambda numbers: tff.sequence_reduce(numbers, 0, add), sequence
  )
  totals = tff.federated_computation(
    lambda numbers: tff.federated_map(total, numbers),
    tff.FederatedType(sequence, tff.CLIENTS),
  )
  assert [total([1, 2, 3]), total([])] == [6, 0]
  assert totals([[1, 2, 3], [], [4]]) == [6, 0, 4]


def test_what_clients_do_with_their_selections():
  table_type = tff.TensorType(np.int32, [4, 2])
  row_type = tff.TensorType(np.int32, [2])

  @computation(table_type, np.int32)
  def pick(table, key):
    return tf.gather(table, key)

  @computation(tff.SequenceType(row_type))
  def maximum(rows):
    return rows.reduce(tf.zeros([2], tf.int32), tf.maximum)

  zero = computation(lambda: tf.zeros([2], tf.int32))
  plus = computation(lambda a, b: a + b, row_type, row_type)

  @tff.federated_computation(tff.SequenceType(row_type))
  def total(rows):
    return tff.sequence_reduce(rows, zero(), plus)

  @tff.federated_computation(
    tff.FederatedType(table_type, tff.SERVER),
    tff.FederatedType(tff.TensorType(np.int32, [2]), tff.CLIENTS),
  )
  def select(table, keys):
    end = tff.federated_value(3, tff.SERVER)
    rows = tff.federated_select(keys, end, table, pick)
    return (
      rows,
      tff.federated_map(total, rows),
      tff.federated_map(maximum, rows),
    )

  table = np.arange(8, dtype=np.int32).reshape(4, 2)
  keys = [np.array(k, np.int32) for k in ([0, 3], [2, 2], [3, 1])]
  for own, rows, total_row, highest in zip(
    keys, *select(table, keys), strict=True
  ):
    np.testing.assert_array_equal(list(rows), table[own])
    np.testing.assert_array_equal(total_row, table[own].sum(axis=0))
    np.testing.assert_array_equal(highest, table[own].max(axis=0))


def test_functions_of_functions():
  @tff.federated_computation(tff.FunctionType(np.int32, np.int32), np.int32)
  def twice(function, x):
    return function(function(x))

  @tff.federated_computation(INTS)
  def add_four(numbers):
    add_two = tff.federated_computation(lambda x: add(x, 2), np.int32)
    return tff.federated_map(
      tff.federated_computation(lambda x: twice(add_two, x), np.int32), numbers
    )

  assert add_four([1, 10]) == [5, 14]


def test_nested_zips_and_all_equal_values():
  @tff.federated_computation(INTS, tff.FederatedType(np.int32, tff.SERVER))
  def pair(numbers, number):
    same = tff.federated_broadcast(number)
    nested = tff.federated_zip(
      collections.OrderedDict(a=same, b=(numbers, same))
    )
    return nested, tff.federated_zip((same, same))

  nested, same = pair([1, 2], 7)
  assert nested == [
    {'a': 7, 'b': (1, 7)},
    {'a': 7, 'b': (2, 7)},
  ]
  # TFF's type of it is not one of equal values.
  assert same == [(7, 7), (7, 7)]


def test_aggregates_of_cohorts_of_any_size():
  @tff.federated_computation(INTS)
  def statistics(numbers):
    return tff.federated_sum(numbers), tff.federated_max(numbers)

  lowest = np.iinfo(np.int32).min
  for num_clients in (0, 1, 8, 9, 31):
    numbers = list(range(1, num_clients + 1))
    assert statistics(numbers) == (sum(numbers), max([lowest, *numbers]))


def test_an_aggregate_keeps_the_order_of_clients():
  ids_type = tff.TensorType(np.int32, [None])

  @computation
  def none():
    return tf.zeros([0], tf.int32)

  @computation(ids_type, np.int32)
  def append(ids, client_id):
    return tf.concat([ids, [client_id]], axis=0)

  @computation(ids_type, ids_type)
  def join(a, b):
    return tf.concat([a, b], axis=0)

  identity = computation(lambda ids: ids, ids_type)

  @tff.federated_computation(INTS)
  def gather(numbers):
    return tff.federated_aggregate(numbers, none(), append, join, identity)

  # Five groups: pairs, and one without a partner.
  np.testing.assert_array_equal(gather(list(range(40))), range(40))


def test_an_unsupported_intrinsic_is_named():
  square = computation(lambda x: x * x, np.int32)

  @tff.federated_computation(tff.SequenceType(np.int32))
  def squares(numbers):
    return tff.sequence_map(square, numbers)

  with pytest.raises(NotImplementedError, match="found 'sequence_map'"):
    squares([1, 2])


def test_a_computation_is_forgotten_with_its_owner():
  context = runtime.create_execution_context('device', device='cpu')
  square = computation(lambda x: x * x, np.int32)
  with tff.framework.get_context_stack().install(context):
    assert square(3) == 9
  assert len(context._programs) == 1
  gone = weakref.ref(square)
  del square
  gc.collect()
  assert gone() is None
  assert not context._programs


def test_threads_do_not_share_variables():
  @tff.federated_computation(FLOATS)
  def count(steps):
    return tff.federated_map(count_up, steps)

  context = runtime.create_execution_context(
    'device', device='cpu', client_threads=8
  )
  steps = [float(i) for i in range(200)]
  with tff.framework.get_context_stack().install(context):
    for _ in range(5):
      assert count(steps) == [1 + step for step in steps]


def test_an_aggregate_that_uses_a_variable():
  @computation(np.float32, np.float32)
  def accumulate(total, value):
    variable = tf.Variable(0.0)
    with tf.control_dependencies([variable.assign(total + value)]):
      return variable.read_value()

  zero = computation(lambda: tf.constant(0.0))
  merge = computation(lambda a, b: a + b, np.float32, np.float32)
  report = computation(lambda total: total, np.float32)

  @tff.federated_computation(FLOATS)
  def total(numbers):
    return tff.federated_aggregate(numbers, zero(), accumulate, merge, report)

  assert total([1.0, 2.0, 3.0] * 7) == 42


def test_bad_options():
  for options, error, found in (
    ({'device': 'gpu:77'}, ValueError, r"out of \['cpu:0'.*, found 'gpu:77'"),
    ({'device': 'tpu'}, ValueError, "found 'tpu'"),
    ({'client_threads': 0}, ValueError, 'client_threads must .* found 0'),
    ({'client_threads': 1.5}, TypeError, 'client_threads must .* found'),
  ):
    with pytest.raises(error, match=found):
      runtime.create_execution_context('device', **options)
