"""Several blocks as one TensorFlow function, where possible."""

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import values


class NotTraceableError(Exception):
  """A part cannot run inside a function, such as a block with variables."""


class Traced:
  """A function of leaves, in one call if all its parts allow that."""

  def __init__(
    self,
    function: Callable[[Iterable[Any]], Any],
    types: Iterable[tff.Type],
  ) -> None:
    """Traces the function."""
    # TensorFlow keeps the traced function, and `function` may refer to values
    # of the call in which it was defined, such as a whole state.
    functions = [function]

    def run(*leaves):
      return values.flatten(functions[0](leaves))

    try:
      specs = [spec for t in types for spec in _leaf_specs(t)]
      # `tf.function` would check every argument at each call.
      self._run = tf.compat.v1.wrap_function(run, specs)
      functions.clear()
    except NotTraceableError:
      self._run = run  # Its parts run one by one.

  def __call__(self, leaves: Iterable[Any]) -> list[tf.Tensor]:
    """Runs the function."""
    return self._run(*leaves)


def _leaf_specs(value_type) -> list[tf.TensorSpec]:
  match value_type:
    case tff.FederatedType():
      return _leaf_specs(value_type.member)
    case tff.StructType():
      return [spec for part in value_type for spec in _leaf_specs(part)]
    case tff.SequenceType():
      return [tf.TensorSpec([], tf.variant)]
    case tff.TensorType():
      return [values.tensor_spec(value_type)]
  raise NotTraceableError
