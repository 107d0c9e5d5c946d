"""A Keras model as a pure function of its weights.

Client training works on tensors, `(weights, x) -> outputs`, so that one graph
can be compiled, vectorised over clients and run by several threads at once.
Keras 2.14 layers read variables instead. During a call, each layer attribute
that holds a trainable variable is replaced by the given tensor. Non-trainable
variables, such as moving averages, are replaced by objects that record
assignments. The model's own variables do not change. Layers that draw random
numbers (dropout) use a stateless seed.
"""

import collections
from collections.abc import Callable
import contextlib
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals

ModelWeights = tff.learning.models.ModelWeights


class StatelessModel:
  """A Keras model as a pure function `(weights, x) -> (outputs, statistics)`.

  Attributes:
    initial_weights: `tff.learning.models.ModelWeights` of float32 NumPy arrays,
      the Keras model's weights when this object was made.
    weights_type: The `tff.Type` of `initial_weights`.
    input_spec: `tf.TensorSpec` of `x`, `float32[?, ...]`.
    num_classes: Number of logits.
    embedding_size: p of the output `embedding`; None without one.
    has_batch_norm: Whether a layer normalises with batch statistics.
    layers_of_trainable: For each trainable weight the Keras layer that owns it.
  """

  def __init__(self, model_fn: Callable[[], tf.keras.Model]):
    """Builds the Keras model once.

    Args:
      model_fn: Builds a fresh, uncompiled Keras model with one input, whose
        output is either the logits, `float32[?, num_classes]`, or
        `OrderedDict(logits=..., embedding=float32[?, p])`.

    Raises:
      TypeError: If `model_fn` does not build such a model, or a weight is not
        float32.
      ValueError: If a variable of the model is not an attribute of one of its
        layers, so that it cannot be replaced by a tensor.
    """
    if isinstance(model_fn, tf.keras.Model) or not callable(model_fn):
      raise TypeError(
        'model_fn must be a function that builds a fresh Keras model at each'
        f' call, found {type(model_fn).__name__}.'
      )
    model = model_fn()
    _check_model(model)
    self._model_fn = model_fn
    self._model = model
    self._layers = [model, *model.submodules]
    self._trainable = _find_slots(self._layers, model.trainable_variables)
    self._non_trainable = _find_slots(
      self._layers, model.non_trainable_variables
    )
    self.layers_of_trainable = [places[0][0] for places in self._trainable]
    self._random = internals.random_slots(self._layers)
    self.initial_weights = ModelWeights(
      trainable=[v.numpy() for v in model.trainable_variables],
      non_trainable=[v.numpy() for v in model.non_trainable_variables],
    )
    self.weights_type = _weights_type(self.initial_weights)
    self.input_spec = tf.TensorSpec(
      [None, *model.inputs[0].shape[1:]], tf.float32
    )
    outputs = _named_outputs(model.output)
    self.num_classes = outputs['logits'].shape[-1]
    self.embedding_size = None
    if 'embedding' in outputs:
      self.embedding_size = outputs['embedding'].shape[-1]
    self.has_batch_norm = any(
      isinstance(layer, tf.keras.layers.BatchNormalization)
      for layer in self._layers
    )

  def __call__(
    self, weights: ModelWeights, x: Any, *, training: bool, seed: Any = None
  ) -> tuple[collections.OrderedDict, list[Any]]:
    """Calls the model with the given weights.

    Args:
      weights: `ModelWeights` of tensors, in the order of `initial_weights`.
      x: `float32[?, ...]`, a batch of inputs.
      training: Keras's training mode (batch statistics, dropout).
      seed: `int32[2]`, the stateless seed of layers that draw random numbers;
        needed only in training mode.

    Returns:
      `OrderedDict(logits, [embedding])` and the non-trainable weights after
      the call.

    Raises:
      ValueError: If a layer draws random numbers and `seed` is missing, or the
        weights have other shapes than the model's.
    """
    _check_weights(weights, self.initial_weights)
    statistics = [internals.RecordedVariable(w) for w in weights.non_trainable]
    with contextlib.ExitStack() as stack:
      # Layers call tensor methods that NumPy arrays do not have.
      trainable = [tf.convert_to_tensor(w) for w in weights.trainable]
      generators = [
        internals.StatelessGenerator(seed, i) for i in range(len(self._random))
      ]
      for slots, values in (
        (self._trainable, trainable),
        (self._non_trainable, statistics),
        (self._random, generators),
      ):
        stack.enter_context(internals.replaced(slots, values))
      outputs = self._model(x, training=training)
    return _named_outputs(outputs), [s.value for s in statistics]

  def to_keras(self, weights: ModelWeights) -> tf.keras.Model:
    """Builds the Keras model with the given weights.

    Args:
      weights: `ModelWeights` of arrays, in the order of `initial_weights`.

    Returns:
      A fresh model of `model_fn`, with its outputs.

    Raises:
      ValueError: If the weights have other shapes than the model's.
    """
    _check_weights(weights, self.initial_weights)
    model = self._model_fn()
    weights.assign_weights_to(model)
    return model


