"""The client table: state of clients, kept in the server's state.

TFF clients are stateless. If a method's clients have state, it is a row of a
table: a structure of tensors with a leading axis `num_clients`. In a round each
client gets the row that its id selects and returns a new one, and the rows are
gathered with their ids and written back. The table itself stays at the server.
So a checkpoint of the server's state is complete, and the rows of absent
clients cannot change.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

# The name scope in which `build_gather` appends a row, so that a runtime may
# put all rows together at once.
GATHERED = 'gathered_rows'


def build_table(row: Any, num_clients: int) -> Any:
  """A table with `num_clients` equal rows."""

  def repeat(value):
    value = tf.convert_to_tensor(value)
    return value + zeros([num_clients, *value.shape], value.dtype)

  return tf.nest.map_structure(repeat, row)


def zeros(shape: Any, dtype: tf.DType = tf.float32) -> tf.Tensor:
  """Zeros that a graph allocates at each run, for values as large as a table.

  TensorFlow folds `tf.zeros` into a constant of the graph, which would be a
  second table that is never freed.
  """
  return tf.raw_ops.Empty(shape=shape, dtype=dtype, init=True)


def read_row(table: Any, client_id: Any) -> Any:
  """The row of one client, or the rows of `client_id`s `[m]`."""
  return tf.nest.map_structure(lambda t: tf.gather(t, client_id), table)


def write_rows(table: Any, client_ids: Any, rows: Any) -> Any:
  """The table with the rows of the clients `[m]` replaced by `rows` `[m, ...]`.

  At run time an id that occurs twice is an error.
  """
  with tf.control_dependencies(check_distinct(client_ids)):
    indices = tf.identity(client_ids)[:, tf.newaxis]
  return tf.nest.map_structure(
    lambda t, r: tf.tensor_scatter_nd_update(t, indices, r), table, rows
  )


def check_distinct(client_ids: Any) -> list[tf.Operation]:
  """Returns checks for `tf.control_dependencies` that refuse a client twice."""
  distinct = tf.size(tf.unique(client_ids)[0])
  check = tf.debugging.Assert(
    tf.equal(distinct, tf.size(client_ids)),
    ['A client must take part once a round, found the ids', client_ids],
    summarize=20,
  )
  return [] if check is None else [check]


def choose_rows(mask: Any, rows: Any, others: Any) -> tf.Tensor:
  """`rows`, or a single row, where `mask` `[m]` is true, else `others`."""
  others = tf.convert_to_tensor(others)
  mask = tf.reshape(mask, [-1] + [1] * (others.shape.rank - 1))
  return tf.where(mask, rows, others)


def row_type(table_type: tff.Type) -> tff.Type:
  """The type of a table's row: `table_type` without its leading axis."""
  return tff.types.to_type(
    tff.types.structure_from_tensor_type_tree(
      lambda t: tff.TensorType(t.dtype, t.shape[1:]), table_type
    )
  )


def build_select(table_type: tff.Type) -> Callable[[Any, Any], Any]:
  """A federated selection: each client gets its own row of a table.

  Only the rows of the round's clients leave the server, unlike in a broadcast.
  The result is `<table@SERVER, {id}@CLIENTS> -> {row}@CLIENTS`, to be called in
  a `tff.federated_computation`; `<>` is no table.
  """
  sizes = tf.nest.flatten(
    tff.types.structure_from_tensor_type_tree(lambda t: t.shape[0], table_type)
  )
  if not sizes:
    return lambda table, client_ids: tff.federated_value((), tff.CLIENTS)
  row_structure = tff.types.structure_from_tensor_type_tree(
    lambda t: t.dtype, table_type
  )

  @tff.tensorflow.computation(np.int32)
  def to_keys(client_id):
    return client_id[tf.newaxis]

  @tff.tensorflow.computation(table_type, np.int32)
  def read(table, key):
    # Without names: data sets sort them, sequences of TFF do not.
    return tuple(tf.nest.flatten(read_row(table, key)))

  @tff.tensorflow.computation(tff.SequenceType(read.type_signature.result))
  def only_row(rows):
    return tf.nest.pack_sequence_as(row_structure, rows.get_single_element())

  def select(table, client_ids):
    keys = tff.federated_map(to_keys, client_ids)
    last_id = tff.federated_value(sizes[0] - 1, tff.SERVER)
    rows = tff.federated_select(keys, last_id, table, read)
    return tff.federated_map(only_row, rows)

  return select


def gathered_type(value_type: tff.Type) -> tff.Type:
  """The type of gathered values: `value_type` with a leading axis `None`."""
  return tff.types.to_type(
    tff.types.structure_from_tensor_type_tree(
      lambda t: tff.TensorType(t.dtype, [None, *t.shape]), value_type
    )
  )


def build_gather(value_type: tff.Type) -> Callable[[Any], Any]:
  """A federated gather: all clients' values as rows of one structure.

  `tff.federated_collect` was removed; an aggregation with a growing accumulator
  does the same on every runtime. The order of the rows depends on the runtime,
  so gather the ids in the same call. The result is `{value_type}@CLIENTS ->
  value_type[None, ...]@SERVER`, to be called in a `tff.federated_computation`.
  """
  rows_type = gathered_type(value_type)

  @tff.tensorflow.computation
  def zero():
    return tff.types.structure_from_tensor_type_tree(
      lambda t: tf.zeros([0, *t.shape], t.dtype), value_type
    )

  @tff.tensorflow.computation(rows_type, value_type)
  def accumulate(rows, value):
    with tf.name_scope(GATHERED):
      return tf.nest.map_structure(
        lambda r, v: tf.concat([r, v[tf.newaxis]], axis=0), rows, value
      )

  @tff.tensorflow.computation(rows_type, rows_type)
  def merge(rows, more_rows):
    return tf.nest.map_structure(
      lambda a, b: tf.concat([a, b], axis=0), rows, more_rows
    )

  @tff.tensorflow.computation(rows_type)
  def report(rows):
    return rows

  def gather(value):
    return tff.federated_aggregate(value, zero(), accumulate, merge, report)

  return gather
