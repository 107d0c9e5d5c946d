"""Runs the clients of a stage in this process, on one device or several."""

from collections.abc import Mapping, Sequence
from concurrent import futures
import itertools
from typing import Any

import tensorflow as tf

from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import values


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
    devices = self.deal(range(num_clients))
    columns = stage.columns(scope, num_clients) if num_clients else []
    results = self.run_clients(stage, columns, devices)
    outputs = {
      name: [results[client][i] for client in devices]
      for i, name in enumerate(stage.stage.outputs)
    }
    for i, aggregated in enumerate(stage.aggregations, len(outputs)):
      functions = aggregated.functions(scope)
      # Taken out of the results, as they may be large.
      entries = [results[client][i] for client in devices]
      for client in devices:
        results[client][i] = None
      totals = {}
      for group in range(aggregation.num_groups(num_clients)):
        members = aggregation.members(group, num_clients)
        total = self.accumulate(
          aggregated,
          functions,
          functions.zero,
          {client: entries[client] for client in members},
          devices,
        )
        totals[group, group + 1] = self._copy(total, self._devices[0])
      outputs[aggregated.name] = functions.finish(totals, num_clients)
    return outputs

  def deal(self, clients: Sequence[int]) -> dict[int, str]:
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
    shared = {d: self._copy_shared(columns, d) for d in set(devices.values())}

    def run(client):
      device = devices[client]
      leaves = [
        column.value if isinstance(column, values.AllEqual) else column[client]
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

  def _copy_shared(self, columns, device):
    """The columns with what clients share on one device."""
    return [
      values.AllEqual(self._copy(column.value, device))
      if isinstance(column, values.AllEqual)
      else column
      for column in columns
    ]

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
