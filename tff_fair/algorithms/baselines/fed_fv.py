"""FedFV: updates of clients are freed of conflicts before they are averaged.

Wang, Fan, Qi, Wen, Wang and Yu, "Federated Learning with Fair Averaging" (IJCAI
2021, https://arxiv.org/abs/2104.14937).
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


def build_fed_fv(
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
  keep_share: Annotated[float, Limits(minimum=0, maximum=1), Symbol('α')] = 0.1,
  memory_rounds: Annotated[int, Limits(minimum=0), Symbol('τ')] = 1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FedFV.

  Clients train as in FedAvg and send their updates `g_i`, and the mean loss of
  the received model over all their training examples, in inference mode. The
  server (see `aggregators.FairAveragingFactory`):

  1. projects each `g_i`, but those of the highest losses, onto the normal plane
     of each other `g_j` with which it is in conflict (`<g_i, g_j> < 0`), in the
     order of ascending losses;
  2. takes the mean g of the results;
  3. projects g onto the normal plane of the sum of the absent clients' last
     updates in conflict with it, once for each of the last rounds;
  4. scales g to the length of the mean update: `w <- w - g`.

  Step 3 is as in the paper, for the rounds before this one. In the authors'
  public code the last tau rounds include this one, so that present clients
  count a second time, and at tau = 1 absent ones never do. How many clients
  keep their updates is as in the code, `k - ceil((k - 1) (1 - alpha))` of k.
  Numbers of examples have no effect. There is no `model_aggregator`: the rule
  is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    focal_gamma: Of the loss of training and of those that give the order.
    keep_share: Share of the clients, those with the highest losses, whose
      updates are not projected; at 1 there is no step 1.
    memory_rounds: Number of rounds in which the last update of an absent client
      counts; at 0 there is no step 3. In earlier rounds there is none, either.

  Returns:
    A `FairLearningProcess`. The last updates of all clients are in
    `state.aggregator`. Its metrics are FedAvg's, those of the factory under
    `aggregator`, and under `client_work['clients']` `loss_before` and `loss`.
  """
  shared = arguments.check_arguments(build_fed_fv, locals())
  model = models.StatelessModel(model_fn)
  rule = aggregators.FairAveragingFactory(
    num_clients, keep_share=keep_share, memory_rounds=memory_rounds
  )
  objective = client.classification_objective(focal_gamma)
  trained = client_updates.with_loss_before(
    model,
    client_updates.build_client_update(
      shared.local_training(model, objective), uniform=True
    ),
    focal_gamma,
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    output = trained(weights, row, examples, client_seed, learning_rate)
    return output._replace(
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        accepted=output.update_weight,
        loss=output.report['loss_before'],
      )
    )

  client_work = shared.client_work(model, client_update)
  return shared.compose(model, client_work, rule=rule, split_statistics=False)
