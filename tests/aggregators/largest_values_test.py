import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair.aggregators import largest_values

_FLOAT = tff.TensorType(np.float32)
_VALUE = tff.types.to_type([tff.TensorType(np.float32, [2, 2]), np.float32])
_VECTOR = np.array([0.03, -0.1, 0.05, 0.0, -0.004], np.float32)


class TestKeepLargest:
  def test_by_hand(self):
    for count, expected in (
      (0, [0, 0, 0, 0, 0]),
      (-3, [0, 0, 0, 0, 0]),
      (1, [0, -0.1, 0, 0, 0]),
      (2, [0, -0.1, 0.05, 0, 0]),
      (4, [0.03, -0.1, 0.05, 0, -0.004]),
      (5, [0.03, -0.1, 0.05, 0, -0.004]),
      (9, [0.03, -0.1, 0.05, 0, -0.004]),
    ):
      kept = aggregators.keep_largest(_VECTOR, count)
      np.testing.assert_array_equal(kept, np.float32(expected))

  def test_ties(self):
    vector = np.array([1, 1, -1, 1, 2], np.float32)
    for ties, count, ranking, expected in (
      ('index', 3, None, [1, 1, 0, 0, 2]),
      ('keep', 3, None, [1, 1, -1, 1, 2]),
      ('keep', 0, None, [0, 0, 0, 0, 0]),
      ('index', 3, [1, 5, -3, 1, 9], [0, 1, -1, 0, 2]),
    ):
      ranking = ranking and np.array(ranking, np.float32)
      kept = aggregators.keep_largest(vector, count, ties=ties, ranking=ranking)
      np.testing.assert_array_equal(kept, expected)

  def test_every_digit_of_the_cut_off_counts(self):
    # All bits of a magnitude in use, from the smallest normal number to
    # infinity.
    rng = np.random.default_rng(1)
    bits = rng.integers(0x00800000, 0x7F800001, 1000).astype(np.int32)
    bits[:500] = bits[0] + np.arange(500)  # Differ in the last digits only.
    vector = bits.view(np.float32) * rng.choice(np.float32([-1, 1]), 1000)
    order = np.argsort(-np.abs(vector), kind='stable')
    for count in (1, 250, 500, 750, 1000):
      for ties in largest_values.TIES:
        kept = aggregators.keep_largest(vector, count, ties=ties)
        assert set(np.flatnonzero(kept)) == set(order[:count])

  def test_of_each_is_the_same_for_many_counts(self):
    vector = np.float32([1, -3, 3, 0, 1, -1, 2])
    counts = np.int32([-1, 0, 1, 2, 4, 5, 7, 9])
    for ties in largest_values.TIES:
      rows = largest_values.keep_largest_of_each(vector, counts, ties=ties)
      for count, row in zip(counts, rows, strict=True):
        one = aggregators.keep_largest(vector, count, ties=ties)
        np.testing.assert_array_equal(row, one)

  def test_what_is_not_a_number_does_not_become_0(self):
    vector = np.float32([1, np.nan, 3])
    for ties in largest_values.TIES:
      one = aggregators.keep_largest(vector, 2, ties=ties)
      np.testing.assert_array_equal(one, [0, np.nan, 3])
      each = largest_values.keep_largest_of_each(
        vector, tf.constant([1]), ties=ties
      )
      np.testing.assert_array_equal(each, [[0, np.nan, 0]])


def test_num_kept():
  for arguments, expected in (
    ((0.1, 15, 1), 1),
    ((0.01, 15, 1), 1),
    ((0.01, 15, 0), 0),
    ((0.29, 100, 1), 29),
    ((1.0, 7, 1), 7),
    ((0.5, 2, 5), 2),
  ):
    assert largest_values.num_kept(*arguments) == expected


@pytest.mark.usefixtures('default_runtime')
def test_sparsifies_each_value_before_the_mean():
  for fraction, minimum, expected in (
    # Of 5 entries: floor(.4 * 5) = 2 stay with each client, then the mean.
    (0.4, 1, [[[0, -2.0], [0, 1.0]], 3.0]),
    (0.1, 0, [[[0, 0], [0, 0]], 0.0]),
  ):
    factory = aggregators.LargestValuesFactory(fraction, minimum=minimum)
    process = factory.create(_VALUE, _FLOAT)
    first = [np.float32([[2.0, -4.0], [1.0, 0.0]]), np.float32(5.0)]
    second = [np.float32([[0.0, 0.0], [0.0, 2.0]]), np.float32(1.0)]
    output = process.next(process.initialize(), [first, second], [1.0, 1.0])
    for found, wanted in zip(output.result, expected, strict=True):
      np.testing.assert_allclose(found, wanted)
