"""FedMGDA+: a common direction of descent for all clients.

Hu, Shaloudegi, Zhang and Yu, "Federated Learning Meets Multi-objective
Optimization" (IEEE Transactions on Network Science and Engineering, 2022,
https://arxiv.org/abs/2006.11489).
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg


def build_fed_mgda(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  deviation: float = 1.0,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
) -> composition.FairLearningProcess:
  """Builds FedMGDA+.

  Clients train as in FedAvg; `u_i = (w - w_i) / |w - w_i|`. The server takes
  the point d of least norm among the mixes of the u_i whose weights differ by
  at most epsilon from the shares of examples `n_i / sum n`, and moves the model
  by the clients' learning rate of the round: `w <- w - eta_t d`. Batch-norm
  statistics are averaged by the weights of the mix.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of the process: seed Keras before building.
    num_clients: None for plain client data, `D*`. A number for clients with
      ids, `<client_id=int32*,train=D*,holdout=D*>`; then the metrics hold a
      report of each client. The training is the same.
    client_optimizer: Fresh at the start of every local training; its learning
      rate is eta.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.
    deviation: The paper's epsilon, in [0, 1]. At 0 this is FedAvg of updates
      of length 1; at 1 the weights are free.
    server_optimizer: Applied to `eta_t d`; None adds it as it is.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's, and those of
    `aggregators.MinNormFactory` under `aggregator`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals(), plain_data=True)
  rule = aggregators.MinNormFactory(
    deviation,
    composition.learning_rate_at(client_optimizer, client_learning_rate_fn),
  )
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    client.classification_objective(focal_gamma),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )
  client_work = client.build_client_work(
    model,
    fed_avg.build_client_update(train, uniform=False),
    num_clients=num_clients,
    seed=seed,
    learning_rate_fn=client_learning_rate_fn,
  )
  return composition.compose_process(
    model,
    client_work,
    rule=rule,
    server_optimizer=server_optimizer,
    split_statistics=False,
  )
