"""Two copies of a model that are trained on the same minibatches."""

import collections
from typing import Any

import tensorflow as tf

from tff_fair.models import stateless


class PairedModel:
  """A `StatelessModel` twice, for the local loop.

  Its weights are those of the first copy followed by those of the second; its
  outputs are `OrderedDict(first, second)`. An objective that stops gradients
  between them trains both at once, each as if by an optimiser of its own.

  Attributes:
    has_batch_norm: That of the model.
  """

  def __init__(self, model: stateless.StatelessModel):
    """Keeps the model."""
    self._model = model
    self._sizes = [len(part) for part in model.initial_weights]
    self.has_batch_norm = model.has_batch_norm

  def joined(self, first: Any, second: Any) -> stateless.ModelWeights:
    """The weights of both copies as one."""
    return stateless.ModelWeights(
      list(first.trainable) + list(second.trainable),
      list(first.non_trainable) + list(second.non_trainable),
    )

  def parted(
    self, weights: stateless.ModelWeights
  ) -> tuple[stateless.ModelWeights, stateless.ModelWeights]:
    """The inverse of `joined`."""
    trainable, statistics = self._sizes
    return (
      stateless.ModelWeights(
        weights.trainable[:trainable], weights.non_trainable[:statistics]
      ),
      stateless.ModelWeights(
        weights.trainable[trainable:], weights.non_trainable[statistics:]
      ),
    )

  def __call__(
    self,
    weights: stateless.ModelWeights,
    x: Any,
    *,
    training: bool,
    seed: Any = None,
  ) -> tuple[collections.OrderedDict, list[Any]]:
    """Calls both copies; arguments as for `StatelessModel`.

    Returns:
      `OrderedDict(first, second)` of the copies' outputs, and the statistics of
      both. The first copy has the dropout masks that it would have alone.
    """
    first, second = self.parted(weights)
    second_seed = None
    if seed is not None:
      second_seed = tf.random.experimental.stateless_fold_in(seed, -2)
    outputs, statistics = self._model(first, x, training=training, seed=seed)
    others, more_statistics = self._model(
      second, x, training=training, seed=second_seed
    )
    return (
      collections.OrderedDict(first=outputs, second=others),
      statistics + more_statistics,
    )
