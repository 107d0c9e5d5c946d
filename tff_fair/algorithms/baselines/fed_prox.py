"""FedProx: clients that stay near the model that they received.

Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, "Federated Optimization in
Heterogeneous Networks" (MLSys 2020, https://arxiv.org/abs/1812.06127), with a
fixed number of epochs for all clients.
"""

from collections.abc import Callable
import operator
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_fed_prox(
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
  proximal_weight: Annotated[float, Limits(minimum=0), Symbol('μ')] = 0.01,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FedProx: FedAvg of clients that minimise `CE + mu/2 |w_i - w|^2`.

  w is the received model, its trainable weights alone.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    proximal_weight: Pull of a local model towards the received one; at 0 this
      is FedAvg bit for bit.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's; `loss` includes the
    proximal term.
  """
  shared = arguments.check_arguments(build_fed_prox, locals())
  model = models.StatelessModel(model_fn)
  objective = client.proximal_objective(
    client.classification_objective(focal_gamma), proximal_weight
  )
  return shared.fed_avg(
    model, objective, context_fn=operator.attrgetter('trainable')
  )
