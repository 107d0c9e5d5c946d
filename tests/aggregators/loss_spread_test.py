import collections

import numpy as np
import pytest

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import loss_spread


def test_ranks_by_hand():
  for losses, groups, expected in (
    ([0.5, 3, 1, 2], [0, 1, 2, 3], [-3, 3, -1, 1]),
    ([1, 1, 2], [0, 1, 2], [-1, -1, 2]),  # Two are equal.
    # Means of 2, 1 and 3.
    ([1, 1, 3, 3], [5, 0, 5, 2], [0, -2, 0, 2]),
    ([1, 9], [4, 4], [0, 0]),
    ([1], [0], [0]),
    ([], [], []),
  ):
    found = loss_spread.ranks(np.float64(losses), np.int32(groups))
    np.testing.assert_array_equal(found, expected)


def test_bonuses_by_hand():
  for counts, groups, expected in (
    # The least is 2, so n lambda_max = 2 / 2; the ranks are 0, -2 and 2.
    ([4, 2, 6], [0, 1, 2], [0, -2, 2]),
    # n lambda_max = min(2 * 2, 5) / 1. In the group of two each has half.
    ([2, 5, 2], [0, 1, 0], [2, -4, 2]),
    ([4, 2, 6], [3, 3, 3], [0, 0, 0]),
  ):
    found = loss_spread.spread_bonuses(
      np.float64([2, 1, 3]), np.float64(counts), np.int32(groups), 1.0
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # With the whole lambda_max no weight is negative.
    assert (counts + found.numpy() >= 0).all()


@pytest.mark.usefixtures('default_runtime')
def test_a_round_by_hand():
  def weights(*triples):
    return [
      collections.OrderedDict(
        group=np.int32(group), loss=np.float32(loss), num_examples=np.float32(n)
      )
      for group, loss, n in triples
    ]

  process = rounds.create(
    aggregators.LossSpreadFactory(0.5), np.float32(0), weights((0, 0, 0))[0]
  )
  # With half of the bonuses above: 4, 1 and 7 of 12.
  three = weights((0, 2, 4), (1, 1, 2), (2, 3, 6))
  output = rounds.run(process, np.float32([3, 12, 0]), three)
  assert output.result == pytest.approx(2)
  # Who does not count has no rank, and no part in a group.
  more = weights((5, 9, 0), (1, 9, np.nan), (7, 0, -1))
  together = rounds.run(
    process, np.float32([5, 3, 12, 0, 5, 5]), [more[0], *three, *more[1:]]
  )
  assert together.result == output.result
  assert together.measurements['num_aggregated'] == 3
