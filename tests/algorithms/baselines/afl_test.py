import numpy as np

from tff_fair.algorithms.baselines import afl


def test_ascended_by_hand():
  for weights, losses, rate, expected in (
    ([0.5, 0.5], [1, 0], 0.0, [0.5, 0.5]),
    # (.7, .5), and .1 less.
    ([0.5, 0.5], [1, 0], 0.2, [0.6, 0.4]),
    # (1.1, .3, .5): .3 less, which leaves nothing of the second.
    ([0.2, 0.3, 0.5], [1, 0, 0], 0.9, [0.8, 0, 0.2]),
    ([0.5, 0.5], [1, 0], 2.0, [1, 0]),
    # The difference of small losses is not lost beside a huge one.
    ([0, 1, 0], [0, 1, 3e38], 1.0, [0, 0, 1]),
    ([0.5, 0.5], [1e9, 1e9 + 0.5], 1.0, [0.25, 0.75]),
  ):
    found = afl.ascended(np.float32(weights), np.float64(losses), rate)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
