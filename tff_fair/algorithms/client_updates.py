"""Uploads of clients: FedAvg's client update, and arithmetic on updates."""

import collections
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models

ModelWeights: TypeAlias = tff.learning.models.ModelWeights


def build_client_update(
  train: Callable[..., client.LocalResult],
  *,
  uniform: bool,
  context_fn: Callable[[Any], Any] | None = None,
) -> client.ClientUpdate:
  """FedAvg's client: it trains the received weights and sends the update.

  Args:
    train: What `client.build_local_training` returns.
    uniform: As in `build_fed_avg`.
    context_fn: From the received `ModelWeights` to the objective's context;
      None for no context.

  Returns:
    What `client.build_client_work` takes.
  """

  def client_update(weights, row, examples, client_seed, learning_rate):
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=() if context_fn is None else context_fn(weights),
      learning_rate=learning_rate,
    )
    return trained_output(weights, result, row, examples, uniform)

  return client_update


def with_loss_before(
  model: models.StatelessModel,
  client_update: client.ClientUpdate,
  focal_gamma: float,
) -> client.ClientUpdate:
  """A client update that also reports the loss of the received model.

  It is the mean loss over all the client's training examples, in inference mode
  and before it trains, as `loss_before` in the report.

  Args:
    model: The client model.
    client_update: What the client does otherwise.
    focal_gamma: Of the loss.

  Returns:
    What `client.build_client_work` takes.
  """

  def with_loss(weights, row, examples, client_seed, learning_rate):
    loss_before = client.mean_loss(
      model, weights, examples['train'], focal_gamma=focal_gamma
    )
    output = client_update(weights, row, examples, client_seed, learning_rate)
    return output._replace(
      report=collections.OrderedDict(loss_before=loss_before, **output.report)
    )

  return with_loss


def trained_output(
  weights: Any,
  result: client.LocalResult,
  row: Any,
  examples: Any,
  uniform: bool,
) -> client.ClientOutput:
  """Returns the upload of FedAvg's client after its training."""
  return client.ClientOutput(
    update=model_update(weights, result.weights),
    update_weight=example_weight(examples, uniform),
    row=row,
    metrics=result.metrics,
    report=collections.OrderedDict(loss=result.metrics['loss']),
  )


def example_weight(examples: Any, uniform: bool = False) -> tf.Tensor:
  """FedAvg's client weight: float32, the number of training examples, or 1."""
  num_examples = tf.cast(tf.size(examples['train']['y']), tf.float32)
  return tf.ones_like(num_examples) if uniform else num_examples


def model_update(before: ModelWeights, after: ModelWeights) -> ModelWeights:
  """The update a client sends: old minus new, as TFF's finalizers subtract."""
  return tf.nest.map_structure(tf.subtract, before, after)


def bounded_weights(
  before: ModelWeights, after: ModelWeights, max_norm: float | None
) -> tuple[ModelWeights, tf.Tensor]:
  """Weights moved back towards where they were before training.

  For methods that make a row of the client table of the trained weights, which
  the server or other clients read.

  They are `after`, bit for bit, within the bound of `client.bound_update`; the
  other result says whether they are not.
  """
  update, clipped = client.bound_update(model_update(before, after), max_norm)
  bounded = tf.nest.map_structure(
    lambda w, u, trained: tf.where(clipped, w - u, trained),
    before,
    update,
    after,
  )
  return bounded, clipped


def clip_update(update: list[Any], clip_value: float, mode: str) -> list[Any]:
  """Clips a whole local update, not the gradients of its steps.

  Args:
    update: Tensors.
    clip_value: Positive.
    mode: 'value' clips each entry to [-clip_value, clip_value], 'norm' scales
      all of them to an L2 norm of at most clip_value.

  Returns:
    Tensors of the same shapes; NaN where an entry is not finite ('value') or
    everywhere ('norm'), so that such an update is rejected and not clipped.
  """
  if mode == 'norm':
    return tf.clip_by_global_norm(update, clip_value)[0]

  def clip(entries):
    clipped = tf.clip_by_value(entries, -clip_value, clip_value)
    return tf.where(tf.math.is_finite(entries), clipped, np.nan)

  return [clip(u) for u in update]
