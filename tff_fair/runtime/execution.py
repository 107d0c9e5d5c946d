"""Chooses where TFF computations run."""

from collections.abc import Callable
from typing import Any, Literal

import tensorflow_federated as tff

from tff_fair.runtime import cluster
from tff_fair.runtime import device
from tff_fair.runtime import native

Kind = Literal['device', 'native', 'cluster']
# Kind -> function that makes the context from the keyword arguments.
_CONTEXTS: dict[str, Callable[..., tff.framework.SyncContext]] = {
  'device': device.create_device_context,
  'native': native.create_native_context,
  'cluster': cluster.create_cluster_context,
}

RUNTIME_KINDS = tuple(_CONTEXTS)
"""The kinds of runtimes: 'device', 'native', 'cluster'."""


def set_execution_context(kind: Kind = 'device', **options: Any) -> None:
  """Makes a runtime execute every TFF computation from now on.

  Args:
    kind: 'device' runs in this process, on its CPU or its GPUs. 'native' is
      TFF's C++ worker in a second process, which ends when this process ends,
      however that happens, and when another context is set. 'cluster' runs
      clients on workers of Ray, on this machine or on many.
    **options: Arguments of that kind of runtime: for 'device', `device`
      ('auto', 'cpu', 'gpu:0', 'all', ...) and `client_threads`; for 'native',
      none; for 'cluster', `num_workers`, `cpus_per_worker`, `gpus_per_worker`,
      `address` and `timeout`, see `cluster.create_cluster_context`.

  Raises:
    ValueError: If `kind` is unknown, or an option out of range.
    TypeError: If an option is not one of that kind.
    ImportError: If `kind` is 'cluster' and Ray is not installed.
    WorkerError: If Ray cannot start, be reached, or give the workers asked.
  """
  context = create_execution_context(kind, **options)
  native.stop_workers()
  tff.framework.set_default_context(context)


def create_execution_context(
  kind: Kind = 'device', **options: Any
) -> tff.framework.SyncContext:
  """A context for `tff.framework.get_context_stack().install(...)`.

  Args:
    kind: See `set_execution_context`.
    **options: See `set_execution_context`.

  Returns:
    The context, not installed yet. Several contexts may be used in turn.

  Raises:
    ValueError: If `kind` is unknown, or an option out of range.
    TypeError: If an option is not one of that kind.
    ImportError: If `kind` is 'cluster' and Ray is not installed.
    WorkerError: If Ray cannot start, be reached, or give the workers asked.
  """
  if kind not in _CONTEXTS:
    raise ValueError(
      f'The runtime must be one of {RUNTIME_KINDS}, found {kind!r}.'
    )
  return _CONTEXTS[kind](**options)
