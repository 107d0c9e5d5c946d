"""Runs the clients of a stage in this process, on one device or several."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent import futures
import functools
import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import client_group
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import joint_totals
from tff_fair.runtime.device import values

# Clients with more bytes of data than that gain nothing by a call in groups.
_SMALL_CLIENT = 2**18
# With fewer groups a thread could be idle for too long at the end of a stage.
_GROUPS_PER_THREAD = 4
# Larger values gain nothing by being stacked, which copies them.
_SMALL_VALUES = 2**20


def are_many(num_clients: int, threads: int) -> bool:
  """Returns whether clients are groups enough to run in groups."""
  groups = aggregation.num_groups(num_clients)
  return groups >= _GROUPS_PER_THREAD * threads


def are_small(num_bytes: Sequence[float]) -> bool:
  """Returns whether clients have so few bytes that they run in groups."""
  return sum(num_bytes) <= _SMALL_CLIENT * len(num_bytes)


class LocalClients:
  """Clients on devices of this process, several of them at the same time.

  Each device has clients that follow each other, as evenly as possible. What
  all clients share is copied to each device once a stage. Values are
  accumulated where their clients ran; only the total of a group that is on two
  devices moves from one to the other.
  """

  def __init__(self, devices: Sequence[str], threads: int) -> None:
    """Takes different devices, and how many clients run at a time on all."""
    self._devices = tuple(devices)
    self._threads = threads
    self._map = map
    if threads > 1:
      pool = futures.ThreadPoolExecutor(threads, 'tff_fair_client')
      self._map = pool.map

  def run_stage(
    self,
    stage: client_stage.ClientStage,
    scope: Mapping[str, Any],
    num_clients: int,
  ) -> dict[str, Any]:
    """Runs a stage for all clients; name -> an output or an aggregate."""
    columns = client_stage.Columns([], ())
    if num_clients:
      columns = stage.columns(scope, num_clients)
    functions = [a.functions(scope) for a in stage.aggregations]
    run = self._run_parts
    if are_many(num_clients, self._threads):
      run = self._run_groups
    found = run(stage, columns, functions, num_clients)
    if found is None:
      found = self._run_one_by_one(stage, columns, functions, num_clients)
    entries, results = found
    outputs = {
      name: [entry[i] for entry in entries]
      for i, name in enumerate(stage.stage.outputs)
    }
    names = [aggregated.name for aggregated in stage.aggregations]
    outputs.update(zip(names, results, strict=True))
    return outputs

  def _run_one_by_one(self, stage, columns, functions, num_clients):
    """The clients' entries of outputs; for each aggregation its result."""
    devices = self.deal(range(num_clients))
    run = functools.partial(stage, at_hand=columns.at_hand)
    results = self.run_clients(run, columns.leaves, devices)
    num_outputs = len(stage.stage.outputs)
    found = []
    for aggregated, own in zip(stage.aggregations, functions, strict=True):
      # Taken out of the results, as they may be large.
      entries = [results[client].pop(num_outputs) for client in devices]
      totals = {}
      for group in range(aggregation.num_groups(num_clients)):
        members = aggregation.members(group, num_clients)
        total = self.accumulate(
          aggregated,
          own,
          own.zero,
          {client: entries[client] for client in members},
          devices,
        )
        totals[group, group + 1] = self._copy(total, self._devices[0])
      found.append(aggregated.result(own, totals, num_clients))
    return [results[client] for client in devices], found

  def _run_parts(self, stage, columns, functions, num_clients):
    """As `_run_one_by_one`; None unless clients are small."""
    group, sizes = self._group(stage, columns, num_clients, sums=False)
    if (
      group is None
      or group.num_value_bytes > _SMALL_VALUES
      or not group.trace([])
    ):
      return None
    parts = _cut(sizes, self._threads)
    totals = joint_totals.find_totals(
      stage, functions, group.value_specs, num_clients, len(parts)
    )
    if totals is None:
      return None
    devices = self.deal(range(len(parts)))
    shared = self._shared(columns.leaves, devices)

    def run(number):
      device, clients = devices[number], parts[number]
      with tf.device(device):  # Threads do not inherit the device.
        return group(_part(shared[device], clients), [], len(clients))

    results = list(self._map(run, devices))
    entries = [entry for result in results for entry in result.entries]
    stacked = [self._copy((*r.values,), self._devices[0]) for r in results]
    return entries, totals([f.zero for f in functions], stacked)

  def _run_groups(self, stage, columns, functions, num_clients):
    """As `_run_one_by_one`; None unless clients are small."""
    groups = {
      group: aggregation.members(group, num_clients)
      for group in range(aggregation.num_groups(num_clients))
    }
    found = self.run_groups(stage, columns, functions, groups)
    if found is None:
      return None
    entries, totals = found
    return entries, [
      a.result(own, found, num_clients)
      for a, own, found in zip(
        stage.aggregations, functions, totals, strict=True
      )
    ]

  def run_groups(
    self,
    stage: client_stage.ClientStage,
    columns: client_stage.Columns,
    functions: Sequence[client_stage.Functions],
    groups: Mapping[int, range],
    check: Callable[[], None] = lambda: None,
  ) -> tuple[list[list[Any]], list[dict[aggregation.Span, Any]]] | None:
    """Runs a stage for groups of `aggregation`, each of them in one call.

    Args:
      stage: The stage.
      columns: Its inputs, with the entries of all clients of these groups.
      functions: Those of each aggregation.
      groups: Number of a group, ascending -> where its clients are in the
        columns, one group after the other.
      check: Is called before each group; may raise an error.

    Returns:
      The clients' entries of outputs, and for each aggregation the totals of
      parts of the tree of merges; None unless clients are small.
    """
    num_clients = sum(map(len, groups.values()))
    group, _ = self._group(stage, columns, num_clients, sums=True)
    if group is None or not group.trace(functions):
      return None
    devices = self.deal(groups)
    zeros = [f.zero for f in functions]
    shared = self._shared(columns.leaves, devices)

    def run(number):
      check()
      device, clients = devices[number], groups[number]
      with tf.device(device):  # Threads do not inherit the device.
        return group(_part(shared[device], clients), zeros, len(clients))

    entries, totals = [], [{} for _ in functions]
    for number, result in zip(groups, self._map(run, groups), strict=True):
      entries += result.entries
      for i, aggregated in enumerate(stage.aggregations):
        total = self._copy(result.totals[i], self._devices[0])
        totals[i][number, number + 1] = total
        # While others run, and so that few are kept.
        aggregated.merge_last(functions[i].merge, totals[i], number + 1)
    return entries, totals

  def _group(self, stage, columns, num_clients, sums):
    """The stage for groups, None if they do not fit; the clients' bytes."""
    if num_clients < 2:
      return None, []
    group = client_group.find_group(stage, columns.at_hand, sums)
    if group is None:
      return None, []
    sizes = group.example_bytes(columns.leaves, num_clients)
    if not are_small(sizes):
      return None, []
    return group, sizes

  def deal(self, clients: Collection[int]) -> dict[int, str]:
    """Client -> its device, in the order in which the clients start."""
    count = len(self._devices)
    device_of = {
      client: self._devices[rank * count // len(clients)]
      for rank, client in enumerate(sorted(clients))
    }
    return {client: device_of[client] for client in clients}

  def run_clients(
    self,
    stage: client_stage.ClientStage,
    columns: Sequence[Any],
    devices: Mapping[int, str],
  ) -> dict[int, list[Any]]:
    """Runs a stage; client -> its entry of each output and aggregation."""
    shared = self._shared(columns, devices)

    def run(client):
      device = devices[client]
      leaves = [
        column.value
        if isinstance(column, values.AllEqual)
        else _tensor_of(column[client])
        for column in shared[device]
      ]
      with tf.device(device):  # Threads do not inherit the device.
        return stage(leaves)

    return dict(zip(devices, self._map(run, devices), strict=True))

  def accumulate(
    self,
    aggregated: client_stage.StageAggregation,
    functions: client_stage.Functions,
    total: Any,
    entries: Mapping[int, Any],
    devices: Mapping[int, str],
  ) -> Any:
    """Adds values of a group, in the order of its clients, to a total."""
    for device, run in itertools.groupby(entries, devices.__getitem__):
      with tf.device(device):
        total = aggregated.accumulate(
          functions.accumulate, total, [entries[client] for client in run]
        )
    return total

  def _shared(self, columns, devices):
    """Device -> the columns with what clients share on this device."""
    return {
      device: [
        values.AllEqual(self._copy(column.value, device))
        if isinstance(column, values.AllEqual)
        else column
        for column in columns
      ]
      for device in set(devices.values())
    }

  def _copy(self, value, device):
    """A value on a device; data sets and strings stay on the CPU."""
    if len(self._devices) == 1:
      return value  # It is there.
    if isinstance(value, tuple):
      return tuple(self._copy(part, device) for part in value)
    if not tf.is_tensor(value) or value.dtype in (tf.variant, tf.string):
      return value
    with tf.device(device):
      return tf.identity(value)


def _cut(sizes, number) -> list[range]:
  """Clients that follow each other, in parts of about the same size."""
  ends = np.cumsum(np.add(sizes, 1))  # Clients without data take time, too.
  cuts = np.searchsorted(ends, ends[-1] * np.arange(1, number) / number) + 1
  bounds = np.unique([0, *cuts, len(sizes)]).tolist()
  return [range(*bound) for bound in itertools.pairwise(bounds)]


def _part(columns, clients):
  """The columns of clients that follow each other."""
  own = slice(clients.start, clients.stop)
  return [
    column if isinstance(column, values.AllEqual) else column[own]
    for column in columns
  ]


def _tensor_of(leaf):
  return tf.constant(leaf) if isinstance(leaf, np.ndarray) else leaf
