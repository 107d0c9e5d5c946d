"""A Keras model as a pure function of its weights.

Client training works on tensors, `(weights, x) -> outputs`, so that one graph
can be compiled, vectorised over clients and run by several threads at once.
Keras 2.14 layers read variables instead. During a call, each layer attribute
that holds a trainable variable is replaced by the given tensor. Non-trainable
variables, such as moving averages, are replaced by objects that record
assignments. The model's own variables do not change. Layers that draw random
numbers (dropout, augmentations) use a stateless seed. Eager tensors that the
model holds become constants of the graph.
"""

import collections
from collections.abc import Callable
import contextlib
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.models import keras_checks
from tff_fair.models import keras_weights
from tff_fair.models import outputs as outputs_lib

ModelWeights: TypeAlias = tff.learning.models.ModelWeights

_BATCH_NORMS = (
  tf.keras.layers.BatchNormalization,
  tf.keras.layers.experimental.SyncBatchNormalization,
)


class StatelessModel:
  """A Keras model as a pure function `(weights, x) -> (outputs, statistics)`.

  Attributes:
    initial_weights: `tff.learning.models.ModelWeights` of float32 NumPy arrays,
      the Keras model's weights when this object was made, without the
      statistics of preprocessing layers, see `keras_weights`.
    weights_type: The `tff.Type` of `initial_weights`.
    input_spec: `tf.TensorSpec` of `x`, `float32[?, ...]`.
    num_logits: Number of logits of the Keras model; 1 for a binary classifier
      with a single logit.
    num_classes: Number of logits that a call returns, at least 2.
    embedding_size: p of the output `embedding`; None without one.
    has_batch_norm: Whether a layer normalises with batch statistics.
    layers_of_trainable: For each trainable weight the Keras layer that owns it.
  """

  def __init__(self, model_fn: Callable[[], tf.keras.Model]) -> None:
    """Builds the Keras model once.

    Args:
      model_fn: Builds a fresh, uncompiled Keras model with one input, whose
        output is either the logits, `float32[?, num_classes]`, or
        `OrderedDict(logits=..., embedding=float32[?, p])`. A single logit,
        or the sigmoid of one, makes a binary classifier.

    Raises:
      TypeError: If `model_fn` does not build such a model, a weight is not
        float32, or a layer cannot be trained here.
      ValueError: If a variable of the model is not an attribute of one of its
        layers, so that it cannot be replaced by a tensor.
    """
    if isinstance(model_fn, tf.keras.Model) or not callable(model_fn):
      raise TypeError(
        'model_fn must be a function that builds a fresh Keras model at each'
        f' call, found {type(model_fn).__name__}.'
      )
    model = model_fn()
    keras_checks.check_model(model)
    weights = keras_weights.variables(model)
    self._model_fn = model_fn
    self._model = model
    self._layers = internals.layers_of(model)
    self._trainable = _find_slots(self._layers, weights.trainable)
    self._non_trainable = _find_slots(self._layers, weights.non_trainable)
    self.layers_of_trainable = [places[0][0] for places in self._trainable]
    self._random = internals.random_slots(self._layers)
    self._constants = internals.constant_slots(self._layers)
    self.initial_weights = ModelWeights(
      *[[v.numpy() for v in part] for part in weights]
    )
    self.weights_type = _weights_type(self.initial_weights)
    self.input_spec = tf.TensorSpec(
      [None, *model.inputs[0].shape[1:]], tf.float32
    )
    outputs = outputs_lib.named(model.output)
    self.num_logits = outputs['logits'].shape[-1]
    self.num_classes = outputs_lib.num_classes(model)
    self.embedding_size = None
    if 'embedding' in outputs:
      self.embedding_size = outputs['embedding'].shape[-1]
    self.has_batch_norm = any(
      isinstance(layer, _BATCH_NORMS) for layer in self._layers
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
      ValueError: If a layer draws random numbers and `seed` is missing, the
        weights have other shapes than the model's, the model does not return
        logits, or it does what cannot be part of a federated computation.
    """
    _check_weights(weights, self.initial_weights)
    statistics = [internals.RecordedVariable(w) for w in weights.non_trainable]
    with contextlib.ExitStack() as stack:
      # Layers call tensor methods that NumPy arrays do not have.
      trainable = [tf.convert_to_tensor(w) for w in weights.trainable]
      for slots, values in (
        (self._trainable, trainable),
        (self._non_trainable, statistics),
        (self._random, self._generators(training, seed)),
        (
          [[slot] for slot, _ in self._constants],
          [internals.in_this_graph(held) for _, held in self._constants],
        ),
      ):
        stack.enter_context(internals.replaced(slots, values))
      stack.enter_context(keras_checks.checked_call(self._model))
      output = self._model(x, training=training)
    return outputs_lib.of_call(output), [s.value for s in statistics]

  def _generators(self, training, seed):
    """A generator for each layer that may draw."""
    generators = []
    for i, ((layer, _),) in enumerate(self._random):
      # In evaluation, its graph contains a draw that is not used.
      crops = isinstance(layer, tf.keras.layers.RandomCrop) and not training
      own_seed = tf.zeros([2], tf.int32) if crops else seed
      generators.append(internals.StatelessGenerator(own_seed, i))
    return generators

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
    keras_weights.assign(weights, model)
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


def _weights_type(weights):
  def spec(w):
    return tff.TensorType(np.float32, w.shape)

  return tff.types.to_type(
    ModelWeights(*[[spec(w) for w in part] for part in weights])
  )
