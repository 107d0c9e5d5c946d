"""Aggregation by a server that sees every client's upload.

A rule that compares clients with each other is not a sum over clients. Its
server receives the uploads as the rows of one structure, with the client ids
among the weights, and computes the result from all of them.
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.tensors import client_table
from tff_fair.tensors import flat
from tff_fair.tensors import summable


class ServerOutput(NamedTuple):
  """The output of a server's round.

  Attributes:
    state: The new state.
    result: The aggregate, a structure like one client's value.
    measurements: OrderedDict of tensors.
  """

  state: Any
  result: Any
  measurements: collections.OrderedDict


def build_process(
  value_type: tff.Type,
  weight_type: tff.Type,
  initial_state: Callable[[], Any],
  server_round: Callable[[Any, Any], ServerOutput],
  prepare: Callable[[Any, Any], Any] | None = None,
) -> tff.templates.AggregationProcess:
  """Builds the process of a rule that is a function of all uploads.

  Args:
    value_type: Unplaced type of a client's value, tensors of known shape.
    weight_type: Unplaced type of a client's weight, tensors of known shape.
    initial_state: Returns the initial state, a structure of tensors.
    server_round: `(state, uploads) -> ServerOutput`, a pure function of
      tensors. The leading axis of `uploads` is the clients of the round, in no
      particular order.
    prepare: `(value, weight) -> upload`, a pure function of tensors that each
      client applies; None for `OrderedDict(value, weight)`.

  Returns:
    A weighted `tff.templates.AggregationProcess`.
  """

  @tff.tensorflow.computation(value_type, weight_type)
  def upload(value, weight):
    if prepare is None:
      return collections.OrderedDict(value=value, weight=weight)
    return prepare(value, weight)

  upload_type = upload.type_signature.result
  gather = client_table.build_gather(upload_type)

  @tff.tensorflow.computation
  def make_initial_state():
    return initial_state()

  @tff.tensorflow.computation(
    make_initial_state.type_signature.result,
    client_table.gathered_type(upload_type),
  )
  @tf.function(autograph=False)
  def run_server_round(state, uploads):
    return server_round(state, uploads)

  def initialize():
    return tff.federated_eval(make_initial_state, tff.SERVER)

  def next_fn(state, value, weight):
    uploads = gather(tff.federated_map(upload, (value, weight)))
    return tff.federated_map(run_server_round, (state, uploads))

  return factory.build_process(initialize, next_fn, value_type, weight_type)


def trainable_part(value: Any) -> Any:
  """The trainable part of `ModelWeights`; any other structure as it is."""
  if isinstance(value, tff.learning.models.ModelWeights):
    return value.trainable
  return value


def with_trainable_part(value: Any, trainable: Any) -> Any:
  """A value with another `trainable_part`, in the same structure."""
  if isinstance(value, tff.learning.models.ModelWeights):
    return tff.learning.models.ModelWeights(trainable, value.non_trainable)
  return trainable


def trainable_type(value_type: tff.Type) -> tff.Type:
  """The type of the `trainable_part` of values."""
  types = tff.types.structure_from_tensor_type_tree(lambda t: t, value_type)
  return tff.types.to_type(trainable_part(types))


def is_model_weights(value_type: tff.Type) -> bool:
  """Returns whether values are `ModelWeights`."""
  types = tff.types.structure_from_tensor_type_tree(lambda t: t, value_type)
  return isinstance(types, tff.learning.models.ModelWeights)


def summable_or_zeros(value: Any, weight: Any) -> collections.OrderedDict:
  """A client's upload for `build_process`, zeros unless it can be summed.

  It is `OrderedDict(value, weight, non_finite)`; `non_finite` is 1 if they are
  not `summable.is_summable`. Integers, such as the client id, are kept.
  """
  upload = collections.OrderedDict(value=value, weight=weight)
  usable = summable.is_summable(upload)
  return collections.OrderedDict(
    zeros_unless(usable, upload), non_finite=tf.cast(~usable, tf.int32)
  )


def counted_or_zeros(value: Any, weight: Any) -> collections.OrderedDict:
  """A client's upload by its number of examples, zeros unless it counts.

  It is `OrderedDict(value, weight, included, non_finite)`. A client counts if
  `num_examples` in its weight is positive, and all its numbers and the products
  of its value with that are `summable.is_summable`; `non_finite` is 1 if they
  are not. Integers are kept.
  """
  number = weight['num_examples']
  usable = summable.is_summable((value, weight))
  usable &= summable.is_summable(value, number)
  included = usable & (number > 0)
  return collections.OrderedDict(
    value=zeros_unless(included, value),
    weight=zeros_unless(included, weight),
    included=tf.cast(included, tf.int32),
    non_finite=tf.cast(~usable, tf.int32),
  )


class CountedUploads(NamedTuple):
  """How a server compares the weights of the clients that count.

  Attributes:
    check: `(value, weight) -> counted_or_zeros(value, weight)`, of a client.
    gather: From the results of `check` at the clients to the rows of what the
      server sees of them, placed at the server.
    rows_type: The type of these rows, for `counted_weights`.
  """

  check: tff.Computation
  gather: Callable[[Any], Any]
  rows_type: tff.Type


def build_counted_uploads(
  value_type: tff.Type, weight_type: tff.Type
) -> CountedUploads:
  """Builds the uploads of a rule that compares clients by their weights.

  Args:
    value_type: Unplaced type of a client's value.
    weight_type: Unplaced type of its weight, with `num_examples`.
  """

  @tff.tensorflow.computation(value_type, weight_type)
  def check(value, weight):
    return counted_or_zeros(value, weight)

  @tff.tensorflow.computation(check.type_signature.result)
  def compared(checked):
    return collections.OrderedDict(
      weight=checked['weight'], included=checked['included']
    )

  gather = client_table.build_gather(compared.type_signature.result)
  return CountedUploads(
    check,
    lambda checked: gather(tff.federated_map(compared, checked)),
    client_table.gathered_type(compared.type_signature.result),
  )


def counted_weights(rows: Any) -> Any:
  """The weights of the clients that count, of what `gather` gives."""
  counted = rows['included'] > 0
  return tf.nest.map_structure(
    lambda t: tf.boolean_mask(t, counted), rows['weight']
  )


def zeros_unless(usable: Any, structure: Any) -> Any:
  """A structure with zeros for all floats unless `usable`; integers stay."""

  def number_or_zero(tensor):
    if not tensor.dtype.is_floating:
      return tensor
    return tf.where(usable, tensor, tf.zeros_like(tensor))

  return tf.nest.map_structure(number_or_zero, structure)


def specs_and_size(value_type: tff.Type) -> tuple[Any, int]:
  """`TensorSpec`s of a value, and the size of its `trainable_part`, flat."""
  specs = tff.types.structure_from_tensor_type_tree(
    lambda t: tf.TensorSpec(t.shape, t.dtype), value_type
  )
  parts = tf.nest.flatten(trainable_part(specs))
  return specs, sum(spec.shape.num_elements() for spec in parts)


def flat_upload(value: Any, weight: Any) -> collections.OrderedDict:
  """A client's upload with its update as a row of a server's table.

  It is `OrderedDict(client_id, takes_part, non_finite, update, statistics)`,
  where `update` is the `trainable_part` as a vector. A client takes part if
  `accepted` in its weight is positive, and all its numbers are
  `summable.is_summable`.
  """
  statistics = []
  if isinstance(value, tff.learning.models.ModelWeights):
    statistics = value.non_trainable
  usable = summable.is_summable((value, weight))
  return collections.OrderedDict(
    client_id=weight['client_id'],
    takes_part=usable & (weight['accepted'] > 0),
    non_finite=~usable,
    update=flat.flatten(trainable_part(value)),
    statistics=statistics,
  )


def taking_part(uploads: Any, num_clients: int) -> collections.OrderedDict:
  """The rows of `flat_upload`s that take part; usually all, without a copy.

  At run time an id outside 0..num_clients-1 is an error.
  """
  with tf.control_dependencies(check_ids(uploads['client_id'], num_clients)):
    takes_part = tf.identity(uploads['takes_part'])

  def select(rows):
    return tf.boolean_mask(rows, takes_part)

  return tf.cond(
    tf.reduce_all(takes_part),
    lambda: tf.nest.map_structure(tf.identity, uploads),
    lambda: tf.nest.map_structure(select, uploads),
  )


def from_flat(update: Any, statistics: Any, specs: Any) -> Any:
  """A flat update and the statistics, if any, as a value like `specs`."""
  trainable = flat.unflatten(update, trainable_part(specs))
  if isinstance(specs, tff.learning.models.ModelWeights):
    return tff.learning.models.ModelWeights(trainable, statistics)
  return trainable


def by_client(uploads: Any, num_clients: int) -> Any:
  """The rows sorted by `client_id`, because runtimes gather in any order.

  At run time an id outside 0..num_clients-1 is an error.
  """
  ids = uploads['weight']['client_id']
  with tf.control_dependencies(check_ids(ids, num_clients)):
    return sort_rows(ids, uploads)


def sort_rows(ids: Any, rows: Any) -> Any:
  """Rows `[m, ...]` in the order of their ids `[m]`."""
  order = tf.argsort(ids)
  return tf.nest.map_structure(lambda t: tf.gather(t, order), rows)


def check_ids(ids: Any, num_clients: int) -> list[tf.Operation]:
  """Returns checks of ids at run time, for `tf.control_dependencies`.

  On a GPU wrong ones read zeros and write nothing.
  """
  check = tf.debugging.Assert(
    tf.reduce_all((ids >= 0) & (ids < num_clients)),
    [f'Client ids must lie in 0..{num_clients - 1}, found', ids],
    summarize=20,
  )
  return [] if check is None else [check]


def weighted_sum(value: Any, weights: Any, statistics_weights: Any) -> Any:
  """The sum of the rows `[m, ...]` of a value by weights `[m]`.

  `statistics_weights` are for the non-trainable part of `ModelWeights`.
  """

  def sum_rows(rows, factors):
    return tf.tensordot(tf.cast(factors, rows.dtype), rows, axes=1)

  if not isinstance(value, tff.learning.models.ModelWeights):
    return tf.nest.map_structure(lambda rows: sum_rows(rows, weights), value)
  return tff.learning.models.ModelWeights(
    [sum_rows(rows, weights) for rows in value.trainable],
    [sum_rows(rows, statistics_weights) for rows in value.non_trainable],
  )


def divide_by_sum(values: Any) -> tf.Tensor:
  """`values / sum(values)`, 0 if the sum is 0."""
  return tf.math.divide_no_nan(values, tf.reduce_sum(values))


def divide_by_max(values: Any) -> tf.Tensor:
  """`values / max(values)`, 0 if the maximum is 0."""
  return tf.math.divide_no_nan(values, tf.reduce_max(values))
