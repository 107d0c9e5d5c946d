import numpy as np

from tff_fair.tasks import sizes


def test_largest_remainder_by_hand():
  for shares, total, expected in [
    # Exact parts 5.4, 3.6, 1.0: the missing unit goes to the second.
    ([0.54, 0.36, 0.1], 10, [5, 4, 1]),
    # 10/3 each: one unit is missing, all parts tie, the lowest gets it.
    ([1, 1, 1], 10, [4, 3, 3]),
    # 9.9, 0.05, 0.05 -> 10, 0, 0; both empty ones are lifted.
    ([0.99, 0.005, 0.005], 10, [8, 1, 1]),
    # 0.29 * 100 is 28.999999999999996 in floating point.
    ([0.29, 0.71], 100, [29, 71]),
    ([0, 1], 2, [1, 1]),
    ([3], 7, [7]),
  ]:
    result = sizes.largest_remainder(np.array(shares), total)
    assert result.dtype == np.int64
    assert result.tolist() == expected


def test_largest_remainder_keeps_the_total():
  rng = np.random.default_rng(0)
  for num_clients in (1, 2, 7, 100):
    shares = rng.dirichlet(np.full(num_clients, 0.1))
    for total in (num_clients, 101, 10**6):
      result = sizes.largest_remainder(shares, total)
      assert result.sum() == total
      assert result.min() >= 1


def test_lift_takes_from_the_largest():
  # 7 gives to the two empty ones until it ties with 5, which comes later.
  assert sizes.lift(np.array([0, 7, 5, 0]), 1).tolist() == [1, 5, 5, 1]
  assert sizes.lift(np.array([0, 7, 5, 0]), 3).tolist() == [3, 3, 3, 3]
