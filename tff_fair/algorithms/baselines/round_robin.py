"""Baselines in which clients upload and download one after another.

CFFL's protocol for FedAvg, and the selective SGD of Shokri and Shmatikov,
"Privacy-Preserving Deep Learning" (CCS 2015; DSSGD in the CFFL paper). Taking
turns, every client goes home with another model, the one it downloads after its
own upload; with one model for all, the collaborative fairness coefficient would
be undefined. A round of the papers is a pass: a call of `next` for each client,
in an order that never changes.
"""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg
from tff_fair.tensors import client_table

ModelWeights = tff.learning.models.ModelWeights


def build_round_robin_fed_avg(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  total_examples: int,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.PersonalizedLearningProcess:
  """Builds FedAvg with clients in turn.

  Client j downloads w, trains, and the server takes `w <- w + n_j / n * D_j`,
  not normalised over the single caller, so that a pass moves as far as a round
  of FedAvg; then j downloads its model `m_j <- w`. The paper does not say how a
  single client is merged.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`). Its
      initial weights are those of the process: seed Keras before building.
    num_clients: Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`.
    client_optimizer: Fresh at the start of every local training.
    total_examples: n, the training examples of all clients.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `pass (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None; a pass is `num_clients` calls.

  Returns:
    A `PersonalizedLearningProcess` whose `next` takes one client, or several
    that download the same model; `get_model_weights` gives w,
    `get_client_model_weights` m_j. Metrics are FedAvg's.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals())
  checks.check_integer('total_examples', total_examples, 1)

  def share(update, examples):
    num_examples = fed_avg.example_weight(examples, uniform=False)
    return [u * (num_examples / total_examples) for u in update]

  return _build(
    model_fn,
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    focal_gamma=focal_gamma,
    server_optimizer=server_optimizer,
    share=share,
    share_statistics=share,
    model_aggregator=model_aggregator,
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
  focal_gamma: float = 0.0,
  upload_rate: float = 1.0,
  clip_value: float | None = 0.01,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.PersonalizedLearningProcess:
  """Builds distributed selective SGD.

  Client j downloads w, trains, clips its update elementwise, and uploads the
  `floor(theta_u * d)` entries of largest magnitude, perhaps none; the server
  adds them as they are, `w <- w + top(clip(D_j))`, and j downloads its model
  `m_j <- w`. The sum over many clients can diverge; that is the method.

  Args:
    model_fn: As for `build_round_robin_fed_avg`, like all that is not here.
    num_clients: Number of clients.
    client_optimizer: Fresh at the start of every local training.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `pass (int32, from 0) -> float32`, or None.
    upload_rate: theta_u, in (0, 1].
    clip_value: Entries are clipped to [-clip_value, clip_value]; None does not
      clip.

  Returns:
    As `build_round_robin_fed_avg`.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  composition.check_arguments(**locals())
  checks.check_positive('upload_rate', upload_rate, 1.0)
  if clip_value is not None:
    checks.check_positive('clip_value', clip_value)

  def share(update, examples):
    del examples  # A client's number of examples plays no part.
    if clip_value is None:
      return update
    return composition.clip_update(update, clip_value, 'value')

  return _build(
    model_fn,
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    focal_gamma=focal_gamma,
    server_optimizer=server_optimizer,
    share=share,
    share_statistics=lambda update, examples: update,
    model_aggregator=aggregators.LargestValuesFactory(
      upload_rate, model_aggregator or _sum_factory(), minimum=0
    ),
  )


def _build(
  model_fn,
  *,
  num_clients,
  client_optimizer,
  local_epochs,
  batch_size,
  seed,
  client_learning_rate_fn,
  focal_gamma,
  server_optimizer,
  share,
  share_statistics,
  model_aggregator=None,
):
  """A process in which a client's shared update is added to the model."""
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    client.classification_objective(focal_gamma),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )

  def learning_rate_of_call(call):
    return client_learning_rate_fn(call // num_clients)

  def client_update(weights, row, examples, client_seed, learning_rate):
    result = train(
      weights, examples['train'], client_seed, learning_rate=learning_rate
    )
    update = composition.model_update(weights, result.weights)
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

  client_work = client.build_client_work(
    model,
    client_update,
    num_clients=num_clients,
    seed=seed,
    initial_row=collections.OrderedDict(
      model=model.initial_weights, served=np.int32(0)
    ),
    learning_rate_fn=client_learning_rate_fn and learning_rate_of_call,
  )
  process = composition.compose_process(
    model,
    client_work,
    rule=_sum_factory(),
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
  )
  return composition.add_client_models(
    composition.add_download(process, _download)
  )


def _sum_factory():
  return tff.aggregators.as_weighted_aggregator(tff.aggregators.SumFactory())


def _download(state) -> collections.OrderedDict:
  """The clients of this call take the new model home."""
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
