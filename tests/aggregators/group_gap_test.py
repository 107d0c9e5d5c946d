import collections

import numpy as np
import pytest

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import group_gap


def _counts(*rows):
  """Of rows (number, correct, members, selected)."""
  numbers, correct, members, selected = zip(*rows, strict=True)
  return collections.OrderedDict(
    num_examples=np.float64(numbers),
    num_correct=np.float64(correct),
    members=np.float64(members),
    selected=np.float64(selected),
  )


# Gaps of 1/2 - 1 and 1 - 1/4; the last one has no member of group 1.
_ROWS = (
  (10, 8, (2, 2), (1, 2)),
  (10, 6, (2, 4), (2, 1)),
  (20, 10, (4, 0), (3, 0)),
)


def test_distances_by_hand():
  # Overall 6/8 of group 0 and 3/6 of group 1, and 24 of 40 are right.
  found = group_gap.distances(_counts(*_ROWS))
  np.testing.assert_allclose(found, [0.75, 0.5, 0.1], rtol=1e-12)
  # Nobody knows group 1.
  found = group_gap.distances(
    _counts(*2 * [_ROWS[2]], (40, 10, (0, 0), (0, 0)))
  )
  np.testing.assert_allclose(found, [0.125, 0.125, 0.125], rtol=1e-12)


def test_factors_by_hand():
  def moved(factors, numbers, distance, rate):
    return group_gap.moved_factors(
      *map(np.float64, (factors, numbers, distance)), rate
    ).numpy()

  # Shares of 1/4, 1/4 and 1/2 move by -.3 / 4, -.05 / 4 and .35 / 4.
  found = moved([1, 1, 1], [10, 10, 20], [0.75, 0.5, 0.1], 0.25)
  shares = found * [10, 10, 20] / 40
  np.testing.assert_allclose(shares, [0.175, 0.2375, 0.5875], rtol=1e-12)
  # With the whole step, the first would be -.05: 0, .2 and .85 of 1.05.
  found = moved([1, 1, 1], [10, 10, 20], [0.75, 0.5, 0.1], 1.0)
  shares = found * [10, 10, 20] / 40
  np.testing.assert_allclose(shares, np.array([0, 0.2, 0.85]) / 1.05)
  # A share of 0 may grow again, and the total is what it was.
  found = moved([0, 2], [10, 5], [0.1, 0.3], 1.0)
  np.testing.assert_allclose(found * [10, 5], [1, 9], rtol=1e-12)
  np.testing.assert_array_equal(moved([0.3, 7], [3, 5], [0, 9], 0), [0.3, 7])
  np.testing.assert_array_equal(moved([0, 0], [3, 5], [0, 9], 1), [0, 0])


@pytest.mark.usefixtures('default_runtime')
def test_two_rounds_by_hand():
  def weights(rows):
    return [
      collections.OrderedDict(
        client_id=np.int32(i),
        num_examples=np.float32(number),
        num_correct=np.float32(correct),
        members=np.float32(members),
        selected=np.float32(selected),
      )
      for i, (number, correct, members, selected) in rows.items()
    ]

  clients = dict(zip((3, 0, 1), _ROWS, strict=True))
  process = rounds.create(
    aggregators.GroupGapFactory(5, rate=1.0), np.float32(0), weights(clients)[0]
  )
  first = rounds.run(process, np.float32([21, 42, 84]), weights(clients))
  # By 0, .2 / 1.05 and .85 / 1.05.
  assert first.result == pytest.approx(8 + 68)
  factors = first.state['factor']
  np.testing.assert_allclose(
    factors, [4 * 0.2 / 1.05, 2 * 0.85 / 1.05, 1, 0, 1], rtol=1e-6
  )
  found = first.measurements
  assert found['num_without_gap'] == 1
  assert found['global_gap'] == pytest.approx(0.25)
  np.testing.assert_array_equal(found['clients']['client_id'], [0, 1, 3])
  np.testing.assert_allclose(
    found['clients']['distance'], [0.5, 0.1, 0.75], rtol=1e-6
  )
  # Two alike keep their factors; those who do not count keep theirs, too.
  bad = {2: (5, 3, (1, 1), (np.nan, 0)), 4: (0, 0, (0, 0), (0, 0))}
  alike = {0: _ROWS[0], 3: _ROWS[0]}
  second = rounds.run(
    process, np.float32([5, 9, 7, 7]), weights({**alike, **bad}), first.state
  )
  assert second.result == pytest.approx(5)  # Client 3 weighs nothing.
  assert second.measurements['num_aggregated'] == 2
  assert second.measurements['num_non_finite'] == 1
  np.testing.assert_allclose(second.state['factor'], factors, rtol=1e-6)
