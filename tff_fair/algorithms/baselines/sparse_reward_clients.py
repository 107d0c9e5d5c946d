"""What clients of CGSV and FedAVE do: train, send, add what they earned."""

import collections
from collections.abc import Callable
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import sparse_rewards
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg

ModelWeights = tff.learning.models.ModelWeights


def compose_process(
  model: models.StatelessModel,
  train: Callable[..., client.LocalResult],
  rule: tff.aggregators.WeightedAggregationFactory,
  *,
  num_clients: int,
  seed: int,
  client_learning_rate_fn: Callable[[Any], Any] | None,
  keeps_model: bool,
  extra_weight: Callable[[Any, Any], Any] | None = None,
) -> composition.PersonalizedLearningProcess:
  """Composes the process of such a method.

  Args:
    model: The client model.
    train: What `client.build_local_training` returns.
    rule: The server's, made by `sparse_rewards.build_process`.
    num_clients: As in the builders, like the next two.
    seed: See there.
    client_learning_rate_fn: See there.
    keeps_model: Whether a client trains its own model, and returns to it, with
      the new batch-norm statistics, and rewards are counted in each variable;
      else it trains the global model, and keeps what comes of it.
    extra_weight: `(received, examples) -> OrderedDict`: more entries of what
      goes to the aggregator, beside `client_id` and `num_examples`; or None.

  Returns:
    The process; the client table is `OrderedDict(model)`.
  """
  client_work = client.build_client_work(
    model,
    _build_client_update(train, keeps_model, extra_weight),
    num_clients=num_clients,
    seed=seed,
    initial_row=collections.OrderedDict(model=model.initial_weights),
    learning_rate_fn=client_learning_rate_fn,
  )
  process = composition.compose_process(
    model, client_work, rule=rule, split_statistics=False
  )
  download = functools.partial(_download, per_layer=keeps_model)
  return composition.add_client_models(
    composition.add_download(process, download)
  )


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
      num_examples=fed_avg.example_weight(examples, uniform=False),
    )
    if extra_weight is not None:
      weight.update(extra_weight(start, examples))
    return client.ClientOutput(
      update=composition.model_update(start, result.weights),
      update_weight=weight,
      row=collections.OrderedDict(model=kept),
      metrics=result.metrics,
      report=collections.OrderedDict(loss=result.metrics['loss']),
    )

  return client_update


def _download(state, per_layer) -> collections.OrderedDict:
  """The table after all clients have added their rewards."""
  own = state.client_work['table']['model']
  earned = sparse_rewards.rewards(state.aggregator, per_layer=per_layer)
  trainable = tf.nest.map_structure(tf.add, own.trainable, earned)
  return collections.OrderedDict(
    model=ModelWeights(trainable, own.non_trainable)
  )
