"""Ditto of the platform on which CoRe-Fed's authors built: no personal model.

Read: https://github.com/zibinpan/FedLF, commit 7b6e0b7f (6 October 2024),
`gfedplat/algorithm/Ditto/Ditto.py` with `Algorithm.py` and `Client.py`.
CoRe-Fed's repository names FedLF as what it is based on, and has no Ditto of
its own; that its paper's Ditto is this one is a guess.

* A client makes two steps on each minibatch with the gradient of the first, the
  second with the pull towards the received model. It sends the result, and
  keeps nothing. The model that is scored is the global one.
* The server moves its model towards each received one in turn, by one over the
  number of all clients, also if only some took part.

Not the same here: clients have their turn by ascending id, not in the order in
which they were drawn; Keras draws the initial weights.
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
from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_ditto(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  proximal_weight: Annotated[float, Limits(minimum=0), Symbol('λ')] = 0.1,
  reshuffle: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds the Ditto of FedLF's platform.

  With w the received model, v a client's, starting at w, eta the learning rate
  and g the gradient of a minibatch's loss at v:

      v <- v - eta g,  then  v <- v - eta (g + lambda (v - w))

  The server goes through the trained models v_1, v_2, ... in turn, K being the
  number of all clients: `w <- w + (v_i - w) / K`. A round of m clients so moves
  by `1 - (1 - 1/K)^m` of the way, .18 for 20 of 100.
  There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Plain SGD; its learning rate is eta.
    proximal_weight: Pull of the second step towards the received model; at 0
      two equal steps are FedAvg's at twice the learning rate.
    reshuffle: Each epoch draws new minibatches; otherwise they are the same in
      every epoch and round. They are then in the order of the client's data.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's.

  Raises:
    ValueError: Also if the optimiser is not plain SGD.
  """
  shared = arguments.check_arguments(build_ditto, locals())
  arguments.check_plain_sgd("Ditto's script", client_optimizer)
  model = models.StatelessModel(model_fn)
  train = shared.local_training(model, _two_steps(proximal_weight))

  def client_update(weights, row, examples, client_seed, learning_rate):
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=(weights.trainable, learning_rate),
      learning_rate=learning_rate,
    )
    output = client_updates.trained_output(
      weights, result, row, examples, uniform=True
    )
    return output._replace(
      update_weight=collections.OrderedDict(
        client_id=examples['key'], accepted=tf.constant(1.0)
      )
    )

  client_work = shared.client_work(
    model, client_update, learning_rate_fn=shared.learning_rate_fn()
  )
  return shared.compose(
    model,
    client_work,
    rule=InTurnFactory(num_clients),
    split_statistics=False,
  )


def _two_steps(proximal_weight) -> client.Objective:
  """An objective of which a step of SGD is both steps; see `build_ditto`.

  Together they are `v - eta ((2 - lambda eta) g + lambda (v - w))`. The context
  is `(w, eta)`; the reported loss is the cross-entropy.
  """
  objective = client.classification_objective()

  def compute(forward, batch, context):
    received, rate = context
    loss, metrics = objective.compute(forward, batch, ())
    distance = tf.add_n(
      [
        tf.nn.l2_loss(v - w)
        for v, w in zip(forward.trainable, received, strict=True)
      ]
    )
    both = (2 - proximal_weight * rate) * loss + proximal_weight * distance
    # The value cancels; the gradient remains.
    return tf.stop_gradient(loss - both) + both, metrics

  return client.Objective(compute, objective.metric_names)


@dataclasses.dataclass(eq=False, repr=False)
class InTurnFactory(factory.Factory):
  """Moves the model towards each client's, one after the other.

  Values are updates, the received weights minus the trained ones, u_i. By
  ascending client id, `u <- u + (u_i - u) / K`, from 0. So the result is
  `sum_i (1 - 1/K)^(a_i) u_i / K` with a_i the number of clients after i. A
  client whose numbers are not finite, or too large (`summable.LARGEST`), or
  whose `accepted` is not positive, has no turn.

  The created process:

  * `initialize`: no state.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<client_id=int32,accepted=float32>`.
  * measurements: `num_aggregated`.

  Args:
    num_clients: K; ids are 0..K-1.
  """

  num_clients: Annotated[int, Limits(minimum=1)]

  def _required_weight_type(self, value_type):
    return collections.OrderedDict(client_id=np.int32, accepted=np.float32)

  def _create(self, value_type, weight_type):
    return gathered.build_process(
      value_type,
      weight_type,
      collections.OrderedDict,
      self._server_round,
      prepare=gathered.summable_or_zeros,
    )

  def _server_round(self, state, uploads) -> gathered.ServerOutput:
    uploads = gathered.by_client(uploads, self.num_clients)
    in_turn = uploads['weight']['accepted'] > 0
    number = tf.cast(in_turn, tf.float32)
    after = tf.cumsum(number, exclusive=True, reverse=True)
    shares = number * (1 - 1 / self.num_clients) ** after / self.num_clients
    return gathered.ServerOutput(
      state=state,
      result=gathered.weighted_sum(uploads['value'], shares, shares),
      measurements=collections.OrderedDict(
        num_aggregated=tf.math.count_nonzero(in_turn, dtype=tf.int32)
      ),
    )
