import collections

import numpy as np
import pytest
import tensorflow as tf

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

  @pytest.mark.parametrize('per_layer', [True, False])
  def test_nothing_and_everything(self, per_layer):
    kernel, bias = _rewards(0.0, 1.0, per_layer=per_layer)
    np.testing.assert_array_equal(kernel, [np.zeros((2, 3)), _KERNEL])
    np.testing.assert_array_equal(bias, [np.zeros(2), _BIAS])

  @pytest.mark.parametrize('per_layer', [True, False])
  def test_of_equal_entries_the_first_and_no_more(self, per_layer):
    equal = np.float32([1, -1, 1, -1, 1, 1, -1, 1, 1, 1])
    (found,) = _rewards(0.3, per_layer=per_layer, aggregate=[equal])
    np.testing.assert_array_equal(found, [[1, -1, 1] + 7 * [0]])

  @pytest.mark.parametrize('per_layer', [True, False])
  def test_whole_products_are_not_rounded_away(self, per_layer):
    values = np.arange(1, 101, dtype=np.float32)
    shares = np.arange(101) / 100  # 0.29 * 100 < 29 and 0.07 * 100 > 7.
    (found,) = _rewards(*shares, per_layer=per_layer, aggregate=[values])
    np.testing.assert_array_equal(np.count_nonzero(found, axis=1), range(101))

  def test_the_smallest_share_is_an_entry_of_each_variable(self):
    kernel, bias = _rewards(1e-3, per_layer=True)
    np.testing.assert_array_equal(kernel, [[[0, -3, 0], [0, 0, 0]]])
    np.testing.assert_array_equal(bias, [[0, 4]])
    kernel, bias = _rewards(1e-3, per_layer=False)
    assert not kernel.any() and not bias.any()


def test_unit_updates():
  updates = np.float32([[3, 4], [0, 0], [0, -1e-7]])
  found = sparse_rewards.unit_updates(updates, 0.5)
  np.testing.assert_allclose(found, [[0.3, 0.4], [0, 0], [0, -0.25]], rtol=1e-6)


def test_normalized_and_relative():
  values = np.array([1.0, 3.0])
  np.testing.assert_array_equal(sparse_rewards.normalized(values), [0.25, 0.75])
  np.testing.assert_array_equal(sparse_rewards.relative(values), [1 / 3, 1])
  for function in (sparse_rewards.normalized, sparse_rewards.relative):
    np.testing.assert_array_equal(function(np.zeros(2)), [0, 0])
