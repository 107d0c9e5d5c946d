"""PropFair: clients whose losses are near a bound pull more.

Zhang, Malekmohammadi, Chen and Yu, "Proportional Fairness in Federated
Learning" (TMLR 2023, https://arxiv.org/abs/2202.01666).
"""

from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_prop_fair(
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
  loss_bound: Annotated[float, Limits(above=0), Symbol('M')] = 2.0,
  linear_width: Annotated[float, Limits(above=0), Symbol('ε')] = 0.2,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds PropFair: FedAvg of clients that minimise `-log(M - F_i)`.

  `M - F_i` is a client's utility, whose product over the clients is then the
  largest. Its gradient is that of F_i over `M - F_i`. Where this is below
  epsilon, the logarithm goes on as its tangent, so that the divisor is epsilon;
  see `client.proportional_objective`, which applies this to the mean loss of
  each minibatch.

  The authors' public code has the loss over M there, unless its option huber is
  given, with a smaller gradient than at lower losses; here it is the paper's
  tangent. The defaults are those of the code. As M grows, this becomes FedAvg
  with the learning rate `eta / M`.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    loss_bound: Loss at which a client's utility is 0; near it, clients pull
      more.
    linear_width: Below this utility the logarithm is linear. At most
      `loss_bound`; there it is the loss itself, over M.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's; `loss` is what clients
    minimise plus `log(M)`, 0 where the loss is 0.
  """
  shared = arguments.check_arguments(build_prop_fair, locals())
  checks.check_positive('linear_width', linear_width, loss_bound)
  model = models.StatelessModel(model_fn)
  objective = client.proportional_objective(
    client.classification_objective(focal_gamma),
    loss_bound=loss_bound,
    linear_width=linear_width,
  )
  return shared.fed_avg(model, objective)
