"""FedProx: clients that stay near the model that they received.

Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, "Federated Optimization in
Heterogeneous Networks" (MLSys 2020, https://arxiv.org/abs/1812.06127), with a
fixed number of epochs for all clients.
"""

from collections.abc import Callable
import operator
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg


def build_fed_prox(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  proximal_weight: float = 0.01,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds FedProx: FedAvg of clients that minimise `CE + mu/2 |w_i - w|^2`.

  w is the received model, its trainable weights alone.

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
    proximal_weight: mu, not negative; at 0 this is FedAvg bit for bit.
    uniform: Weighs all clients alike instead of by their number of examples.
    server_optimizer: Applied to the mean update; None adds it as it is.
    model_aggregator: Replaces the weighted mean of the trainable weights.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's; `loss` includes the
    proximal term.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals(), plain_data=True)
  checks.check_real('proximal_weight', proximal_weight, 0.0)
  return fed_avg.compose_fed_avg(
    models.StatelessModel(model_fn),
    client.proximal_objective(
      client.classification_objective(focal_gamma), proximal_weight
    ),
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    uniform=uniform,
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
    context_fn=operator.attrgetter('trainable'),
  )
