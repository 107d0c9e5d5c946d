"""Standalone: every client trains by itself, and nothing is sent.

What a client reaches alone is the contribution axis of the collaborative
fairness coefficient (CFFL, equation 4), and the level above which a
collaboration is worth its while.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition


def build_standalone(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
) -> composition.PersonalizedLearningProcess:
  """Builds local training without communication: `w_i <- Train(w_i)`.

  All clients start from the same weights. A client's rounds are one continuous
  training: the state of its optimiser stays with it.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of every client: seed Keras before building.
    num_clients: Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`.
    client_optimizer: One for each client, for the whole run.
    local_epochs: Passes over the client's examples in a round.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      learning rate of `client_optimizer`, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives a client's
    model, `get_model_weights` always the initial one. The client table is
    `OrderedDict(model, optimizer_state)`. Metrics are FedAvg's.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals())
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    client.classification_objective(focal_gamma),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    result = train(
      row['model'],
      examples['train'],
      client_seed,
      learning_rate=learning_rate,
      optimizer_state=row['optimizer_state'],
    )
    return client.ClientOutput(
      update=tf.nest.map_structure(tf.zeros_like, weights),
      update_weight=tf.constant(1.0),
      row=collections.OrderedDict(
        model=result.weights, optimizer_state=result.optimizer_state
      ),
      metrics=result.metrics,
      report=collections.OrderedDict(loss=result.metrics['loss']),
    )

  optimizer_state = client.initial_optimizer_state(
    client_optimizer, model.initial_weights
  )
  client_work = client.build_client_work(
    model,
    client_update,
    num_clients=num_clients,
    seed=seed,
    initial_row=collections.OrderedDict(
      model=model.initial_weights,
      optimizer_state=tf.nest.map_structure(
        lambda t: t.numpy(), optimizer_state
      ),
    ),
    learning_rate_fn=client_learning_rate_fn,
  )
  process = composition.compose_process(
    model,
    client_work,
    rule=tff.aggregators.MeanFactory(no_nan_division=True),
  )
  return composition.add_client_models(process)
