"""`federated_aggregate`: clients' values become one value at the server."""

from collections.abc import Callable
from typing import Any

import tensorflow_federated as tff

from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values

_GROUP_SIZE = 8


class Aggregation:
  """Accumulates clients in groups of fixed size, then merges pair by pair.

  A group takes one call. An accumulator that grows with each client, as in a
  gather, is copied only a few times. Sums are in the order of the clients,
  independent of which clients ran in parallel.
  """

  def __init__(self, argument_type: tff.Type):
    """Traces nothing yet.

    Args:
      argument_type: `<{T}@CLIENTS,U,(<U,T> -> U),(<U,U> -> U),(U -> R)>`.
    """
    self._total_type, self._value_type = argument_type[2].parameter
    self._pack = values.build_pack(self._total_type)
    # Size of a group -> function.
    self._accumulate: dict[int, tracing.Traced] = {}

  def __call__(self, num_clients: int, argument: tuple[Any, ...]) -> Any:
    """Aggregates.

    Args:
      num_clients: Size of the cohort.
      argument: Client-placed value, zero, and the three functions.

    Returns:
      A value of type R.
    """
    placed, zero, accumulate, merge, report = argument
    entries = values.for_each_client(placed, num_clients)
    totals = [
      self._accumulate_group(
        accumulate, zero, entries[start : start + _GROUP_SIZE]
      )
      for start in range(0, num_clients, _GROUP_SIZE)
    ] or [zero]
    while len(totals) > 1:
      last = totals[len(totals) // 2 * 2 :]  # Without a partner.
      pairs = zip(totals[::2], totals[1::2], strict=False)
      totals = [merge(pair) for pair in pairs] + last
    return report(totals[0])

  def _accumulate_group(self, accumulate, zero, entries):
    size = len(entries)
    if size not in self._accumulate:
      self._accumulate[size] = self._trace(accumulate, size)
    leaves = values.flatten((zero, *entries))
    return self._pack(iter(self._accumulate[size](leaves)))

  def _trace(
    self, accumulate: Callable[[Any], Any], size: int
  ) -> tracing.Traced:
    pack_value = values.build_pack(self._value_type)

    def run(leaves):
      leaves = iter(leaves)
      total = self._pack(leaves)
      for _ in range(size):
        total = accumulate((total, pack_value(leaves)))
      return total

    return tracing.Traced(run, [self._total_type, *[self._value_type] * size])
