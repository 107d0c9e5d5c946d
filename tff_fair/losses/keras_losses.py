"""The losses of this package as Keras losses, for `model.compile`.

Each is built with its parameters, the `reduction` and the `name` of
`tf.keras.losses.Loss`, and can be rebuilt from its config. Their `call` returns
the loss of each example, `[?]`, of `y_true` and `y_pred` as the classes say.
"""

from collections.abc import Callable, Sequence
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
    self._parameters = tuple(parameters)
    for parameter, value in parameters.items():
      setattr(self, parameter, value)

  @property
  def _options(self) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self._parameters}

  def get_config(self) -> dict[str, Any]:
    """The arguments with which `from_config` rebuilds the loss."""
    return {**super().get_config(), **self._options}

  def _check(self, what, tensor, *shapes) -> tf.Tensor:
    """The tensor, if it is of one of the shapes."""
    tensor = tf.convert_to_tensor(tensor)
    if not any(tensor.shape.is_compatible_with(shape) for shape in shapes):
      required = ' or '.join(map(str, shapes)).replace('None', '?')
      raise ValueError(
        f'{what} of {type(self).__name__} must have the shape {required}, found'
        f' {list(tensor.shape)}.'
      )
    return tensor

  def _one_per_example(self, y_true) -> tf.Tensor:
    return tf.reshape(self._check('y_true', y_true, [None], [None, 1]), [-1])

  def _roles(self, y_pred, number) -> list[tf.Tensor]:
    """The embeddings of each role."""
    stacked = self._check('y_pred', y_pred, [None, number, None])
    return tf.unstack(stacked, num=number, axis=1)


class FocalLoss(_Loss):
  """`focal_loss` as a Keras loss.

  `y_true` are the classes, `int[?]` or `int[?, 1]`, `y_pred` the logits. To
  rebuild the loss from its config, `gamma` must be a number.

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

  def __init__(
    self,
    gamma: Any = 0.0,
    *,
    focal_weight: float = 1.0,
    reduction: str = _AUTO,
    name: str = 'focal_loss',
  ) -> None:
    focal.check_parameters(gamma, focal_weight)
    super().__init__(reduction, name, gamma=gamma, focal_weight=focal_weight)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each example."""
    labels = tf.reshape(tf.cast(y_true, tf.int32), [-1])
    return focal.focal_loss(labels, y_pred, **self._options)


class DistillationLoss(_Loss):
  """`distillation_loss` of `y_true`, the teacher's logits, and the student's.

  Raises:
    TypeError: If `temperature` is not a number.
    ValueError: If it is not positive.
  """

  def __init__(
    self,
    temperature: float = 1.0,
    *,
    reduction: str = _AUTO,
    name: str = 'distillation_loss',
  ) -> None:
    checks.check_positive('temperature', temperature)
    super().__init__(reduction, name, temperature=temperature)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each example."""
    return distillation.distillation_loss(y_pred, y_true, **self._options)


class TripletLoss(_Loss):
  """`triplet_loss` as a Keras loss of stacked embeddings.

  `y_true` is 1 or 0 for valid and other triplets, `[?, 1]` or `[?]`; `y_pred`
  has anchor, positive and negative, `[?, 3, p]`.

  Raises:
    TypeError: If `margin` is not a number.
    ValueError: If it is negative.
  """

  def __init__(
    self,
    margin: float = 1.0,
    *,
    reduction: str = _AUTO,
    name: str = 'triplet_loss',
  ) -> None:
    checks.check_real('margin', margin, 0.0)
    super().__init__(reduction, name, margin=margin)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor."""
    roles = self._roles(y_pred, 3)
    mask = self._one_per_example(tf.cast(y_true, tf.bool))
    return metric_learning.triplet_loss(*roles, mask=mask, **self._options)


class QuadrupletLoss(_Loss):
  """`quadruplet_loss`, FedQuad's, as a Keras loss of stacked embeddings.

  `y_true` has v1 and v2, 1 or 0, `[?, 2]`; `y_pred` has anchor, positive, first
  and second negative, `[?, 4, p]`.

  Raises:
    ValueError: If `margins` are not two numbers that are not negative.
  """

  _loss: Callable[..., tf.Tensor] = staticmethod(
    metric_learning.quadruplet_loss
  )

  def __init__(
    self,
    margins: Sequence[float] = (1.0, 0.5),
    *,
    squared: bool = False,
    reduction: str = _AUTO,
    name: str = 'quadruplet_loss',
  ) -> None:
    margins = checks.check_margins(margins)
    super().__init__(reduction, name, margins=margins, squared=squared)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each anchor."""
    masks = self._check('y_true', tf.cast(y_true, tf.bool), [None, 2])
    return self._loss(
      *self._roles(y_pred, 4),
      mask_1=masks[:, 0],
      mask_2=masks[:, 1],
      **self._options,
    )


class ClassicQuadrupletLoss(QuadrupletLoss):
  """`classic_quadruplet_loss`, of the same arguments, but for `squared`."""

  _loss = staticmethod(metric_learning.classic_quadruplet_loss)

  def __init__(
    self,
    margins: Sequence[float] = (1.0, 0.5),
    *,
    reduction: str = _AUTO,
    name: str = 'classic_quadruplet_loss',
  ) -> None:
    margins = checks.check_margins(margins)
    _Loss.__init__(self, reduction, name, margins=margins)


class SupervisedContrastiveLoss(_Loss):
  """`supervised_contrastive_loss` as a Keras loss of embeddings.

  `y_true` are the classes, `int[?]` or `int[?, 1]`, `y_pred` the embeddings,
  `[?, p]`. The loss is a scalar of the whole batch, so weights of single
  examples have no meaning.

  Raises:
    TypeError: If `temperature` is not a number.
    ValueError: If it is not positive.
  """

  def __init__(
    self,
    temperature: float = 0.07,
    *,
    reduction: str = _AUTO,
    name: str = 'supervised_contrastive_loss',
  ) -> None:
    checks.check_positive('temperature', temperature)
    super().__init__(reduction, name, temperature=temperature)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of a batch."""
    embeddings = self._check('y_pred', y_pred, [None, None])
    return metric_learning.supervised_contrastive_loss(
      self._one_per_example(y_true), embeddings, **self._options
    )
