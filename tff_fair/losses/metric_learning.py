"""Losses of metric learning: distances between embeddings of few examples.

FedQuad, "Quadruplet loss for federated metric learning" by its equation 5, and
what it is compared with: the triplet loss of its text (after Hoffer and Ailon,
"Deep Metric Learning Using Triplet Network", https://arxiv.org/abs/1412.6622),
the quadruplet loss of Chen et al., "Beyond Triplet Loss" (CVPR 2017,
https://arxiv.org/abs/1704.01719), the supervised contrastive loss of Khosla et
al. (NeurIPS 2020, https://arxiv.org/abs/2004.11362) and the model-contrastive
loss of MOON (Li, He and Song, CVPR 2021, https://arxiv.org/abs/2103.16257).

Pure functions keep the dtype of their arguments; the Keras losses take stacked
embeddings. TensorFlow Addons has none of these: its triplet losses choose the
hardest examples of a batch, its contrastive loss takes pairs, and its N-pairs
losses compare dot products; the tests take its hard triplet loss for a batch
that leaves no choice as a second opinion.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import geometry
from tff_fair.tensors import shapes

# The floor of squared distances under a root, whose slope at 0 is infinite.
_TINY = 1e-12


def distances(u: Any, v: Any, *, squared: bool = False) -> tf.Tensor:
  """Euclidean distances, `sqrt(max(|u - v|^2, 1e-12))`.

  Args:
    u: `[..., p]`.
    v: `[..., p]`.
    squared: Gives `|u - v|^2` instead.

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
    anchor: `[?, p]`, embeddings, as all others.
    positive: Of examples of the anchors' classes.
    negative: Of examples of other classes.
    margin: m.
    mask: `bool[?]`, which triplets there are; None for all.

  Returns:
    `[?]`, 0 where there is none.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `margin` is negative, or the shapes differ.
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
    anchor: `[?, p]`, embeddings, as all others.
    positive: Of examples of the anchors' classes.
    negative_1: Of examples of other classes.
    negative_2: Of examples of yet other classes.
    margins: m1 and m2.
    squared: Whether d is `|u - v|^2`, as in the paper's Algorithm 1, and not
      `|u - v|`, as in its equation.
    mask_1: v1, `bool[?]`; None for all true.
    mask_2: v2, likewise.

  Returns:
    `[?]`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `margins` are not two numbers that are not negative, or the
      shapes differ.
  """
  anchor, *others = _quadruplet(
    anchor, positive, negative_1, negative_2, margins
  )
  # The anchor is used once: of three and more gradients of one tensor,
  # TensorFlow adds first whichever is ready, and the last bits vary.
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

  Its second term compares two negatives with each other, which FedQuad drops.
  Distances are Euclidean and margins fixed, where the original learns the one
  and adapts the other.

  Args:
    anchor: `[?, p]`, embeddings, as all others.
    positive: Of examples of the anchors' classes.
    negative_1: Of examples of other classes.
    negative_2: Of examples of yet other classes.
    margins: m1 and m2.
    mask_1: v1, `bool[?]`; None for all true.
    mask_2: v2, likewise.

  Returns:
    `[?]`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `margins` are not two numbers that are not negative, or the
      shapes differ.
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
  """The supervised contrastive loss of a batch, one view an example.

  With z scaled to length 1 and P(i) the other examples of i's class:

      L_i = -1/|P(i)| sum_{p in P(i)} ( z_i z_p / T - ln sum_{a != i} exp(z_i
      z_a / T) )

  Args:
    labels: `int[n]` or `int[n, 1]`.
    embeddings: `[n, p]`.
    temperature: T, positive.

  Returns:
    A scalar, the mean of `L_i` over the examples that have a P(i); 0 if none
    has.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `temperature` is not positive, or the shapes are not as
      required.
  """
  checks.check_positive('temperature', temperature)
  labels, embeddings = shapes.check_labels(tf.reshape(labels, [-1]), embeddings)
  z = geometry.normalized(embeddings)
  others = tf.logical_not(tf.eye(tf.size(labels), dtype=tf.bool))
  same = tf.equal(labels[:, tf.newaxis], labels) & others
  # Far below every cosine by temperature, and no gradient comes from it.
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
  """MOON's loss of each example: near the received model, off the last own.

      -ln( exp(s_g / T) / (exp(s_g / T) + exp(s_p / T)) ), s the cosines of
      `embedding` with the other two

  Args:
    embedding: `[?, p]`, of the model in training.
    received: `[?, p]`, of the received model.
    previous: `[?, p]`, of the client's own last model.
    temperature: T, positive.

  Returns:
    `[?]`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `temperature` is not positive, or the shapes differ.
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


