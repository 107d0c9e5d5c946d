"""Clusters of clients, in a graph.

SciPy has the same algorithm, but TFF's workers run graphs without Python; the
tests compare the two.
"""

from typing import Any

import tensorflow as tf


def cosine_distances(vectors: Any) -> tf.Tensor:
  """`1 - cos` of each pair of rows.

  Args:
    vectors: `float[m, d]`.

  Returns:
    `float64[m, m]`, 1 for pairs with a row of zeros.
  """
  vectors = tf.cast(vectors, tf.float64)
  norms = tf.norm(vectors, axis=1, keepdims=True)
  units = tf.math.divide_no_nan(vectors, norms)
  return 1 - tf.matmul(units, units, transpose_b=True)


def average_linkage(
  distances: Any, num_clusters: int, counted: Any
) -> tf.Tensor:
  """Agglomerative clustering with average linkage.

  The two clusters with the smallest mean distance between their members become
  one, until `num_clusters` are left; of equally near pairs the one with the
  smallest positions.

  Args:
    distances: `float64[m, m]`, symmetric; what is not finite is the farthest.
    num_clusters: How many clusters, at least 1; with fewer counted rows each of
      these is a cluster.
    counted: `bool[m]`, which rows are clustered.

  Returns:
    `int32[m]`: the smallest position in a row's cluster; -1 where it is not
    counted.
  """
  number = tf.shape(distances)[0]
  positions = tf.range(number)
  infinity = tf.constant(float('inf'), tf.float64)
  # Less than infinite: pairs of clusters stand before what is no pair.
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

  counted = tf.convert_to_tensor(counted)
  distances = tf.cast(distances, tf.float64)
  distances = tf.where(tf.math.is_finite(distances), distances, farthest)
  _, _, labels = tf.while_loop(
    too_many,
    merge,
    (
      distances,
      tf.cast(counted, tf.float64),
      tf.where(counted, positions, -1),
    ),
  )
  return labels
