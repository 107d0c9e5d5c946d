"""A runtime as the context of federated programs."""

import asyncio
from concurrent import futures
from typing import Any

import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime import execution


def create_federated_context(
  kind: execution.Kind = 'device', **options: Any
) -> tff.program.FederatedContext:
  """A context for programs such as `tff.learning.programs.train_model`.

  Within a running event loop, calling a computation returns references
  immediately. The computations run one after the other in a separate thread, so
  that the program can save and release values in the meantime. Outside an event
  loop the context behaves like that of `set_execution_context`. Install it with
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
  """TFF's program context, for clients' values of any structure."""

  def __init__(self, context: tff.framework.SyncContext) -> None:
    super().__init__(_ThreadContext(context))
    self._sync_context = context

  def invoke(self, comp, arg):
    """Executes `comp`; see `tff.program.FederatedContext`."""
    try:
      asyncio.get_running_loop()
    except RuntimeError:
      return self._sync_context.invoke(comp, arg)
    return super().invoke(internals.hide_clients(comp), arg)


class _ThreadContext(tff.framework.AsyncContext):
  """Executes calls from the event loop in one thread."""

  def __init__(self, context: tff.framework.SyncContext) -> None:
    self._context = context
    self._thread = futures.ThreadPoolExecutor(1, 'tff_fair_program')

  async def invoke(self, comp: internals.CallView, arg: Any) -> Any:
    """Executes the computation of `comp`."""
    return await asyncio.get_running_loop().run_in_executor(
      self._thread, self._context.invoke, comp.computation, arg
    )
