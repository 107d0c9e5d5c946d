"""Lengths, directions and angles of vectors.

All functions keep the dtype of their arguments. `refined` is equations 9 and 10
of "CoRe-Fed: Bridging Collaborative and Representation Fairness via Federated
Embedding Distillation" (AAAI 2026).
"""

from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import shapes

# The floor of norms that are divided by.
_TINY = 1e-12
# The squares of larger float32 numbers are infinite.
_LARGE = 1e15


def normalized(vectors: Any) -> tf.Tensor:
  """Vectors scaled to length 1.

  Args:
    vectors: `[..., p]`, float32 or float64.

  Returns:
    `[..., p]`; a vector shorter than 1e-12 stays as it is, and the gradient is
    finite for it, too.

  Raises:
    TypeError: If the vectors are not of a float type.
    ValueError: If they are scalars.
  """
  vectors, _ = shortened(shapes.vectors('vectors', vectors))
  squares = tf.reduce_sum(vectors**2, axis=-1, keepdims=True)
  long = squares > tf.constant(_TINY**2, squares.dtype)
  return vectors * tf.math.rsqrt(tf.where(long, squares, tf.ones_like(squares)))


def shortened(vectors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Vectors by their largest entry, where its square would be infinite.

  Args:
    vectors: `[..., p]`, float32 or float64.

  Returns:
    The vectors, `[..., p]`, and what they were divided by, `[..., 1]`, 1 for
    those that are not that large. No gradient comes from the latter: whoever
    calls this does not depend on the lengths.
  """
  largest = tf.reduce_max(tf.abs(vectors), axis=-1, keepdims=True)
  scale = tf.where(largest > _LARGE, largest, tf.ones_like(largest))
  scale = tf.stop_gradient(scale)
  return vectors / scale, scale


def cosines(vectors: Any, reference: Any) -> tf.Tensor:
  """Cosines of vectors with one of them, or with as many.

  Args:
    vectors: `[..., p]`.
    reference: `[p]` or `[..., p]`.

  Returns:
    `[...]`, 0 where a vector is 0 (shorter than 1e-12, each of them: cosines
    do not depend on the scale above).

  Raises:
    TypeError: If the arguments are not of one float type.
    ValueError: If the vectors differ in length.
  """
  vectors = shapes.vectors('vectors', vectors)
  reference = shapes.vectors('reference', reference, vectors)
  return tf.reduce_sum(normalized(vectors) * normalized(reference), axis=-1)


def refined(embeddings: Any, global_embedding: Any, beta: float) -> tf.Tensor:
  """Refined embeddings, moved towards their part along the global one.

      a = cos(z, z_g),  v = a z_g,  r = z + beta (v - z)

  Args:
    embeddings: z, `[..., p]`.
    global_embedding: z_g, `[p]`.
    beta: In [0, 1]; 0 leaves the embeddings as they are.

  Returns:
    r, `[..., p]`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `beta` is out of range, or the vectors differ in length.
  """
  checks.check_real('beta', beta, 0.0, 1.0)
  agreement = cosines(embeddings, global_embedding)[..., tf.newaxis]
  return embeddings + beta * (agreement * global_embedding - embeddings)
