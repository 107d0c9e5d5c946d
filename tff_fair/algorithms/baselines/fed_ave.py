"""FedAVE: rewards by validation accuracy and by how typical a client's data is.

FedAVE, "Adaptive Data Value Evaluation Framework for Collaborative Fairness in
Federated Learning" (Neurocomputing, 2024).
"""

import collections
from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms import validation as validation_lib
from tff_fair.algorithms.baselines import sparse_reward_clients

# Examples a minibatch of which losses are compared.
_LOSS_BATCH = 64


def build_fed_ave(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  validation: tuple[Any, Any],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  update_length: float = 0.5,
  history_weight: float = 0.9,
  altruism: float = 1.0,
  upload_fraction: float = 0.5,
  download_base: float = 0.3,
  variant: Literal['original', 'fedakd'] = 'original',
) -> composition.PersonalizedLearningProcess:
  """Builds FedAVE.

  1. Client i sends the mean losses of its model `m_i` on minibatches of 64 of
     its training data, in their order.
  2. It trains `m_i` and sends the update `D_i`; its weights go back to `m_i`.
  3. The server rates losses and updates (see
     `aggregators.ValidatedRewardFactory`) and makes the aggregate u and the
     shares `q_i`.
  4. From the second round on `m_i <- m_i + v_i`, where `v_i` has, of each
     variable of u, the `ceil(q_i * size)` entries of largest magnitude.

  The variant 'fedakd' is what that paper's script does: all clients train the
  common model w, which moves by u; `m_i` is the client's trained model plus the
  `floor(f_i * d)` largest entries of u, already in the first round.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of every client: seed Keras before building.
    num_clients: N. Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`. In a round without some of them
      these keep their models, and their reputations but for the norm.
    client_optimizer: Fresh at the start of every local training.
    validation: `(x, y)`, arrays `float32[n, ...]` and `int32[n]`: the server's
      validation set.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch of training; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.
    update_length: Gamma, the length to which updates are scaled, positive.
    history_weight: alpha, in [0, 1].
    altruism: b, positive.
    upload_fraction: Share of an update that is sent, in (0, 1]; used by the
      variant 'fedakd'.
    download_base: Least share of u that a client gets, in [0, 1]; used by the
      variant 'fedakd'.
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
  model = models.StatelessModel(model_fn)
  validation = validation_lib.check_validation(model, validation)
  rule = aggregators.ValidatedRewardFactory(
    validation_lib.accuracy_fn(model, validation),
    validation_lib.batch_losses_fn(model, validation, _LOSS_BATCH),
    num_clients=num_clients,
    update_length=update_length,
    history_weight=history_weight,
    altruism=altruism,
    upload_fraction=upload_fraction,
    download_base=download_base,
    variant=variant,
  )
  num_losses = -(-len(validation[1]) // _LOSS_BATCH)
  train = client.build_local_training(
    model,
    client.classification_objective(focal_gamma),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )

  def losses_before(received, examples):
    """What the server is told beside the update."""
    losses = client.batch_losses(
      model, received, examples['train'], _LOSS_BATCH, num_losses
    )
    num_batches = -(-tf.size(examples['train']['y']) // _LOSS_BATCH)
    return collections.OrderedDict(
      received=received, losses=losses, num_losses=num_batches
    )

  return sparse_reward_clients.compose_process(
    model,
    train,
    rule,
    num_clients=num_clients,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    keeps_model=variant == 'original',
    extra_weight=losses_before,
  )