class TripletLoss(tf.keras.losses.Loss):
  """`triplet_loss` as a Keras loss of stacked embeddings."""

  def __init__(
    self,
    margin: float = 1.0,
    *,
    reduction: str = tf.keras.losses.Reduction.AUTO,
    name: str = 'triplet_loss',
  ):
    """Keeps the parameters, see `triplet_loss` and `tf.keras.losses.Loss`.

    Raises:
      TypeError: If `margin` is not a number.
      ValueError: If it is negative.
    """
    super().__init__(reduction=reduction, name=name)
    self.margin = checks.check_real('margin', margin, 0.0)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor.

    Args:
      y_true: `[?, 1]` or `[?]`, which triplets there are, 1 or 0.
      y_pred: `[?, 3, p]`: anchor, positive, negative.

    Returns:
      `[?]`.
    """
    roles = _roles('TripletLoss', y_pred, 3)
    mask = _one_each('TripletLoss', tf.cast(y_true, tf.bool))
    return triplet_loss(*roles, margin=self.margin, mask=mask)

  def get_config(self) -> dict[str, Any]:
    """The parameters."""
    return {**super().get_config(), 'margin': self.margin}


class _QuadrupletLoss(tf.keras.losses.Loss):
  """What the two quadruplet losses share."""

  def __init__(self, margins, reduction, name):
    super().__init__(reduction=reduction, name=name)
    self.margins = checks.check_margins(margins)

  def _parts(self, y_true, y_pred) -> tuple[list[tf.Tensor], dict[str, Any]]:
    masks = tf.cast(y_true, tf.bool)
    name = type(self).__name__
    if not masks.shape.is_compatible_with([None, 2]):
      raise _wrong_shape(f'y_true of {name}', '[?, 2]', masks)
    options = {'mask_1': masks[:, 0], 'mask_2': masks[:, 1]}
    options['margins'] = self.margins
    return _roles(name, y_pred, 4), options

  def get_config(self) -> dict[str, Any]:
    """The parameters."""
    return {**super().get_config(), 'margins': self.margins}


class QuadrupletLoss(_QuadrupletLoss):
  """`quadruplet_loss`, FedQuad's, as a Keras loss of stacked embeddings."""

  def __init__(
    self,
    margins: Sequence[float] = (1.0, 0.5),
    *,
    squared: bool = False,
    reduction: str = tf.keras.losses.Reduction.AUTO,
    name: str = 'quadruplet_loss',
  ):
    """Keeps the parameters, see `quadruplet_loss`, `tf.keras.losses.Loss`.

    Raises:
      ValueError: If `margins` are not two numbers that are not negative.
    """
    super().__init__(margins, reduction, name)
    self.squared = squared

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor.

    Args:
      y_true: `[?, 2]`, v1 and v2, 1 or 0.
      y_pred: `[?, 4, p]`: anchor, positive, first and second negative.

    Returns:
      `[?]`.
    """
    roles, options = self._parts(y_true, y_pred)
    return quadruplet_loss(*roles, squared=self.squared, **options)

  def get_config(self) -> dict[str, Any]:
    """The parameters."""
    return {**super().get_config(), 'squared': self.squared}


class ClassicQuadrupletLoss(_QuadrupletLoss):
  """`classic_quadruplet_loss` as a Keras loss of stacked embeddings."""

  def __init__(
    self,
    margins: Sequence[float] = (1.0, 0.5),
    *,
    reduction: str = tf.keras.losses.Reduction.AUTO,
    name: str = 'classic_quadruplet_loss',
  ):
    """Keeps the parameters, see `classic_quadruplet_loss`.

    Raises:
      ValueError: If `margins` are not two numbers that are not negative.
    """
    super().__init__(margins, reduction, name)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor; arguments as for `QuadrupletLoss`."""
    roles, options = self._parts(y_true, y_pred)
    return classic_quadruplet_loss(*roles, **options)


class SupervisedContrastiveLoss(tf.keras.losses.Loss):
  """`supervised_contrastive_loss` as a Keras loss of embeddings.

  It is of the batch as a whole, so weights of single examples have no meaning.
  """

  def __init__(
    self,
    temperature: float = 0.07,
    *,
    reduction: str = tf.keras.losses.Reduction.AUTO,
    name: str = 'supervised_contrastive_loss',
  ):
    """Keeps the parameters, see `supervised_contrastive_loss`.

    Raises:
      TypeError: If `temperature` is not a number.
      ValueError: If it is not positive.
    """
    super().__init__(reduction=reduction, name=name)
    self.temperature = checks.check_positive('temperature', temperature)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of a batch.

    Args:
      y_true: `int[?]` or `int[?, 1]`, the classes.
      y_pred: `[?, p]`, the embeddings.

    Returns:
      A scalar.
    """
    name, y_pred = type(self).__name__, tf.convert_to_tensor(y_pred)
    if not y_pred.shape.is_compatible_with([None, None]):
      raise _wrong_shape(f'y_pred of {name}', '[?, p]', y_pred)
    labels = _one_each(name, tf.convert_to_tensor(y_true))
    return supervised_contrastive_loss(
      labels, y_pred, temperature=self.temperature
    )

  def get_config(self) -> dict[str, Any]:
    """The parameters."""
    return {**super().get_config(), 'temperature': self.temperature}


def _quadruplet(anchor, positive, negative_1, negative_2, margins):
  """The four as tensors, if they and the margins are as required."""
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


def _roles(name, y_pred, number) -> list[tf.Tensor]:
  """The embeddings of each role, of `[?, number, p]`."""
  y_pred = tf.convert_to_tensor(y_pred)
  if not y_pred.shape.is_compatible_with([None, number, None]):
    raise _wrong_shape(f'y_pred of {name}', f'[?, {number}, p]', y_pred)
  return tf.unstack(y_pred, num=number, axis=1)


def _one_each(name, y_true) -> tf.Tensor:
  """One value for each example, of `[?]` or `[?, 1]`."""
  shapes = ([None], [None, 1])
  if not any(y_true.shape.is_compatible_with(shape) for shape in shapes):
    raise _wrong_shape(f'y_true of {name}', '[?] or [?, 1]', y_true)
  return tf.reshape(y_true, [-1])


def _wrong_shape(what, required, found) -> ValueError:
  return ValueError(
    f'{what} must have the shape {required}, found {list(found.shape)}.'
  )
