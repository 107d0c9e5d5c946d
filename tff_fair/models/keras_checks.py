"""Checks that a Keras model can be trained in a federation.

The checks refuse by name whatever would fail during the training or would be
silently ignored.
"""

from collections.abc import Iterator
import contextlib
from typing import Any
import warnings

import tensorflow as tf

from tff_fair import internals
from tff_fair.models import keras_weights
from tff_fair.models import outputs

_layers = tf.keras.layers

_REQUIREMENT = (
  'model_fn must build a tf.keras.Model with one float32 input and logits of'
  ' shape [None, num_classes]'
)
_WITH_TABLES = (
  _layers.StringLookup,
  _layers.IntegerLookup,
  _layers.TextVectorization,
)
# Of tf.py_function and tf.numpy_function.
_OF_PYTHON = ('EagerPyFunc', 'PyFunc', 'PyFuncStateless')


def check_model(model: Any) -> None:
  """Raises TypeError unless `model_fn` returned a model to be trained."""
  if not isinstance(model, tf.keras.Model):
    raise TypeError(f'{_REQUIREMENT}, found {type(model).__name__}.')
  _check_input(model)
  _check_output(model.output)
  _check_weights(keras_weights.variables(model))
  for layer in internals.layers_of(model):
    _warn_of_identity(layer)
    reason = _refusal(layer)
    if reason is not None:
      raise TypeError(
        'Every layer of the model must work in federated training, found'
        f' {type(layer).__name__} {layer.name!r}, {reason}.'
      )


@contextlib.contextmanager
def checked_call(model: tf.keras.Model) -> Iterator[None]:
  """Raises ValueError if a call inside adds to the graph what must not be.

  That is a loss, random numbers other than of its layers' generators, eager
  tensors or variables of others, a Python function, or a Python condition on a
  tensor.
  """
  if tf.executing_eagerly():
    yield
    return
  graph = tf.compat.v1.get_default_graph()
  num_operations = len(graph.get_operations())
  num_captures = len(internals.captures(graph))
  try:
    yield
  except tf.errors.OperatorNotAllowedInGraphError as error:
    where = str(error).splitlines()[0].rstrip('.')
    raise ValueError(
      'A layer must decide about tensors by tf.cond or tf.where, found a Python'
      f' condition ({where}).'
    ) from None
  if model.losses:
    raise ValueError(
      'The loss of the method must be the only one, found one that the model'
      f' adds by add_loss ({model.losses[0].name}).'
    )
  for operation in graph.get_operations()[num_operations:]:
    if operation.type in _OF_PYTHON:
      raise ValueError(
        "The model must consist of TensorFlow's operations, which TFF can"
        f' store, found a Python function in {operation.name}.'
      )
    if internals.draws(operation):
      raise ValueError(
        'The model must draw random numbers by layers of Keras alone, whose'
        f' seeds a run knows, found {operation.type} in {operation.name}.'
      )
  if not tf.compat.v1.executing_eagerly_outside_functions():
    names = internals.eager_reads(graph, num_captures)
    if names:
      raise ValueError(
        'The model must not read eager tensors, tables or variables that are'
        f' not its own, found one in {names[0]}: use NumPy arrays for'
        ' constants, and add_weight for variables.'
      )


def _check_input(model) -> None:
  inputs = getattr(model, 'inputs', None)
  if not inputs:
    if isinstance(model, tf.keras.Sequential):
      found = (
        'a Sequential model without an input (add tf.keras.Input(shape) as its'
        ' first layer)'
      )
    else:
      name = type(model).__name__
      found = (
        f'the subclassed model {name} without an input (wrap it: x ='
        f' tf.keras.Input(shape); tf.keras.Model(x, {name}(...)(x)))'
      )
    raise TypeError(f'{_REQUIREMENT}, found {found}.')
  if len(inputs) > 1:
    raise TypeError(
      f'{_REQUIREMENT}, found {len(inputs)} inputs (join them to one array per'
      ' example, and take it apart in the model: x[:, :5], x[:, 5:]).'
    )
  (tensor,) = inputs
  spec = getattr(tensor, 'type_spec', None)
  if not isinstance(spec, tf.TensorSpec) or tensor.dtype == tf.string:
    raise TypeError(
      f'{_REQUIREMENT}, found an input of type {spec} (turn it into numbers'
      ' before, in the data).'
    )
  batch, *sizes = tensor.shape
  if batch is not None or None in sizes:
    raise TypeError(
      f'{_REQUIREMENT}, found an input of shape {tensor.shape} (give the shape'
      ' of one example to tf.keras.Input, without a batch size; pad examples of'
      ' different sizes).'
    )


def _check_output(output) -> None:
  if isinstance(output, dict) and 'logits' not in output:
    raise TypeError(f'{_REQUIREMENT}, found outputs named {sorted(output)}.')
  logits = outputs.named(output)['logits']
  if isinstance(logits, (list, tuple)):
    raise TypeError(
      f'{_REQUIREMENT}, found {len(logits)} outputs (name them: a dict with'
      " 'logits' and 'embedding')."
    )
  if (
    not tf.keras.backend.is_keras_tensor(logits)
    or logits.shape.rank != 2
    or logits.shape[1] is None
  ):
    raise TypeError(f'{_REQUIREMENT}, found output {logits!r}.')


def _check_weights(weights) -> None:
  for variable in (*weights.trainable, *weights.non_trainable):
    if variable.dtype != tf.float32:
      raise TypeError(
        'Every weight of the model must be float32, found'
        f' {variable.name} of {variable.dtype.name}.'
      )


def _refusal(layer) -> str | None:
  """Why a layer cannot be trained; None if it can."""
  if isinstance(layer, _WITH_TABLES):
    return 'whose table is not a weight (look values up before, in the data)'
  if isinstance(layer, _layers.SpectralNormalization):
    return 'which assigns to weights that are trained'
  if getattr(layer, 'stateful', False) and isinstance(layer, _layers.RNN):
    return 'which carries its state from batch to batch (stateful=False)'
  if getattr(layer, 'compute_dtype', None) in (
    'float16',
    'bfloat16',
    'float64',
  ):
    return f'which computes in {layer.compute_dtype} (dtype="float32")'
  if internals.draws_always(layer):
    return 'which draws random numbers in evaluation, too (training=True)'
  for name, value in vars(layer).items():
    # Keras's own training loop alone reads these.
    if name.endswith('_regularizer') and value:
      return (
        'whose regularizer would have no effect (client.with_weight_decay'
        ' decays weights)'
      )
    if name.endswith('_constraint') and value:
      return 'whose constraint would have no effect'
  return None


def _warn_of_identity(layer) -> None:
  """Warns of a `Normalization` that does nothing; EfficientNet has one."""
  if not isinstance(layer, _layers.Normalization):
    return
  if layer.input_mean is None and not int(layer.count):
    warnings.warn(
      f'{type(layer).__name__} {layer.name!r} has no statistics, so it changes'
      ' nothing: call its adapt before, or give mean and variance.',
      stacklevel=4,
    )
