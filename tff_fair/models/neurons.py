"""The neurons of a Keras model and the weights of each neuron."""

from typing import Any

import tensorflow as tf

from tff_fair.models import stateless

_layers = tf.keras.layers
_WITH_NEURONS = (_layers.Dense, _layers.Conv1D, _layers.Conv2D, _layers.Conv3D)


class Neurons:
  """The output units of dense layers, and the channels of convolutions.

  A neuron's weights are its incoming weights, its bias, and its scale and
  offset in the batch normalisation that follows. The last dense layer or
  convolution, whose outputs are the logits, and layers of other kinds have no
  neurons here.

  Attributes:
    number: H, at least 1.
  """

  def __init__(self, model: stateless.StatelessModel) -> None:
    """Finds the neurons.

    Args:
      model: The client model.

    Raises:
      ValueError: If the model has no hidden neurons.
    """
    kernels = [
      layer
      for layer in model.layers_of_trainable
      if isinstance(layer, _WITH_NEURONS)
    ]
    last = kernels[-1] if kernels else None
    self._shapes = [w.shape for w in model.initial_weights.trainable]
    # For each variable, the index of its first neuron, or None.
    self._starts = []
    self.number = 0
    owner, start, width = None, None, None
    for layer, shape in zip(
      model.layers_of_trainable, self._shapes, strict=True
    ):
      if isinstance(layer, _WITH_NEURONS):
        if layer is not owner and layer is not last:
          start, width = self.number, shape[-1]
          self.number += width
        owner = layer
        self._starts.append(None if layer is last else start)
      elif isinstance(layer, _layers.BatchNormalization) and shape == (width,):
        self._starts.append(start)
      else:
        self._starts.append(None)
    if not self.number:
      raise ValueError(
        'model_fn must build a model with a hidden dense layer or convolution,'
        ' found none.'
      )

  def masks(self, mask: Any) -> list[tf.Tensor]:
    """The masks of the trainable weights.

    Args:
      mask: `float32[H]`, of the neurons.

    Returns:
      float32 tensors of the shapes of the trainable weights; 1 for weights that
      belong to no neuron.

    Raises:
      ValueError: If `mask` has another length.
    """
    mask = tf.convert_to_tensor(mask, tf.float32)
    if not mask.shape.is_compatible_with([self.number]):
      raise ValueError(
        f'mask must have the shape [{self.number}], found {mask.shape}.'
      )
    return [
      tf.ones(shape)
      if start is None
      else tf.broadcast_to(mask[start : start + shape[-1]], shape)
      for start, shape in zip(self._starts, self._shapes, strict=True)
    ]

  def masked(
    self, weights: stateless.ModelWeights, mask: Any
  ) -> stateless.ModelWeights:
    """Weights times `masks`; non-trainable weights are unchanged.

    Args:
      weights: `ModelWeights` of tensors.
      mask: `float32[H]`.

    Raises:
      ValueError: If `mask` has another length.
    """
    return stateless.ModelWeights(
      [w * m for w, m in zip(weights.trainable, self.masks(mask), strict=True)],
      weights.non_trainable,
    )
