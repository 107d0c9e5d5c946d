"""CoRe-Fed as its authors' public code computes it: nearly uniform FedAvg.

Read: https://github.com/Noorain1/CoRe-Fed, commit c6a8c8cf (15 February 2026),
`gfedplat/algorithm/CoReFed.py` with `Algorithm.py`, `Client.py` and `main.py`.

* A round aggregates the same client models twice, and the second result
  replaces the first. Before the second, every client of the round is marked as
  present in it, so its frequency of participation is 1, whatever it was.
* The cosine in the weights is of embeddings that were not refined; refined ones
  are computed after it and not used.
* Gradients of absent clients are collected and not used.
* The server's step on the contrastive loss is overwritten by the aggregation.

Not the same here: the first client is the one with the lowest id, not the one
drawn first; with dropout, it is compared with itself under the same mask; round
t, from 1, has the learning rate `decay^(t - 1)` times the first, there
`decay^(t + 1)`, and there is one round less; Keras draws the initial weights.
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


def build_corefed(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  sharpness: Annotated[float, Limits(minimum=0), Symbol('k')] = 2.0,
  reshuffle: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds CoRe-Fed's public script.

  With z_i the mean embedding of client i's first minibatch by the received
  model in training mode, not scaled, and z_1 that of the first client:

      u_i = sigma(k cos(z_i, z_1)),  w <- sum_i u_i w_i / sum_i u_i

  Embeddings behind a ReLU have no negative entry, so the weights differ by a
  factor of at most `2 sigma(k)`, 1.76 for k = 2, and by 1.01 between cosines of
  .95 and 1. With equal embeddings, or with `sharpness=0`, this is FedAvg with
  uniform weights.
  There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with an output `embedding`.
    sharpness: Slope of the sigmoid of the cosine; at 0 weights are uniform.
    reshuffle: Each epoch draws new minibatches; otherwise they are the same in
      every epoch and round. They are then in the order of the client's data.

  Returns:
    A `FairLearningProcess`. Metrics: under `aggregator` those of
    `aggregators.GradientReuseFactory`, in whose `clients` are `alignment`, the
    cosine, and `weight`; under `client_work` those of FedAvg.

  Raises:
    ValueError: Also if the model has no embedding.
  """
  shared = arguments.check_arguments(build_corefed, locals())
  model = models.StatelessModel(model_fn)
  client.check_embedding("CoRe-Fed's script", model)
  # Equation 11 with equal frequencies, of embeddings as they are.
  rule = aggregators.GradientReuseFactory(
    num_clients,
    fairness_exponent=0.0,
    sharpness=sharpness,
    distillation_rate=0.0,
    gradient_reuse=False,
    global_embedding='first',
  )
  trained = client_updates.build_client_update(
    shared.local_training(model, client.classification_objective()),
    uniform=True,
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    output = trained(weights, row, examples, client_seed, learning_rate)
    mask_seed = tf.random.experimental.stateless_fold_in(
      client_seed, local_epochs
    )
    return output._replace(
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        accepted=tf.constant(1.0),
        embedding=_embedding(
          model, weights, examples['train']['x'][:batch_size], mask_seed
        ),
      )
    )

  return shared.compose(
    model,
    shared.client_work(model, client_update),
    rule=rule,
    split_statistics=False,
  )


def _embedding(model, weights, x, seed) -> tf.Tensor:
  """The mean embedding in training mode, `float32[p]`; zeros of no examples."""

  def mean():
    outputs, _ = model(weights, x, training=True, seed=seed)
    return tf.reduce_mean(outputs['embedding'], axis=0)

  # Some layers fail on an empty batch.
  empty = tf.equal(tf.shape(x)[0], 0)
  return tf.cond(empty, lambda: tf.zeros([model.embedding_size]), mean)
