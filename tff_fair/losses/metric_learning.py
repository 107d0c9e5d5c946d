"""Metric-learning losses: distances between embeddings of a few examples.

That of "FedQuad: Federated Stochastic Quadruplet Learning to Mitigate Data
Heterogeneity" (https://arxiv.org/abs/2509.04107), equation 5, and those of its
baselines: a triplet loss with a margin (the paper cites Hoffer and Ailon, "Deep
Metric Learning Using Triplet Network", https://arxiv.org/abs/1412.6622, whose
loss has none), the quadruplet loss of Chen et al., "Beyond Triplet Loss" (CVPR
2017, https://arxiv.org/abs/1704.01719), the supervised contrastive loss of
Khosla et al. (NeurIPS 2020, https://arxiv.org/abs/2004.11362) and the
model-contrastive loss of MOON (Li, He and Song, CVPR 2021,
https://arxiv.org/abs/2103.16257).

The functions keep the dtype of their arguments. TensorFlow Addons has none of
these: its triplet losses choose examples within a batch, its contrastive loss
takes pairs, and its N-pairs losses compare dot products.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import geometry
from tff_fair.tensors import shapes

# Below this a squared distance is clipped: a root has no slope at 0.
_TINY = 1e-12


def distances(u: Any, v: Any, *, squared: bool = False) -> tf.Tensor:
  """Euclidean distances, `sqrt(max(|u - v|^2, 1e-12))`.

  Args:
    u: `[..., p]`.
    v: `[..., p]`.
    squared: Returns `|u - v|^2` instead.

  Returns:
    `[...]`; the gradient is 0 between equal vectors.

  Raises:
    TypeError: If the arguments are not of one float type.
    ValueError: If the vectors differ in length.
  """
  u = shapes.check_vectors('u', u)
  squares = tf.reduce_sum((u - shapes.check_vectors('v', v, u)) ** 2, axis=-1)
  if squared:
    return squares
  return tf.sqrt(tf.maximum(squares, tf.constant(_TINY, squares.dtype)))


def triplet_loss(
  anchor: Any,
  positive: Any,
  negative: Any,
  *,
  margin: float = 1.0,
  mask: Any = None,
) -> tf.Tensor:
  """The triplet loss of each anchor, `[|a - p| - |a - n| + m]_+`.

  Args:
    anchor: `[?, p]`, embeddings, as are all others.
    positive: Of examples of the anchors' classes.
    negative: Of examples of other classes.
    margin: m, not negative.
    mask: `bool[?]`, which triplets are valid; None for all.

  Returns:
    `[?]`, 0 for triplets that are not valid.
  """
  checks.check_real('margin', margin, 0.0)
  anchor, positive, negative = shapes.check_same_shape(
    anchor=anchor, positive=positive, negative=negative
  )
  return _hinge(
    distances(anchor, positive), distances(anchor, negative), margin, mask
  )


def quadruplet_loss(
  anchor: Any,
  positive: Any,
  negative_1: Any,
  negative_2: Any,
  *,
  margins: Sequence[float] = (1.0, 0.5),
  squared: bool = False,
  mask_1: Any = None,
  mask_2: Any = None,
) -> tf.Tensor:
  """FedQuad's loss of each anchor (equation 5).

      v1 [d(a, p) - d(a, n1) + m1]_+ + v2 [d(a, p) - d(a, n2) + m2]_+

  Args:
    anchor: `[?, p]`, embeddings, as are all others.
    positive: Of examples of the anchors' classes.
    negative_1: Of examples of other classes.
    negative_2: Of examples of yet other classes.
    margins: m1 and m2, not negative.
    squared: Whether d is `|u - v|^2`, as in the paper's Algorithm 1, instead of
      `|u - v|`, as in its equation.
    mask_1: v1, `bool[?]`; None for all true.
    mask_2: v2, `bool[?]`; None for all true.

  Returns:
    `[?]`.
  """
  anchor, *others = _quadruplet(
    anchor, positive, negative_1, negative_2, margins
  )
  # The anchor is used once: TensorFlow sums three or more gradients of a tensor
  # in the order in which they are ready, so the last bits would vary.
  apart, first, second = tf.unstack(
    distances(anchor, tf.stack(others), squared=squared)
  )
  return _hinge(apart, first, margins[0], mask_1) + _hinge(
    apart, second, margins[1], mask_2
  )


def classic_quadruplet_loss(
  anchor: Any,
  positive: Any,
  negative_1: Any,
  negative_2: Any,
  *,
  margins: Sequence[float] = (1.0, 0.5),
  mask_1: Any = None,
  mask_2: Any = None,
) -> tf.Tensor:
  """The quadruplet loss of Chen et al. of each anchor.

      v1 [|a - p|^2 - |a - n1|^2 + m1]_+ + v2 [|a - p|^2 - |n1 - n2|^2 + m2]_+

  The second term compares the two negatives with each other; FedQuad does not.
  Distances are Euclidean and margins fixed, whereas the original learns the
  distances and adapts the margins.

  Args:
    anchor: `[?, p]`, embeddings, as are all others.
    positive: Of examples of the anchors' classes.
    negative_1: Of examples of other classes.
    negative_2: Of examples of yet other classes.
    margins: m1 and m2, not negative.
    mask_1: v1, `bool[?]`; None for all true.
    mask_2: v2, `bool[?]`; None for all true.

  Returns:
    `[?]`.
  """
  anchor, positive, negative_1, negative_2 = _quadruplet(
    anchor, positive, negative_1, negative_2, margins
  )
  apart = distances(anchor, positive, squared=True)
  first = distances(anchor, negative_1, squared=True)
  second = distances(negative_1, negative_2, squared=True)
  return _hinge(apart, first, margins[0], mask_1) + _hinge(
    apart, second, margins[1], mask_2
  )


def supervised_contrastive_loss(
  labels: Any, embeddings: Any, *, temperature: float = 0.07
) -> tf.Tensor:
  """The supervised contrastive loss of a batch, with one view per example.

  With z scaled to length 1 and P(i) the other examples of i's class:

      L_i = -1/|P(i)| sum_{p in P(i)} ( z_i z_p / T - ln sum_{a != i} exp(z_i
      z_a / T) )

  Args:
    labels: `int[n]` or `int[n, 1]`.
    embeddings: `[n, p]`.
    temperature: T, positive.

  Returns:
    A scalar, the mean of `L_i` over the examples whose P(i) is not empty; 0 if
    there are none.
  """
  checks.check_positive('temperature', temperature)
  labels, embeddings = shapes.check_labels(tf.reshape(labels, [-1]), embeddings)
  z = geometry.normalized(embeddings)
  others = tf.logical_not(tf.eye(tf.size(labels), dtype=tf.bool))
  same = tf.equal(labels[:, tf.newaxis], labels) & others
  # Far below every cosine / T, and without a gradient.
  nothing = tf.constant(z.dtype.min / 2, z.dtype)
  similarities = tf.matmul(z, z, transpose_b=True) / temperature
  similarities = tf.where(others, similarities, nothing)
  log_sums = tf.reduce_logsumexp(similarities, axis=1, keepdims=True)
  terms = tf.where(same, log_sums - similarities, tf.zeros_like(similarities))
  num_positives = tf.math.count_nonzero(same, axis=1, dtype=z.dtype)
  each = tf.math.divide_no_nan(tf.reduce_sum(terms, axis=1), num_positives)
  has_positive = tf.cast(num_positives > 0, z.dtype)
  return tf.math.divide_no_nan(tf.reduce_sum(each), tf.reduce_sum(has_positive))


def model_contrastive_loss(
  embedding: Any, received: Any, previous: Any, *, temperature: float = 0.5
) -> tf.Tensor:
  """MOON's loss of each example: near the global, far from the last model.

      -ln( exp(s_g / T) / (exp(s_g / T) + exp(s_p / T)) ), s the cosines of
      `embedding` with the other two

  Args:
    embedding: `[?, p]`, of the model in training.
    received: `[?, p]`, of the received, global model.
    previous: `[?, p]`, of the client's model of its previous round.
    temperature: T, positive.

  Returns:
    `[?]`.
  """
  checks.check_positive('temperature', temperature)
  embedding, received, previous = shapes.check_same_shape(
    embedding=embedding, received=received, previous=previous
  )
  # The embedding is used once, as in `quadruplet_loss`.
  others = tf.stack([previous, received])
  to_previous, to_received = tf.unstack(geometry.cosines(embedding, others))
  gap = to_previous - to_received
  return tf.math.softplus(gap / temperature)


def _quadruplet(anchor, positive, negative_1, negative_2, margins):
  """Checks the arguments; returns the four embeddings as tensors."""
  checks.check_margins(margins)
  return shapes.check_same_shape(
    anchor=anchor,
    positive=positive,
    negative_1=negative_1,
    negative_2=negative_2,
  )


def _hinge(near, far, margin, mask) -> tf.Tensor:
  """`[near - far + margin]_+` where the mask is true, else 0."""
  terms = tf.nn.relu(near - far + margin)
  return terms if mask is None else tf.where(mask, terms, tf.zeros_like(terms))
