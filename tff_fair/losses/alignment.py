"""CoRe-Fed's comparison of embeddings: contrast, refinement, agreement.

"CoRe-Fed: Bridging Collaborative and Representation Fairness via Federated
Embedding Distillation" (AAAI 2026). Equation numbers are the paper's. All
functions keep the dtype of their arguments.
"""

from typing import Any

import tensorflow as tf

# The floor of norms that are divided by.
_TINY = 1e-12


def normalized(vectors: Any) -> tf.Tensor:
  """Vectors scaled to length 1.

  Args:
    vectors: `[..., p]`, float32 or float64.

  Returns:
    `[..., p]`; a vector shorter than 1e-12 stays as it is, and the gradient is
    finite for it, too.
  """
  vectors = tf.convert_to_tensor(vectors)
  squares = tf.reduce_sum(vectors**2, axis=-1, keepdims=True)
  long = squares > tf.constant(_TINY**2, squares.dtype)
  return vectors * tf.math.rsqrt(tf.where(long, squares, tf.ones_like(squares)))


def cosines(vectors: Any, reference: Any) -> tf.Tensor:
  """Cosines of vectors with one of them, or with as many.

  Args:
    vectors: `[..., p]`.
    reference: `[p]` or `[..., p]`.

  Returns:
    `[...]`, 0 where a vector is 0 (shorter than 1e-12, each of them: cosines
    do not depend on the scale above).
  """
  return tf.reduce_sum(normalized(vectors) * normalized(reference), axis=-1)


def contrastive_loss(
  embedding: Any,
  positive: Any,
  negatives: Any,
  is_negative: Any,
  *,
  temperature: float,
  include_positive: bool = False,
) -> tf.Tensor:
  """The contrastive loss of one embedding (equation 6).

      L = -ln( exp(cos(z, z_g) / T) / sum_l exp(cos(z, z_l) / T) )

  The positive is not in the denominator, as printed, so that L may be negative.

  Args:
    embedding: z, `[p]`.
    positive: z_g, `[p]`.
    negatives: z_l, `[m, p]`.
    is_negative: `bool[m]`, which of them count.
    temperature: T, positive.
    include_positive: Adds the positive to the denominator (InfoNCE).

  Returns:
    A scalar; 0 without negatives.
  """
  attraction = cosines(embedding, positive) / temperature
  similarities = cosines(negatives, embedding) / temperature
  # Far below every cosine by temperature, and no gradient comes from it.
  nothing = tf.constant(similarities.dtype.min, similarities.dtype)
  similarities = tf.where(is_negative, similarities, nothing)
  if include_positive:
    similarities = tf.concat([similarities, attraction[tf.newaxis]], axis=0)
  loss = tf.reduce_logsumexp(similarities) - attraction
  return tf.where(tf.reduce_any(is_negative), loss, tf.zeros_like(loss))


def refined(embeddings: Any, global_embedding: Any, beta: float) -> tf.Tensor:
  """Refined embeddings, moved towards their part along the global one.

      a = cos(z, z_g),  v = a z_g,  r = z + beta (v - z)

  Args:
    embeddings: z, `[..., p]`.
    global_embedding: z_g, `[p]`.
    beta: In [0, 1]; 0 leaves the embeddings as they are.

  Returns:
    r, `[..., p]`.
  """
  agreement = cosines(embeddings, global_embedding)[..., tf.newaxis]
  return embeddings + beta * (agreement * global_embedding - embeddings)
