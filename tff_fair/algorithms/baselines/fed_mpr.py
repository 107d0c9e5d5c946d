"""FedMPR: clients prune small weights, so that averaging does less harm.

Magnitude pruning with regularisation, as FedAKD compares with it. The original
also has dropout and Gaussian noise in the clients' network: put such layers
into the model; FedAKD's paper does not give their parameters.
"""

from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol
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
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  prune_fraction: Annotated[
    float, Limits(minimum=0, below=1), Symbol('ρ')
  ] = 0.1,
  prune_stages: Annotated[int, Limits(minimum=1)] = 1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FedMPR.

  1. Client: `w_i = Train(w)`, usually with weight decay (the optimiser's).
  2. Client: the `floor(rho d)` of the d trainable weights of smallest magnitude
     become 0; biases and batch-norm scales are among the d.
  3. Server: the uniform mean of the pruned models, zeros included.

  With `prune_fraction=0` this is FedAvg with uniform weights bit for bit.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    prune_fraction: Share of the weights that become 0; at 0 this is FedAvg with
      uniform weights.
    prune_stages: Number of last epochs after which weights are pruned. At most
      `local_epochs`: after each of the last k epochs the share that is pruned
      grows by rho / k. Between stages pruned weights are trained like all
      others, and the optimiser keeps its state.

  Returns:
    A `FairLearningProcess`. Metrics are FedAvg's, over the last stage's epochs.
  """
  shared = arguments.check_arguments(build_fed_mpr, locals())
  checks.check_integer('prune_stages', prune_stages, 1, local_epochs)
  model = models.StatelessModel(model_fn)
  objective = client.classification_objective(focal_gamma)
  first_epochs = local_epochs - prune_stages + 1
  train_first = shared.local_training(
    model, objective, local_epochs=first_epochs
  )
  train_on = shared.local_training(model, objective, local_epochs=1)

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

  client_work = shared.client_work(
    model, client_updates.build_client_update(train, uniform=True)
  )
  return shared.compose(model, client_work)


def prune(weights: list[Any], fraction: float) -> list[tf.Tensor]:
  """Sets the entries of smallest magnitude to 0, over all tensors together.

  Args:
    weights: float32 tensors with d entries in all.
    fraction: rho, in [0, 1): `floor(rho d + 1e-9)` entries become 0; of equal
      ones those of highest index.

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
