"""CoRe-Fed's two distances between models.

CoRe-Fed (AAAI 2026), section 4.1: the angle and the L1 distance between a
client's model and the global model. The paper does not say the angle's unit.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair import fairness


def angle(u: Any, v: Any) -> tf.Tensor:
  """`arccos(<u, v> / (||u|| ||v||))`: D_cosine of one client.

  Args:
    u: `[d]`, of any float type.
    v: `[d]`.

  Returns:
    float64, radians; pi/2 if a vector is 0.

  Raises:
    ValueError: If the arguments are not vectors of equal length.
  """
  u, v = _pair(u, v)
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

  Raises:
    ValueError: If the arguments are not vectors of equal length.
  """
  u, v = _pair(u, v)
  return tf.reduce_sum(tf.abs(u - v))


def accuracy_distances(accuracies: Any) -> dict[str, float]:
  """Both distances of the clients' accuracies from equal accuracies.

  The angle is between the vector of the accuracies and the vector of ones, as
  related public code logs it. The L1 distance is from their mean.

  Args:
    accuracies: `float[k]`; NaN, a client without test data, is left out.

  Returns:
    `d_cosine` and `d_manhattan`, NaN without any accuracy.

  Raises:
    ValueError: If the accuracies are not a vector of numbers.
  """
  known = fairness.defined('accuracies', accuracies)
  if not known.size:
    return dict.fromkeys(('d_cosine', 'd_manhattan'), float('nan'))
  return {
    'd_cosine': float(angle(known, np.ones_like(known))),
    'd_manhattan': float(np.abs(known - known.mean()).sum()),
  }


def _pair(u, v) -> tuple[tf.Tensor, tf.Tensor]:
  # In float32 angles below 1e-3 would be rounding errors.
  u, v = tf.cast(u, tf.float64), tf.cast(v, tf.float64)
  ranks = {u.shape.rank, v.shape.rank}
  # TensorFlow would broadcast a vector of length 1.
  if ranks - {1, None} or not u.shape.is_compatible_with(v.shape):
    raise ValueError(
      f'u and v must be vectors of one length, found shapes {u.shape} and'
      f' {v.shape}.'
    )
  return u, v
