"""SCAFFOLD: control variates that remove the drift of clients.

Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: Stochastic
Controlled Averaging for Federated Learning" (ICML 2020,
https://arxiv.org/abs/1910.06378), with its option II.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_scaffold(
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
  server_learning_rate: Annotated[float, Limits(above=0), Symbol('η_g')] = 1.0,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> processes.FairLearningProcess:
  """Builds SCAFFOLD.

  Client i has a control variate `c_i`, at first 0; the server's is
  `c = mean_i c_i` over all N clients, which equals the sum of its updates by
  `(|S| / N) mean_S (c_i' - c_i)`.

  1. Client: from `y = w`, in each of its `K_i` steps
     `y <- y - eta_l (g(y) - c_i + c)`.
  2. Client: `c_i' = c_i - c + (w - y) / (K_i eta_l)`.
  3. Server: `w <- w + eta_g mean_S (y - w)`.

  Both means are uniform. The very first round is one of FedAvg with uniform
  weights. There is no `server_optimizer`: the server's step is SGD at eta_g.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Plain SGD; its learning rate is eta_l.
    server_learning_rate: Factor on the mean update.

  Returns:
    A `FairLearningProcess`. The client table is `OrderedDict(control)`, the
    `c_i`. Metrics are FedAvg's.

  Raises:
    ValueError: Also if the optimiser is not plain SGD.
  """
  shared = arguments.check_arguments(build_scaffold, locals())
  arguments.check_plain_sgd('SCAFFOLD', client_optimizer)
  model = models.StatelessModel(model_fn)
  objective = client.classification_objective(focal_gamma)
  train = shared.local_training(model, client.linear_objective(objective))

  def client_update(weights, row, examples, client_seed, learning_rate, shared):
    shift = tf.nest.map_structure(tf.subtract, shared, row['control'])
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=(shift, ()),
      learning_rate=learning_rate,
    )
    # All clients receive the mean of the control variates.
    trained, clipped = client_updates.bounded_weights(
      weights, result.weights, max_update_norm
    )
    result = result._replace(weights=trained)
    num_steps = tf.cast(result.num_steps, tf.float32)
    # A client without examples has made no step, and keeps its row.
    control = new_control(shift, weights, trained, num_steps * learning_rate)
    output = client_updates.trained_output(
      weights,
      result,
      collections.OrderedDict(control=control),
      examples,
      uniform=True,
    )
    return output._replace(clipped=clipped)

  def mean_control(table, round_number):
    """c, from the control variates of all clients."""
    del round_number  # Unused.
    shares = tf.fill([num_clients], 1 / num_clients)
    return [tf.tensordot(shares, rows, axes=1) for rows in table['control']]

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      control=[np.zeros_like(w) for w in model.initial_weights.trainable]
    ),
    learning_rate_fn=shared.learning_rate_fn(),
    share_fn=mean_control,
  )
  server_optimizer = tff.learning.optimizers.build_sgdm(server_learning_rate)
  shared = dataclasses.replace(shared, server_optimizer=server_optimizer)
  return shared.compose(model, client_work)


def new_control(
  shift: Any, before: Any, after: Any, distance: Any
) -> list[tf.Tensor]:
  """Option II: `c_i' = c_i - c + (w - y) / (K_i eta_l)`.

  Args:
    shift: `c - c_i`, tensors like the trainable weights.
    before: `ModelWeights` w.
    after: `ModelWeights` y.
    distance: `K_i eta_l`, float32; 0 gives `c_i - c`.

  Returns:
    `c_i'`.
  """
  return [
    tf.math.divide_no_nan(w - y, distance) - s
    for s, w, y in zip(shift, before.trainable, after.trainable, strict=True)
  ]
