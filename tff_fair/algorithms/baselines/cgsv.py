"""CGSV: clients are rewarded with as much of the aggregate as they contribute.

Xu, Lyu, Ma, Miao, Foo and Low, "Gradient Driven Rewards to Guarantee Fairness
in Collaborative Machine Learning" (NeurIPS 2021): the cosine gradient Shapley
value.
"""

from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import sparse_reward_clients


def build_cgsv(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  update_length: float = 0.5,
  history_weight: float = 0.95,
  altruism: float = 1.0,
  variant: Literal['original', 'fedakd'] = 'original',
) -> composition.PersonalizedLearningProcess:
  """Builds CGSV.

  1. Client i trains its model `m_i` and sends the update `D_i`; its weights go
     back to `m_i`.
  2. The server rates the updates (see `aggregators.CosineShapleyFactory`) and
     makes the aggregate u and the shares `q_i`.
  3. `m_i <- m_i + v_i`, where `v_i` has, of each variable of u, the
     `ceil(q_i * size)` entries of largest magnitude.

  The variant 'fedakd' is what that paper's script does: all clients train the
  common model w, which moves by the mean update; `m_i` is the client's trained
  model plus the `floor(q_i * d)` largest entries of that update.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of every client: seed Keras before building.
    num_clients: N. Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`. In a round without some of them
      these keep their models, and their reputations but for the norm.
    client_optimizer: Fresh at the start of every local training.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.
    update_length: Gamma, the length to which updates are scaled, positive.
    history_weight: alpha, in [0, 1].
    altruism: b, positive; a large one gives everybody everything.
    variant: 'original' or 'fedakd'.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives `m_i`,
    `get_model_weights` w, to which all aggregates are added. The client table
    is `OrderedDict(model)`; reputations, shares and the aggregate are in
    `state.aggregator`. Metrics are FedAvg's, and under `aggregator` those of
    the factory.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range or the variant unknown.
  """
  composition.check_arguments(**locals())
  rule = aggregators.CosineShapleyFactory(
    num_clients,
    update_length=update_length,
    history_weight=history_weight,
    altruism=altruism,
    variant=variant,
  )
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    client.classification_objective(focal_gamma),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )
  return sparse_reward_clients.compose_process(
    model,
    train,
    rule,
    num_clients=num_clients,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    keeps_model=variant == 'original',
  )
