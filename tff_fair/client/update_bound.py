"""A bound on the norm of what a client sends.

One client whose features are huge, but finite, could otherwise move the global
model so far that no honest client brings it back.
"""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def bound_update(update: Any, max_norm: float | None) -> tuple[Any, tf.Tensor]:
  """Scales an update whose L2 norm exceeds a bound down to this bound.

      u min(1, b / |u|)

  The non-trainable part of `ModelWeights` has a norm and a bound of its own: a
  client with huge features has huge batch-norm statistics, even if its weights
  hardly move. Its bound is `b^2`, as variances are squares.

  Args:
    update: `ModelWeights` or another structure of float32 tensors.
    max_norm: b, positive, at most 1e15; None for no bound.

  Returns:
    The update and whether it was scaled, a bool scalar. An update within the
    bound keeps its bits; one that is not finite stays so.
  """
  if max_norm is None:
    return update, tf.constant(False)
  if isinstance(update, tff.learning.models.ModelWeights):
    trainable, weights_clipped = _bounded(update.trainable, max_norm)
    statistics, statistics_clipped = _bounded(update.non_trainable, max_norm**2)
    bounded = tff.learning.models.ModelWeights(trainable, statistics)
    return bounded, weights_clipped | statistics_clipped
  return _bounded(update, max_norm)


def is_within_bound(update: Any, max_norm: float | None) -> tf.Tensor:
  """Returns whether `bound_update` would leave an update as it is.

  An update that is not finite is not within.
  """
  if max_norm is None:
    return tf.constant(True)
  if isinstance(update, tff.learning.models.ModelWeights):
    return _is_within(update.trainable, max_norm) & _is_within(
      update.non_trainable, max_norm**2
    )
  return _is_within(update, max_norm)


def half_square(structure: Any) -> tf.Tensor:
  """Half the squared L2 norm of all tensors together, in one pass in float32.

  It is infinite or NaN if a tensor is not finite, or if it overflows.
  """
  tensors = tf.nest.flatten(structure)
  if not tensors:
    return tf.constant(0.0)
  # Not `tf.add_n`, for which TensorFlow may keep a variable between calls.
  return tf.reduce_sum([tf.cast(tf.nn.l2_loss(t), tf.float32) for t in tensors])


def _is_within(update, max_norm):
  # Where the sum overflows, the norm exceeds the bound, too.
  return half_square(update) <= min(max_norm**2 / 2, np.finfo(np.float32).max)


def _bounded(update, max_norm):
  """Bounds the norm of all tensors together."""
  tensors = tf.nest.flatten(update)
  if not tensors:
    return update, tf.constant(False)
  within = _is_within(update, max_norm)

  def scaled():
    # The squares of large float32 numbers are finite as float64.
    wide = [tf.cast(t, tf.float64) for t in tensors]
    norm = tf.sqrt(tf.add_n([tf.reduce_sum(w**2) for w in wide]))
    factor = tf.minimum(max_norm / norm, 1.0)
    return [tf.cast(factor * w, tf.float32) for w in wide]

  bounded = tf.cond(within, lambda: list(map(tf.identity, tensors)), scaled)
  return tf.nest.pack_sequence_as(update, bounded), tf.logical_not(within)
