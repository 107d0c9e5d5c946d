"""q-FedAvg: clients with high losses have larger weights.

Li, Sanjabi, Beirami and Smith, "Fair Resource Allocation in Federated Learning"
(ICLR 2020, https://arxiv.org/abs/1905.10497; q-FFL), algorithm 2.
"""

import collections
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


def build_q_fed_avg(
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
  q: Annotated[float, Limits(minimum=0), Symbol('q')] = 0.1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds q-FedAvg.

  With `F_i` the mean loss, plus 1e-10, of the received model w over all the
  client's training examples, in inference mode and before it trains, `w_i` the
  trained model and `L = 1 / eta_t`:

      Delta_i = F_i^q L (w - w_i)
      h_i = q F_i^(q - 1) |L (w - w_i)|^2 + L F_i^q
      w <- w - sum_i Delta_i / sum_i h_i

  Numbers of examples have no effect. Batch-norm statistics are averaged by
  `h_i`. There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Its learning rate is eta.
    focal_gamma: Of the loss of training and of F_i.
    q: Exponent of the losses: how much high losses count; at 0 this is FedAvg
      with uniform weights.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's, those of
    `aggregators.QFairFactory` under `aggregator`, and under
    `client_work['clients']` `loss_before` (F_i) and `loss`.
  """
  shared = arguments.check_arguments(build_q_fed_avg, locals())
  model = models.StatelessModel(model_fn)
  rule = aggregators.QFairFactory(q)
  objective = client.classification_objective(focal_gamma)
  trained = client_updates.with_loss_before(
    model,
    client_updates.build_client_update(
      shared.local_training(model, objective), uniform=True
    ),
    focal_gamma,
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    output = trained(weights, row, examples, client_seed, learning_rate)
    return output._replace(
      update_weight=collections.OrderedDict(
        loss=output.report['loss_before'], learning_rate=learning_rate
      )
    )

  client_work = shared.client_work(
    model, client_update, learning_rate_fn=shared.learning_rate_fn()
  )
  return shared.compose(model, client_work, rule=rule, split_statistics=False)
