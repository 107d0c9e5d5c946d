"""FedMPR: clients prune small weights, so that averaging harms less.

Magnitude pruning with regularisation, as FedAKD compares with it. The original
also has dropout and Gaussian noise in the clients' network: put such layers
into the model; their numbers are not in FedAKD's paper.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg
from tff_fair.tensors import flat

ModelWeights = tff.learning.models.ModelWeights


def build_fed_mpr(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  prune_fraction: float = 0.1,
  prune_stages: int = 1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds FedMPR.

  1. Client: `w_i = Train(w)`, usually with weight decay (the optimiser's).
  2. Client: the `floor(rho d)` of the d trainable weights of smallest magnitude
     become 0, biases and batch-norm scales among them.
  3. Server: the uniform mean of the pruned models, zeros included.

  With `prune_fraction=0` this is FedAvg with uniform weights bit for bit.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of the process: seed Keras before building.
    num_clients: None for plain client data, `D*`. A number for clients with
      ids, as in `build_fed_avg`.
    client_optimizer: Fresh at the start of every local training.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.
    prune_fraction: rho, in [0, 1).
    prune_stages: k, at most `local_epochs`: after each of the last k epochs the
      share that is pruned grows by rho / k. Between stages pruned weights are
      trained like all others; the optimiser's state goes on.
    server_optimizer: Applied to the mean update; None adds it as it is.
    model_aggregator: Replaces the mean of the trainable weights.

  Returns:
    A `FairLearningProcess`. Metrics are FedAvg's, over the last stage's epochs.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals(), plain_data=True)
  checks.check_fraction('prune_fraction', prune_fraction)
  checks.check_integer('prune_stages', prune_stages, 1, local_epochs)
  model = models.StatelessModel(model_fn)

  def build_training(epochs):
    return client.build_local_training(
      model,
      client.classification_objective(focal_gamma),
      client_optimizer,
      local_epochs=epochs,
      batch_size=batch_size,
    )

  first_epochs = local_epochs - prune_stages + 1
  train_first, train_on = build_training(first_epochs), build_training(1)

  def train(weights, examples, client_seed, learning_rate, context):
    del context  # Unused.
    result = train_first(
      weights, examples, client_seed, learning_rate=learning_rate
    )
    result = pruned(result, 1)
    for stage in range(2, prune_stages + 1):
      result = train_on(
        result.weights,
        examples,
        tf.random.experimental.stateless_fold_in(
          client_seed, first_epochs + stage
        ),
        learning_rate=learning_rate,
        optimizer_state=result.optimizer_state,
      )
      result = pruned(result, stage)
    return result

  def pruned(result, stage):
    share = prune_fraction * stage / prune_stages
    return result._replace(
      weights=ModelWeights(
        prune(result.weights.trainable, share), result.weights.non_trainable
      )
    )

  client_work = client.build_client_work(
    model,
    fed_avg.build_client_update(train, uniform=True),
    num_clients=num_clients,
    seed=seed,
    learning_rate_fn=client_learning_rate_fn,
  )
  return composition.compose_process(
    model,
    client_work,
    rule=tff.aggregators.MeanFactory(no_nan_division=True),
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
  )


def prune(weights: list[Any], fraction: float) -> list[tf.Tensor]:
  """Sets the entries of smallest magnitude to 0, over all tensors together.

  Args:
    weights: float32 tensors with d entries in all.
    fraction: rho, in [0, 1): `floor(rho d + 1e-9)` entries go; of equal ones
      those of highest index.

  Returns:
    Tensors of the same shapes.
  """
  size = sum(w.shape.num_elements() for w in weights)
  number = int(fraction * size + 1e-9)
  if not number:
    return weights
  vector = flat.flatten(weights)
  kept = aggregators.keep_largest(vector, size - number)
  # A client that diverged must not pass for one that has much to prune.
  finite = tf.reduce_all(tf.math.is_finite(vector))
  return flat.unflatten(tf.where(finite, kept, vector), weights)
