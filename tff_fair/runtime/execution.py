"""Chooses where TFF computations run."""

from collections.abc import Callable
from typing import Any

import tensorflow_federated as tff

from tff_fair.runtime import native

# Kind -> function that makes the context from the keyword arguments.
_CONTEXTS: dict[str, Callable[..., Any]] = {
  'native': native.create_native_context,
}

RUNTIME_KINDS = tuple(_CONTEXTS)


def set_execution_context(kind: str = 'native', **options: Any) -> None:
  """Makes a runtime the one that executes every TFF computation from now on.

  Args:
    kind: 'native', TFF's own C++ worker, as a process beside this one. It ends
      when this process ends, in whatever way, and when another context is set.
    **options: Arguments of that kind of runtime; 'native' has none.

  Raises:
    ValueError: If `kind` is unknown.
    TypeError: If an option is not one of that kind.
  """
  if kind not in _CONTEXTS:
    raise ValueError(
      f'The runtime must be one of {RUNTIME_KINDS}, found {kind!r}.'
    )
  native.stop_workers()
  tff.framework.set_default_context(_CONTEXTS[kind](**options))
