"""The losses of this package as Keras losses, for `model.compile`.

Each is built with its parameters, the `reduction` and the `name` of
`tf.keras.losses.Loss`, and can be rebuilt from its config.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.losses import distillation
from tff_fair.losses import focal
from tff_fair.losses import metric_learning

_AUTO = tf.keras.losses.Reduction.AUTO


class _Loss(tf.keras.losses.Loss):
  """A loss whose parameters are attributes and make up its config."""

  def __init__(self, reduction, name, **parameters) -> None:
    super().__init__(reduction=reduction, name=name)
    self._names = tuple(parameters)
    for parameter, value in parameters.items():
      setattr(self, parameter, value)

  def get_config(self) -> dict[str, Any]:
    """The arguments with which `from_config` rebuilds the loss."""
    parameters = {name: getattr(self, name) for name in self._names}
    return {**super().get_config(), **parameters}


class FocalLoss(_Loss):
  """`focal_loss` as a Keras loss.

  To rebuild the loss from its config, `gamma` must be a number.
  """

  def __init__(
    self,
    gamma: Any = 0.0,
    *,
    focal_weight: float = 1.0,
    reduction: str = _AUTO,
    name: str = 'focal_loss',
  ) -> None:
    """Initializes the loss.

    Args:
      gamma: Focusing parameter: a number, a tensor or a `tf.Variable`, which is
        read at each call.
      focal_weight: The factor beta of the paper, positive.
      reduction: As in `tf.keras.losses.Loss`.
      name: As in `tf.keras.losses.Loss`.

    Raises:
      TypeError: If `focal_weight` is not a number.
      ValueError: If `gamma` is a negative number or `focal_weight` is not
        positive.
    """
    focal.check_parameters(gamma, focal_weight)
    super().__init__(reduction, name, gamma=gamma, focal_weight=focal_weight)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each example.

    Args:
      y_true: `int[?]` or `int[?, 1]`, the true classes.
      y_pred: `float32[?, num_classes]`, the logits.

    Returns:
      `float32[?]`.
    """
    labels = tf.reshape(tf.cast(y_true, tf.int32), [-1])
    return focal.focal_loss(
      labels, y_pred, self.gamma, focal_weight=self.focal_weight
    )


class DistillationLoss(_Loss):
  """`distillation_loss` as a Keras loss of `(teacher, student)` logits."""

  def __init__(
    self,
    temperature: float = 1.0,
    *,
    reduction: str = _AUTO,
    name: str = 'distillation_loss',
  ) -> None:
    """Initializes the loss; see `distillation_loss`.

    Raises:
      TypeError: If `temperature` is not a number.
      ValueError: If it is not positive.
    """
    checks.check_positive('temperature', temperature)
    super().__init__(reduction, name, temperature=temperature)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each example.

    Args:
      y_true: `float32[?, num_classes]`, the teacher's logits.
      y_pred: `float32[?, num_classes]`, the student's logits.

    Returns:
      `float32[?]`.
    """
    return distillation.distillation_loss(
      y_pred, y_true, temperature=self.temperature
    )


class TripletLoss(_Loss):
  """`triplet_loss` as a Keras loss of stacked embeddings."""

  def __init__(
    self,
    margin: float = 1.0,
    *,
    reduction: str = _AUTO,
    name: str = 'triplet_loss',
  ) -> None:
    """Initializes the loss; see `triplet_loss`.

    Raises:
      TypeError: If `margin` is not a number.
      ValueError: If it is negative.
    """
    checks.check_real('margin', margin, 0.0)
    super().__init__(reduction, name, margin=margin)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor.

    Args:
      y_true: `[?, 1]` or `[?]`, which triplets are valid, 1 or 0.
      y_pred: `[?, 3, p]`: anchor, positive, negative.

    Returns:
      `[?]`.
    """
    roles = _roles('TripletLoss', y_pred, 3)
    mask = _one_per_example('TripletLoss', tf.cast(y_true, tf.bool))
    return metric_learning.triplet_loss(*roles, margin=self.margin, mask=mask)


