"""TFF's C++ workers on other machines, among which clients are divided."""

from collections.abc import Sequence
from concurrent import futures
import itertools
import re
from typing import Any

import numpy as np
import tensorflow_federated as tff
import tree

from tff_fair.runtime import distributed
from tff_fair.runtime import per_computation
from tff_fair.runtime import workers as workers_lib

_ADDRESS = re.compile(r'[^\s:]+:([0-9]{1,5})')
_LARGEST_PORT = 65535


def create_remote_context(workers: Sequence[str]) -> tff.framework.SyncContext:
  """A context that executes in workers that are already running.

  The clients of a round are divided evenly among the workers, in order;
  `distributed` says what runs where. A computation without clients runs on the
  first worker. Results are bit-identical for the same number of workers; a
  different number changes the last bits of sums.

  Args:
    workers: Their addresses, `host:port`, all different.

  Returns:
    The context. It raises a `WorkerError` that names a worker that is gone.

  Raises:
    ValueError: If an address has another form, or occurs twice.
    WorkerError: If a worker does not answer.
  """
  _check_addresses(workers)
  return _RemoteContext([_connect(address) for address in workers])


def _check_addresses(addresses):
  for address in addresses or ['']:
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[1]) > _LARGEST_PORT:
      raise ValueError(
        f"workers must be 'host:port', one or more, found {list(addresses)}."
      )
    if list(addresses).count(address) > 1:
      raise ValueError(f'workers must differ, found {address!r} twice.')


def _connect(address) -> workers_lib.Connection:
  stub = workers_lib.connect(address)
  return workers_lib.Connection(f'The worker at {address}', lambda: stub)


class _RemoteContext(tff.framework.SyncContext):
  """See `create_remote_context`."""

  def __init__(self, connections):
    self._connections = connections
    self._threads = futures.ThreadPoolExecutor(len(connections))
    self._first = connections[0].create_context()
    self._compile = per_computation.PerComputation(_compile)

  def invoke(self, comp, arg):
    """Executes `comp`; see `tff.framework.SyncContext`."""
    parameter = comp.type_signature.parameter
    if len(self._connections) == 1 or not _has_clients(parameter):
      return self._first.invoke(comp, arg)
    result_type = comp.type_signature.result
    if tff.types.contains(result_type, _is_at_clients):
      raise TypeError(
        'A computation on several workers must return values at the server,'
        f' found {result_type.compact_representation()}.'
      )
    return _to_python(self._run(comp, _to_numpy(arg)), result_type)

  def _run(self, comp, arg):
    parameter = comp.type_signature.parameter
    function = self._compile(comp)
    shares = _split(_count_clients(arg, parameter), len(self._connections))
    sizes = [share.stop - share.start for share in shares]
    run = distributed.Run(self._connections, self._threads, sizes)
    try:
      return run(function, _place(run, arg, parameter, shares))
    finally:
      run.close()


def _compile(comp) -> tff.framework.Lambda:
  compiled = tff.backends.native.desugar_and_transform_to_native(comp)
  return compiled.to_building_block()


def _to_numpy(value):
  """An argument in the form that TFF serialises."""

  def to_container(part):
    if isinstance(part, tff.structure.Struct):
      return tff.structure.to_odict_or_tuple(part)
    return None

  return tff.tensorflow.transform_args(tree.traverse(to_container, value))


def _to_python(values, type_signature: tff.Type):
  """A result in the containers of its type."""
  result = tff.types.type_to_py_container(
    _to_struct(values, type_signature), type_signature
  )
  return tff.tensorflow.transform_result(result)


def _to_struct(values, type_signature):
  if not isinstance(type_signature, tff.StructType):
    return values
  return tff.structure.Struct(
    (name, _to_struct(part, part_type))
    for part, (name, part_type) in _parts(values, type_signature)
  )


def _place(run: distributed.Run, value, type_signature, shares) -> Any:
  """An argument on the workers; server values are sent where needed."""
  if isinstance(type_signature, tff.StructType):
    return tuple(
      _place(run, part, part_type, shares)
      for part, (_, part_type) in _parts(value, type_signature)
    )
  if _is_split(type_signature):
    return run.place([value[share] for share in shares], type_signature)
  return distributed.Value(type_signature, value)


def _split(num_clients: int, num_workers: int) -> list[slice]:
  """The clients of each worker; their numbers differ by at most one."""
  bounds = np.linspace(0, num_clients, num_workers + 1).round().astype(int)
  return [slice(*map(int, pair)) for pair in itertools.pairwise(bounds)]


def _count_clients(value, type_signature) -> int:
  """The number of values in each list of values at clients.

  Raises:
    ValueError: If the lists differ in length.
  """
  found = set(_lengths(value, type_signature))
  if len(found) > 1:
    raise ValueError(
      'All arguments at clients must have the same number of clients, found'
      f' {sorted(found)}.'
    )
  return found.pop()


def _lengths(value, type_signature):
  if _is_split(type_signature):
    yield len(value)
  elif isinstance(type_signature, tff.StructType):
    for part, (_, part_type) in _parts(value, type_signature):
      yield from _lengths(part, part_type)


def _parts(value, type_signature):
  return zip(
    tff.structure.from_container(value),
    tff.structure.iter_elements(type_signature),
    strict=True,
  )


def _has_clients(type_signature: tff.Type | None) -> bool:
  return type_signature is not None and tff.types.contains(
    type_signature, _is_split
  )


def _is_split(type_signature: tff.Type) -> bool:
  """Whether there is a value for each client."""
  return (
    distributed.is_at(tff.CLIENTS, type_signature)
    and not type_signature.all_equal
  )


def _is_at_clients(type_signature: tff.Type) -> bool:
  return distributed.is_at(tff.CLIENTS, type_signature)
