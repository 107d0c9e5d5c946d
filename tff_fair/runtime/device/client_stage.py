"""A stage of a plan as functions: of one client, and of clients' values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import threading
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import plan
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values
from tff_fair.tensors import client_table

# `(block, scope) -> value`, of a part of the computation, for one client.
Evaluate = Callable[[Any, Any], Any]


class Columns(NamedTuple):
  """The inputs of a stage.

  Attributes:
    leaves: For each leaf an `AllEqual`, or its values by client.
    at_hand: For each input whether its sequences are leaves of one element, see
      `values.flatten`.
  """

  leaves: Sequence[Any]
  at_hand: tuple[bool, ...]


class ClientStage:
  """Runs the steps of a stage for one client, in one call if possible.

  Attributes:
    stage: The stage.
    aggregations: Its aggregations, in the order of `stage.aggregations`.
    input_types: The types of its inputs, and of its constants, by name.
    groups: The arguments of `client_group.find_group` -> what it returns.
    joint_totals: Numbers of clients and parts -> what
      `joint_totals.find_totals` returns.
  """

  def __init__(self, stage: plan.Stage, evaluate: Evaluate) -> None:
    """Traces nothing yet."""
    self.stage = stage
    self._evaluate = evaluate
    self.aggregations = [
      StageAggregation(step, evaluate) for step in stage.aggregations
    ]
    self.input_types = {
      **stage.inputs,
      **{c.name: c.block.type_signature for c in stage.constants},
    }
    types = {step.name: step.block.type_signature for step in stage.steps}
    self.result_types = [
      value_type.member
      for value_type in (
        *(types[name] for name in stage.outputs),
        *(a.value.type_signature for a in self.aggregations),
      )
    ]
    self._pack_results = [values.build_pack(t) for t in self.result_types]
    # `Columns.at_hand` -> function.
    self._run: dict[tuple[bool, ...], Callable[[Any], list[Any]]] = {}
    self.groups: dict[tuple[tuple[bool, ...], bool], Any] = {}
    self.joint_totals: dict[tuple[int, int], Any] = {}
    self._lock = threading.Lock()

  def columns(self, scope: Mapping[str, Any], num_clients: int) -> Columns:
    """Returns the inputs of the clients."""
    at_hand = tuple(
      [values.is_at_hand(scope[name]) for name in self.input_types]
    )
    leaves = [
      column
      for (name, value_type), flag in zip(
        self.input_types.items(), at_hand, strict=True
      )
      for column in values.columns(scope[name], value_type, num_clients, flag)
    ]
    return Columns(leaves, at_hand)

  def __call__(
    self, leaves: Sequence[Any], at_hand: tuple[bool, ...] | None = None
  ) -> list[Any]:
    """Runs the stage for one client; several threads may do so in parallel.

    Takes its leaf of each column, and `Columns.at_hand`, None if no sequence
    is; returns its entry of each output and of each aggregation.
    """
    with self._lock:
      if at_hand not in self._run:
        self._run[at_hand] = self._trace(at_hand)
    results = iter(self._run[at_hand](leaves))
    return [pack(results) for pack in self._pack_results]

  def _trace(self, at_hand):
    pack_inputs = self.build_pack_inputs(at_hand)

    def run(leaves):
      return self.take_steps(pack_inputs(iter(leaves)))

    if not self.stage.steps:  # A function would only hand values on.
      return lambda leaves: values.flatten(run(leaves))
    return tracing.Traced(run, [*self.input_types.values()], at_hand)

  def build_pack_inputs(
    self, at_hand: Sequence[bool] | None
  ) -> Callable[[Iterator[Any]], dict[str, Any]]:
    """Builds what makes the inputs of one client of its leaves."""
    flags = at_hand or [False] * len(self.input_types)
    packs = {
      name: values.build_pack(value_type, flag)
      for (name, value_type), flag in zip(
        self.input_types.items(), flags, strict=True
      )
    }
    return lambda leaves: {name: pack(leaves) for name, pack in packs.items()}

  def take_steps(self, scope: dict[str, Any]) -> list[Any]:
    """The entries of one client, of its inputs; adds the steps to them."""
    for step in self.stage.steps:
      scope[step.name] = self._evaluate(step.block, scope)
    results = [
      *(scope[name] for name in self.stage.outputs),
      *(self._evaluate(a.value, scope) for a in self.aggregations),
    ]
    return [values.for_each_client(result, 1)[0] for result in results]


class Functions(NamedTuple):
  """The arguments of `federated_aggregate`, except for the clients' values."""

  zero: Any
  accumulate: aggregation.Function
  merge: aggregation.Function
  report: aggregation.Function


class StageAggregation(aggregation.Aggregation):
  """An aggregation of clients' values that a stage makes.

  Attributes:
    name: Of the step.
    value: The expression of the clients' values.
    is_gather: Whether it is a `client_table.build_gather`: the clients' values
      as rows, in their order. A runtime may put them together at once.
  """

  def __init__(self, step: plan.Step, evaluate: Evaluate) -> None:
    """Traces nothing yet."""
    argument = step.block.argument
    super().__init__(argument.type_signature)
    self.name = step.name
    self.value, *self._functions = [
      _element(argument, i) for i in range(len(argument.type_signature))
    ]
    self._evaluate = evaluate
    self.is_gather = _is_gather(self._functions[1])

  def functions(self, scope: Mapping[str, Any]) -> Functions:
    """Evaluates the other arguments."""
    return Functions(
      *(self._evaluate(block, scope) for block in self._functions)
    )

  def merge(
    self,
    function: aggregation.Function,
    totals: Mapping[aggregation.Span, Any],
    span: aggregation.Span,
  ) -> Any:
    """As any aggregation, but rows are copied once."""
    if not self.is_gather:
      return super().merge(function, totals, span)
    inside = [s for s in sorted(totals) if span[0] <= s[0] and s[1] <= span[1]]
    parts = zip(*[values.flatten(totals[s]) for s in inside], strict=True)
    return self.pack_total(iter([tf.concat(leaves, 0) for leaves in parts]))

  def merge_last(
    self,
    function: aggregation.Function,
    totals: dict[aggregation.Span, Any],
    end: int,
  ) -> None:
    """As any aggregation, but rows wait for all others."""
    if not self.is_gather:
      super().merge_last(function, totals, end)

  def result(
    self,
    functions: Functions,
    totals: Mapping[aggregation.Span, Any],
    num_clients: int,
  ) -> Any:
    """The result of the aggregation, of totals as in `merge`."""
    if not num_clients:
      return functions.report(functions.zero)
    groups = (0, aggregation.num_groups(num_clients))
    return functions.report(self.merge(functions.merge, totals, groups))


def _is_gather(accumulate) -> bool:
  """Returns whether a function is that of `client_table.build_gather`."""
  if isinstance(accumulate, tff.framework.CompiledComputation):
    graph_def = tf.compat.v1.GraphDef()
    accumulate.proto.tensorflow.graph_def.Unpack(graph_def)
    return any(
      client_table.GATHERED in node.name.split('/') for node in graph_def.node
    )
  return any(map(_is_gather, accumulate.children()))


def _element(block, index):
  if isinstance(block, tff.framework.Struct):
    return block[index]
  return tff.framework.Selection(block, index=index)