class _QuadrupletLoss(_Loss):
  """The arguments of the two quadruplet losses."""

  def __init__(self, margins, reduction, name, **parameters) -> None:
    margins = checks.check_margins(margins)
    super().__init__(reduction, name, margins=margins, **parameters)

  def _parts(self, y_true, y_pred) -> tuple[list[tf.Tensor], dict[str, Any]]:
    masks = tf.cast(y_true, tf.bool)
    name = type(self).__name__
    if not masks.shape.is_compatible_with([None, 2]):
      raise _wrong_shape(f'y_true of {name}', '[?, 2]', masks)
    options = {'mask_1': masks[:, 0], 'mask_2': masks[:, 1]}
    options['margins'] = self.margins
    return _roles(name, y_pred, 4), options


class QuadrupletLoss(_QuadrupletLoss):
  """`quadruplet_loss`, FedQuad's, as a Keras loss of stacked embeddings."""

  def __init__(
    self,
    margins: Sequence[float] = (1.0, 0.5),
    *,
    squared: bool = False,
    reduction: str = _AUTO,
    name: str = 'quadruplet_loss',
  ) -> None:
    """Initializes the loss; see `quadruplet_loss`.

    Raises:
      ValueError: If `margins` are not two numbers that are not negative.
    """
    super().__init__(margins, reduction, name, squared=squared)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor.

    Args:
      y_true: `[?, 2]`, v1 and v2, 1 or 0.
      y_pred: `[?, 4, p]`: anchor, positive, first and second negative.

    Returns:
      `[?]`.
    """
    roles, options = self._parts(y_true, y_pred)
    return metric_learning.quadruplet_loss(
      *roles, squared=self.squared, **options
    )


class ClassicQuadrupletLoss(_QuadrupletLoss):
  """`classic_quadruplet_loss` as a Keras loss of stacked embeddings."""

  def __init__(
    self,
    margins: Sequence[float] = (1.0, 0.5),
    *,
    reduction: str = _AUTO,
    name: str = 'classic_quadruplet_loss',
  ) -> None:
    """Initializes the loss; see `classic_quadruplet_loss`.

    Raises:
      ValueError: If `margins` are not two numbers that are not negative.
    """
    super().__init__(margins, reduction, name)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor; arguments as for `QuadrupletLoss`."""
    roles, options = self._parts(y_true, y_pred)
    return metric_learning.classic_quadruplet_loss(*roles, **options)


class SupervisedContrastiveLoss(_Loss):
  """`supervised_contrastive_loss` as a Keras loss of embeddings.

  The loss is a function of the whole batch, so weights of single examples have
  no meaning.
  """

  def __init__(
    self,
    temperature: float = 0.07,
    *,
    reduction: str = _AUTO,
    name: str = 'supervised_contrastive_loss',
  ) -> None:
    """Initializes the loss; see `supervised_contrastive_loss`.

    Raises:
      TypeError: If `temperature` is not a number.
      ValueError: If it is not positive.
    """
    checks.check_positive('temperature', temperature)
    super().__init__(reduction, name, temperature=temperature)

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
    labels = _one_per_example(name, tf.convert_to_tensor(y_true))
    return metric_learning.supervised_contrastive_loss(
      labels, y_pred, temperature=self.temperature
    )


def _roles(name, y_pred, number) -> list[tf.Tensor]:
  """The embeddings of each role, of `[?, number, p]`."""
  y_pred = tf.convert_to_tensor(y_pred)
  if not y_pred.shape.is_compatible_with([None, number, None]):
    raise _wrong_shape(f'y_pred of {name}', f'[?, {number}, p]', y_pred)
  return tf.unstack(y_pred, num=number, axis=1)


def _one_per_example(name, y_true) -> tf.Tensor:
  """A vector of one value for each example, of `[?]` or `[?, 1]`."""
  shapes = ([None], [None, 1])
  if not any(y_true.shape.is_compatible_with(shape) for shape in shapes):
    raise _wrong_shape(f'y_true of {name}', '[?] or [?, 1]', y_true)
  return tf.reshape(y_true, [-1])


def _wrong_shape(what, required, found) -> ValueError:
  return ValueError(
    f'{what} must have the shape {required}, found {list(found.shape)}.'
  )
