import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.tensors import client_table

ModelWeights = tff.learning.models.ModelWeights


def _table():
  return collections.OrderedDict(
    a=np.array([1.0, 2.0, 3.0], np.float32),
    b=[np.array([[1, 1], [2, 2], [3, 3]], np.int32)],
  )


def test_build_table_repeats_the_row():
  row = collections.OrderedDict(a=np.float32(5), b=[np.array([1, 2])])
  table = client_table.build_table(row, 3)
  np.testing.assert_array_equal(table['a'], [5, 5, 5])
  np.testing.assert_array_equal(table['b'][0], [[1, 2]] * 3)


def test_read_row():
  row = client_table.read_row(_table(), 1)
  assert row['a'] == 2
  np.testing.assert_array_equal(row['b'][0], [2, 2])


def test_write_rows_in_the_order_of_the_ids_and_leaves_the_others():
  rows = collections.OrderedDict(
    a=np.array([30.0, 10.0], np.float32),
    b=[np.array([[30, 30], [10, 10]], np.int32)],
  )
  table = client_table.write_rows(_table(), np.array([2, 0], np.int32), rows)
  np.testing.assert_array_equal(table['a'], [10, 2, 30])
  np.testing.assert_array_equal(table['b'][0], [[10, 10], [2, 2], [30, 30]])


def test_write_no_rows():
  nothing = tf.nest.map_structure(lambda t: t[:0], _table())
  table = client_table.write_rows(_table(), np.zeros([0], np.int32), nothing)
  np.testing.assert_array_equal(table['a'], [1, 2, 3])


def test_a_client_twice_in_a_round_is_refused():
  rows = tf.nest.map_structure(lambda t: t[:2], _table())
  with pytest.raises(tf.errors.InvalidArgumentError, match='once a round'):
    client_table.write_rows(_table(), np.array([1, 1], np.int32), rows)


def _select(table_type):
  """`<table@SERVER, {id}@CLIENTS> -> {row}@CLIENTS`."""
  select = client_table.build_select(table_type)

  @tff.federated_computation(
    tff.FederatedType(table_type, tff.SERVER),
    tff.FederatedType(np.int32, tff.CLIENTS),
  )
  def rows_of(table, client_ids):
    return select(table, client_ids)

  return rows_of


@pytest.mark.usefixtures('default_runtime')
def test_each_client_gets_its_row():
  # As dictionaries and as attributes, in and not in the order of the names.
  table = collections.OrderedDict(
    model=ModelWeights(
      [np.arange(6, dtype=np.float32).reshape(3, 2)],
      [np.array([10, 20, 30], np.float32)],
    ),
    b=np.array([1, 2, 3]),
    a=np.array([4, 5, 6], np.int32),
  )
  table_type = tff.tensorflow.computation(
    lambda: tf.nest.map_structure(tf.constant, table)
  ).type_signature.result
  rows_of = _select(table_type)

  found = rows_of(table, [2, 0, 2])
  row_type = client_table.row_type(table_type)
  assert rows_of.type_signature.result.member == row_type
  for row, client_id in zip(found, [2, 0, 2], strict=True):
    assert isinstance(row['model'], ModelWeights)
    expected = client_table.read_row(table, client_id)
    tf.nest.map_structure(np.testing.assert_array_equal, row, expected)
  assert rows_of(table, []) == []


def test_no_table_has_no_rows():
  nothing = tff.types.to_type(())
  rows_of = _select(nothing)

  assert rows_of.type_signature.result.member == nothing
  assert client_table.row_type(nothing) == nothing


@pytest.mark.usefixtures('default_runtime')
def test_gather_keeps_structure_and_pairs_values_with_ids():
  value_type = tff.types.to_type(
    collections.OrderedDict(
      client_id=np.int32,
      model=ModelWeights([tff.TensorType(np.float32, [2])], []),
    )
  )
  gather = client_table.build_gather(value_type)

  @tff.federated_computation(tff.FederatedType(value_type, tff.CLIENTS))
  def gather_all(value):
    return gather(value)

  def value(i):
    model = ModelWeights([np.array([i, -i], np.float32)], [])
    return collections.OrderedDict(client_id=np.int32(i), model=model)

  rows = gather_all([value(i) for i in (4, 0, 7)])
  assert isinstance(rows['model'], ModelWeights)
  assert sorted(rows['client_id']) == [0, 4, 7]
  np.testing.assert_array_equal(
    rows['model'].trainable[0],
    np.stack([rows['client_id'], -rows['client_id']], axis=1),
  )
  assert gather_all([])['model'].trainable[0].shape == (0, 2)


def test_choose_rows():
  mask = np.array([True, False, True])
  others = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
  np.testing.assert_array_equal(
    client_table.choose_rows(mask, 10 * others, others),
    [[10, 10], [2, 2], [30, 30]],
  )
  single = np.array([7, 8], np.float32)
  np.testing.assert_array_equal(
    client_table.choose_rows(mask, single, others), [[7, 8], [2, 2], [7, 8]]
  )
