"""TFF's federated operators on the interpreter's values.

Each is a function `(num_clients, argument) -> result`. Compilation replaces the
operators that are missing here, or they are not supported.
"""

from collections.abc import Callable
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values

Operator = Callable[[int, Any], Any]


def build_operator(block: tff.framework.Intrinsic) -> Operator:
  """The function of an intrinsic.

  Raises:
    NotImplementedError: If this runtime does not support it.
  """
  match block.uri:
    case tff.framework.FEDERATED_AGGREGATE.uri:
      return aggregation.Aggregation(block.type_signature.parameter)
    case internals.FEDERATED_SELECT:
      element_type = block.type_signature.result.member.element
      return functools.partial(_select, element_type)
    case uri if uri in _OPERATORS:
      return _OPERATORS[uri]
  known = [
    *_OPERATORS,
    tff.framework.FEDERATED_AGGREGATE.uri,
    internals.FEDERATED_SELECT,
  ]
  raise NotImplementedError(
    "The 'device' runtime must know every intrinsic of a computation, found"
    f' {block.uri!r}; it knows {", ".join(sorted(known))}.'
  )


def _apply(num_clients, argument):
  function, value = argument
  return function(value)


def _map(num_clients, argument):
  function, placed = argument
  entries = values.for_each_client(placed, num_clients)
  return [function(entry) for entry in entries]


def _map_all_equal(num_clients, argument):
  function, placed = argument
  if isinstance(placed, values.AllEqual):
    return values.AllEqual(function(placed.value))
  return _map(num_clients, argument)


def _broadcast(num_clients, value):
  return values.AllEqual(value)


def _value_at_server(num_clients, value):
  return value


def _eval_at_server(num_clients, function):
  return function()


def _eval_at_clients(num_clients, function):
  return [function() for _ in range(num_clients)]


def _zip_at_server(num_clients, argument):
  return argument  # A structure of values is a value.


def _zip_at_clients(num_clients, argument):
  """A structure of client-placed values becomes one client-placed value."""
  if _is_all_equal(argument):
    return values.AllEqual(_entry(argument, 0))
  return [_entry(argument, index) for index in range(num_clients)]


def _is_all_equal(placed):
  if isinstance(placed, tuple):
    return all(_is_all_equal(part) for part in placed)
  return isinstance(placed, values.AllEqual)


def _entry(placed, index):
  """One client's part of a structure of client-placed values."""
  if isinstance(placed, tuple):
    return tuple(_entry(part, index) for part in placed)
  return placed.value if _is_all_equal(placed) else placed[index]


def _select(element_type, num_clients, argument):
  """Each client gets the slices that its keys select."""
  placed_keys, _, value, select = argument
  all_keys = values.for_each_client(placed_keys, num_clients)
  return [
    values.Slices(
      tuple([select((value, key)) for key in tf.unstack(keys)]), element_type
    )
    for keys in all_keys
  ]


def _sequence_reduce(num_clients, argument):
  sequence, total, reduce = argument
  for element in _elements(sequence):
    total = reduce((total, element))
  return total


def _elements(sequence):
  """The elements of a sequence one by one."""
  if isinstance(sequence, values.Slices):
    return sequence.elements
  if not tf.executing_eagerly():
    raise tracing.NotTraceableError  # Their number is not known.
  return map(values.from_element, sequence)


_OPERATORS: dict[str, Operator] = {
  tff.framework.FEDERATED_APPLY.uri: _apply,
  tff.framework.FEDERATED_BROADCAST.uri: _broadcast,
  tff.framework.FEDERATED_EVAL_AT_CLIENTS.uri: _eval_at_clients,
  tff.framework.FEDERATED_EVAL_AT_SERVER.uri: _eval_at_server,
  tff.framework.FEDERATED_MAP.uri: _map,
  tff.framework.FEDERATED_MAP_ALL_EQUAL.uri: _map_all_equal,
  tff.framework.FEDERATED_VALUE_AT_CLIENTS.uri: _broadcast,
  tff.framework.FEDERATED_VALUE_AT_SERVER.uri: _value_at_server,
  tff.framework.FEDERATED_ZIP_AT_CLIENTS.uri: _zip_at_clients,
  tff.framework.FEDERATED_ZIP_AT_SERVER.uri: _zip_at_server,
  internals.SEQUENCE_REDUCE: _sequence_reduce,
}
