"""Lengths, directions and angles of vectors.

All functions keep the dtype of their arguments.
"""

from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import shapes

# Shorter vectors are not scaled.
_TINY = 1e-12
# The squares of larger float32 numbers are infinite.
_LARGE = 1e15


def normalized(vectors: Any) -> tf.Tensor:
  """Vectors scaled to length 1.

  Args:
    vectors: `[..., p]`, float32 or float64.

  Returns:
    `[..., p]`; vectors shorter than 1e-12 are unchanged and have a finite
    gradient.
  """
  vectors, _ = scale_down_large(shapes.check_vectors('vectors', vectors))
  squares = tf.reduce_sum(vectors**2, axis=-1, keepdims=True)
  long = squares > tf.constant(_TINY**2, squares.dtype)
  return vectors * tf.math.rsqrt(tf.where(long, squares, tf.ones_like(squares)))


def scale_down_large(vectors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Divides vectors whose squares overflow by their largest entry.

  Args:
    vectors: `[..., p]`, float32 or float64.

  Returns:
    The vectors, `[..., p]`, and their divisors, `[..., 1]`, which are 1 for
    smaller vectors. The divisors have no gradient, so the caller's result must
    not depend on the lengths.
  """
  largest = tf.reduce_max(tf.abs(vectors), axis=-1, keepdims=True)
  scale = tf.where(largest > _LARGE, largest, tf.ones_like(largest))
  scale = tf.stop_gradient(scale)
  return vectors / scale, scale


def cosines(vectors: Any, reference: Any) -> tf.Tensor:
  """Cosines of vectors with one vector, or each with another.

  Args:
    vectors: `[..., p]`.
    reference: `[p]` or `[..., p]`.

  Returns:
    `[...]`, 0 where either vector is shorter than 1e-12. Above this length
    cosines do not depend on lengths.
  """
  vectors = shapes.check_vectors('vectors', vectors)
  reference = shapes.check_vectors('reference', reference, vectors)
  return tf.reduce_sum(normalized(vectors) * normalized(reference), axis=-1)


def refined(embeddings: Any, global_embedding: Any, rate: float) -> tf.Tensor:
  """Embeddings moved towards their component along the global one.

      a = cos(z, z_g),  v = a z_g,  r = z + rate (v - z)

  Equations 9 and 8 of "CoRe-Fed: Bridging Collaborative and Representation
  Fairness via Federated Embedding Distillation" (AAAI 2026); the rate is its
  beta.

  Args:
    embeddings: z, `[..., p]`.
    global_embedding: z_g, `[p]`.
    rate: In [0, 1]; 0 leaves the embeddings unchanged.

  Returns:
    r, `[..., p]`.
  """
  checks.check_real('rate', rate, 0.0, 1.0)
  agreement = cosines(embeddings, global_embedding)[..., tf.newaxis]
  return embeddings + rate * (agreement * global_embedding - embeddings)
