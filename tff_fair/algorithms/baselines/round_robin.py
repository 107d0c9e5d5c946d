"""Baselines in which clients upload and download one after another.

CFFL's protocol for FedAvg, and the selective SGD of Shokri and Shmatikov,
"Privacy-Preserving Deep Learning" (CCS 2015; DSSGD in the CFFL paper). In turn,
each client ends with a different model, the one that it downloads after its own
upload; with one model for all, the collaborative fairness coefficient would be
undefined. A round of the papers is a pass: a call of `next` for each client, in
an order that never changes.
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol
from tff_fair.tensors import client_table

ModelWeights = tff.learning.models.ModelWeights
_Start = Literal['download', 'own']


def build_round_robin_fed_avg(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  total_examples: Annotated[int, Limits(minimum=1), Symbol('n')],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  start: _Start = 'download',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> processes.PersonalizedLearningProcess:
  """Builds FedAvg with clients in turn.

  Client j downloads w, trains, and the server takes `w <- w + n_j / n * D_j`,
  not normalised over the single caller, so that a pass moves as far as a round
  of FedAvg; then j downloads its model `m_j <- w`. The paper does not say how a
  single client is merged.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    total_examples: Number of training examples of all clients.
    client_learning_rate_fn: From the pass in place of the round; a pass is
      `num_clients` calls.
    start: A client trains the model that it downloads at the start of its turn
      (download), or its own one, of its last turn (own). With 'own', as in the
      code of CFFL's authors, `D_j` is the change of `m_j`, at first w^0, and
      is late by a pass.
    server_optimizer: Applied to the update of each call.
    model_aggregator: Replaces the sum of the `n_j / n * D_j`, of weight 1.

  Returns:
    A `PersonalizedLearningProcess` whose `next` takes one client, or several
    that download the same model; `get_model_weights` gives w,
    `get_client_model_weights` m_j. Metrics are FedAvg's.
  """
  shared = arguments.check_arguments(build_round_robin_fed_avg, locals())
  model = models.StatelessModel(model_fn)

  def share(update, examples):
    num_examples = client_updates.example_weight(examples)
    return [u * (num_examples / total_examples) for u in update]

  return _build(
    shared,
    model,
    start=start,
    share=share,
    share_statistics=share,
    rule=_sum_factory(),
  )


def build_dssgd(
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
  upload_rate: Annotated[float, Limits(above=0, maximum=1), Symbol('θᵤ')] = 1.0,
  clip_value: Annotated[float | None, Limits(above=0)] = 0.01,
  ties: Literal['index', 'keep'] = 'index',
  start: _Start = 'download',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> processes.PersonalizedLearningProcess:
  """Builds distributed selective SGD.

  Client j downloads w, trains, clips its update elementwise, and uploads the
  `floor(theta_u * d)` entries of largest magnitude, perhaps none; the server
  adds them as they are, `w <- w + top(clip(D_j))`, and j downloads its model
  `m_j <- w`. The sum over many clients can diverge; that is the method.
  See `build_round_robin_fed_avg` for arguments and errors that are not listed
  here.

  Args:
    upload_rate: Share of its update that a client uploads.
    clip_value: Bound of each entry of an update; None does not clip.
    ties: Among entries of equal magnitude, the first are uploaded (index) or
      all (keep). See `build_cffl`.
    model_aggregator: Replaces the sum of the uploads, of weight 1.

  Returns:
    As `build_round_robin_fed_avg`.
  """
  shared = arguments.check_arguments(build_dssgd, locals())
  model = models.StatelessModel(model_fn)

  def share(update, examples):
    del examples  # A client's number of examples has no effect.
    if clip_value is None:
      return update
    return client_updates.clip_update(update, clip_value, 'value')

  uploads = aggregators.LargestValuesFactory(
    upload_rate, model_aggregator or _sum_factory(), minimum=0, ties=ties
  )
  return _build(
    shared,
    model,
    start=start,
    share=share,
    share_statistics=lambda update, examples: update,
    rule=aggregators.ModelWeightsFactory(uploads, _sum_factory()),
    split_statistics=False,
  )


def _build(shared, model, *, start, share, share_statistics, **rule):
  """A process in which a client's shared update is added to the model."""
  train = shared.local_training(
    model, client.classification_objective(shared.focal_gamma)
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    if start == 'own':
      weights = row['model']
    result = train(
      weights, examples['train'], client_seed, learning_rate=learning_rate
    )
    update = client_updates.model_update(weights, result.weights)
    return client.ClientOutput(
      update=ModelWeights(
        share(update.trainable, examples),
        share_statistics(update.non_trainable, examples),
      ),
      update_weight=tf.constant(1.0),
      row=collections.OrderedDict(
        model=row['model'], served=tf.ones_like(row['served'])
      ),
      metrics=result.metrics,
      report=collections.OrderedDict(loss=result.metrics['loss']),
    )

  rate_of_pass = shared.client_learning_rate_fn

  def rate_of_call(call):
    return rate_of_pass(call // shared.num_clients)

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      model=model.initial_weights, served=np.int32(0)
    ),
    learning_rate_fn=rate_of_pass and rate_of_call,
  )
  process = shared.compose(model, client_work, **rule)
  return processes.add_client_models(exchanges.add_download(process, _download))


def _sum_factory():
  return tff.aggregators.as_weighted_aggregator(tff.aggregators.SumFactory())


def _download(state) -> collections.OrderedDict:
  """The clients of this call receive the new model."""
  table = state.client_work['table']
  served = table['served'] > 0

  return collections.OrderedDict(
    model=tf.nest.map_structure(
      lambda new, rows: client_table.choose_rows(served, new, rows),
      state.global_model_weights,
      table['model'],
    ),
    served=tf.zeros_like(table['served']),
  )
