import functools

import numpy as np
import pytest

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import fair_averaging

_close = functools.partial(np.testing.assert_allclose, atol=1e-12)


class TestInternalWeights:
  def _mean(self, updates, losses, share):
    updates = np.float64(updates)
    weights, count = fair_averaging.internal_weights(
      updates @ updates.T, np.float64(losses), share
    )
    return weights.numpy() @ updates, count

  def test_by_hand(self):
    u, v = [1, 0], [-1, 1]
    for share, mean, count in (
      # u + v / 2 = (.5, .5) and v + u = (0, 1).
      (0.0, (0.25, 0.75), 2),
      # The second has the higher loss, and keeps its update.
      (0.5, (-0.25, 0.75), 1),
      (1.0, (0.0, 0.5), 0),
    ):
      found = self._mean([u, v], [1, 2], share)
      _close(found[0], mean)
      assert found[1] == count

  def test_the_order_is_that_of_the_losses(self):
    # Of the first update the second leaves (0, 0), but the third (-1, 1), of
    # which the second leaves (0, 1); of the others the first leaves (0, 0) and
    # (0, 1).
    updates = [[-2, 0], [1, 0], [1, 1]]
    for losses, mean in (([1, 2, 3], (0, 1 / 3)), ([3, 2, 1], (0, 2 / 3))):
      _close(self._mean(updates, losses, 0.0)[0], mean)

  def test_how_many_keep_their_updates(self):
    """Each of the others is projected once, to 0."""
    updates = [[1], [-1]] * 5
    for share, kept in ((0.0, 0), (0.1, 1), (0.2, 2), (0.5, 5), (1.0, 10)):
      assert self._mean(updates, range(10), share)[1] == 10 - kept

  def test_few_updates(self):
    for updates in ([[3, 4]], [[0, 0], [3, 4]]):
      mean, count = self._mean(updates, range(len(updates)), 0.0)
      _close(mean, np.mean(updates, axis=0))
      assert count == 0


def test_without_conflict_by_hand():
  direction = np.float64([1, 0])
  # The sum of those in conflict is (-2, 2): (1, 0) + (-2, 2) / 4.
  updates = np.float64([[-1, 1], [0, 5], [-1, 1], [2, 2]])
  found, count = fair_averaging.without_conflict(direction, updates)
  _close(found, [0.5, 0.5])
  assert count == 2
  for rows in (updates[1:2], updates[:0]):
    found, count = fair_averaging.without_conflict(direction, rows)
    _close(found, direction)
    assert count == 0


@pytest.mark.usefixtures('default_runtime')
def test_rounds_by_hand():
  """Statistics are averaged; who does not take part is not remembered."""

  def value(update, statistic):
    return rounds.ModelWeights([np.float32(update)], [np.float32(statistic)])

  def weight(i, loss, accepted=1):
    return rounds.weight(i, accepted=accepted, loss=loss)

  process = rounds.create(
    aggregators.FairAveragingFactory(4, keep_share=0.0, memory_rounds=1),
    value([0, 0], 0),
    weight(0, 1),
  )
  output = rounds.run(
    process,
    [value([-1, 1], 6), value([9, 9], 50), value([1, 0], 2)],
    [weight(1, 2), weight(3, 0, accepted=0), weight(0, 1)],
  )
  # (.25, .75), of the length of (0, .5).
  scale = 0.5 / np.hypot(0.25, 0.75)
  np.testing.assert_allclose(
    output.result.trainable[0], [0.25 * scale, 0.75 * scale], rtol=1e-6
  )
  np.testing.assert_allclose(output.result.non_trainable, [4])
  np.testing.assert_array_equal(output.state['last_round'], [1, 1, 0, 0])
  # Of the absent ones, (-1, 1) is in conflict: (2, 0) + (-1, 1), of length 2.
  output = rounds.run(process, [value([2, 0], 3)], [weight(2, 1)], output.state)
  np.testing.assert_allclose(
    output.result.trainable[0], [2**0.5, 2**0.5], rtol=1e-6
  )
  assert output.measurements['num_external_conflicts'] == 1
  # A round later they are forgotten, but not the last one.
  output = rounds.run(
    process, [value([-1, 1], 3)], [weight(3, 1)], output.state
  )
  np.testing.assert_allclose(
    output.result.trainable[0], [0, 2**0.5], rtol=1e-6, atol=1e-6
  )
