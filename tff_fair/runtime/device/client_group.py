"""A stage of a plan for a group of clients, in one call with a loop inside.

To call a function takes longer than to train a small client in it, and Python
makes one call at a time. A group is one call: its loop runs a client after the
other, and adds up their values as `aggregation` does. So the bits are those of
clients that are called one by one.
"""

from collections.abc import Callable, Iterator, Sequence
import enum
import itertools
import operator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values


class GroupResult(NamedTuple):
  """The results of a group of clients.

  Attributes:
    entries: For each client its entry of each output.
    totals: For each aggregation the total of the group, if it has sums.
    values: The leaves of what clients send to the aggregations, stacked, if the
      group has no sums.
  """

  entries: list[list[Any]]
  totals: list[Any]
  values: list[tf.Tensor]


def find_group(
  stage: client_stage.ClientStage, at_hand: tuple[bool, ...], sums: bool
) -> 'ClientGroup | None':
  """The stage for groups of clients; None if they must run one by one.

  Takes `at_hand` as in `client_stage.Columns`, and `sums` as `ClientGroup`.
  """
  key = at_hand, sums
  if key not in stage.groups:
    try:
      stage.groups[key] = ClientGroup(stage, at_hand, sums)
    except tracing.NotTraceableError:
      stage.groups[key] = None
  return stage.groups[key]


class ClientGroup:
  """Runs a stage for the clients of a group."""

  def __init__(
    self, stage: client_stage.ClientStage, at_hand: Sequence[bool], sums: bool
  ) -> None:
    """Traces nothing yet; `at_hand` is as in `client_stage.Columns`.

    With `sums` a group is one of those of `aggregation`, and adds up what it
    sends to the aggregations; otherwise it can be any clients.

    Raises:
      NotTraceableError: If the leaves of clients do not fit into one tensor, or
        if the stage has no steps.
    """
    if not stage.stage.steps:
      raise tracing.NotTraceableError
    self._stage = stage
    self._at_hand = at_hand
    self._inputs = [
      _Leaf(spec, _form(spec, part))
      for value_type, flag in zip(
        stage.input_types.values(), at_hand, strict=True
      )
      for part in values.parts(value_type)
      for spec in tracing.leaf_specs([part], [flag])
    ]
    num_outputs = len(stage.stage.outputs)
    output_types = stage.result_types[:num_outputs]
    self._outputs = _leaves(output_types)
    self._sums = sums
    self._is_summed = [sums and not a.is_gather for a in stage.aggregations]
    self._values = _leaves(
      [
        value_type
        for value_type, is_summed in zip(
          stage.result_types[num_outputs:], self._is_summed, strict=True
        )
        if not is_summed
      ]
    )
    if any(leaf.form is not _Form.STACKED for leaf in self._values):
      raise tracing.NotTraceableError
    self._pack_outputs = [values.build_pack(t) for t in output_types]
    self._total_specs = tracing.leaf_specs(
      [a.total_type for a in self._summed()]
    )
    self._run: Callable[..., list[tf.Tensor]] | None = None
    self._is_traceable = True

  def example_bytes(
    self, columns: Sequence[Any], num_clients: int
  ) -> list[int]:
    """The bytes of each client in leaves of unlike sizes, as its examples."""
    sizes = [
      map(_num_bytes, column)
      for leaf, column in zip(self._inputs, columns, strict=True)
      if leaf.form is _Form.CONCATENATED
    ]
    return [sum(own) for own in zip([0] * num_clients, *sizes, strict=True)]

  @property
  def value_specs(self) -> list[tf.TensorSpec]:
    """Of the leaves of one client in `GroupResult.values`."""
    return [leaf.spec for leaf in self._values]

  @property
  def num_value_bytes(self) -> int:
    """The bytes of one client in `GroupResult.values`."""
    return sum(s.shape.num_elements() * s.dtype.size for s in self.value_specs)

  def trace(self, functions: Sequence[client_stage.Functions]) -> bool:
    """Traces the function once; returns whether all its parts allow that.

    Takes the functions of each aggregation. They may be of another round than
    that of a call: all rounds have the same.
    """
    if self._run is None and self._is_traceable:
      try:
        self._run = self._trace(functions)
      except tracing.NotTraceableError:
        self._is_traceable = False
    return self._is_traceable

  def _summed(self) -> list[client_stage.StageAggregation]:
    """The aggregations whose values are added up here."""
    return [*itertools.compress(self._stage.aggregations, self._is_summed)]

  def _trace(self, functions):
    end = len(self._total_specs)

    def run(leaves):
      starts, *leaves = leaves
      return self._loop(functions, starts, leaves[:end], leaves[end:])

    return tracing.trace(
      run,
      [
        tf.TensorSpec([None, None], tf.int32),
        *self._total_specs,
        *(leaf.joined_spec for leaf in self._inputs),
      ],
    )

  def __call__(
    self, columns: Sequence[Any], totals: Sequence[Any], size: int
  ) -> GroupResult:
    """Runs the stage for `size` clients.

    Takes for each leaf an `AllEqual`, or a list of the clients'; and for each
    aggregation the total to which their values are added.
    """
    starts = [np.arange(size + 1)]
    leaves = []
    for leaf, column in zip(self._inputs, columns, strict=True):
      if leaf.form is _Form.CONCATENATED:
        starts.append(np.cumsum([0, *map(len, column)]))
      leaves.append(leaf.join(column))
    starts = np.array(starts, np.int32)
    totals = values.flatten([*itertools.compress(totals, self._is_summed)])
    results = iter(self._run(starts, *totals, *leaves))
    summed = iter([a.pack_total(results) for a in self._summed()])
    outputs = [leaf.take_apart(results, size) for leaf in self._outputs]
    entries = []
    for client in range(size):
      of_client = iter([column[client] for column in outputs])
      entries.append([pack(of_client) for pack in self._pack_outputs])
    if not self._sums:
      return GroupResult(entries, [], list(results))
    totals = [
      next(summed) if is_summed else aggregated.pack_total(results)
      for aggregated, is_summed in zip(
        self._stage.aggregations, self._is_summed, strict=True
      )
    ]
    return GroupResult(entries, totals, [])

  def _loop(self, functions, starts, totals, leaves):
    """Adds the clients to the totals, in their order; with their outputs."""
    pack_inputs = self._stage.build_pack_inputs(self._at_hand)
    size = tf.shape(starts)[1] - 1
    outputs = [*self._outputs, *self._values]
    arrays = [leaf.array(size) for leaf in outputs]

    def run_client(client, totals, arrays):
      own = self._leaves_of(client, starts, leaves)
      results = self._stage.take_steps(pack_inputs(own))
      kept = results[: len(self._pack_outputs)]
      sent = results[len(self._pack_outputs) :]
      kept += itertools.compress(sent, map(operator.not_, self._is_summed))
      totals = iter(totals)
      totals = [
        function.accumulate(
          (aggregation.keep_order(aggregated.pack_total(totals)), value)
        )
        for function, aggregated, value in zip(
          itertools.compress(functions, self._is_summed),
          self._summed(),
          itertools.compress(sent, self._is_summed),
          strict=True,
        )
      ]
      arrays = [
        array.write(client, leaf)
        for array, leaf in zip(arrays, values.flatten(kept), strict=True)
      ]
      return client + 1, values.flatten(totals), arrays

    _, totals, arrays = tf.while_loop(
      lambda client, *_: client < size,
      run_client,
      [tf.constant(0), [*totals], arrays],
      shape_invariants=[
        tf.TensorShape([]),
        [spec.shape for spec in self._total_specs],
        [tf.TensorShape(None)] * len(arrays),
      ],
      # In the order of the clients, and with the memory of one.
      parallel_iterations=1,
    )
    joined = [
      tensor
      for leaf, array in zip(outputs, arrays, strict=True)
      for tensor in leaf.join_array(array)
    ]
    return [*totals, *joined]

  def _leaves_of(self, client, starts, leaves) -> Iterator[tf.Tensor]:
    """Yields the leaves of one client."""
    row = 0
    for leaf, joined in zip(self._inputs, leaves, strict=True):
      if leaf.form is _Form.SHARED:
        yield joined
      elif leaf.form is _Form.STACKED:
        yield joined[client]
      else:
        row += 1
        own = joined[starts[row, client] : starts[row, client + 1]]
        yield tf.ensure_shape(own, leaf.spec.shape)


