"""TERM: clients count exponentially more, the higher their losses.

Li, Beirami, Sanjabi and Smith, "Tilted Empirical Risk Minimization" (ICLR 2021,
https://arxiv.org/abs/2007.01162), and "On Tilted Losses in Machine Learning:
Theory and Applications" (JMLR 2023): tilted losses of clients, for fairness in
federated learning.
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


def build_term(
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
  tilt: Annotated[float, Limits(minimum=0), Symbol('t')] = 0.1,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds TERM: `min_w 1/t log(sum_i p_i exp(t F_i(w)))`.

  With `F_i` the mean loss of the received model w over all the client's
  training examples, in inference mode and before it trains, and p_i the
  client's share of the examples:

      w <- sum_i p_i exp(t F_i) w_i / sum_i p_i exp(t F_i)

  These are the weights of the clients' gradients in that of the objective, with
  sums over the clients of the round. The authors' public code has equal p_i,
  which is `uniform=True`, and divides by an estimate of the sum that is
  averaged over rounds, so that its weights need not sum to 1. Tilts of single
  examples, the lower level of the paper's hierarchy, are left out.

  There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    focal_gamma: Of the loss of training and of F_i.
    tilt: How much high losses count; at 0 this is FedAvg bit for bit.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's, those of
    `aggregators.TiltedMeanFactory` under `aggregator`, and under
    `client_work['clients']` `loss_before` (F_i) and `loss`.
  """
  shared = arguments.check_arguments(build_term, locals())
  model = models.StatelessModel(model_fn)
  rule = aggregators.TiltedMeanFactory(tilt)
  objective = client.classification_objective(focal_gamma)
  trained = client_updates.with_loss_before(
    model,
    client_updates.build_client_update(
      shared.local_training(model, objective), uniform=uniform
    ),
    focal_gamma,
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    output = trained(weights, row, examples, client_seed, learning_rate)
    return output._replace(
      update_weight=collections.OrderedDict(
        loss=output.report['loss_before'], num_examples=output.update_weight
      )
    )

  client_work = shared.client_work(model, client_update)
  return shared.compose(model, client_work, rule=rule)
