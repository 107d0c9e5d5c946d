"""SGD with Nesterov's momentum, which TFF's SGD does not have."""

from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks


def build_nesterov_sgd(
  learning_rate: float, momentum: float
) -> tff.learning.optimizers.Optimizer:
  """Builds SGD with Nesterov's momentum, in the form of PyTorch and Keras.

      v <- momentum * v + g
      w <- w - learning_rate * (g + momentum * v)

  With a momentum of 0 this is SGD.

  Args:
    learning_rate: Not negative.
    momentum: In [0, 1).

  Returns:
    A TFF optimiser with the state and hyper-parameters of
    `tff.learning.optimizers.build_sgdm`.

  Raises:
    TypeError: If `momentum` is not a number.
    ValueError: If an argument is out of range.
  """
  checks.check_fraction('momentum', momentum)
  return _NesterovOptimizer(
    tff.learning.optimizers.build_sgdm(learning_rate, momentum)
  )


class _NesterovOptimizer(tff.learning.optimizers.Optimizer):
  """See `build_nesterov_sgd`."""

  def __init__(self, sgdm) -> None:
    self._sgdm = sgdm

  def initialize(self, specs: Any) -> Any:
    return self._sgdm.initialize(specs)

  def next(self, state: Any, weights: Any, gradients: Any) -> tuple[Any, Any]:
    new_state, new_weights = self._sgdm.next(state, weights, gradients)
    if 'accumulator' not in new_state:  # No momentum.
      return new_state, new_weights
    rate, momentum = new_state['learning_rate'], new_state['momentum']

    def step(w, v, g):
      return w if g is None else w - rate * (g + momentum * v)

    # The order is that of the weights: a gradient may be None.
    velocity = tf.nest.flatten(new_state['accumulator'])
    steps = map(
      step, tf.nest.flatten(weights), velocity, tf.nest.flatten(gradients)
    )
    return new_state, tf.nest.pack_sequence_as(weights, [*steps])

  def get_hparams(self, state: Any) -> Any:
    return self._sgdm.get_hparams(state)

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    return self._sgdm.set_hparams(state, hparams)
