"""q-FedAvg: clients with high losses count for more.

Li, Sanjabi, Beirami and Smith, "Fair Resource Allocation in Federated Learning"
(ICLR 2020, https://arxiv.org/abs/1905.10497; q-FFL), algorithm 2.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg


def build_q_fed_avg(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  q: float = 0.1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
) -> composition.FairLearningProcess:
  """Builds q-FedAvg.

  With `F_i` the mean cross-entropy, plus 1e-10, of the received model w over
  all the client's training examples, in inference mode and before it trains,
  `w_i` the trained model and `L = 1 / eta_t`:

      Delta_i = F_i^q L (w - w_i)
      h_i = q F_i^(q - 1) |L (w - w_i)|^2 + L F_i^q
      w <- w - sum_i Delta_i / sum_i h_i

  Numbers of examples play no part. Batch-norm statistics are averaged by `h_i`.

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
    q: Not negative; at 0 this is FedAvg with uniform weights.
    server_optimizer: Applied to the aggregated update; None adds it as it is.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's, those of
    `aggregators.QFairFactory` under `aggregator`, and under
    `client_work['clients']` `loss_before` (F_i) and `loss`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals(), plain_data=True)
  rule = aggregators.QFairFactory(q)
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    client.classification_objective(focal_gamma),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )
  trained = fed_avg.build_client_update(train, uniform=True)

  def client_update(weights, row, examples, client_seed, learning_rate):
    loss_before = client.mean_loss(
      model, weights, examples['train'], focal_gamma=focal_gamma
    )
    output = trained(weights, row, examples, client_seed, learning_rate)
    return output._replace(
      update_weight=collections.OrderedDict(
        loss=loss_before, learning_rate=learning_rate
      ),
      report=collections.OrderedDict(loss_before=loss_before, **output.report),
    )

  client_work = client.build_client_work(
    model,
    client_update,
    num_clients=num_clients,
    seed=seed,
    learning_rate_fn=composition.learning_rate_at(
      client_optimizer, client_learning_rate_fn
    ),
  )
  return composition.compose_process(
    model,
    client_work,
    rule=rule,
    server_optimizer=server_optimizer,
    split_statistics=False,
  )
