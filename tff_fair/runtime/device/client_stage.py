"""A stage of a plan as functions: of one client, and of clients' values."""

from collections.abc import Callable, Mapping, Sequence
import threading
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import plan
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values

# `(block, scope) -> value`, of a part of the computation, for one client.
Evaluate = Callable[[Any, Any], Any]


class ClientStage:
  """Runs the steps of a stage for one client, in one call if possible.

  Attributes:
    stage: The stage.
    aggregations: Its aggregations, in the order of `stage.aggregations`.
  """

  def __init__(self, stage: plan.Stage, evaluate: Evaluate) -> None:
    """Traces nothing yet."""
    self.stage = stage
    self._evaluate = evaluate
    self.aggregations = [
      StageAggregation(step, evaluate) for step in stage.aggregations
    ]
    self._input_types = {
      **stage.inputs,
      **{c.name: c.block.type_signature for c in stage.constants},
    }
    types = {step.name: step.block.type_signature for step in stage.steps}
    self._pack_results = [
      values.build_pack(value_type.member)
      for value_type in (
        *(types[name] for name in stage.outputs),
        *(a.value.type_signature for a in self.aggregations),
      )
    ]
    self._run: Callable[[Sequence[Any]], list[Any]] | None = None
    self._lock = threading.Lock()

  def columns(self, scope: Mapping[str, Any], num_clients: int) -> list[Any]:
    """Returns the inputs of the clients, see `values.columns`."""
    return [
      column
      for name, value_type in self._input_types.items()
      for column in values.columns(scope[name], value_type, num_clients)
    ]

  def __call__(self, leaves: Sequence[Any]) -> list[Any]:
    """Runs the stage for one client; several threads may do so in parallel.

    Takes its leaf of each column; returns its entry of each output and of each
    aggregation.
    """
    with self._lock:
      self._run = self._run or self._trace()
    results = iter(self._run(leaves))
    return [pack(results) for pack in self._pack_results]

  def _trace(self):
    packs = {n: values.build_pack(t) for n, t in self._input_types.items()}

    def run(leaves):
      leaves = iter(leaves)
      return self._take_steps({n: pack(leaves) for n, pack in packs.items()})

    if not self.stage.steps:  # A function would only hand values on.
      return lambda leaves: values.flatten(run(leaves))
    return tracing.Traced(run, self._input_types.values())

  def _take_steps(self, scope):
    """The results of one client."""
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

  def finish(
    self, totals: Mapping[aggregation.Span, Any], num_clients: int
  ) -> Any:
    """The result of the aggregation, of totals as in `merge_totals`."""
    if not num_clients:
      return self.report(self.zero)
    groups = (0, aggregation.num_groups(num_clients))
    return self.report(aggregation.merge_totals(self.merge, totals, groups))


class StageAggregation(aggregation.Aggregation):
  """An aggregation of clients' values that a stage makes.

  Attributes:
    name: Of the step.
    value: The expression of the clients' values.
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

  def functions(self, scope: Mapping[str, Any]) -> Functions:
    """Evaluates the other arguments."""
    return Functions(
      *(self._evaluate(block, scope) for block in self._functions)
    )


def _element(block, index):
  if isinstance(block, tff.framework.Struct):
    return block[index]
  return tff.framework.Selection(block, index=index)
