"""One computation on several workers, each of which has some of the clients.

TFF's compiler turns a computation into a flat list of named steps. Here

* a step at clients runs on every worker, for the worker's clients;
* an aggregation sums on every worker; the first worker merges these sums in the
  order of the workers, independent of which finishes first;
* a step at the server runs on the first worker; its value is sent to the other
  workers only if one of their steps needs it (a broadcast).

TFF's context for several workers splits a computation in two, around its only
aggregation, and sends every worker all arguments of the server. It cannot run
rounds in which clients wait for an aggregate, as in FeDABoost; its sums depend
on which worker finishes first; and it queries the workers one after the other.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from typing import Any

import tensorflow_federated as tff
import tree

from tff_fair.runtime import workers

Block = tff.framework.ComputationBuildingBlock


class Value:
  """A value of one type, on the workers that have needed it so far.

  Attributes:
    type_signature: Its type.
    source: What it is created from on further workers: a value, or the proto of
      a function; None for a value at clients, and before it has been fetched.
    on: Number of a worker -> the reference to the value there.
  """

  def __init__(self, type_signature: tff.Type, source: Any = None):
    self.type_signature = type_signature
    self.source = source
    self.on: dict[int, Any] = {}


class Run:
  """Runs one compiled computation once."""

  def __init__(
    self,
    connections: Sequence[workers.Connection],
    threads: futures.Executor,
    num_clients: Sequence[int],
  ):
    """Creates executors on the workers; `close` removes them.

    Args:
      connections: The workers.
      threads: Has a thread for each worker, as requests block.
      num_clients: How many clients each worker has.
    """
    self._connections = connections
    self._threads = threads
    self._all = range(len(connections))
    self._executors = list(
      threads.map(
        lambda connection, number: connection.create_executor(number),
        connections,
        num_clients,
      )
    )

  def close(self) -> None:
    """Deletes all values on the workers."""
    for executor in self._executors:
      executor.close()

  def place(
    self, shares: Sequence[Any], type_signature: tff.FederatedType
  ) -> Value:
    """Gives each worker the values of its clients.

    Args:
      shares: For each worker a list, with a value for each client.
      type_signature: `{T}@CLIENTS`.

    Returns:
      The value.
    """
    value = Value(type_signature)

    async def create(worker):
      executor = self._executors[worker]
      return await executor.create_value(shares[worker], type_signature)

    value.on = self._ask(create, self._all)
    return value

  def __call__(self, function: tff.framework.Lambda, argument: Any) -> Any:
    """Runs a function.

    Args:
      function: A computation in call dominant form.
      argument: A `Value`, or nested tuples of values.

    Returns:
      The result as fetched from the first worker, in nested tuples.
    """
    scope = {function.parameter_name: argument}
    block = function.result
    for name, part in block.locals:
      scope[name] = self._step(part, scope)
    result = _find(block.result, scope)
    self._fetch(result)
    return tree.map_structure(lambda value: value.source, result)

  def _step(self, part: Block, scope: Mapping[str, Any]) -> Any:
    """The value of a step."""
    if not isinstance(part, tff.framework.Call):
      return _find(part, scope)
    function, argument = part.function, None
    if part.argument is not None:
      argument = _find(part.argument, scope)
    if _is_aggregation(function):
      return self._aggregate(function, argument)
    at_clients = is_at(tff.CLIENTS, part.type_signature)
    return self._call(
      _find(function, scope), argument, self._all if at_clients else [0]
    )

  def _aggregate(self, function, argument) -> Value:
    """`federated_aggregate`, merging the sums of the workers."""
    *_, merge, report = argument
    *types, report_type = function.type_signature.parameter
    total_type = report_type.parameter
    keep = _identity(total_type)
    sum_up = _intrinsic(
      function.uri,
      tff.StructType([*types, keep.type_signature]),
      tff.FederatedType(total_type, tff.SERVER),
    )
    placed = self._call(sum_up, (*argument[:-1], keep), self._all)
    sums = self._ask(
      lambda worker: placed.on[worker].compute(), self._all
    ).values()
    total, *others = (Value(total_type, source) for source in sums)
    for other in others:
      total = self._call(merge, (total, other), [0])
    result = self._call(report, total, [0])
    place = _intrinsic(
      tff.framework.FEDERATED_VALUE_AT_SERVER.uri,
      result.type_signature,
      tff.FederatedType(result.type_signature, tff.SERVER),
    )
    return self._call(place, result, [0])

  def _call(self, function: Value, argument: Any, on: Iterable[int]) -> Value:
    """Calls a function on some workers, with the values of each."""
    inputs = (function,) if argument is None else (function, argument)
    needed = [v for v in tree.flatten(inputs) if not set(on) <= set(v.on)]
    self._fetch(needed)

    async def call(worker):
      references = [await self._refer(part, worker) for part in inputs]
      return await self._executors[worker].create_call(*references)

    result = Value(function.type_signature.result)
    result.on = self._ask(call, on)
    return result

  def _fetch(self, values: Any) -> None:
    """Fetches values that are not here yet from the first worker."""
    for value in tree.flatten(values):
      if value.source is None:
        fetched = self._ask(lambda worker, v=value: v.on[worker].compute(), [0])
        value.source = fetched[0]

  async def _refer(self, values: Any, worker: int) -> Any:
    """One reference to values on a worker, to which they are sent if needed."""
    executor = self._executors[worker]
    if isinstance(values, tuple):
      parts = [await self._refer(part, worker) for part in values]
      return await executor.create_struct(parts)
    if worker not in values.on:
      values.on[worker] = await executor.create_value(
        values.source, values.type_signature
      )
    return values.on[worker]

  def _ask(self, question: Callable[[int], Any], on: Iterable[int]) -> dict:
    """Worker -> its answer; all workers run in parallel."""

    def ask(worker):
      with self._connections[worker].one_line_errors():
        return asyncio.run(_await(question(worker)))

    return dict(zip(on, self._threads.map(ask, on), strict=True))


async def _await(awaitable):
  return await awaitable


def _find(part: Block, scope: Mapping[str, Any]) -> Any:
  """The value of a part without calls."""
  match part:
    case tff.framework.Reference():
      return scope[part.name]
    case tff.framework.Selection():
      return _find(part.source, scope)[part.as_index()]
    case tff.framework.Struct():
      return tuple(_find(element, scope) for element in part)
  return Value(part.type_signature, part.proto)


def _identity(type_signature: tff.Type) -> Value:
  reference = tff.framework.Reference('x', type_signature)
  return _find(tff.framework.Lambda('x', type_signature, reference), {})


def _intrinsic(uri: str, parameter: tff.Type, result: tff.Type) -> Value:
  return _find(
    tff.framework.Intrinsic(uri, tff.FunctionType(parameter, result)), {}
  )


def _is_aggregation(function: Block) -> bool:
  """Whether clients' values become one value at the server."""
  if not isinstance(function, tff.framework.Intrinsic):
    return False
  signature = function.type_signature
  if not (
    tff.types.contains(signature.parameter, lambda t: is_at(tff.CLIENTS, t))
    and is_at(tff.SERVER, signature.result)
  ):
    return False
  if function.uri != tff.framework.FEDERATED_AGGREGATE.uri:
    raise NotImplementedError(
      "The 'remote' runtime must aggregate by federated_aggregate, without"
      f' secure sums, found {function.uri!r}.'
    )
  return True


def is_at(
  placement: tff.framework.PlacementLiteral, type_signature: tff.Type
) -> bool:
  """Whether a type is of values placed there.

  Args:
    placement: `tff.CLIENTS` or `tff.SERVER`.
    type_signature: The type.
  """
  return (
    isinstance(type_signature, tff.FederatedType)
    and type_signature.placement is placement
  )
