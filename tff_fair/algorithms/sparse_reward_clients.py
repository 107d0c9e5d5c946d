"""What clients of CGSV and FedAVE do: train, send, add what they earned."""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import sparse_rewards
from tff_fair.algorithms import composition
from tff_fair.algorithms import fed_avg

ModelWeights = tff.learning.models.ModelWeights


def initial_row(model: models.StatelessModel) -> collections.OrderedDict:
  """A client's first row of the table: `OrderedDict(model)`."""
  return collections.OrderedDict(model=model.initial_weights)


def build_client_update(
  train: Callable[..., client.LocalResult],
  *,
  keeps_model: bool,
  extra_weight: Callable[[Any, Any], Any] | None = None,
) -> client.ClientUpdate:
  """The client's round.

  Args:
    train: What `client.build_local_training` returns.
    keeps_model: Whether a client trains its own model, and returns to it, with
      the new batch-norm statistics; else it trains the global model, and keeps
      what comes of it.
    extra_weight: `(received, examples) -> OrderedDict`: more entries of what
      goes to the aggregator, or None.

  Returns:
    What `client.build_client_work` takes; the aggregator's weight has the
    entries `client_id` and `num_examples`.
  """

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


def download(state: Any, *, per_layer: bool) -> collections.OrderedDict:
  """The table after all clients have added their rewards.

  Args:
    state: The state after the round.
    per_layer: As in `sparse_rewards.rewards`.
  """
  own = state.client_work['table']['model']
  earned = sparse_rewards.rewards(state.aggregator, per_layer=per_layer)
  trainable = tf.nest.map_structure(tf.add, own.trainable, earned)
  return collections.OrderedDict(
    model=ModelWeights(trainable, own.non_trainable)
  )
