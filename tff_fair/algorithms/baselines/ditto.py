"""Ditto: a personal model for each client, pulled towards the global one.

Li, Hu, Beirami and Smith, "Ditto: Fair and Robust Federated Learning Through
Personalization" (ICML 2021, https://arxiv.org/abs/2012.04221).
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg


def build_ditto(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  personal_optimizer: tff.learning.optimizers.Optimizer | None = None,
  personal_learning_rate_fn: Callable[[Any], Any] | None = None,
  proximal_weight: float = 0.1,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.PersonalizedLearningProcess:
  """Builds Ditto: FedAvg, and after it, on each client, a personal model.

  The personal model v of a client takes as many epochs as the global one, on
  `F(v) + lambda / 2 * ||v - w||^2` with the received global model w fixed. Its
  optimiser is fresh each round; it never leaves the client, and stays as it was
  in rounds without the client. With `proximal_weight=0` it is trained alone.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of the process: seed Keras before building.
    num_clients: Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`.
    client_optimizer: Of the global model, fresh at each local training.
    local_epochs: Passes over the client's examples, for either model.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      learning rate of `client_optimizer`, or None.
    personal_optimizer: Of the personal models; None is `client_optimizer`.
    personal_learning_rate_fn: As `client_learning_rate_fn`, for
      `personal_optimizer`.
    proximal_weight: The paper's lambda, not negative.
    uniform: Weighs all clients alike, as the paper's Algorithm 1 does, instead
      of by their number of examples.
    server_optimizer: Applied to the mean update; None adds it as it is.
    model_aggregator: Replaces the weighted mean of the trainable weights.

  Returns:
    A `PersonalizedLearningProcess`; `get_model_weights` gives the global model,
    `get_client_model_weights` a personal one. Metrics are FedAvg's, and
    `personal_loss`, which includes the proximal term.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals())
  checks.check_real('proximal_weight', proximal_weight, 0.0)
  personal_optimizer = personal_optimizer or client_optimizer
  composition.check_optimizer('personal_optimizer', personal_optimizer)
  if personal_learning_rate_fn is not None:
    checks.check_function(
      'personal_learning_rate_fn', personal_learning_rate_fn, 'the round'
    )
  model = models.StatelessModel(model_fn)
  objective = client.classification_objective(focal_gamma)
  loop = dict(local_epochs=local_epochs, batch_size=batch_size)
  train = client.build_local_training(
    model, objective, client_optimizer, **loop
  )
  train_personal = client.build_local_training(
    model,
    client.proximal_objective(objective, proximal_weight),
    personal_optimizer,
    **loop,
  )

  def learning_rates(round_number):
    functions = (client_learning_rate_fn, personal_learning_rate_fn)
    return [f and f(round_number) for f in functions]

  def client_update(weights, row, examples, client_seed, learning_rates):
    learning_rate, personal_learning_rate = learning_rates
    result = train(
      weights, examples['train'], client_seed, learning_rate=learning_rate
    )
    personal = train_personal(
      row['model'],
      examples['train'],
      tf.random.experimental.stateless_fold_in(client_seed, local_epochs),
      context=weights.trainable,
      learning_rate=personal_learning_rate,
    )
    losses = collections.OrderedDict(
      loss=result.metrics['loss'], personal_loss=personal.metrics['loss']
    )
    return client.ClientOutput(
      update=composition.model_update(weights, result.weights),
      update_weight=fed_avg.example_weight(examples, uniform),
      row=collections.OrderedDict(model=personal.weights),
      metrics=collections.OrderedDict(
        result.metrics, personal_loss=personal.metrics['loss']
      ),
      report=losses,
    )

  client_work = client.build_client_work(
    model,
    client_update,
    num_clients=num_clients,
    seed=seed,
    initial_row=collections.OrderedDict(model=model.initial_weights),
    learning_rate_fn=learning_rates,
  )
  process = composition.compose_process(
    model,
    client_work,
    rule=tff.aggregators.MeanFactory(no_nan_division=True),
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
  )
  return composition.add_client_models(process)
