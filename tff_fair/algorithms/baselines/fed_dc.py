"""FedDC: clients learn how far they drift, and correct for it.

Gao, Fu, Li, Chen, Xu and Xu, "FedDC: Federated Learning with Non-IID Data via
Local Drift Decoupling and Correction" (CVPR 2022,
https://arxiv.org/abs/2203.11751).
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.algorithms.baselines import scaffold
from tff_fair.annotations import Limits, Symbol

ModelWeights = tff.learning.models.ModelWeights


def build_fed_dc(
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
  drift_weight: Annotated[float, Limits(minimum=0), Symbol('α')] = 1.0,
  grad_correction: bool = True,
  drifts: Literal['all', 'present'] = 'all',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
) -> processes.FairLearningProcess:
  """Builds FedDC.

  Client i has a drift `h_i` and a gradient `G_i`, at first 0; G is the mean of
  all `G_i`, which equals the sum of its updates.

  1. Client: from `y = w`, `K_i` steps on
     `CE(y) + alpha / 2 ||y + h_i - w||^2 + <y, G - G_i>`.
  2. Client: `G_i <- G_i - G + (w - y) / (K_i eta)`; `h_i <- h_i + y - w`.
  3. Server: `w <- mean_S y + mean_i h_i`, the drifts of all N clients.

  Both means are uniform. With `drift_weight=0` the first round moves twice as
  far as FedAvg's, because the drifts already contain the same updates. Not
  included: the authors' code also clips gradients at norm 10 and scales alpha
  by the number of examples. There is no `model_aggregator`: the rule keeps the
  mean drift.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Plain SGD, unless gradients are not corrected.
    drift_weight: Factor on the quadratic term of the drift.
    grad_correction: The objective has the term of the mean gradient. Without it
      all `G_i` stay 0.
    drifts: Whose drifts move the server, those of all clients or of the present
      ones. With 'present' it is `w <- mean_S (y + h_i)`.

  Returns:
    A `FairLearningProcess`. The client table is `OrderedDict(drift, gradient)`.
    Metrics are FedAvg's, where `loss` includes the quadratic term.

  Raises:
    ValueError: Also if the optimiser is not plain SGD where it must be.
  """
  shared = arguments.check_arguments(build_fed_dc, locals())
  of_all = drifts == 'all'
  if grad_correction:
    arguments.check_plain_sgd('FedDC', client_optimizer)
  model = models.StatelessModel(model_fn)
  rule = tff.aggregators.MeanFactory(no_nan_division=True)
  if of_all:
    rule = aggregators.ModelWeightsFactory(
      aggregators.MeanDriftFactory(num_clients), rule
    )
  objective = client.proximal_objective(
    client.classification_objective(focal_gamma), drift_weight
  )
  train = shared.local_training(model, client.linear_objective(objective))

  def client_update(weights, row, examples, client_seed, learning_rate, shared):
    centre = _subtracted(weights.trainable, row['drift'])
    shift = _subtracted(shared, row['gradient'])
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=(shift, centre),
      learning_rate=learning_rate,
    )
    # All clients receive the mean gradient; the drift must be the server's.
    trained, clipped = client_updates.bounded_weights(
      weights, result.weights, max_update_norm
    )
    result = result._replace(weights=trained)
    gradient = row['gradient']
    if grad_correction:
      distance = tf.cast(result.num_steps, tf.float32) * learning_rate
      gradient = scaffold.new_control(shift, weights, trained, distance)
    moved = _subtracted(trained.trainable, weights.trainable)
    drift = tf.nest.map_structure(tf.add, row['drift'], moved)
    row = collections.OrderedDict(drift=drift, gradient=gradient)
    output = client_updates.trained_output(
      weights, result, row, examples, uniform=True
    )._replace(clipped=clipped)
    if of_all:
      return output
    # The uploaded model is y + h_i.
    update = ModelWeights(
      _subtracted(output.update.trainable, drift), output.update.non_trainable
    )
    return output._replace(update=update)

  def mean_gradient(table, round_number):
    """G, from the gradients of all clients."""
    del round_number  # Unused.
    return [tf.reduce_mean(rows, axis=0) for rows in table['gradient']]

  zeros = [np.zeros_like(w) for w in model.initial_weights.trainable]
  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(drift=zeros, gradient=zeros),
    learning_rate_fn=shared.learning_rate_fn(),
    share_fn=mean_gradient,
  )
  return shared.compose(
    model, client_work, rule=rule, split_statistics=not of_all
  )


def _subtracted(values, others) -> list[tf.Tensor]:
  return [v - o for v, o in zip(values, others, strict=True)]
