"""A runtime as the context of federated programs."""

import asyncio
from concurrent import futures
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from tff_fair.runtime import execution


def create_federated_context(
  kind: str = 'device', **options: Any
) -> tff.program.FederatedContext:
  """A context for programs such as `tff.learning.programs.train_model`.

  Within a running event loop, a call of a computation returns references at
  once, and the computations run one after the other in a thread of their own,
  so that the program can save and release meanwhile. Anywhere else the context
  is like that of `set_execution_context`, whose place it takes by
  `tff.framework.set_default_context(context)`.

  Args:
    kind: See `set_execution_context`.
    **options: See `set_execution_context`.

  Returns:
    A `tff.program.FederatedContext`.

  Raises:
    ValueError: If `kind` is unknown, or an option out of range.
    TypeError: If an option is not one of that kind.
  """
  return _ProgramContext(execution.create_execution_context(kind, **options))


class _ProgramContext(tff.program.NativeFederatedContext):
  """TFF's context for programs, of clients of any structure."""

  def __init__(self, context: tff.framework.SyncContext):
    super().__init__(_ThreadContext(context))
    self._sync_context = context

  def invoke(self, comp, arg):
    """Executes `comp`; see `tff.program.FederatedContext`."""
    try:
      asyncio.get_running_loop()
    except RuntimeError:
      return self._sync_context.invoke(comp, arg)
    signature = comp.type_signature
    shown = tff.FunctionType(
      _without_clients(signature.parameter), signature.result
    )
    return super().invoke(_Call(comp, shown), arg)


class _Call(NamedTuple):
  """A computation, and the types by which TFF takes its argument apart."""

  computation: tff.Computation
  type_signature: tff.FunctionType


class _ThreadContext(tff.framework.AsyncContext):
  """Executes in one thread what is called from the event loop."""

  def __init__(self, context: tff.framework.SyncContext):
    self._context = context
    self._thread = futures.ThreadPoolExecutor(1, 'tff_fair_program')

  async def invoke(self, comp: _Call, arg: Any) -> Any:
    """Executes the computation of a call."""
    return await asyncio.get_running_loop().run_in_executor(
      self._thread, self._context.invoke, comp.computation, arg
    )


def _without_clients(type_spec: tff.Type | None) -> tff.Type | None:
  """The type, with a tensor in the place of what is placed at clients.

  TFF hands on what it takes for a tensor as it is. The clients of a structure
  it would take for the parts of one, and lose those that are too many.
  """
  if isinstance(type_spec, tff.StructType):
    return tff.StructType(
      [
        (name, _without_clients(part))
        for name, part in tff.structure.iter_elements(type_spec)
      ]
    )
  if (
    isinstance(type_spec, tff.FederatedType)
    and type_spec.placement is tff.CLIENTS
  ):
    return tff.TensorType(np.int32)
  return type_spec
