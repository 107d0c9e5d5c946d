"""Several blocks as one TensorFlow function, where possible."""

from collections.abc import Callable, Iterable, Sequence
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
    types: Sequence[tff.Type],
    at_hand: Sequence[bool] | None = None,
  ) -> None:
    """Traces the function, of the leaves of values of these types.

    `at_hand` says, for each of them, what `values.flatten` makes of sequences.
    """
    try:
      self._run = trace(function, leaf_specs(types, at_hand))
    except NotTraceableError:  # Its parts run one by one.
      self._run = lambda *leaves: values.flatten(function(leaves))

  def __call__(self, leaves: Iterable[Any]) -> list[tf.Tensor]:
    """Runs the function."""
    return self._run(*leaves)


def trace(
  function: Callable[[Iterable[Any]], Any], specs: Sequence[tf.TensorSpec]
) -> Callable[..., list[tf.Tensor]]:
  """Traces a function of leaves, which are tensors of these specs.

  Raises:
    NotTraceableError: If a part of the function cannot run inside a function.
  """
  # TensorFlow keeps what it traces, and `function` may refer to values of the
  # call in which it was defined, such as a whole state.
  functions = [function]

  def run(*leaves):
    return values.flatten(functions[0](leaves))

  # `tf.function` would check every argument at each call.
  traced = tf.compat.v1.wrap_function(run, specs)
  functions.clear()
  return traced


def leaf_specs(
  types: Sequence[tff.Type], at_hand: Sequence[bool] | None = None
) -> list[tf.TensorSpec]:
  """The specs of the leaves of values of some types, see `values.flatten`.

  Raises:
    NotTraceableError: If a leaf is neither a tensor nor a sequence.
  """
  flags = at_hand or [False] * len(types)
  return [
    spec
    for value_type, flag in zip(types, flags, strict=True)
    for spec in _leaf_specs(value_type, flag)
  ]


def _leaf_specs(value_type, at_hand) -> list[tf.TensorSpec]:
  match value_type:
    case tff.FederatedType():
      return _leaf_specs(value_type.member, at_hand)
    case tff.StructType():
      return [spec for t in value_type for spec in _leaf_specs(t, at_hand)]
    case tff.SequenceType() if at_hand:
      return _leaf_specs(value_type.element, at_hand)
    case tff.SequenceType():
      return [tf.TensorSpec([], tf.variant)]
    case tff.TensorType():
      return [values.tensor_spec(value_type)]
  raise NotTraceableError
