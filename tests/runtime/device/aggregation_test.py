"""The tree in which groups' totals are merged."""

import pytest

from tff_fair.runtime.device import aggregation


def _plain(groups):
  """Merges pairs, then pairs of pairs; a total is a nested tuple."""
  totals = list(groups)
  while len(totals) > 1:
    pairs = zip(totals[::2], totals[1::2], strict=False)
    totals = [*pairs, *(totals[-1:] if len(totals) % 2 else [])]
  return totals[0]


def _merged(spans, end):
  """The same by parts of the tree, each merged by itself first."""
  leaves = {(group, group + 1): group for group in range(end)}
  totals = {
    span: aggregation.merge_totals(lambda pair: pair, leaves, span)
    for span in spans
  }
  return aggregation.merge_totals(lambda pair: pair, totals, (0, end))


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
def test_any_division_merges_as_the_whole(end):
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
      assert _merged(spans, end) == expected


def test_groups_and_their_members():
  assert [aggregation.num_groups(n) for n in (0, 1, 8, 9)] == [0, 1, 1, 2]
  assert list(aggregation.members(1, 10)) == [8, 9]
  assert list(aggregation.members(0, 10)) == list(range(8))
