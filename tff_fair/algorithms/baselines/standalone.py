"""Standalone: every client trains alone, and nothing is sent.

The accuracy that a client reaches alone is the contribution axis of the
collaborative fairness coefficient (CFFL, equation 4), and the level above which
collaborating is worthwhile.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import attacks
from tff_fair.algorithms import processes


def build_standalone(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
) -> processes.PersonalizedLearningProcess:
  """Builds local training without communication: `w_i <- Train(w_i)`.

  A client's rounds are one continuous training: it keeps the state of its
  optimiser. There is no `server_optimizer` and no `model_aggregator`, as there
  is nothing to aggregate.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Its state is kept for the whole run.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives a client's
    model, `get_model_weights` always the initial one. The client table is
    `OrderedDict(model, optimizer_state)`. Metrics are FedAvg's.
  """
  shared = arguments.check_arguments(build_standalone, locals())
  attacks.refuse('Standalone', 'send nothing')
  model = models.StatelessModel(model_fn)
  train = shared.local_training(
    model, client.classification_objective(focal_gamma)
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
  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      model=model.initial_weights,
      optimizer_state=tf.nest.map_structure(
        lambda t: t.numpy(), optimizer_state
      ),
    ),
  )
  return processes.add_client_models(shared.compose(model, client_work))
