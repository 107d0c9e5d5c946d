"""Clients of CGSV and FedAVE: they train, upload and add their rewards."""

import collections
from collections.abc import Callable
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import sparse_rewards
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes

ModelWeights = tff.learning.models.ModelWeights


def compose_process(
  shared: arguments.SharedArguments,
  model: models.StatelessModel,
  rule: tff.aggregators.WeightedAggregationFactory,
  *,
  keeps_model: bool,
  extra_weight: Callable[[Any, Any], Any] | None = None,
) -> processes.PersonalizedLearningProcess:
  """Composes the process of such a method.

  Args:
    shared: The arguments of the builder.
    model: The client model.
    rule: The server's, made by `sparse_rewards.build_process`.
    keeps_model: Whether a client trains its own model, and returns to it, with
      the new batch-norm statistics, and rewards are counted in each variable;
      else it trains the global model, and keeps the trained model.
    extra_weight: `(received, examples) -> OrderedDict`: more entries of what
      clients send to the aggregator, in addition to `client_id` and
      `num_examples`; or None.

  Returns:
    The process; the client table is `OrderedDict(model)`.
  """
  train = shared.local_training(
    model, client.classification_objective(shared.focal_gamma)
  )
  client_work = shared.client_work(
    model,
    _build_client_update(train, keeps_model, extra_weight),
    initial_row=collections.OrderedDict(model=model.initial_weights),
  )
  process = shared.compose(
    model, client_work, rule=rule, split_statistics=False
  )
  download = functools.partial(_download, per_layer=keeps_model)
  return processes.add_client_models(exchanges.add_download(process, download))


def _build_client_update(train, keeps_model, extra_weight):
  """The client's round."""

  def client_update(weights, row, examples, client_seed, learning_rate):
    start = row['model'] if keeps_model else weights
    result = train(
      start, examples['train'], client_seed, learning_rate=learning_rate
    )
    kept = result.weights
    if keeps_model:
      kept = ModelWeights(start.trainable, result.weights.non_trainable)
    weight = collections.OrderedDict(
      client_id=examples['key'],
      num_examples=client_updates.example_weight(examples),
    )
    if extra_weight is not None:
      weight.update(extra_weight(start, examples))
    output = client_updates.trained_output(
      start, result, collections.OrderedDict(model=kept), examples, False
    )
    return output._replace(update_weight=weight)

  return client_update


def _download(state, per_layer) -> collections.OrderedDict:
  """The table after all clients have added their rewards."""
  own = state.client_work['table']['model']
  earned = sparse_rewards.rewards(state.aggregator, per_layer=per_layer)
  trainable = tf.nest.map_structure(tf.add, own.trainable, earned)
  return collections.OrderedDict(
    model=ModelWeights(trainable, own.non_trainable)
  )
