"""Federated averaging, the method that every other one here modifies.

McMahan, Moore, Ramage, Hampson and Aguera y Arcas, "Communication-Efficient
Learning of Deep Networks from Decentralized Data" (AISTATS 2017,
https://arxiv.org/abs/1602.05629), with the local training of this library.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import processes


def build_fed_avg(
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
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FedAvg: `w <- sum_i n_i w_i / sum_i n_i`.

  The other builders share these arguments; their docstrings list only what is
  different. Not all of them take all.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of the process, and of all clients' models: seed
      Keras before building.
    num_clients: Number of clients, whose ids count from 0. Their data are of
      type `<client_id=int32*,train=D*,holdout=D*>`, and the metrics have a
      report of each client. None, where it is the default, for plain client
      data, `D*`. The training is the same.
    client_optimizer: A TFF optimiser, reset at the start of every local
      training.
    local_epochs: Passes over the client's examples in a round.
    batch_size: Examples in a minibatch; the last, shorter one is kept.
    seed: Seed of the clients' shuffles, dropout masks and other draws.
    client_learning_rate_fn: From the round, counted from 0, to the learning
      rate, which replaces that of the optimiser. From int32 to float32; None
      keeps the rate.
    max_update_norm: An update of a larger norm is scaled down to it, and the
      change of the batch-norm statistics to its square; None (0 on the command
      line) is no bound. The client counts as clipped. So one client with huge
      features moves the weights by little more than this in a round.
    focal_gamma: Focusing parameter of a focal loss in place of cross-entropy; 0
      is cross-entropy.
    uniform: All clients have the same weight. Otherwise it is their number of
      examples.
    server_optimizer: A TFF optimiser that applies the aggregated update to the
      global model; None adds the update as it is.
    model_aggregator: Replaces the aggregation rule for the trainable weights,
      and gets the same weights. None keeps the rule.
    robust: Updates much larger than the others are zeroed, and the largest
      fifth is clipped, by norms that follow the clients', before they are
      aggregated. That is `aggregators.robust_factory` around the method's rule
      for the trainable weights. Not with a `model_aggregator`.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work`: `loss` and
    `accuracy` over the local epochs, the counts of `build_client_work`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, or a choice unknown.
  """
  shared = arguments.check_arguments(build_fed_avg, locals())
  model = models.StatelessModel(model_fn)
  return shared.fed_avg(model, client.classification_objective(focal_gamma))
