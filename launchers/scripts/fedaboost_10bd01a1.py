"""TharukaCkasthuri/FeDABoost at 10bd01a1: the weights of its FeDABoost.

Two things of this older state, on top of `tff_fair`'s FeDABoost: the number of
clients in the round stands for the number of classes, and the focusing
parameter stays 0, so that boost weights have no effect. Not here: the error of
the training part, the alphas scaled to [0, 1] over the round, early stopping,
and the one model that all clients and the server share there.
"""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import fedaboost
from tff_fair.algorithms import processes


def build_fedaboost(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
) -> processes.FairLearningProcess:
  """Builds FeDABoost without boosting, and with the size of the cohort as C.

  `alpha_j = A(E_post, k)` with k the number of clients in the round, so that
  alone a client has alpha 0.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Returns:
    A `FairLearningProcess`. The client table is
    `OrderedDict(cohort_size=int32[K])`. Metrics of clients are `alpha`,
    `aggregated`, `error_after` and `loss`.
  """
  shared = arguments.check_arguments(build_fedaboost, locals())
  model = models.StatelessModel(model_fn)
  train = shared.local_training(model, client.focal_objective(1.0))

  def client_update(weights, row, examples, client_seed, learning_rate):
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=tf.constant(0.0),
      learning_rate=learning_rate,
    )
    error = fedaboost.error_rate(
      model, result.weights, fedaboost.validation_part(examples)
    )
    alpha = aggregators.samme_alpha(error, row['cohort_size'])
    return client.ClientOutput(
      update=client_updates.model_update(weights, result.weights),
      update_weight=alpha,
      row=row,
      metrics=result.metrics,
      report=collections.OrderedDict(
        error_after=error,
        alpha=alpha,
        aggregated=tf.cast(alpha > 0, tf.int32),
        loss=result.metrics['loss'],
      ),
    )

  def start_round(table, round_number, cohort_size):
    """A client learns from its row how many take part."""
    del table, round_number  # Unused.
    sizes = tf.fill([num_clients], cohort_size)
    return collections.OrderedDict(cohort_size=sizes)

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(cohort_size=np.int32(0)),
    start_round=start_round,
  )
  rule = aggregators.SammeAlphaFactory()
  return shared.compose(model, client_work, rule=rule)
