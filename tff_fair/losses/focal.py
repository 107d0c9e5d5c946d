"""Focal loss with a focusing parameter that may be a tensor.

FeDABoost, equation 5, after Lin et al., "Focal Loss for Dense Object
Detection" (ICCV 2017, https://arxiv.org/abs/1708.02002).
"""

import math
import numbers
from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import shapes

_EPSILON = 1e-7


def focal_loss(
  labels: Any, logits: Any, gamma: Any, *, focal_weight: float = 1.0
) -> tf.Tensor:
  """The focal loss of each example, `-beta * (1 - p)^gamma * ln(p)`.

  `p` is the softmax probability of the true class, clipped to
  `[1e-7, 1 - 1e-7]`. The clip bounds the value at both ends. Its gradient is
  cut at the upper end only, where `(1 - p)^gamma` has none; at the lower end
  stand the examples that the model gets most wrong, and cutting theirs would
  stop the training on just those. Nothing flows to gamma, and there is no
  second derivative.

  Args:
    labels: `int[?]`, the true classes.
    logits: `float32[?, num_classes]`.
    gamma: Focusing parameter, a scalar or `float32[?]`; 0 is cross-entropy.
    focal_weight: The factor beta of the paper, positive; 1 there.

  Returns:
    `float32[?]`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `gamma` is a number and negative, `focal_weight` is not
      positive, or the shapes are not as required.
  """
  _check_parameters(gamma, focal_weight)
  labels, logits = shapes.check_labels(labels, logits)
  log_p = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
  fixed = tf.stop_gradient(log_p)
  value, slope = _modulated(fixed, tf.cast(gamma, log_p.dtype))
  # Value and first derivative in closed form: what TensorFlow would derive has
  # twice the operations, in the innermost loop of every client.
  return -focal_weight * (value + slope * (log_p - fixed))


def _check_parameters(gamma, focal_weight) -> None:
  if isinstance(gamma, numbers.Real):
    checks.check_real('gamma', gamma, 0.0)
  checks.check_positive('focal_weight', focal_weight)


def _modulated(log_p, gamma):
  """`(1 - p)^gamma ln(p)` and its derivative by `ln(p)`."""
  lowest, highest = math.log(_EPSILON), math.log1p(-_EPSILON)
  clipped = tf.clip_by_value(log_p, lowest, highest)
  # 1 - p as -expm1(ln p): exact where p is near 1.
  miss = -tf.math.expm1(clipped)
  power = miss**gamma
  slope = power * (1 - gamma * (1 - miss) * clipped / miss)
  return power * clipped, tf.where(log_p > highest, 0.0, slope)


class FocalLoss(tf.keras.losses.Loss):
  """`focal_loss` as a Keras loss, usable in `model.compile`."""

  def __init__(
    self,
    gamma: Any = 0.0,
    *,
    focal_weight: float = 1.0,
    reduction: str = tf.keras.losses.Reduction.AUTO,
    name: str = 'focal_loss',
  ):
    """Keeps the parameters.

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
    super().__init__(reduction=reduction, name=name)
    _check_parameters(gamma, focal_weight)
    self.gamma = gamma
    self.focal_weight = focal_weight

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each example.

    Args:
      y_true: `int[?]` or `int[?, 1]`, the true classes.
      y_pred: `float32[?, num_classes]`, the logits.

    Returns:
      `float32[?]`.
    """
    labels = tf.reshape(tf.cast(y_true, tf.int32), [-1])
    return focal_loss(
      labels, y_pred, self.gamma, focal_weight=self.focal_weight
    )

  def get_config(self) -> dict[str, Any]:
    """The parameters; a tensor `gamma` must be a number by then."""
    config = {'gamma': self.gamma, 'focal_weight': self.focal_weight}
    return {**super().get_config(), **config}
