"""The order of a computation's steps, and which steps run together.

Between two aggregations, the steps at a client depend on no other client. They
form one stage: each client runs all of them in one call, and clients run in
parallel. Where the clients ran, the stage also accumulates their values for the
aggregations.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
from typing import TypeAlias

import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime import type_sizes
from tff_fair.runtime.device import values

Block: TypeAlias = tff.framework.ComputationBuildingBlock
# To send so much to everyone costs less than to wait for the clients' keys.
_SMALL_BYTES = 2**16


@dataclasses.dataclass(frozen=True)
class Step:
  """One named step.

  Attributes:
    name: Its name.
    block: The expression of its value.
    inputs: Free names in `block`, with their types.
  """

  name: str
  block: Block
  inputs: Mapping[str, tff.Type]

  @property
  def names(self) -> tuple[str, ...]:
    """The names that it defines."""
    return (self.name,)


@dataclasses.dataclass(frozen=True)
class Stage:
  """Steps that each client runs independently, and what is made of them.

  Attributes:
    steps: The steps in order; their values are placed at clients.
    aggregations: Calls of `federated_aggregate` on values of clients.
    constants: Steps without inputs that the others need, in order.
    inputs: Other free names in steps and aggregations, with their types.
    outputs: The steps that are used outside the stage.
    fetched: The outputs that are used outside any stage.
  """

  steps: tuple[Step, ...]
  aggregations: tuple[Step, ...]
  constants: tuple[Step, ...]
  inputs: Mapping[str, tff.Type]
  outputs: tuple[str, ...]
  fetched: frozenset[str]

  @property
  def names(self) -> tuple[str, ...]:
    """The names that it defines."""
    return (*self.outputs, *(step.name for step in self.aggregations))


@dataclasses.dataclass(frozen=True)
class Plan:
  """The order of a block's steps.

  Attributes:
    items: Steps and stages in the order of execution.
    unused: For each item, the names that are not used after it.
  """

  items: tuple[Step | Stage, ...]
  unused: tuple[tuple[str, ...], ...]


def make_plan(
  block: tff.framework.Block, select_at_server: bool = False
) -> Plan:
  """Orders the steps of a block.

  Args:
    block: A block; each of its steps may use earlier ones.
    select_at_server: Whether a `federated_select` from a large value is a step
      of the server, so that clients need not have the value. Otherwise it is
      one of the client's steps.

  Returns:
    The plan. Steps keep their order, except that a stage comes after everything
    that its steps need, and before everything that needs the stage.
  """
  levels: dict[str, int] = {}  # How many stages come before.
  at_clients: set[str] = set()
  aggregations: set[str] = set()
  steps = []
  for name, part in block.locals:
    step = Step(name, part, free_references(part))
    if is_aggregation(part):
      aggregations.add(name)
    # Values that are equal for all clients are computed once.
    elif values.is_different_at_clients(part.type_signature) and not (
      select_at_server and _is_large_select(part)
    ):
      at_clients.add(name)
    # A stage has the values of its own steps, but not of its aggregations.
    of_stage = name in at_clients or name in aggregations
    later = aggregations if of_stage else aggregations | at_clients
    levels[name] = max(
      (levels[n] + (n in later) for n in step.inputs if n in levels), default=0
    )
    steps.append(step)
  result = free_references(block.result)
  constants = _find_constants(steps, at_clients)
  in_stages = at_clients | aggregations
  items: list[Step | Stage] = []
  for level in range(max(levels.values(), default=0) + 1):
    here = [s for s in steps if levels[s.name] == level]
    items.extend(s for s in here if s.name not in in_stages)
    stage = _make_stage(
      [s for s in here if s.name in at_clients],
      [s for s in here if s.name in aggregations],
      constants,
      steps,
      in_stages,
      result,
    )
    if stage.names:
      items.append(stage)
  return Plan(tuple(items), _find_unused(items, result))


def free_references(block: Block) -> dict[str, tff.Type]:
  """The free names of a block, with their types."""
  match block:
    case tff.framework.Reference():
      return {block.name: block.type_signature}
    case tff.framework.Lambda():
      found = free_references(block.result)
      found.pop(block.parameter_name, None)
    case tff.framework.Block():
      found = free_references(block.result)
      for name, part in reversed(block.locals):
        found.pop(name, None)
        found.update(free_references(part))
    case _:
      found = {}
      for child in block.children():
        found.update(free_references(child))
  return found


def is_aggregation(block: Block) -> bool:
  """Returns whether a block aggregates values that differ at clients."""
  return _is_call(
    block, tff.framework.FEDERATED_AGGREGATE.uri
  ) and values.is_different_at_clients(block.argument.type_signature[0])


def split_parameter(function: tff.framework.Lambda) -> tff.framework.Lambda:
  """Gives the parts of a structure that is the parameter names of their own.

  A stage that needs the clients' data then has not the whole argument as its
  input, with the state of the server.

  Args:
    function: A function of a structure.

  Returns:
    The function, with references to `part_name(parameter, i)` in place of
    selections from the parameter.
  """
  parameter = function.parameter_name

  def replace(block):
    if (
      isinstance(block, tff.framework.Selection)
      and isinstance(block.source, tff.framework.Reference)
      and block.source.name == parameter
    ):
      name = part_name(parameter, block.as_index())
      return tff.framework.Reference(name, block.type_signature), True
    return block, False

  body, _ = tff.framework.transform_postorder(function.result, replace)
  return tff.framework.Lambda(parameter, function.parameter_type, body)


def part_name(parameter: str, index: int) -> str:
  """The name of a part of the parameter; no step can have it."""
  return f'{parameter}[{index}]'


def _is_call(block: Block, uri: str) -> bool:
  return (
    isinstance(block, tff.framework.Call)
    and isinstance(block.function, tff.framework.Intrinsic)
    and block.function.uri == uri
  )


def _is_large_select(block: Block) -> bool:
  """Returns whether a block selects from a value that is costly to send."""
  if not _is_call(block, internals.FEDERATED_SELECT):
    return False
  size = type_sizes.num_bytes(block.argument.type_signature[2])
  return size is None or size > _SMALL_BYTES


def _find_constants(
  steps: Iterable[Step], at_clients: Collection[str]
) -> dict[str, Step]:
  """The cheap steps without inputs, or with inputs that are such steps."""
  constants: dict[str, Step] = {}
  for step in steps:
    # An aggregation of a constant takes a step for each client.
    dear = _is_call(step.block, tff.framework.FEDERATED_AGGREGATE.uri)
    if not (
      dear or step.name in at_clients or set(step.inputs) - set(constants)
    ):
      constants[step.name] = step
  return constants


def _make_stage(
  steps, aggregations, constants, all_steps, in_stages, result
) -> Stage:
  inside = [*steps, *aggregations]
  names = [step.name for step in inside]
  needed: dict[str, tff.Type] = {}
  for step in inside:
    needed.update((n, t) for n, t in step.inputs.items() if n not in names)
  needed_constants: set[str] = set()
  for name, step in reversed(constants.items()):
    if name in needed or name in needed_constants:
      needed_constants.add(name)
      needed_constants.update(step.inputs)
  elsewhere = [step for step in all_steps if step.name not in names]
  at_server = [step for step in elsewhere if step.name not in in_stages]
  fetched = set(result).union(*(step.inputs for step in at_server))
  mentioned = fetched.union(*(step.inputs for step in elsewhere))
  return Stage(
    tuple(steps),
    tuple(aggregations),
    tuple(constants[n] for n in constants if n in needed_constants),
    {n: t for n, t in needed.items() if n not in constants},
    tuple(step.name for step in steps if step.name in mentioned),
    frozenset(step.name for step in steps if step.name in fetched),
  )


def _find_unused(items, result):
  if any(
    isinstance(item, Step)
    and isinstance(item.block.type_signature, tff.FunctionType)
    for item in items
  ):
    # Any later step may call the function, which needs the names it uses.
    return tuple(() for _ in items)
  last = {name: i for i, item in enumerate(items) for name in item.names}
  for index, item in enumerate(items):
    last.update((n, index) for n in _needed(item) if n in last)
  return tuple(
    tuple(n for n, i in last.items() if i == index and n not in result)
    for index in range(len(items))
  )


def _needed(item: Step | Stage) -> list[str]:
  if isinstance(item, Step):
    return list(item.inputs)
  return [*item.inputs, *(step.name for step in item.constants)]