def _find_slots(layers, variables):
  """For each variable, the attributes that hold it."""
  slots = internals.variable_slots(layers, variables)
  for variable, places in zip(variables, slots, strict=True):
    if not places:
      raise ValueError(
        'Every variable of the model must be an attribute of one of its'
        f' layers, found {variable.name}, which is not.'
      )
  return slots


def _check_model(model):
  """Raises TypeError unless `model` is a Keras model we can train."""
  requirement = (
    'model_fn must build a tf.keras.Model with one float32 input and logits'
    ' of shape [None, num_classes]'
  )
  if not isinstance(model, tf.keras.Model):
    raise TypeError(f'{requirement}, found {type(model).__name__}.')
  if not getattr(model, 'inputs', None) or len(model.inputs) != 1:
    raise TypeError(
      f'{requirement}, found a model whose inputs are'
      f' {getattr(model, "inputs", None)} (build subclassed models with'
      ' tf.keras.Model(inputs, outputs)).'
    )
  output = model.output
  if isinstance(output, dict) and 'logits' not in output:
    raise TypeError(f'{requirement}, found outputs named {sorted(output)}.')
  logits = _named_outputs(output)['logits']
  if not tf.keras.backend.is_keras_tensor(logits) or logits.shape.rank != 2:
    raise TypeError(f'{requirement}, found output {output!r}.')
  for variable in model.variables:
    if variable.dtype != tf.float32:
      raise TypeError(
        'Every weight of the model must be float32, found'
        f' {variable.name} of {variable.dtype.name}.'
      )


def _check_weights(weights, required):
  """Raises ValueError unless the shapes are those of the model."""
  for name in ModelWeights._fields:
    found, wanted = (
      [tf.TensorShape(w.shape) for w in getattr(part, name)]
      for part in (weights, required)
    )
    # TensorFlow would broadcast a bias of length 1.
    if len(found) != len(wanted) or not all(
      shape.is_compatible_with(other)
      for shape, other in zip(found, wanted, strict=True)
    ):
      raise ValueError(
        f'{name} weights must have the shapes {", ".join(map(str, wanted))},'
        f' found {", ".join(map(str, found))}.'
      )


def _named_outputs(output):
  """Logits, or a mapping with logits, as an OrderedDict."""
  if not isinstance(output, dict):
    return collections.OrderedDict(logits=output)
  return collections.OrderedDict(
    (k, output[k]) for k in ('logits', 'embedding') if k in output
  )


def _weights_type(weights):
  def spec(w):
    return tff.TensorType(np.float32, w.shape)

  return tff.types.to_type(
    ModelWeights(*[[spec(w) for w in part] for part in weights])
  )
