"""CGSV: clients are rewarded with as much of the aggregate as they contribute.

Xu, Lyu, Ma, Miao, Foo and Low, "Gradient Driven Rewards to Guarantee Fairness
in Collaborative Machine Learning" (NeurIPS 2021): the cosine gradient Shapley
value.
"""

from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import processes
from tff_fair.algorithms.baselines import sparse_reward_clients
from tff_fair.annotations import Limits, Symbol


def build_cgsv(
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
  update_length: Annotated[float, Limits(above=0), Symbol('Γ')] = 0.5,
  history_weight: Annotated[
    float, Limits(minimum=0, maximum=1), Symbol('α')
  ] = 0.95,
  altruism: Annotated[float, Limits(above=0), Symbol('b')] = 1.0,
) -> processes.PersonalizedLearningProcess:
  """Builds CGSV.

  1. Client i trains its model `m_i` and sends the update `D_i`; its weights
     return to `m_i`.
  2. The server rates the updates (see `aggregators.CosineShapleyFactory`) and
     makes the aggregate u and the shares `q_i`.
  3. `m_i <- m_i + v_i`, where `v_i` has, of each variable of u, the
     `ceil(q_i * size)` entries of largest magnitude.

  There is no `server_optimizer` and no `model_aggregator`: clients add their
  shares of the aggregate to their own models, as it is.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    num_clients: N. Clients that are absent from a round keep their models, and
      their reputations up to normalisation.
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
  shared = arguments.check_arguments(build_cgsv, locals())
  model = models.StatelessModel(model_fn)
  rule = aggregators.CosineShapleyFactory(
    num_clients,
    update_length=update_length,
    history_weight=history_weight,
    altruism=altruism,
  )
  return sparse_reward_clients.compose_process(
    shared, model, rule, keeps_model=True
  )
