"""CoRe-Fed's contrastive loss of embeddings.

"CoRe-Fed: Bridging Collaborative and Representation Fairness via Federated
Embedding Distillation" (AAAI 2026). Equation numbers are the paper's. The loss
keeps the dtype of its arguments.
"""

from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import geometry


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

  As printed, the positive is not in the denominator, so L may be negative.

  Args:
    embedding: z, `[p]`.
    positive: z_g, `[p]`.
    negatives: z_l, `[m, p]`.
    is_negative: `bool[m]`, which of them to use.
    temperature: T, positive.
    include_positive: Adds the positive to the denominator (InfoNCE).

  Returns:
    A scalar; 0 without negatives.

  Raises:
    TypeError: If `temperature` is not a number.
    ValueError: If it is not positive, or the shapes are not as required.
  """
  checks.check_positive('temperature', temperature)
  attraction = geometry.cosines(embedding, positive) / temperature
  similarities = geometry.cosines(negatives, embedding) / temperature
  # Far below every cosine / T, and without a gradient.
  nothing = tf.constant(similarities.dtype.min, similarities.dtype)
  similarities = tf.where(is_negative, similarities, nothing)
  if include_positive:
    similarities = tf.concat([similarities, attraction[tf.newaxis]], axis=0)
  loss = tf.reduce_logsumexp(similarities) - attraction
  return tf.where(tf.reduce_any(is_negative), loss, tf.zeros_like(loss))
