"""Checks that uploads of clients can be summed in float32.

A client cannot know whether the sum over all clients overflows. So its own
number has to be small enough for any sum: at most `LARGEST = 2^104`, 2e31. Then
a sum over fewer than `2^24` clients, 16 million, is finite in float32. Rules
count a client with a larger number, like one with NaN, as absent.
"""

from typing import Any

import tensorflow as tf

from tff_fair.tensors import flat

# The largest float32 is (2^24 - 1) 2^104.
LARGEST = 2.0**104


def is_summable(value: Any, weight: Any = ()) -> tf.Tensor:
  """Returns whether sums of values, weights and their products are finite.

  No entry, and no product of a value and a weight, may be NaN or of a magnitude
  above `LARGEST`. Integers are not looked at.
  """
  factor = _largest_magnitude(weight)
  product = _largest_magnitude(value) * tf.maximum(factor, 1.0)
  return (product <= LARGEST) & (factor <= LARGEST)


def are_rows_summable(structure: Any) -> tf.Tensor:
  """`bool[m]`: `is_summable` of each row."""
  magnitudes = tf.abs(flat.flatten_rows(structure))
  return tf.reduce_all(magnitudes <= LARGEST, axis=1)


def _largest_magnitude(structure) -> tf.Tensor:
  """float32, infinite if an entry is NaN, 0 without floats."""
  largest = [tf.constant(0.0)]
  for tensor in tf.nest.flatten(structure):
    if tensor.dtype.is_floating and tensor.shape.num_elements():
      magnitudes = tf.abs(tf.cast(tensor, tf.float32))
      # The maximum of NaN and a number may be either.
      is_nan = tf.reduce_any(tf.math.is_nan(magnitudes))
      largest.append(tf.where(is_nan, float('inf'), tf.reduce_max(magnitudes)))
  return tf.reduce_max(tf.stack(largest))
