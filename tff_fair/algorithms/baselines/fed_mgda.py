"""FedMGDA+: a common direction of descent for all clients.

Hu, Shaloudegi, Zhang and Yu, "Federated Learning Meets Multi-objective
Optimization" (IEEE Transactions on Network Science and Engineering, 2022,
https://arxiv.org/abs/2006.11489).
"""

from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_fed_mgda(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  deviation: Annotated[float, Limits(minimum=0, maximum=1), Symbol('ε')] = 1.0,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
) -> processes.FairLearningProcess:
  """Builds FedMGDA+.

  Clients train as in FedAvg; `u_i = (w - w_i) / |w - w_i|`. The server takes
  the point d of least norm among the convex combinations of the u_i whose
  weights differ by at most epsilon from the shares of examples `n_i / sum n`,
  and moves the model by the clients' learning rate of the round:
  `w <- w - eta_t d`. Batch-norm statistics are averaged by the weights of the
  combination. There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Its learning rate is eta.
    deviation: How far a client's weight may be from its share of the examples;
      at 0 this is FedAvg of updates of length 1. At 1 the weights are free.
      CoRe-Fed compares with 0.1 and 1.
    server_optimizer: Applied to `eta_t d`; None subtracts it.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's, and those of
    `aggregators.MinNormFactory` under `aggregator`.
  """
  shared = arguments.check_arguments(build_fed_mgda, locals())
  model = models.StatelessModel(model_fn)
  rule = aggregators.MinNormFactory(deviation, shared.learning_rate_fn())
  train = shared.local_training(
    model, client.classification_objective(focal_gamma)
  )
  client_work = shared.client_work(
    model, client_updates.build_client_update(train, uniform=False)
  )
  return shared.compose(model, client_work, rule=rule, split_statistics=False)
