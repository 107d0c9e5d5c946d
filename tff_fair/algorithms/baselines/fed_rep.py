"""FedRep: a shared body below a head for each client.

Collins, Hassani, Mokhtari and Shakkottai, "Exploiting Shared Representations
for Personalized Federated Learning" (ICML 2021,
https://arxiv.org/abs/2102.07078).
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless
from tff_fair.tensors import client_table


def build_fed_rep(
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
  num_head_layers: Annotated[int, Limits(minimum=0)] = 1,
  head_epochs: Annotated[
    int, Limits(minimum=0), Symbol('τ'), Unless(num_head_layers=0)
  ] = 10,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.PersonalizedLearningProcess:
  """Builds FedRep.

  A model is a body, `phi`, which all clients share, and a head, of which client
  i has its own, `h_i`. A round of the paper's Algorithm 1:

  1. The client trains `h_i` for `head_epochs` on `F_i(h_i, phi)`; the received
     body is fixed.
  2. It trains a copy `phi_i` of the body for `local_epochs` on
     `F_i(h_i, phi_i)`; its head is fixed.
  3. Server: `phi <- sum_S n_i phi_i / sum_S n_i`.

  Heads never leave their clients, and do not change in rounds without them. A
  client that has never taken part has the head of the initial weights, as has
  the global model. Either step starts with a fresh state of the optimiser; in
  the authors' code both share one. Batch-norm statistics, also those of layers
  of the head, belong to the body: step 1 leaves them as they are.
  With `num_head_layers=0` this is FedAvg.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with more than `num_head_layers` layers that have
      trainable weights.
    client_optimizer: Of both steps.
    local_epochs: Passes over the client's examples in step 2.
    focal_gamma: Of the losses of both steps.
    num_head_layers: Number of the last layers with trainable weights, in the
      order of Keras, that are the head; at 0 all layers are shared, and this is
      FedAvg.
    head_epochs: Passes over the client's examples that train its head, before
      the body; at 0 all clients keep the initial head.
    uniform: All clients have the same weight. So they do in the paper's
      Algorithm 1; otherwise it is their number of examples.
    model_aggregator: Replaces the mean of the bodies. The updates that it gets
      are 0 for the head.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives the
    server's body with the client's head, `get_model_weights` the server's body
    with the initial head. The client table is `OrderedDict(head)`, lists of
    weights, or `()` without a head. Metrics are FedAvg's, of step 2, and
    `head_loss`, of step 1. In `divergence` a client's model is its body after
    step 2 with the initial head.

  Raises:
    ValueError: Also if the head would be the whole model.
  """
  shared = arguments.check_arguments(build_fed_rep, locals())
  model = models.StatelessModel(model_fn)
  in_head = _in_head(model, num_head_layers)
  head = models.PartialModel(model, in_head)
  body = models.PartialModel(model, [not own for own in in_head])
  objective = client.classification_objective(focal_gamma)
  train_body = shared.local_training(body, objective)
  # Without a head its epochs would train nothing.
  train_head = None
  if head_epochs and num_head_layers:
    train_head = shared.local_training(
      head, objective, local_epochs=head_epochs
    )

  def with_head(weights, rows):
    """The body of a model under the head of a row, or heads of a table."""
    return head.replaced(weights, rows['head']) if num_head_layers else weights

  def client_update(weights, row, examples, client_seed, learning_rate):
    own, measured = with_head(weights, row), collections.OrderedDict()
    if train_head:
      fitted = train_head(
        head.parted(own),
        examples['train'],
        tf.random.experimental.stateless_fold_in(client_seed, local_epochs),
        learning_rate=learning_rate,
      )
      row = collections.OrderedDict(head=fitted.weights.trainable)
      own = with_head(weights, row)
      measured['head_loss'] = fitted.metrics['loss']
    result = train_body(
      body.parted(own),
      examples['train'],
      client_seed,
      learning_rate=learning_rate,
    )
    trained = body.joined(result.weights)
    sent = head.replaced(trained, head.parted(weights).trainable)
    output = client_updates.trained_output(
      weights, result._replace(weights=sent), row, examples, uniform
    )
    return output._replace(
      metrics=collections.OrderedDict(output.metrics, **measured),
      report=collections.OrderedDict(output.report, **measured),
    )

  initial_row: Any = ()
  if num_head_layers:
    initial_row = collections.OrderedDict(
      head=head.parted(model.initial_weights).trainable
    )
  process = shared.compose(
    model,
    shared.client_work(model, client_update, initial_row=initial_row),
  )
  state_type = process.initialize.type_signature.result.member

  @tff.tensorflow.computation(state_type, np.int32)
  def get_client_model_weights(state, client_id):
    row = client_table.read_row(state.client_work['table'], client_id)
    return with_head(state.global_model_weights, row)

  def client_model_table(state):
    bodies = tf.nest.map_structure(
      # Views: the body is there once.
      lambda w: np.broadcast_to(w, [num_clients, *np.shape(w)]),
      state.global_model_weights,
    )
    return with_head(bodies, state.client_work['table'])

  return processes.PersonalizedLearningProcess(
    process, get_client_model_weights, client_model_table
  )


def _in_head(model, num_head_layers) -> list[bool]:
  """For each trainable weight whether it is the head's."""
  layers = list(map(id, model.layers_of_trainable))
  distinct = list(dict.fromkeys(layers))
  num_shared = len(distinct) - num_head_layers
  if num_shared < 1:
    raise ValueError(
      'num_head_layers must leave a layer with trainable weights to share: at'
      f' most {len(distinct) - 1} for this model, found {num_head_layers}.'
    )
  return [layer in distinct[num_shared:] for layer in layers]
