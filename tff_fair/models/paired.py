"""Two copies of a model, trained on the same minibatches."""

import collections
from typing import Any

import tensorflow as tf

from tff_fair.models import stateless


class PairedModel:
  """Two copies of a `StatelessModel`, for the local training loop.

  The weights are those of the first copy followed by those of the second; the
  outputs are `OrderedDict(first, second)`. An objective that stops gradients
  between the copies trains each as if it had a separate optimiser.

  Attributes:
    has_batch_norm: As in the model.
  """

  def __init__(self, model: stateless.StatelessModel) -> None:
    """Makes a pair of a model."""
    self._model = model
    self._sizes = [len(part) for part in model.initial_weights]
    self.has_batch_norm = model.has_batch_norm

  def joined(self, first: Any, second: Any) -> stateless.ModelWeights:
    """Concatenates the weights of both copies."""
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
      both. The first copy has the same dropout masks as a single model.
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
