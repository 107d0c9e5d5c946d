"""A computation, compiled by TFF and interpreted here.

TFF's compiler turns a computation into one flat list of named steps ("call
dominant form"): federated operators applied to TensorFlow blocks and to the
results of earlier steps. The tree is small; the work is in the blocks.
"""

import collections
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import graph_function
from tff_fair.runtime.device import intrinsics

Scope = collections.ChainMap  # Name -> value.
Block = tff.framework.ComputationBuildingBlock


class Program:
  """A compiled computation, ready to run any number of times."""

  def __init__(
    self, computation: tff.framework.ConcreteComputation, device: str
  ):
    """Compiles the computation.

    Args:
      computation: What to run.
      device: Name of the device that runs its TensorFlow blocks.

    Raises:
      NotImplementedError: If the computation has a part that this runtime does
        not support; the message names it.
    """
    tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
      computation.to_building_block()
    )
    self._root = tff.framework.to_call_dominant(tree)
    self._device = device
    self._has_parameter = computation.type_signature.parameter is not None
    self._functions: dict[int, graph_function.GraphFunction] = {}
    self._last_uses: dict[int, list[list[str]]] = {}
    tff.framework.transform_postorder(self._root, self._prepare)

  def __call__(self, run: intrinsics.Run, argument: Any) -> Any:
    """Runs the computation.

    Args:
      run: Knows the number of clients and maps functions over them.
      argument: A value of the parameter's type; ignored without a parameter.

    Returns:
      A value of the result's type.
    """
    function = self._evaluate(self._root, Scope(), run)
    return function(argument) if self._has_parameter else function()

  def _prepare(self, block: Block) -> tuple[Block, bool]:
    """Does what is to be done once for a part, and refuses what is unknown."""
    match block:
      case tff.framework.CompiledComputation():
        self._functions[id(block)] = graph_function.GraphFunction(
          block, self._device
        )
      case tff.framework.Intrinsic():
        intrinsics.find_intrinsic(block.uri)
      case tff.framework.Block():
        self._last_uses[id(block)] = _last_uses(block)
      case tff.framework.Data():
        raise NotImplementedError(
          "The 'device' runtime does not support data descriptors, found"
          f' {block.compact_representation()}.'
        )
    return block, False

  def _evaluate(self, block: Block, scope: Scope, run: intrinsics.Run) -> Any:
    match block:
      case tff.framework.Reference():
        return scope[block.name]
      case tff.framework.Selection():
        source = self._evaluate(block.source, scope, run)
        return source[block.as_index()]
      case tff.framework.Struct():
        return tff.structure.Struct(
          (name, self._evaluate(part, scope, run))
          for name, part in tff.structure.iter_elements(block)
        )
      case tff.framework.Call():
        function = self._evaluate(block.function, scope, run)
        if block.argument is None:
          return function()
        return function(self._evaluate(block.argument, scope, run))
      case tff.framework.Lambda():
        return functools.partial(self._apply_lambda, block, scope, run)
      case tff.framework.Block():
        return self._evaluate_steps(block, scope, run)
      case tff.framework.Intrinsic():
        return functools.partial(intrinsics.find_intrinsic(block.uri), run)
      case tff.framework.CompiledComputation():
        return self._functions[id(block)]
      case tff.framework.Literal():
        return tf.constant(block.value, block.type_signature.dtype)
    raise NotImplementedError(
      f"The 'device' runtime does not support {type(block).__name__}."
    )

  def _apply_lambda(self, block, scope, run, *argument):
    if argument:
      scope = scope.new_child({block.parameter_name: argument[0]})
    return self._evaluate(block.result, scope, run)

  def _evaluate_steps(self, block, scope, run):
    """The steps in order; a value is dropped after its last use."""
    scope = scope.new_child()
    for (name, step), unused in zip(
      block.locals, self._last_uses[id(block)], strict=True
    ):
      scope[name] = self._evaluate(step, scope, run)
      for dead in unused:
        del scope[dead]
    return self._evaluate(block.result, scope, run)


def _last_uses(block: tff.framework.Block) -> list[list[str]]:
  """For each step, the names that no later part of the block mentions."""
  names = [name for name, _ in block.locals]
  last = {name: index for index, name in enumerate(names)}

  def visit_step(index):
    def visit(part):
      if isinstance(part, tff.framework.Reference) and part.name in last:
        last[part.name] = index
      return part, False

    return visit

  parts = [step for _, step in block.locals] + [block.result]
  for index, part in enumerate(parts):
    tff.framework.transform_postorder(part, visit_step(index))
    if isinstance(part.type_signature, tff.FunctionType):
      # A function may be called, and need what it mentions, at any later step.
      return [[] for _ in names]
  return [
    [name for name in names if last[name] == index]
    for index in range(len(names))
  ]
