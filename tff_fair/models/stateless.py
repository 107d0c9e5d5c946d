"""An ordinary Keras model as a pure function of its weights.

Client training is written on tensors, `(weights, x) -> outputs`, so that one
graph can be compiled, vectorised over clients and run by several threads at
once. Keras 2.14 layers read variables instead. For the time of a call each
layer attribute that holds one of the model's variables is replaced by the
given tensor, or, for a non-trainable variable such as a moving average, by a
stand-in that records assignments. The model's own variables are not touched.
Layers that draw random numbers (dropout) draw them from a stateless seed.
"""

import collections
from collections.abc import Callable, Iterator
import contextlib
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

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
        layers, so that no tensor could stand for it.
    """
    if isinstance(model_fn, tf.keras.Model) or not callable(model_fn):
      raise TypeError(
        'model_fn must be a function that builds a fresh Keras model at each'
        f' call, found {type(model_fn).__name__}.'
      )
    model = model_fn()
    _check_model(model)
    self._model = model
    self._layers = [model, *model.submodules]
    self._trainable = _find_slots(self._layers, model.trainable_variables)
    self._non_trainable = _find_slots(
      self._layers, model.non_trainable_variables
    )
    self.layers_of_trainable = [places[0][0] for places in self._trainable]
    self._random_layers = [
      layer for layer in self._layers if hasattr(layer, '_random_generator')
    ]
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
        weights are those of another model.
    """
    _check_weights(weights, self.initial_weights)
    statistics = [_Recorder(w) for w in weights.non_trainable]
    with contextlib.ExitStack() as stack:
      # Layers call tensor methods that NumPy arrays lack.
      trainable = [tf.convert_to_tensor(w) for w in weights.trainable]
      stack.enter_context(_replaced(self._trainable, trainable))
      stack.enter_context(_replaced(self._non_trainable, statistics))
      generators = [
        _Generator(seed, i) for i in range(len(self._random_layers))
      ]
      slots = [[(layer, '_random_generator')] for layer in self._random_layers]
      stack.enter_context(_replaced(slots, generators))
      outputs = self._model(x, training=training)
    return _named_outputs(outputs), [s.value for s in statistics]


class _Recorder:
  """Stands for a variable: reads as a tensor, remembers assignments."""

  def __init__(self, value):
    self.value = tf.convert_to_tensor(value)

  def __getattr__(self, name):
    return getattr(self.value, name)

  def __tf_tensor__(self, dtype=None, name=None):
    return tf.convert_to_tensor(self.value, dtype, name=name)

  def read_value(self):
    """The value after the assignments so far."""
    return self.value

  def assign(self, value, **unused_kwargs):
    """Replaces the value, keeping the shape."""
    self.value = tf.ensure_shape(value, self.value.shape)
    return self.value

  def assign_add(self, delta, **kwargs):
    """Adds `delta`."""
    return self.assign(self.value + delta, **kwargs)

  def assign_sub(self, delta, *unused_args, **kwargs):
    """Subtracts `delta`."""
    return self.assign(self.value - delta, **kwargs)


def _forward_operator(name):
  def operator(self, *args):
    return getattr(self.value, name)(*args)

  return operator


# Python looks operators up on the class, past `__getattr__`.
for _name in tf.Tensor.OVERLOADABLE_OPERATORS:
  setattr(_Recorder, _name, _forward_operator(_name))


class _Generator:
  """Stands for Keras's random generator: each draw has its own seed."""

  def __init__(self, seed, layer_index):
    self._seed = seed
    self._layer_index = layer_index
    self._draws = 0

  def _next_seed(self):
    if self._seed is None:
      raise ValueError(
        'A layer draws random numbers in training mode, which requires a'
        ' stateless seed of shape [2], found seed=None.'
      )
    fold_in = tf.random.experimental.stateless_fold_in
    seed = fold_in(self._seed, self._layer_index)
    self._draws += 1
    return fold_in(seed, self._draws)

  def dropout(self, inputs, rate, noise_shape=None):
    """As `tf.nn.dropout`."""
    return tf.nn.experimental.stateless_dropout(
      inputs, rate, seed=self._next_seed(), noise_shape=noise_shape
    )

  def random_normal(self, shape, mean=0.0, stddev=1.0, dtype=None, **unused):
    """As `tf.random.normal`."""
    return tf.random.stateless_normal(
      shape, self._next_seed(), mean, stddev, dtype or tf.float32
    )

  def random_uniform(
    self, shape, minval=0.0, maxval=None, dtype=None, **unused
  ):
    """As `tf.random.uniform`."""
    maxval = 1.0 if maxval is None else maxval
    return tf.random.stateless_uniform(
      shape, self._next_seed(), minval, maxval, dtype or tf.float32
    )


@contextlib.contextmanager
def _replaced(slots, values) -> Iterator[None]:
  """Puts `values[i]` into every (owner, attribute) of `slots[i]`."""
  saved = []
  try:
    for places, value in zip(slots, values, strict=True):
      for owner, attribute in places:
        # Past `__setattr__`, in which Keras tracks variables.
        saved.append((owner, attribute, owner.__dict__[attribute]))
        owner.__dict__[attribute] = value
    yield
  finally:
    for owner, attribute, value in reversed(saved):
      owner.__dict__[attribute] = value


def _find_slots(layers, variables):
  """For each variable, the (layer, attribute) pairs that hold it."""
  by_id = collections.defaultdict(list)
  for layer in layers:
    for attribute, value in vars(layer).items():
      if isinstance(value, tf.Variable):
        by_id[id(value)].append((layer, attribute))
  for variable in variables:
    if id(variable) not in by_id:
      raise ValueError(
        'Every variable of the model must be an attribute of one of its'
        f' layers, found {variable.name}, which is not.'
      )
  return [by_id[id(variable)] for variable in variables]


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
    # TensorFlow would stretch a bias of length 1.
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
