"""Assigns clients to workers."""

import collections
from collections.abc import Mapping, Sequence
import heapq
from typing import TypeVar

Worker = TypeVar('Worker')

# A worker may have this much more than the busiest one of an even deal.
_SLACK = 1.1


def deal(
  sizes: Sequence[float],
  homes: Mapping[int, Worker],
  workers: Sequence[Worker],
) -> list[Worker]:
  """Deals the clients of a cohort to workers.

  A client stays at the worker that has its data, unless that worker would have
  more than a tenth more than the busiest one of an even deal. The others go to
  the worker that has the least so far, big clients first. If no worker has any
  of them, each gets clients that follow each other, whose values can then be
  added up there.
  """
  here = set(workers)
  homes = {client: home for client, home in homes.items() if home in here}
  if not homes:
    return _in_order(sizes, workers)
  big_first = sorted(range(len(sizes)), key=lambda i: -sizes[i])
  most = _SLACK * _even_load(sizes, big_first, len(workers))
  loads = dict.fromkeys(workers, 0.0)
  dealt: dict[int, Worker] = {}
  for client in big_first:
    home = homes.get(client)
    if home is not None and loads[home] + sizes[client] <= most:
      dealt[client] = home
      loads[home] += sizes[client]
  heap = [(load, rank, w) for rank, (w, load) in enumerate(loads.items())]
  heapq.heapify(heap)
  for client in big_first:
    if client not in dealt:
      load, rank, worker = heap[0]
      dealt[client] = worker
      heapq.heapreplace(heap, (load + sizes[client], rank, worker))
  return [dealt[client] for client in range(len(sizes))]


def deal_groups(
  sizes: Sequence[float], groups: Sequence[int], workers: Sequence[Worker]
) -> list[Worker]:
  """Deals clients to workers, those of a group to the same one.

  Groups stay in order, so that few sums come back from a worker: to send small
  clients costs less than to send sums of their updates.

  Args:
    sizes: The work of each client.
    groups: The group of each client, ascending.
    workers: The workers.

  Returns:
    The worker of each client.
  """
  loads: dict[int, float] = collections.defaultdict(float)
  for group, size in zip(groups, sizes, strict=True):
    loads[group] += size
  dealt = dict(zip(loads, _in_order([*loads.values()], workers), strict=True))
  return [dealt[group] for group in groups]


def _in_order(sizes, workers):
  """Splits the cohort where the sizes' sum is split evenly."""
  total, before, dealt = sum(sizes), 0.0, []
  for rank, size in enumerate(sizes):
    # Without any work, by number.
    share = (before + size / 2) / total if total else rank / len(sizes)
    # A last client without work has the share 1.
    dealt.append(workers[min(int(share * len(workers)), len(workers) - 1)])
    before += size
  return dealt


def _even_load(sizes, big_first, num_workers):
  """The load of the busiest worker if the data were everywhere."""
  loads = [0.0] * num_workers
  for client in big_first:
    heapq.heapreplace(loads, loads[0] + sizes[client])
  return max(loads)
