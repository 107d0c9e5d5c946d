"""A computation, compiled by TFF and interpreted here.

TFF's compiler turns a computation into one flat list of named steps ("call
dominant form"): federated operators applied to TensorFlow blocks and to the
results of earlier steps. The tree is small; the arithmetic is in the blocks.
"""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime import secure_sums
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import graph_function
from tff_fair.runtime.device import intrinsics
from tff_fair.runtime.device import plan

Scope = collections.ChainMap  # Name -> value.
Block: TypeAlias = tff.framework.ComputationBuildingBlock


class Cohort(NamedTuple):
  """The clients of one execution.

  Attributes:
    size: Their number.
    run_stage: `(stage, scope, size) -> values by name`, runs a stage for them,
      see `LocalClients.run_stage`.
  """

  size: int
  run_stage: (
    Callable[[client_stage.ClientStage, Scope, int], dict[str, Any]] | None
  ) = None


# As which a client runs its own steps, none of which is a stage.
_ALONE = Cohort(1)


def compile_computation(
  computation: tff.framework.ConcreteComputation,
) -> Block:
  """Turns a computation into a tree that a `Program` can run.

  Compiling the same computation again gives other names to its steps.
  """
  tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    secure_sums.replace_secure_sums(computation).to_building_block()
  )
  return tff.framework.to_call_dominant(tree)


class Program:
  """A compiled computation, ready to run any number of times.

  Attributes:
    stages: The stages of clients, in the order in which they run.
  """

  def __init__(self, tree: Block, select_at_server: bool = False) -> None:
    """Plans the computation.

    Raises:
      NotImplementedError: If this runtime does not support a part of the
        computation; the message names it.
    """
    self._has_parameter = tree.type_signature.parameter is not None
    self._parts = []
    if isinstance(tree, tff.framework.Lambda) and isinstance(
      tree.parameter_type, tff.StructType
    ):
      tree = plan.split_parameter(tree)
      self._parts = [
        plan.part_name(tree.parameter_name, i)
        for i in range(len(tree.parameter_type))
      ]
    self._root = tree
    self._select_at_server = select_at_server
    # All are keyed by the `id` of a part of `_root`.
    self._functions: dict[int, graph_function.GraphFunction] = {}
    self._operators: dict[int, intrinsics.Operator] = {}
    self._plans: dict[int, plan.Plan] = {}
    self._stages: dict[int, client_stage.ClientStage] = {}
    tff.framework.transform_postorder(self._root, self._prepare)
    self.stages = tuple(self._stages.values())

  def __call__(self, argument: Any, cohort: Cohort) -> Any:
    """Runs the computation."""
    scope = Scope()
    if self._parts:
      scope.update(zip(self._parts, argument, strict=True))
    function = self._evaluate(self._root, scope, cohort)
    return function(argument) if self._has_parameter else function()

  def evaluate_at_client(self, block: Block, scope: Mapping[str, Any]) -> Any:
    """Evaluates a part of a stage, for a single client."""
    return self._evaluate(block, Scope(scope), _ALONE)

  def _prepare(self, block: Block) -> tuple[Block, bool]:
    """Prepares a part of the tree; raises an error if it is unknown."""
    match block:
      case tff.framework.CompiledComputation():
        self._functions[id(block)] = graph_function.GraphFunction(block)
      case tff.framework.Intrinsic():
        self._operators[id(block)] = intrinsics.build_operator(block)
      case tff.framework.Block():
        made = plan.make_plan(block, self._select_at_server)
        self._plans[id(block)] = made
        for item in made.items:
          if isinstance(item, plan.Stage):
            self._stages[id(item)] = client_stage.ClientStage(
              item, self.evaluate_at_client
            )
      case tff.framework.Data():
        raise NotImplementedError(
          "The 'device' runtime does not support data descriptors, found"
          f' {block.compact_representation()}.'
        )
    return block, False

  def _evaluate(self, block: Block, scope: Scope, cohort: Cohort) -> Any:
    match block:
      case tff.framework.Reference():
        return scope[block.name]
      case tff.framework.Selection():
        source = self._evaluate(block.source, scope, cohort)
        return source[block.as_index()]
      case tff.framework.Struct():
        return tuple(self._evaluate(part, scope, cohort) for part in block)
      case tff.framework.Call():
        function = self._evaluate(block.function, scope, cohort)
        if block.argument is None:
          return function()
        return function(self._evaluate(block.argument, scope, cohort))
      case tff.framework.Lambda():
        return functools.partial(self._apply_lambda, block, scope, cohort)
      case tff.framework.Block():
        return self._evaluate_steps(block, scope, cohort)
      case tff.framework.Intrinsic():
        return functools.partial(self._operators[id(block)], cohort.size)
      case tff.framework.CompiledComputation():
        return self._functions[id(block)]
      case tff.framework.Literal():
        return tf.constant(block.value, block.type_signature.dtype)
    raise NotImplementedError(
      f"The 'device' runtime does not support {type(block).__name__}."
    )

  def _apply_lambda(self, block, scope, cohort, *argument):
    if argument:
      scope = scope.new_child({block.parameter_name: argument[0]})
    return self._evaluate(block.result, scope, cohort)

  def _evaluate_steps(self, block, scope, cohort):
    """Runs the plan; a value is dropped after its last use."""
    scope = scope.new_child()
    steps = self._plans[id(block)]
    for item, unused in zip(steps.items, steps.unused, strict=True):
      if isinstance(item, plan.Stage):
        stage = self._stages[id(item)]
        scope.update(cohort.run_stage(stage, scope, cohort.size))
      else:
        scope[item.name] = self._evaluate(item.block, scope, cohort)
      for name in unused:
        del scope[name]
    return self._evaluate(block.result, scope, cohort)
