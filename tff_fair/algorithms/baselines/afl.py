"""AFL: agnostic federated learning, for the worst mixture of the clients.

Mohri, Sivek and Suresh, "Agnostic Federated Learning" (ICML 2019,
https://arxiv.org/abs/1902.00146), its algorithm Stochastic-AFL, with clients
that train as in FedAvg.
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import min_norm
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_afl(
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
  mixture_rate: Annotated[float, Limits(minimum=0), Symbol('γ_λ')] = 0.01,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds AFL: `min_w max_lambda sum_i lambda_i F_i(w)`.

  lambda are weights of all clients, not negative and with the sum 1, at first
  all `1 / num_clients`. A round with the clients S, and with `F_i` the mean
  loss of the received model w over all the client's training examples, in
  inference mode and before it trains:

      w <- sum_S lambda_i w_i / sum_S lambda_i
      lambda <- the nearest weights to lambda + gamma_lambda F

  where F_i is 0 outside of S. The first round is FedAvg's with uniform weights.
  The paper leaves the start open; that of public implementations is uniform. As
  in the paper, w moves by the weights from before the ascent: new ones count
  from the next round on.

  The paper takes single gradients, and its result is the mean of w over all
  rounds; here clients train, and the result is the last w. Absent clients have
  losses of 0, as in the paper's stochastic gradients, so the weights of the
  present ones grow at their cost. If all of these have the weight 0, w stays.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    focal_gamma: Of the loss of training and of F_i.
    mixture_rate: Step size of the ascent of the clients' weights; at 0 this is
      FedAvg with uniform weights.

  Returns:
    A `FairLearningProcess`. The client table, in `state.client_work['table']`,
    is `OrderedDict(weight=float32[K], loss=float32[K])`: lambda of the last
    round, and its F. Metrics are FedAvg's, and under `client_work['clients']`
    `loss_before` (F_i), `loss` and `weight` (lambda_i).
  """
  shared = arguments.check_arguments(build_afl, locals())
  model = models.StatelessModel(model_fn)
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
    loss = output.report['loss_before']
    return output._replace(
      update_weight=row['weight'],
      row=collections.OrderedDict(row, loss=loss),
      report=collections.OrderedDict(output.report, weight=row['weight']),
    )

  def start_round(table, round_number, cohort_size):
    """Ascends by the losses of the last round."""
    del round_number, cohort_size  # Unused.
    weight = ascended(table['weight'], table['loss'], mixture_rate)
    # Clients that stay away do not count a second time.
    return collections.OrderedDict(
      weight=tf.cast(weight, tf.float32), loss=tf.zeros_like(table['loss'])
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      weight=np.float32(1 / num_clients), loss=np.float32(0)
    ),
    start_round=start_round,
  )
  return shared.compose(model, client_work)


def ascended(weights: Any, losses: Any, rate: float) -> tf.Tensor:
  """The nearest point to `weights + rate * losses` of the simplex.

  These are the weights that are not negative and have the sum 1.

  Args:
    weights: A point of the simplex, `float[K]`.
    losses: `float[K]`.
    rate: The step size.

  Returns:
    `float64[K]`.
  """
  moved = tf.cast(weights, tf.float64) + rate * tf.cast(losses, tf.float64)
  # What is more than 1 below the largest becomes 0 anyway; small numbers keep
  # their digits beside huge ones.
  moved = tf.maximum(moved - tf.reduce_max(moved), -1.0)
  return min_norm.project(moved, tf.zeros_like(moved), tf.ones_like(moved))
