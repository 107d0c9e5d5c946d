"""Coupled weight decay around any TFF optimiser.

With SGD and Adam the papers use the coupled form, `gradient + decay * w`. The
decoupled form is TFF's `tff.learning.optimizers.build_adamw`.
"""

from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks


def with_weight_decay(
  optimizer: tff.learning.optimizers.Optimizer, weight_decay: float
) -> tff.learning.optimizers.Optimizer:
  """Adds `weight_decay * w` to the gradient before `optimizer` applies it.

  Args:
    optimizer: Any TFF optimiser.
    weight_decay: Not negative; with 0 the result is `optimizer` itself.

  Returns:
    A TFF optimiser with the state and hyper-parameters of `optimizer`.

  Raises:
    TypeError: If `weight_decay` is not a number.
    ValueError: If it is negative or not finite.
  """
  checks.check_real('weight_decay', weight_decay, 0.0)
  if weight_decay == 0:
    return optimizer
  return _WeightDecayOptimizer(optimizer, weight_decay)


class _WeightDecayOptimizer(tff.learning.optimizers.Optimizer):
  """See `with_weight_decay`."""

  def __init__(self, optimizer, weight_decay) -> None:
    self._optimizer = optimizer
    self._weight_decay = weight_decay

  def initialize(self, specs: Any) -> Any:
    return self._optimizer.initialize(specs)

  def next(self, state: Any, weights: Any, gradients: Any) -> tuple[Any, Any]:
    def decayed(w, g):
      # None means that the loss does not depend on the weight.
      return g if g is None else tf.convert_to_tensor(g) + decay * w

    decay = self._weight_decay
    gradients = tf.nest.map_structure(decayed, weights, gradients)
    return self._optimizer.next(state, weights, gradients)

  def get_hparams(self, state: Any) -> Any:
    return self._optimizer.get_hparams(state)

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    return self._optimizer.set_hparams(state, hparams)
