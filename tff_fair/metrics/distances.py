"""How far apart two models are, by CoRe-Fed's two distances.

CoRe-Fed (AAAI 2026), table 1: the angle and the L1 distance between a client's
model and the global one.
"""

from typing import Any

import numpy as np
import tensorflow as tf


def angle(u: Any, v: Any) -> tf.Tensor:
  """`arccos(<u, v> / (||u|| ||v||))`: D_cosine of one client.

  Args:
    u: `[d]`, of any float type.
    v: `[d]`.

  Returns:
    float64, radians; pi/2 if a vector is 0.
  """
  # In float32 angles below 1e-3 would be rounding errors.
  u, v = tf.cast(u, tf.float64), tf.cast(v, tf.float64)
  lengths = tf.norm(u) * tf.norm(v)
  cosine = tf.math.divide_no_nan(tf.tensordot(u, v, 1), lengths)
  return tf.acos(tf.clip_by_value(cosine, -1.0, 1.0))


def manhattan(u: Any, v: Any) -> tf.Tensor:
  """`sum_j |u_j - v_j|`: D_manhattan of one client.

  Args:
    u: `[d]`, of any float type.
    v: `[d]`.

  Returns:
    float64.
  """
  u, v = tf.cast(u, tf.float64), tf.cast(v, tf.float64)
  return tf.reduce_sum(tf.abs(u - v))


def accuracy_distances(accuracies: Any) -> dict[str, float]:
  """Both distances of the clients' accuracies from equal accuracies.

  The angle is that between the vector of the accuracies and the vector of ones,
  as related public code logs it; the L1 distance is that from their mean.

  Args:
    accuracies: `float[k]`; NaN, a client without test data, is left out.

  Returns:
    `d_cosine` and `d_manhattan`.
  """
  known = np.asarray(accuracies, np.float64)
  known = known[~np.isnan(known)]
  return {
    'd_cosine': float(angle(known, np.ones_like(known))),
    'd_manhattan': float(np.abs(known - known.mean()).sum()),
  }
