"""Groups' totals, and the tree in which they are merged."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import aggregation


def _plain(groups):
  """Merges pairs, then pairs of pairs; a total is a string."""
  totals = list(map(str, groups))
  while len(totals) > 1:
    pairs = zip(totals[::2], totals[1::2], strict=False)
    pairs = [f'({first} {second})' for first, second in pairs]
    totals = [*pairs, *(totals[-1:] if len(totals) % 2 else [])]
  return totals[0]


def _merged(merge, spans, end):
  """The same by parts of the tree, each merged by itself first."""
  leaves = {(i, i + 1): tf.constant(str(i)) for i in range(end)}
  totals = {span: merge(_join, leaves, span) for span in spans}
  return merge(_join, totals, (0, end)).numpy().decode()


def _join(pair):
  first, second = pair
  return tf.strings.join(['(', first, ' ', second, ')'])


@pytest.fixture(scope='module')
def merge():
  return aggregation.Aggregation(_argument_type(np.str_, np.str_)).merge


@pytest.mark.parametrize(
  ('groups', 'end', 'expected'),
  [
    ([], 0, []),
    ([], 3, []),
    ([0], 1, [(0, 1)]),
    ([0, 1, 2], 3, [(0, 3)]),
    ([1, 2], 3, [(1, 2), (2, 3)]),  # They merge with others first.
    ([0, 1, 3], 4, [(0, 2), (3, 4)]),
    ([2, 3, 4], 5, [(2, 4), (4, 5)]),
    ([4, 5, 6], 7, [(4, 7)]),
  ],
)
def test_spans_worked_by_hand(groups, end, expected):
  assert list(aggregation.spans_within(groups, end)) == expected


@pytest.mark.parametrize('end', range(1, 24))
def test_any_division_merges_as_the_whole(merge, end):
  expected = _plain(range(end))
  for count in (1, 2, 3):
    for divided in (
      [range(i, end, count) for i in range(count)],
      [range(i * end // count, (i + 1) * end // count) for i in range(count)],
    ):
      spans = [
        span
        for groups in divided
        for span in aggregation.spans_within(groups, end)
      ]
      assert _merged(merge, spans, end) == expected


def test_groups_and_their_members():
  assert [aggregation.num_groups(n) for n in (0, 1, 8, 9)] == [0, 1, 1, 2]
  assert list(aggregation.members(1, 10)) == [8, 9]
  assert list(aggregation.members(0, 10)) == list(range(8))


def _argument_type(value_type, total_type):
  """Of `federated_aggregate`."""
  return tff.types.to_type(
    (
      tff.FederatedType(value_type, tff.CLIENTS),
      total_type,
      tff.FunctionType((total_type, value_type), total_type),
      tff.FunctionType((total_type, total_type), total_type),
      tff.FunctionType(total_type, total_type),
    )
  )


def _accumulated(parts):
  """The total of clients' values if each part is one call."""
  pair = tff.types.to_type((np.float32, np.float32))
  aggregated = aggregation.Aggregation(_argument_type(np.float32, pair))

  def add(argument):
    (total, latest), value = argument
    return total + value, value - latest / 2

  total = tf.constant(0.0), tf.constant(8.0)
  for part in parts:
    total = aggregated.accumulate(add, total, list(map(tf.constant, part)))
  return tuple(map(float, total))


def test_one_call_or_several_accumulate_the_same():
  """1 is lost beside 2^24: the order of additions is in the bits."""
  large = 2.0**24
  parts = [[1.0, large], [1.0], [-large, 1.0]]
  found = _accumulated(parts)
  assert found == _accumulated([sum(parts, [])])
  assert found == _accumulated([[value] for value in sum(parts, [])])
  # large, large, 0, 1.
  assert found[0] == 1
  # -3, large + 2 (from 1.5), -large / 2, -3 large / 4.
  assert found[1] == 1 + 3 * large / 8
