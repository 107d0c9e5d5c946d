"""Sampling of quadruplets of a client's examples, from the labels alone.

FedQuad, section III-A, "Stochastic Quadruplet Sampling". A quadruplet is four
positions among the client's examples, so that inputs are looked up and not
copied. The quadruplets of all anchors are drawn at once, in the time of a sort.
"""

from typing import Any, NamedTuple

import tensorflow as tf


class Quadruplets(NamedTuple):
  """One quadruplet for each of n examples, its anchor.

  Where a mask is False, the position has no meaning: it is that of the anchor,
  or, if only the second negative is missing, that of the first.

  Attributes:
    positive: `int32[n]`, another example of the anchor's class.
    negative_1: `int32[n]`, an example of another class.
    negative_2: `int32[n]`, an example of a class other than those two.
    mask_1: `bool[n]`, v1: the positive and the first negative exist.
    mask_2: `bool[n]`, v2: the positive and both negatives exist.
  """

  positive: tf.Tensor
  negative_1: tf.Tensor
  negative_2: tf.Tensor
  mask_1: tf.Tensor
  mask_2: tf.Tensor


def sample_quadruplets(labels: Any, num_classes: int, seed: Any) -> Quadruplets:
  """Draws a positive and two negatives for every example.

  The positive is uniform among the other examples of the anchor's class. Two
  different classes are drawn uniformly from the client's other classes, and a
  uniform example from each.

  Args:
    labels: `int32[n]`, in 0..num_classes-1; n may be 0.
    num_classes: Number of classes.
    seed: `int32[2]`.

  Returns:
    `Quadruplets`, a function of the labels and the seed.
  """
  labels = tf.convert_to_tensor(labels)
  anchors = tf.range(tf.size(labels))
  by_class = tf.argsort(labels, stable=True)
  counts = tf.math.bincount(labels, minlength=num_classes)
  starts = tf.cumsum(counts, exclusive=True)
  # The client's classes, and the place of each label among them.
  present = tf.reshape(tf.where(counts > 0), [-1])
  present = tf.cast(present, tf.int32)
  place_of_class = tf.cumsum(tf.cast(counts > 0, tf.int32), exclusive=True)
  place = tf.gather(place_of_class, labels)
  num_present = tf.size(present)
  seeds = tf.unstack(tf.random.experimental.stateless_split(seed, 5))

  def drawn(number, seed):
    """Uniform in 0..number-1 for each anchor; 0 if number is not positive."""
    uniform = tf.random.stateless_uniform(tf.shape(labels), seed)
    index = tf.cast(uniform * tf.cast(number, tf.float32), tf.int32)
    return tf.maximum(tf.minimum(index, number - 1), 0)

  def example_of(distance, seed):
    """An example of the class `distance` places further, cyclically."""
    wrapped = tf.math.floormod(place + distance, tf.maximum(num_present, 1))
    chosen = tf.gather(present, wrapped)
    offset = drawn(tf.gather(counts, chosen), seed)
    return tf.gather(by_class, tf.gather(starts, chosen) + offset)

  # Rank of an anchor within its class; the positive is some ranks further.
  rank = tf.scatter_nd(by_class[:, tf.newaxis], anchors, tf.shape(labels))
  rank -= tf.gather(starts, labels)
  size = tf.gather(counts, labels)
  other = tf.math.floormod(rank + 1 + drawn(size - 1, seeds[0]), size)
  positive = tf.gather(by_class, tf.gather(starts, labels) + other)

  first = 1 + drawn(num_present - 1, seeds[1])
  second = 1 + drawn(num_present - 2, seeds[2])
  second += tf.cast(second >= first, tf.int32)  # Skips the first.

  mask_1 = (size > 1) & (num_present > 1)
  mask_2 = (size > 1) & (num_present > 2)
  negative_1 = tf.where(mask_1, example_of(first, seeds[3]), anchors)
  negative_2 = example_of(second, seeds[4])
  return Quadruplets(
    positive=tf.where(mask_1, positive, anchors),
    negative_1=negative_1,
    negative_2=tf.where(mask_2, negative_2, negative_1),
    mask_1=mask_1,
    mask_2=mask_2,
  )
