"""Clipping of each step's gradient around any TFF optimiser."""

from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks


def with_gradient_clipping(
  optimizer: tff.learning.optimizers.Optimizer, max_norm: float
) -> tff.learning.optimizers.Optimizer:
  """Scales a gradient down to `max_norm` before `optimizer` applies it.

  `g <- g * min(1, max_norm / ||g||)` with the L2 norm over all weights. Around
  `with_weight_decay` the decay is not clipped, as in PyTorch, whose optimisers
  have it.

  Args:
    optimizer: Any TFF optimiser.
    max_norm: Positive.

  Returns:
    A TFF optimiser with the state and hyper-parameters of `optimizer`.

  Raises:
    TypeError: If `max_norm` is not a number.
    ValueError: If it is not positive, or not finite.
  """
  checks.check_positive('max_norm', max_norm)
  return _GradientClippingOptimizer(optimizer, max_norm)


class _GradientClippingOptimizer(tff.learning.optimizers.Optimizer):
  """See `with_gradient_clipping`."""

  def __init__(self, optimizer, max_norm) -> None:
    self._optimizer = optimizer
    self._max_norm = max_norm

  def initialize(self, specs: Any) -> Any:
    return self._optimizer.initialize(specs)

  def next(self, state: Any, weights: Any, gradients: Any) -> tuple[Any, Any]:
    # Of weights on which the loss does not depend, the gradient is None.
    clipped, _ = tf.clip_by_global_norm(
      tf.nest.flatten(gradients), self._max_norm
    )
    gradients = tf.nest.pack_sequence_as(gradients, clipped)
    return self._optimizer.next(state, weights, gradients)

  def get_hparams(self, state: Any) -> Any:
    return self._optimizer.get_hparams(state)

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    return self._optimizer.set_hparams(state, hparams)
