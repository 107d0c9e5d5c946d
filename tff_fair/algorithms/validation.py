"""The server's validation set, on which some methods rate their clients."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models

ModelWeights: TypeAlias = tff.learning.models.ModelWeights
_Examples = tuple[np.ndarray, np.ndarray]

# Examples that go through the model at once.
_BATCH = 1000


def check_validation(
  model: models.StatelessModel, validation: tuple[Any, Any]
) -> _Examples:
  """The validation set as arrays that fit the model.

  Args:
    model: The client model.
    validation: `(x, y)`, arrays `float32[n, ...]` and `int32[n]`, n > 0.

  Returns:
    `(x, y)`, float32 and int32.

  Raises:
    TypeError: If `validation` is not a pair.
    ValueError: If the arrays do not fit the model or each other.
  """
  if not isinstance(validation, Sequence) or len(validation) != 2:
    raise TypeError(
      'validation must be a pair of inputs and labels, found'
      f' {type(validation).__name__}.'
    )
  x, y = (np.asarray(a) for a in validation)
  required = (
    'validation must hold inputs of shape'
    f' {[None, *model.input_spec.shape[1:]]} and as many integer labels in'
    f' 0..{model.num_classes - 1}, at least one'
  )
  if x.shape[1:] != tuple(model.input_spec.shape[1:]) or not len(x):
    raise ValueError(f'{required}, found inputs of shape {list(x.shape)}.')
  if y.shape != x.shape[:1] or y.dtype.kind not in 'iu':
    raise ValueError(
      f'{required}, found {y.dtype} labels of shape {list(y.shape)}.'
    )
  if y.min() < 0 or y.max() >= model.num_classes:
    raise ValueError(f'{required}, found labels {y.min()} to {y.max()}.')
  if not np.isfinite(x).all():
    raise ValueError(f'{required}, all finite, found values that are not.')
  return x.astype(np.float32), y.astype(np.int32)


def accuracy_fn(
  model: models.StatelessModel, examples: _Examples
) -> Callable[[ModelWeights], tf.Tensor]:
  """The accuracy on the validation set.

  Args:
    model: The client model.
    examples: What `check_validation` returned.

  Returns:
    A pure function `ModelWeights -> float64`.
  """
  x, y = examples

  def accuracy(weights):
    hits = []
    for start in range(0, len(x), _BATCH):
      batch = slice(start, start + _BATCH)
      outputs, _ = model(weights, tf.constant(x[batch]), training=False)
      predicted = tf.argmax(outputs['logits'], axis=-1)
      hits.append(tf.math.count_nonzero(tf.equal(predicted, y[batch])))
    return tf.cast(tf.add_n(hits), tf.float64) / len(x)

  return accuracy


def loss_fn(
  model: models.StatelessModel, examples: _Examples
) -> Callable[[ModelWeights], tf.Tensor]:
  """The mean cross-entropy on the validation set.

  Args:
    model: The client model.
    examples: What `check_validation` returned.

  Returns:
    A pure function `ModelWeights -> float32`.
  """
  x, y = examples

  def loss(weights):
    constants = dict(x=tf.constant(x), y=tf.constant(y))
    return client.mean_loss(model, weights, constants, _BATCH)

  return loss


def batch_losses_fn(
  model: models.StatelessModel, examples: _Examples, batch_size: int
) -> Callable[[ModelWeights], tf.Tensor]:
  """The mean cross-entropy of each minibatch of the validation set.

  Args:
    model: The client model.
    examples: What `check_validation` returned; divided in its order.
    batch_size: Examples a minibatch; the last may be shorter.

  Returns:
    A pure function `ModelWeights -> float32[ceil(n / batch_size)]`.
  """
  x, y = examples

  def losses(weights):
    constants = dict(x=tf.constant(x), y=tf.constant(y))
    return client.batch_losses(
      model, weights, constants, batch_size, -(-len(x) // batch_size)
    )

  return losses
