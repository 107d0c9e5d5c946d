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
  `[1e-7, 1 - 1e-7]`. The clip bounds the value at both ends, but removes the
  gradient only at the upper end, where that of `(1 - p)^gamma` vanishes. At the
  lower end are the examples that the model gets most wrong; without their
  gradient it would not learn them. Gamma gets no gradient, and there is no
  second derivative.

  Args:
    labels: `int[?]`, the true classes.
    logits: `float32[?, num_classes]`.
    gamma: Focusing parameter, a scalar or `float32[?]`; 0 is cross-entropy. A
      number must not be negative.
    focal_weight: The factor beta, positive; 1 in the paper.

  Returns:
    `float32[?]`.
  """
  check_parameters(gamma, focal_weight)
  labels, logits = shapes.check_labels(labels, logits)
  log_p = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
  fixed = tf.stop_gradient(log_p)
  value, slope = _modulated(fixed, tf.cast(gamma, log_p.dtype))
  # Value and first derivative in closed form: automatic differentiation needs
  # twice the operations, in the innermost loop of every client.
  return -focal_weight * (value + slope * (log_p - fixed))


def check_parameters(gamma: Any, focal_weight: float) -> None:
  """Checks the parameters of `focal_loss`; a `gamma` may also be a tensor."""
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
