import collections

import numpy as np
import tensorflow as tf

from tff_fair.aggregators import gathered
from tff_fair.aggregators import sparse_rewards

# Of a kernel with ties, and of a bias.
_KERNEL = np.float32([[1, -3, 2], [3, 0.5, -2]])
_BIAS = np.float32([-1, 4])


def _rewards(*shares, per_layer, aggregate=(_KERNEL, _BIAS)):
  state = collections.OrderedDict(
    aggregate=[tf.constant(a) for a in aggregate],
    share=tf.constant(shares, tf.float64),
  )
  rewards = sparse_rewards.rewards(state, per_layer=per_layer)
  return [reward.numpy() for reward in rewards]


class TestRewards:
  def test_of_each_variable_rounded_up(self):
    kernel, bias = _rewards(0.4, per_layer=True)
    # ceil(2.4) of 6, the second 2 comes too late; ceil(0.8) of 2.
    np.testing.assert_array_equal(kernel, [[[0, -3, 2], [3, 0, 0]]])
    np.testing.assert_array_equal(bias, [[0, 4]])

  def test_of_all_variables_rounded_down(self):
    kernel, bias = _rewards(0.49, 0.5, 0.7, per_layer=False)
    # floor(3.92), floor(4), floor(5.6) of 8.
    np.testing.assert_array_equal(
      kernel,
      [
        [[0, -3, 0], [3, 0, 0]],
        [[0, -3, 2], [3, 0, 0]],
        [[0, -3, 2], [3, 0, -2]],
      ],
    )
    np.testing.assert_array_equal(bias, [[0, 4]] * 3)

  def test_limits_and_ties(self):
    equal = np.float32([1, -1, 1, -1, 1, 1, -1, 1, 1, 1])
    values = np.arange(1, 101, dtype=np.float32)
    shares = np.arange(101) / 100  # 0.29 * 100 < 29 and 0.07 * 100 > 7.
    for per_layer in (True, False):
      kernel, bias = _rewards(0.0, 1.0, per_layer=per_layer)
      np.testing.assert_array_equal(kernel, [np.zeros((2, 3)), _KERNEL])
      np.testing.assert_array_equal(bias, [np.zeros(2), _BIAS])
      # Of equal entries the first and no more.
      (found,) = _rewards(0.3, per_layer=per_layer, aggregate=[equal])
      np.testing.assert_array_equal(found, [[1, -1, 1] + 7 * [0]])
      # Rounding does not lose whole products.
      (found,) = _rewards(*shares, per_layer=per_layer, aggregate=[values])
      np.testing.assert_array_equal(np.count_nonzero(found, axis=1), range(101))

  def test_the_smallest_share_is_an_entry_of_each_variable(self):
    kernel, bias = _rewards(1e-8, per_layer=True)
    np.testing.assert_array_equal(kernel, [[[0, -3, 0], [0, 0, 0]]])
    np.testing.assert_array_equal(bias, [[0, 4]])


def test_unit_updates():
  # Squares of 1e30 are infinite in float32.
  updates = np.float32([[3, 4], [0, 0], [0, -1e-7], [3e30, 4e30]])
  found = sparse_rewards.unit_updates(updates, 0.5)
  expected = [[0.3, 0.4], [0, 0], [0, -0.25], [0.3, 0.4]]
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_divide_by_sum_and_max():
  values = np.array([1.0, 3.0])
  np.testing.assert_array_equal(gathered.divide_by_sum(values), [0.25, 0.75])
  np.testing.assert_array_equal(gathered.divide_by_max(values), [1 / 3, 1])
  for function in (gathered.divide_by_sum, gathered.divide_by_max):
    np.testing.assert_array_equal(function(np.zeros(2)), [0, 0])
