"""FedAVE: rewards by validation accuracy and by how typical a client's data is.

FedAVE, "Adaptive Data Value Evaluation Framework for Collaborative Fairness in
Federated Learning" (Neurocomputing, 2024).
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
from tff_fair.algorithms import processes
from tff_fair.algorithms import validation as validation_lib
from tff_fair.algorithms.baselines import sparse_reward_clients
from tff_fair.annotations import Limits, Symbol

# Examples a minibatch of which losses are compared.
_LOSS_BATCH = 64


def build_fed_ave(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  validation: Annotated[tuple[Any, Any], Symbol('V')],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  update_length: Annotated[float, Limits(above=0), Symbol('Γ')] = 0.5,
  history_weight: Annotated[
    float, Limits(minimum=0, maximum=1), Symbol('α')
  ] = 0.9,
  altruism: Annotated[float, Limits(above=0), Symbol('b')] = 1.0,
) -> processes.PersonalizedLearningProcess:
  """Builds FedAVE.

  1. Client i sends the mean losses of its model `m_i` on minibatches of 64 of
     its training data, in their order.
  2. It trains `m_i` and sends the update `D_i`; its weights return to `m_i`.
  3. The server rates losses and updates (see
     `aggregators.ValidatedRewardFactory`) and makes the aggregate u and the
     shares `q_i`.
  4. From the second round on `m_i <- m_i + v_i`, where `v_i` has, of each
     variable of u, the `ceil(q_i * size)` entries of largest magnitude.

  There is no `server_optimizer` and no `model_aggregator`: clients add their
  shares of the aggregate to their own models, as it is.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    num_clients: N. Clients that are absent from a round keep their models, and
      their reputations up to normalisation.
    validation: The server's validation set, `(x, y)`; its size is
      `--validation_fraction` or, with `--split=client`, `--holdout_fraction`.
      Arrays `float32[n, ...]` and `int32[n]`.
    focal_gamma: Of the loss of training; those of step 1 are cross-entropies.
    update_length: Length to which updates are scaled.
    history_weight: Share of the previous reputation in the new one.
    altruism: The larger, the more of the aggregate every client gets.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives `m_i`,
    `get_model_weights` w, to which all aggregates are added. The client table
    is `OrderedDict(model)`; reputations, shares and the aggregate are in
    `state.aggregator`. Metrics are FedAvg's, and under `aggregator` those of
    the factory.
  """
  shared = arguments.check_arguments(build_fed_ave, locals())
  model = models.StatelessModel(model_fn)
  validation = validation_lib.check_validation(model, validation)
  rule = aggregators.ValidatedRewardFactory(
    validation_lib.accuracy_fn(model, validation),
    validation_lib.batch_losses_fn(model, validation, _LOSS_BATCH),
    num_clients=num_clients,
    update_length=update_length,
    history_weight=history_weight,
    altruism=altruism,
  )
  num_losses = -(-len(validation[1]) // _LOSS_BATCH)

  def losses_before(received, examples):
    """Step 1."""
    losses = client.batch_losses(
      model, received, examples['train'], _LOSS_BATCH, num_losses
    )
    num_batches = -(-tf.size(examples['train']['y']) // _LOSS_BATCH)
    return collections.OrderedDict(
      received=received, losses=losses, num_losses=num_batches
    )

  return sparse_reward_clients.compose_process(
    shared,
    model,
    rule,
    keeps_model=True,
    extra_weight=losses_before,
  )
