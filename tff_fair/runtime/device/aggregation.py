"""`federated_aggregate`: clients' values become one value at the server.

Clients are accumulated in groups of fixed size, one after the other, and the
groups' totals are merged in pairs, then pairs of pairs, and so on. The order is
that of the clients. It does not depend on where or when a client ran, so
neither do the bits of a sum of floats.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values

GROUP_SIZE = 8

# So many groups are merged in one call, which compiles as many merges.
_MERGED_GROUPS = 8

# Groups `start..end-1`.
Span = tuple[int, int]
Function = Callable[[Any], Any]


def num_groups(num_clients: int) -> int:
  """The number of groups of a cohort."""
  return -(-num_clients // GROUP_SIZE)


def members(group: int, num_clients: int) -> range:
  """The clients of a group."""
  return range(group * GROUP_SIZE, min((group + 1) * GROUP_SIZE, num_clients))


def spans_within(groups: Collection[int], end: int) -> Iterator[Span]:
  """Yields the largest parts of the tree of merges that need only `groups`."""
  groups = set(groups)

  def search(span):
    if groups.issuperset(range(*span)):
      yield span
    elif span[1] - span[0] > 1:
      for half in _halves(span):
        yield from search(half)

  if end:
    yield from search((0, end))


def _halves(span: Span) -> tuple[Span, Span]:
  """Splits a span as merging pairs, then pairs of pairs, does."""
  start, end = span
  middle = start + (1 << (end - start - 1).bit_length() - 1)
  return (start, middle), (middle, end)


class Aggregation:
  """A `federated_aggregate` whose parts run one by one.

  Attributes:
    total_type: U.
    result_type: R.
    pack_total: Makes a total of its leaves, see `values.build_pack`.
    pack_value: Makes a client's value of its leaves.
  """

  def __init__(self, argument_type: tff.Type) -> None:
    """Takes `<{T}@CLIENTS,U,(<U,T> -> U),(<U,U> -> U),(U -> R)>`."""
    self.total_type, self._value_type = argument_type[2].parameter
    self.result_type = argument_type[4].result
    self.pack_total = values.build_pack(self.total_type)
    self.pack_value = values.build_pack(self._value_type)
    # Number of clients -> function.
    self._accumulate: dict[int, tracing.Traced] = {}
    # Part of the tree of merges, see `_tree` -> function.
    self._merge: dict[Any, tracing.Traced] = {}

  def accumulate(
    self, function: Function, total: Any, entries: Sequence[Any]
  ) -> Any:
    """Adds values of a group to a total by `<U,T> -> U`, in one call."""
    size = len(entries)
    if size not in self._accumulate:
      self._accumulate[size] = self._trace(function, size)
    leaves = values.flatten((total, *entries))
    return self.pack_total(iter(self._accumulate[size](leaves)))

  def merge(
    self, function: Function, totals: Mapping[Span, Any], span: Span
  ) -> Any:
    """Merges totals of parts of the tree by `<U,U> -> U`, in its order."""
    if span in totals:
      return totals[span]
    if span[1] - span[0] > _MERGED_GROUPS:
      halves = _halves(span)
      totals = {half: self.merge(function, totals, half) for half in halves}
    parts = []
    tree = _tree(totals, span, parts)
    if tree not in self._merge:
      self._merge[tree] = self._trace_merge(function, tree, len(parts))
    return self.pack_total(iter(self._merge[tree](values.flatten(parts))))

  def merge_last(
    self, function: Function, totals: dict[Span, Any], end: int
  ) -> None:
    """Merges the last groups before `end` if they are a part and all there."""
    if end % _MERGED_GROUPS:
      return
    start = end - _MERGED_GROUPS
    last = [(i, i + 1) for i in range(start, end)]
    if totals.keys() >= set(last):
      parts = {span: totals.pop(span) for span in last}
      totals[start, end] = self.merge(function, parts, (start, end))

  def __call__(self, num_clients: int, argument: tuple[Any, ...]) -> Any:
    """Returns the R of values that are all here, and of the functions."""
    placed, zero, accumulate, merge, report = argument
    if not num_clients:
      return report(zero)
    entries = values.for_each_client(placed, num_clients)
    totals = {}
    for group in range(num_groups(num_clients)):
      totals[group, group + 1] = self.accumulate(
        accumulate, zero, [entries[i] for i in members(group, num_clients)]
      )
    return report(self.merge(merge, totals, (0, len(totals))))

  def _trace(self, accumulate: Function, size: int) -> tracing.Traced:
    def run(leaves):
      leaves = iter(leaves)
      total = self.pack_total(leaves)
      for _ in range(size):
        total = accumulate((keep_order(total), self.pack_value(leaves)))
      return total

    return tracing.Traced(run, [self.total_type, *[self._value_type] * size])

  def _trace_merge(self, merge, tree, size) -> tracing.Traced:
    def run(leaves):
      leaves = iter(leaves)
      totals = [self.pack_total(leaves) for _ in range(size)]
      return _merged(merge, totals, tree)

    return tracing.Traced(run, [self.total_type] * size)


def merge_all(merge: Function, totals: Sequence[Any]) -> Any:
  """Merges the totals of all groups, in a function that is being traced."""
  spans = {(i, i + 1): total for i, total in enumerate(totals)}
  parts = []
  return _merged(merge, parts, _tree(spans, (0, len(totals)), parts))


def _merged(merge, totals, tree):
  """The total of a tree of pairs of indices."""
  if isinstance(tree, int):
    return totals[tree]
  halves = [_merged(merge, totals, half) for half in tree]
  return keep_order(merge(tuple(halves)))


def _tree(totals, span, parts):
  """Adds totals to `parts`; returns how they are merged: pairs of indices."""
  if span in totals:
    parts.append(totals[span])
    return len(parts) - 1
  return tuple([_tree(totals, half, parts) for half in _halves(span)])


def keep_order(total: Any) -> Any:
  """Stops TensorFlow from adding several clients in another order.

  Its optimiser turns a chain of additions into one operation, which adds the
  last client first. The bits would depend on how many clients a call has.
  """
  if isinstance(total, tuple):
    return tuple(keep_order(part) for part in total)
  if tf.is_tensor(total) and total.dtype.is_floating:
    return tf.raw_ops.EnsureShape(input=total, shape=total.shape)
  return total
