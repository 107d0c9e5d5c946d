"""A model of which only some weights are trained."""

import collections
from collections.abc import Sequence
from typing import Any

from tff_fair.models import stateless


class PartialModel:
  """A `StatelessModel` for the local training loop, which trains a part of it.

  Its trainable weights are that part. Its non-trainable weights are the other
  trainable weights of the model, which do not change, followed by the model's
  statistics. So the optimiser neither sees nor decays the fixed weights.

  Attributes:
    has_batch_norm: As in the model.
  """

  def __init__(
    self, model: stateless.StatelessModel, trained: Sequence[bool]
  ) -> None:
    """Chooses the part of a model.

    Args:
      model: The whole model.
      trained: For each of its trainable weights whether it is in the part.
    """
    self._model = model
    self._trained = list(trained)
    self.has_batch_norm = model.has_batch_norm

  def parted(self, weights: Any) -> stateless.ModelWeights:
    """The model's weights as those of the part."""
    part, fixed = (
      [
        w
        for w, trained in zip(weights.trainable, self._trained, strict=True)
        if trained == wanted
      ]
      for wanted in (True, False)
    )
    return stateless.ModelWeights(part, fixed + list(weights.non_trainable))

  def joined(self, weights: Any) -> stateless.ModelWeights:
    """The inverse of `parted`."""
    num_fixed = self._trained.count(False)
    part = iter(weights.trainable)
    fixed = iter(weights.non_trainable[:num_fixed])
    return stateless.ModelWeights(
      [next(part if trained else fixed) for trained in self._trained],
      list(weights.non_trainable[num_fixed:]),
    )

  def replaced(self, weights: Any, part: Any) -> stateless.ModelWeights:
    """The model's weights with another part.

    Args:
      weights: `ModelWeights` of the model.
      part: The trainable weights of the part.
    """
    fixed = self.parted(weights).non_trainable
    return self.joined(stateless.ModelWeights(list(part), fixed))

  def __call__(
    self,
    weights: stateless.ModelWeights,
    x: Any,
    *,
    training: bool,
    seed: Any = None,
  ) -> tuple[collections.OrderedDict, list[Any]]:
    """Calls the model; arguments as for `StatelessModel`.

    Returns:
      The model's outputs, and the non-trainable weights after the call.
    """
    outputs, statistics = self._model(
      self.joined(weights), x, training=training, seed=seed
    )
    fixed = weights.non_trainable[: self._trained.count(False)]
    return outputs, [*fixed, *statistics]
