"""The order of a computation's steps, and which steps run together.

Between two aggregations, the steps at a client depend on no other client. They
form one stage: each client runs all of them in one call, and clients run in
parallel.
"""

from collections.abc import Mapping
import dataclasses

import tensorflow_federated as tff

from tff_fair.runtime.device import values

Block = tff.framework.ComputationBuildingBlock


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
  def outputs(self) -> tuple[str, ...]:
    """The names that it defines."""
    return (self.name,)


@dataclasses.dataclass(frozen=True)
class Stage:
  """Steps that each client runs independently.

  Attributes:
    steps: The steps in order; their values are placed at clients.
    inputs: Free names in the steps, with their types.
    outputs: The steps that are used outside the stage.
  """

  steps: tuple[Step, ...]
  inputs: Mapping[str, tff.Type]
  outputs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
  """The order of a block's steps.

  Attributes:
    items: Steps and stages in the order of execution.
    unused: For each item, the names that are not used after it.
  """

  items: tuple[Step | Stage, ...]
  unused: tuple[tuple[str, ...], ...]


def make_plan(block: tff.framework.Block) -> Plan:
  """Orders the steps of a block.

  Args:
    block: A block; each of its steps may use earlier ones.

  Returns:
    The plan. Steps keep their order, except that a stage comes after everything
    that its steps need, and before everything that needs the stage.
  """
  levels: dict[str, int] = {}  # How many stages come before.
  at_clients: set[str] = set()
  steps = []
  for name, part in block.locals:
    step = Step(name, part, free_references(part))
    known = [n for n in step.inputs if n in levels]
    # Values that are equal for all clients are computed once.
    if values.is_different_at_clients(part.type_signature):
      at_clients.add(name)
      levels[name] = max((levels[n] for n in known), default=0)
    else:
      levels[name] = max(
        (levels[n] + (n in at_clients) for n in known), default=0
      )
    steps.append(step)
  result = free_references(block.result)
  items: list[Step | Stage] = []
  for level in range(max(levels.values(), default=0) + 1):
    here = [s for s in steps if levels[s.name] == level]
    items.extend(s for s in here if s.name not in at_clients)
    together = [s for s in here if s.name in at_clients]
    stage = _make_stage(together, steps, result)
    if stage.outputs:
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


def _make_stage(steps, all_steps, result) -> Stage:
  names = [step.name for step in steps]
  inputs: dict[str, tff.Type] = {}
  for step in steps:
    inputs.update((n, t) for n, t in step.inputs.items() if n not in names)
  others = [step for step in all_steps if step.name not in names]
  mentioned = set(result).union(*(step.inputs for step in others))
  return Stage(
    tuple(steps), inputs, tuple(name for name in names if name in mentioned)
  )


def _find_unused(items, result):
  if any(
    isinstance(item, Step)
    and isinstance(item.block.type_signature, tff.FunctionType)
    for item in items
  ):
    # Any later step may call the function, which needs the names it uses.
    return tuple(() for _ in items)
  last = {name: i for i, item in enumerate(items) for name in item.outputs}
  for index, item in enumerate(items):
    last.update((n, index) for n in item.inputs if n in last)
  return tuple(
    tuple(n for n, i in last.items() if i == index and n not in result)
    for index in range(len(items))
  )
