"""GIFAIR-FL: the spread of the losses of groups of clients is penalised.

Yue, Nouiehed and Al Kontar, "GIFAIR-FL: A Framework for Group and Individual
Fairness in Federated Learning" (INFORMS Journal on Data Science 2023,
https://arxiv.org/abs/2108.02741), its global model.
"""

import collections
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
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


def build_gifair_fl(
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
  spread_share: Annotated[
    float, Limits(minimum=0, maximum=1), Symbol('λ / λ_max')
  ] = 0.1,
  groups: Sequence[int] | None = None,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds GIFAIR-FL.

  The objective is `sum_k p_k F_k + lambda sum_(g < h) |L_g - L_h|`, with p_k
  the client's share of the examples and `L_g` the mean loss of the clients of
  group g. In its gradient, that of F_k has the weight
  `p_k + lambda r_k / |A_k|`: r_k is the number of groups with a lower loss than
  its own, less that with a higher one, and `|A_k|` the size of its own. So here

      w <- sum_k (p_k + lambda r_k / |A_k|) w_k

  with losses of the received model over all the client's training examples, in
  inference mode and before it trains. Shares, groups and
  `lambda_max = min_k p_k |A_k| / (d - 1)`, with d groups, are those of the
  clients of the round. Below lambda_max all weights are positive.

  The paper's clients multiply their steps by `1 + lambda r_k / (p_k |A_k|)`
  instead, and the server takes plain means of clients drawn by p_k: the same
  for one step of SGD, but without effect for Adam. The weights are as in the
  public code of PropFair's authors, whose default is 0.1, too.

  There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    focal_gamma: Of the loss of training and of F_k.
    spread_share: Weight of the penalty as a share of lambda_max; at 0 this is
      FedAvg bit for bit. The paper's is below 1.
    groups: Group of each client, an integer; None for individual fairness, with
      each client as a group of its own.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's, those of
    `aggregators.LossSpreadFactory` under `aggregator`, and under
    `client_work['clients']` `loss_before` (F_k) and `loss`.

  Raises:
    TypeError: If `groups` is not a sequence of integers.
    ValueError: If it has not one for each client, or one is negative.
  """
  shared = arguments.check_arguments(build_gifair_fl, locals())
  group_of = _check_groups(groups, num_clients)
  model = models.StatelessModel(model_fn)
  rule = aggregators.LossSpreadFactory(spread_share)
  objective = client.classification_objective(focal_gamma)
  trained = client_updates.with_loss_before(
    model,
    client_updates.build_client_update(
      shared.local_training(model, objective), uniform=False
    ),
    focal_gamma,
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    output = trained(weights, row, examples, client_seed, learning_rate)
    return output._replace(
      update_weight=collections.OrderedDict(
        group=tf.gather(group_of, examples['key']),
        loss=output.report['loss_before'],
        num_examples=output.update_weight,
      )
    )

  client_work = shared.client_work(model, client_update)
  return shared.compose(model, client_work, rule=rule)


def _check_groups(groups, num_clients) -> np.ndarray:
  """The group of each client, int32."""
  if groups is None:
    return np.arange(num_clients, dtype=np.int32)
  if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
    raise TypeError(
      'groups must be a sequence of integers, one for each client, found'
      f' {groups!r}.'
    )
  if len(groups) != num_clients:
    raise ValueError(
      f'groups must have an entry for each of the {num_clients} clients, found'
      f' {len(groups)}.'
    )
  for group in groups:
    checks.check_count('An entry of groups', group, 0)
  return np.asarray(groups, np.int32)
