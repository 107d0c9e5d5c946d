"""An executor whose worker keeps large values at the server between executions.

A process returns its state and gets it back in the next round. To serialise and
send it takes seconds if it is large, as with a client table.
"""

from typing import Any
import weakref

import numpy as np
import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime import type_sizes

# To fetch a smaller value separately costs more than to send it again.
_MIN_BYTES = 2**17
# A process needs its last state. A caller that collects old ones does not need
# them in the worker.
_MAX_KEPT = 2


class KeepingExecutor(tff.framework.RemoteExecutor):
  """Does not send a value at the server that it fetched and that is unchanged.

  The worker keeps the last such values, and none longer than the caller holds
  its largest array. Fetched arrays are read-only, so they cannot differ.
  """

  def __init__(self, stub: tff.framework.RemoteExecutorGrpcStub) -> None:
    """Keeps nothing yet."""
    # What is no longer needed is deleted at once, since it may be large.
    super().__init__(stub, dispose_batch_size=1)
    # `id` of a value's largest array -> its other leaves, and its reference.
    self._kept: dict[int, tuple[list[Any], Any]] = {}

  def close(self) -> None:
    """Deletes all values in the worker."""
    self._kept.clear()
    super().close()

  async def create_value(self, value: Any, type_spec: Any = None) -> Any:
    """Sends a value, unless the worker has it."""
    reference = None
    if _is_large_at_server(type_spec):
      reference = self._find(value, type_spec)
    if reference is None:
      reference = await super().create_value(value, type_spec)
    return reference

  async def create_call(self, comp: Any, arg: Any = None) -> Any:
    """Calls a function in the worker."""
    return _Result(self, await super().create_call(comp, arg))

  async def fetch(self, reference: Any) -> Any:
    """Fetches a value; the worker keeps what is large and at the server."""
    value_type = reference.type_signature
    if isinstance(value_type, tff.StructType) and any(
      map(_is_large_at_server, value_type)
    ):
      elements = tff.structure.to_elements(value_type)
      return tff.structure.Struct(
        [
          (name, await self.fetch(await self.create_selection(reference, i)))
          for i, (name, _) in enumerate(elements)
        ]
      )
    value = await reference.compute()
    if _is_large_at_server(value_type):
      self._keep(value, value_type, reference)
    return value

  def _keep(self, value, value_type, reference):
    array, others = _largest_array(_leaves(value, value_type.member))
    if array is None or array.flags.writeable:
      return
    if any(isinstance(o, np.ndarray) and o.flags.writeable for o in others):
      return
    self._kept[id(array)] = others, reference
    weakref.finalize(array, self._kept.pop, id(array), None)
    while len(self._kept) > _MAX_KEPT:
      self._kept.pop(next(iter(self._kept)))

  def _find(self, value, value_type):
    """The reference to a value that the worker keeps, or None."""
    array, others = _largest_array(_leaves(value, value_type.member))
    known, reference = self._kept.get(id(array), ([], None))
    if [*map(id, known)] != [*map(id, others)] or reference is None:
      return None
    if not value_type.is_assignable_from(reference.type_signature):
      return None
    return reference


class _Result(internals.ExecutorValue):
  """The result of a call; `KeepingExecutor.fetch` fetches it."""

  def __init__(self, executor, reference) -> None:
    self._executor = executor
    self._reference = reference

  @property
  def type_signature(self):
    return self._reference.type_signature

  @property
  def reference(self):
    return self._reference.reference

  async def compute(self):
    return await self._executor.fetch(self._reference)


def _is_large_at_server(value_type) -> bool:
  """Returns whether values of a type are at the server and worth keeping."""
  return (
    isinstance(value_type, tff.FederatedType)
    and value_type.placement is tff.SERVER
    and (type_sizes.num_bytes(value_type) or 0) >= _MIN_BYTES
  )


def _leaves(value, value_type) -> list[Any]:
  """The parts of a value that are not structures, in the order of its type."""
  if not isinstance(value_type, tff.StructType):
    return [value]
  parts = tff.structure.from_container(value, recursive=False)
  return [
    leaf
    for part, part_type in zip(parts, value_type, strict=False)
    for leaf in _leaves(part, part_type)
  ]


def _largest_array(leaves) -> tuple[np.ndarray | None, list[Any]]:
  """The first of the largest arrays, or None, and all other leaves."""
  sizes = [x.nbytes if isinstance(x, np.ndarray) else 0 for x in leaves]
  if not any(sizes):
    return None, leaves
  index = sizes.index(max(sizes))
  return leaves[index], leaves[:index] + leaves[index + 1 :]
