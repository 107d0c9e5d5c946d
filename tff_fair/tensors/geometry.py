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
  """Vectors `[..., p]` scaled to length 1; below 1e-12 they stay."""
  vectors, _ = scale_down_large(shapes.check_vectors('vectors', vectors))
  squares = tf.reduce_sum(vectors**2, axis=-1, keepdims=True)
  long = squares > tf.constant(_TINY**2, squares.dtype)
  return vectors * tf.math.rsqrt(tf.where(long, squares, tf.ones_like(squares)))


def scale_down_large(vectors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Divides vectors whose squares overflow by their largest entry.

  The second result are the divisors, 1 for smaller vectors. They have no
  gradient, so the caller's result must not depend on the lengths.
  """
  largest = tf.reduce_max(tf.abs(vectors), axis=-1, keepdims=True)
  scale = tf.where(largest > _LARGE, largest, tf.ones_like(largest))
  scale = tf.stop_gradient(scale)
  return vectors / scale, scale


def cosines(vectors: Any, reference: Any) -> tf.Tensor:
  """Cosines of vectors `[..., p]` with one vector, or each with another.

  They are 0 where either is shorter than 1e-12.
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
  """
  checks.check_real('rate', rate, 0.0, 1.0)
  agreement = cosines(embeddings, global_embedding)[..., tf.newaxis]
  return embeddings + rate * (agreement * global_embedding - embeddings)
