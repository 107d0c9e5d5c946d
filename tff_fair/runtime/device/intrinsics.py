"""TFF's federated operators on the interpreter's values.

Each is a function `(run, argument) -> result`, where `run` knows the number of
clients and maps a function over them. What is not here is replaced by others
when a computation is compiled, or not supported.
"""

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow_federated as tff

from tff_fair.runtime.device import values

Struct = tff.structure.Struct
_GROUP_SIZE = 8


class Run(Protocol):
  """One execution of a computation."""

  num_clients: int

  def map(self, function: Callable[[Any], Any], entries: list) -> list:
    """Applies `function` to each entry, several at once where possible."""


def find_intrinsic(uri: str) -> Callable[[Run, Any], Any]:
  """The function of an intrinsic.

  Raises:
    NotImplementedError: If this runtime does not support it.
  """
  if uri not in _INTRINSICS:
    raise NotImplementedError(
      "The 'device' runtime must know every intrinsic of a computation, found"
      f' {uri!r}; it knows {", ".join(sorted(_INTRINSICS))}.'
    )
  return _INTRINSICS[uri]


def _apply(run, argument):
  function, value = argument
  return function(value)


def _map(run, argument):
  function, placed = argument
  return run.map(function, values.for_each_client(placed, run.num_clients))


def _map_all_equal(run, argument):
  function, placed = argument
  if isinstance(placed, values.AllEqual):
    return values.AllEqual(function(placed.value))
  return _map(run, argument)


def _broadcast(run, value):
  return values.AllEqual(value)


def _value_at_server(run, value):
  return value


def _eval_at_server(run, function):
  return function()


def _eval_at_clients(run, function):
  return run.map(lambda _: function(), [None] * run.num_clients)


def _zip_at_server(run, argument):
  return argument  # A structure of values is a value.


def _zip_at_clients(run, argument):
  """A structure of client-placed values becomes one client-placed value."""
  if _is_all_equal(argument):
    return values.AllEqual(_entry(argument, 0))
  return [_entry(argument, index) for index in range(run.num_clients)]


def _is_all_equal(placed):
  if isinstance(placed, Struct):
    return all(_is_all_equal(part) for part in placed)
  return isinstance(placed, values.AllEqual)


def _entry(placed, index):
  """One client's part of a structure of client-placed values."""
  if isinstance(placed, Struct):
    return Struct(
      (name, _entry(part, index))
      for name, part in tff.structure.iter_elements(placed)
    )
  return placed.value if _is_all_equal(placed) else placed[index]


def _aggregate(run, argument):
  """Clients in groups of fixed size, then the groups pair by pair.

  So the order of a sum does not depend on threads, and an accumulator that
  grows with each client, as a gather's does, is copied a few times only.
  """
  placed, zero, accumulate, merge, report = argument
  entries = values.for_each_client(placed, run.num_clients)

  def accumulate_group(group):
    total = zero
    for value in group:
      total = accumulate(Struct([(None, total), (None, value)]))
    return total

  totals = run.map(
    accumulate_group,
    [
      entries[start : start + _GROUP_SIZE]
      for start in range(0, len(entries), _GROUP_SIZE)
    ],
  ) or [zero]
  while len(totals) > 1:
    last = totals[len(totals) // 2 * 2 :]  # Without a partner.
    pairs = zip(totals[::2], totals[1::2], strict=False)
    totals = [merge(Struct([(None, a), (None, b)])) for a, b in pairs] + last
  return report(totals[0])


def _select(run, argument):
  """Each client gets the sequence of what its keys select."""
  placed_keys, _, value, select = argument

  def slices(keys):
    return values.to_dataset(
      [select(Struct([(None, value), (None, key)])) for key in keys]
    )

  return run.map(slices, values.for_each_client(placed_keys, run.num_clients))


def _sequence_reduce(run, argument):
  dataset, total, reduce = argument
  for element in dataset:
    element = values.from_element(element)
    total = reduce(Struct([(None, total), (None, element)]))
  return total


_INTRINSICS: dict[str, Callable[[Run, Any], Any]] = {
  tff.framework.FEDERATED_AGGREGATE.uri: _aggregate,
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
  'federated_select': _select,
  'sequence_reduce': _sequence_reduce,
}
