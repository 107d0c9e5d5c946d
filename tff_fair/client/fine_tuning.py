"""Trains a received model on a client's own examples, outside of rounds."""

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.client import local_training
from tff_fair.client import objectives
from tff_fair.models import stateless

ModelWeights: TypeAlias = tff.learning.models.ModelWeights


def build_fine_tuning(
  model: stateless.StatelessModel,
  optimizer: tff.learning.optimizers.Optimizer,
  *,
  epochs: int,
  batch_size: int,
  seed: int = 0,
  learning_rate_fn: Callable[[Any], Any] | None = None,
) -> Callable[..., ModelWeights]:
  """Builds the fine-tuning of one client: local training by cross-entropy.

  Args:
    model: The client model.
    optimizer: A TFF optimiser; its state is new at each call.
    epochs: Passes over the client's examples, at least 1.
    batch_size: Examples in a minibatch, see `build_local_training`.
    seed: Seed of the shuffles and dropout masks, which are others than those of
      a round with this seed.
    learning_rate_fn: From the number of rounds so far to the learning rate,
      from int32 to float32; None for that of the optimiser.

  Returns:
    A function `(weights, x, y, round, key) -> ModelWeights` of tensors, which
    several threads may call. `weights` is `ModelWeights` of the received model,
    `x` and `y` are `float32[n, ...]` and `int32[n]`, the client's examples, of
    which there may be none, `round` is the number of rounds so far, and `key`
    the client's id; both are int32 and determine the shuffles.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If it is out of range.
  """
  checks.check_integer('epochs', epochs, 1)
  train = local_training.build_local_training(
    model,
    objectives.classification_objective(),
    optimizer,
    local_epochs=epochs,
    batch_size=batch_size,
  )
  words = local_training.seed_words(seed)
  initial = model.initial_weights
  number = tf.TensorSpec([], tf.int32)

  @tf.function(
    autograph=False,
    input_signature=[
      [_spec(w) for w in initial.trainable],
      [_spec(w) for w in initial.non_trainable],
      tf.TensorSpec(model.input_spec.shape, tf.float32),
      tf.TensorSpec([None], tf.int32),
      number,
      number,
    ],
  )
  def fine_tune(trainable, non_trainable, x, y, round_number, key):
    # Rounds are not negative.
    client_seed = local_training.client_seed(words, -1 - round_number, key)
    rate = None if learning_rate_fn is None else learning_rate_fn(round_number)
    result = train(
      ModelWeights(trainable, non_trainable),
      {'x': x, 'y': y},
      client_seed,
      learning_rate=rate,
    )
    return [*result.weights.trainable], [*result.weights.non_trainable]

  def from_weights(weights, x, y, round_number, key):
    parts = [*weights.trainable], [*weights.non_trainable]
    return ModelWeights(*fine_tune(*parts, x, y, round_number, key))

  return from_weights


def _spec(weight) -> tf.TensorSpec:
  return tf.TensorSpec(weight.shape, weight.dtype)
