"""A computation, compiled by TFF and interpreted here.

TFF's compiler turns a computation into one flat list of named steps ("call
dominant form"): federated operators applied to TensorFlow blocks and to the
results of earlier steps. The tree is small; the arithmetic is in the blocks.
"""

import collections
from collections.abc import Callable, Iterable
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime import secure_sums
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import graph_function
from tff_fair.runtime.device import intrinsics
from tff_fair.runtime.device import plan
from tff_fair.runtime.device import values

Scope = collections.ChainMap  # Name -> value.
Block = tff.framework.ComputationBuildingBlock
# Applies a function to each entry, in parallel where possible.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Program:
  """A compiled computation, ready to run any number of times."""

  def __init__(
    self,
    computation: tff.framework.ConcreteComputation,
    device: str,
    map_clients: Map,
  ):
    """Compiles the computation.

    Args:
      computation: What to run.
      device: Name of the device that runs its TensorFlow blocks.
      map_clients: Runs the clients of a stage.

    Raises:
      NotImplementedError: If this runtime does not support a part of the
        computation; the message names it.
    """
    tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
      secure_sums.replace_secure_sums(computation).to_building_block()
    )
    self._root = tff.framework.to_call_dominant(tree)
    self._device = device
    self._map_clients = map_clients
    self._has_parameter = computation.type_signature.parameter is not None
    # All are keyed by the `id` of a part of `_root`.
    self._functions: dict[int, graph_function.GraphFunction] = {}
    self._operators: dict[int, intrinsics.Operator] = {}
    self._plans: dict[int, plan.Plan] = {}
    self._stages: dict[int, client_stage.ClientStage] = {}
    tff.framework.transform_postorder(self._root, self._prepare)

  def __call__(self, argument: Any, num_clients: int) -> Any:
    """Runs the computation.

    Args:
      argument: A value of the parameter's type; ignored without a parameter.
      num_clients: Size of the cohort.

    Returns:
      A value of the result's type.
    """
    function = self._evaluate(self._root, Scope(), num_clients)
    return function(argument) if self._has_parameter else function()

  def _prepare(self, block: Block) -> tuple[Block, bool]:
    """Prepares a part of the tree; raises an error if it is unknown."""
    match block:
      case tff.framework.CompiledComputation():
        self._functions[id(block)] = graph_function.GraphFunction(
          block, self._device
        )
      case tff.framework.Intrinsic():
        self._operators[id(block)] = intrinsics.build_operator(block)
      case tff.framework.Block():
        self._plans[id(block)] = plan.make_plan(block)
        for item in self._plans[id(block)].items:
          if isinstance(item, plan.Stage):
            take_steps = functools.partial(self._take_steps, item)
            self._stages[id(item)] = client_stage.ClientStage(item, take_steps)
      case tff.framework.Data():
        raise NotImplementedError(
          "The 'device' runtime does not support data descriptors, found"
          f' {block.compact_representation()}.'
        )
    return block, False

  def _evaluate(self, block: Block, scope: Scope, num_clients: int) -> Any:
    match block:
      case tff.framework.Reference():
        return scope[block.name]
      case tff.framework.Selection():
        source = self._evaluate(block.source, scope, num_clients)
        return source[block.as_index()]
      case tff.framework.Struct():
        return tuple(self._evaluate(part, scope, num_clients) for part in block)
      case tff.framework.Call():
        function = self._evaluate(block.function, scope, num_clients)
        if block.argument is None:
          return function()
        return function(self._evaluate(block.argument, scope, num_clients))
      case tff.framework.Lambda():
        return functools.partial(self._apply_lambda, block, scope, num_clients)
      case tff.framework.Block():
        return self._evaluate_steps(block, scope, num_clients)
      case tff.framework.Intrinsic():
        return functools.partial(self._operators[id(block)], num_clients)
      case tff.framework.CompiledComputation():
        return self._functions[id(block)]
      case tff.framework.Literal():
        return tf.constant(block.value, block.type_signature.dtype)
    raise NotImplementedError(
      f"The 'device' runtime does not support {type(block).__name__}."
    )

  def _apply_lambda(self, block, scope, num_clients, *argument):
    if argument:
      scope = scope.new_child({block.parameter_name: argument[0]})
    return self._evaluate(block.result, scope, num_clients)

  def _evaluate_steps(self, block, scope, num_clients):
    """Runs the plan; a value is dropped after its last use."""
    scope = scope.new_child()
    steps = self._plans[id(block)]
    for item, unused in zip(steps.items, steps.unused, strict=True):
      if isinstance(item, plan.Stage):
        scope.update(self._run_stage(item, scope, num_clients))
      else:
        scope[item.name] = self._evaluate(item.block, scope, num_clients)
      for name in unused:
        del scope[name]
    return self._evaluate(block.result, scope, num_clients)

  def _run_stage(self, stage, scope, num_clients):
    """Output -> its entries, one per client."""
    parts = [
      values.flatten_for_clients(scope[name], value_type, num_clients)
      for name, value_type in stage.inputs.items()
    ]
    leaves = [
      [leaf for part in parts for leaf in part[client]]
      for client in range(num_clients)
    ]
    run_client = self._stages[id(stage)]

    def run_on_device(client_leaves):
      with tf.device(self._device):  # Threads do not inherit the device.
        return run_client(client_leaves)

    results = list(self._map_clients(run_on_device, leaves))
    return {
      name: [result[i] for result in results]
      for i, name in enumerate(stage.outputs)
    }

  def _take_steps(self, stage, inputs):
    """Runs a stage for one client."""
    scope = Scope(dict(inputs))
    for step in stage.steps:
      scope[step.name] = self._evaluate(step.block, scope, num_clients=1)
    return [values.for_each_client(scope[n], 1)[0] for n in stage.outputs]