class _Form(enum.Enum):
  """How a function gets or returns the leaves of several clients."""

  SHARED = 'the same for all'
  STACKED = 'of one shape'
  CONCATENATED = 'of one shape but for the first axis'


class _Leaf(NamedTuple):
  """A leaf of a client, or of all."""

  spec: tf.TensorSpec
  form: _Form

  @property
  def joined_spec(self) -> tf.TensorSpec:
    """Of the tensor of several clients."""
    if self.form is _Form.STACKED:
      return tf.TensorSpec([None, *self.spec.shape], self.spec.dtype)
    return self.spec

  def join(self, column: Any) -> Any:
    """The tensor of several clients, or its array."""
    if self.form is _Form.SHARED:
      return column.value
    if self.form is _Form.CONCATENATED:
      join = np.concatenate if _are_arrays(column) else tf.concat
      return join(column, 0)
    return np.stack(column) if _are_arrays(column) else tf.stack(column)

  def array(self, size: tf.Tensor) -> tf.TensorArray:
    """Of the leaves that clients return."""
    return tf.TensorArray(
      self.spec.dtype, size, element_shape=self.spec.shape, infer_shape=False
    )

  def join_array(self, array: tf.TensorArray) -> list[tf.Tensor]:
    """The tensors that `take_apart` needs."""
    if self.form is _Form.STACKED:
      return [array.stack()]
    size = array.size()
    lengths = tf.map_fn(
      lambda i: tf.shape(array.read(i))[0],
      tf.range(size),
      fn_output_signature=tf.int32,
    )
    return [array.concat(), lengths]

  def take_apart(
    self, results: Iterator[tf.Tensor], size: int
  ) -> list[tf.Tensor]:
    """The clients' tensors, of the next of some results."""
    if self.form is _Form.STACKED:
      return tf.unstack(next(results), size)
    return tf.split(next(results), next(results), num=size)


def _leaves(types) -> list[_Leaf]:
  """Returns the leaves of values of these types."""
  return [_Leaf(spec, _form(spec)) for spec in tracing.leaf_specs(types)]


def _form(spec, value_type=None) -> _Form:
  """The form of a leaf, of which clients have their own if there is no type."""
  if value_type and not values.is_different_at_clients(value_type):
    return _Form.SHARED
  if spec.dtype == tf.variant or spec.shape.rank is None:
    raise tracing.NotTraceableError
  if spec.shape.is_fully_defined():
    return _Form.STACKED
  if spec.shape.rank and spec.shape[1:].is_fully_defined():
    return _Form.CONCATENATED
  raise tracing.NotTraceableError


def _num_bytes(leaf) -> int:
  if isinstance(leaf, np.ndarray):
    return leaf.nbytes
  return leaf.shape.num_elements() * leaf.dtype.size


def _are_arrays(column) -> bool:
  return all(isinstance(leaf, np.ndarray) for leaf in column)
