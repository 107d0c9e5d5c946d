"""Agglomerative clustering of clients, as TensorFlow operations.

SciPy has the same algorithm, but TFF's workers run graphs without Python; the
tests compare the two.
"""

from typing import Any

import tensorflow as tf


def cosine_distances(vectors: Any) -> tf.Tensor:
  """`1 - cos` of each pair of rows, `float64[m, m]`; 1 for a row of zeros."""
  vectors = tf.cast(vectors, tf.float64)
  norms = tf.norm(vectors, axis=1, keepdims=True)
  units = tf.math.divide_no_nan(vectors, norms)
  return 1 - tf.matmul(units, units, transpose_b=True)


def average_linkage(
  distances: Any, num_clusters: int, included: Any
) -> tf.Tensor:
  """Agglomerative clustering with average linkage.

  The two clusters with the smallest mean distance between their members are
  merged until `num_clusters` are left. Ties go to the pair with the smallest
  positions; distances that are not finite are the largest. The result is
  `int32[m]`: the smallest position in the row's cluster, -1 for rows that are
  not `included`.
  """
  number = tf.shape(distances)[0]
  positions = tf.range(number)
  infinity = tf.constant(float('inf'), tf.float64)
  # Below infinity, so that every pair of clusters precedes the masked entries.
  farthest = tf.constant(1e200, tf.float64)
  later = positions[:, tf.newaxis] < positions[tf.newaxis]

  def merge(distances, sizes, labels):
    alive = sizes > 0
    pairs = alive[:, tf.newaxis] & alive[tf.newaxis] & later
    nearest = tf.argmin(
      tf.reshape(tf.where(pairs, distances, infinity), [-1]),
      output_type=tf.int32,
    )
    i, j = nearest // number, nearest % number
    n_i, n_j = sizes[i], sizes[j]
    mean = (n_i * distances[i] + n_j * distances[j]) / (n_i + n_j)
    is_i, is_j = tf.equal(positions, i), tf.equal(positions, j)
    distances = tf.where(is_i[:, tf.newaxis], mean[tf.newaxis], distances)
    distances = tf.where(is_i[tf.newaxis], mean[:, tf.newaxis], distances)
    sizes = tf.where(is_j, tf.zeros_like(sizes), sizes)
    sizes = tf.where(is_i, n_i + n_j, sizes)
    return distances, sizes, tf.where(tf.equal(labels, j), i, labels)

  def too_many(distances, sizes, labels):
    del distances, labels  # Unused.
    return tf.math.count_nonzero(sizes, dtype=tf.int32) > num_clusters

  included = tf.convert_to_tensor(included)
  distances = tf.cast(distances, tf.float64)
  distances = tf.where(tf.math.is_finite(distances), distances, farthest)
  _, _, labels = tf.while_loop(
    too_many,
    merge,
    (
      distances,
      tf.cast(included, tf.float64),
      tf.where(included, positions, -1),
    ),
  )
  return labels
