"""Federated averaging, the reference that every other method departs from.

McMahan, Moore, Ramage, Hampson and Aguera y Arcas, "Communication-Efficient
Learning of Deep Networks from Decentralized Data" (AISTATS 2017,
https://arxiv.org/abs/1602.05629), with the local loop of this library.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition


def build_fed_avg(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds FedAvg: `w <- sum_i n_i w_i / sum_i n_i`.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of the process: seed Keras before building.
    num_clients: None for plain client data, `D*`. A number for clients with
      ids, `<client_id=int32*,train=D*,holdout=D*>`; then the metrics hold a
      report of each client. The training is the same.
    client_optimizer: Fresh at the start of every local training.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.
    uniform: Weighs all clients alike instead of by their number of examples.
    server_optimizer: Applied to the mean update; None adds it as it is.
    model_aggregator: Replaces the weighted mean of the trainable weights.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work`: `loss` and
    `accuracy` over the local epochs, the counts of `build_client_work`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals(), plain_data=True)
  return compose_fed_avg(
    models.StatelessModel(model_fn),
    client.classification_objective(focal_gamma),
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    uniform=uniform,
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
  )


def compose_fed_avg(
  model: models.StatelessModel,
  objective: client.Objective,
  *,
  num_clients: int | None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int,
  batch_size: int,
  seed: int,
  client_learning_rate_fn: Callable[[Any], Any] | None,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  context_fn: Callable[[Any], Any] | None = None,
  prepare_inputs: Callable[[Any, Any], Any] | None = None,
) -> composition.FairLearningProcess:
  """FedAvg with another objective, for the methods that differ in that alone.

  Args:
    model: The client model.
    objective: What clients minimise.
    num_clients: As in `build_fed_avg`, like all that is not named here.
    client_optimizer: See there.
    local_epochs: See there.
    batch_size: See there.
    seed: See there.
    client_learning_rate_fn: See there.
    uniform: See there.
    server_optimizer: See there.
    model_aggregator: See there.
    context_fn: From the received `ModelWeights` to the objective's context;
      None for no context.
    prepare_inputs: As for `divergence.build_divergence`.

  Returns:
    The process.
  """
  train = client.build_local_training(
    model,
    objective,
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )
  client_work = client.build_client_work(
    model,
    build_client_update(train, uniform=uniform, context_fn=context_fn),
    num_clients=num_clients,
    seed=seed,
    learning_rate_fn=client_learning_rate_fn,
  )
  return composition.compose_process(
    model,
    client_work,
    rule=tff.aggregators.MeanFactory(no_nan_division=True),
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
    prepare_inputs=prepare_inputs,
  )


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
    context_fn: As in `compose_fed_avg`.

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


def trained_output(
  weights: Any,
  result: client.LocalResult,
  row: Any,
  examples: Any,
  uniform: bool,
) -> client.ClientOutput:
  """What FedAvg's client sends after its training.

  Args:
    weights: The received `ModelWeights`.
    result: Of the training.
    row: The client's new row of the table.
    examples: As `client.build_client_work` gives them.
    uniform: As in `build_fed_avg`.

  Returns:
    A `ClientOutput`.
  """
  return client.ClientOutput(
    update=composition.model_update(weights, result.weights),
    update_weight=example_weight(examples, uniform),
    row=row,
    metrics=result.metrics,
    report=collections.OrderedDict(loss=result.metrics['loss']),
  )


def example_weight(examples: Any, uniform: bool) -> tf.Tensor:
  """FedAvg's client weight: float32, the number of training examples, or 1."""
  num_examples = tf.cast(tf.size(examples['train']['y']), tf.float32)
  return tf.ones_like(num_examples) if uniform else num_examples
