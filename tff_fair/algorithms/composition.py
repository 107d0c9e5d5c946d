"""Composes a method's parts into a learning process.

A method is a `tff.learning` process of a distributor (TFF's broadcast), its own
client work, its own aggregation rule and a finalizer (TFF's).
"""

from collections.abc import Callable
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import summary
from tff_fair.algorithms import divergence
from tff_fair.algorithms import processes
from tff_fair.models import stateless

ModelWeights = tff.learning.models.ModelWeights


def compose_process(
  model: stateless.StatelessModel,
  client_work: tff.learning.templates.ClientWorkProcess,
  *,
  rule: tff.aggregators.WeightedAggregationFactory | None = None,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
  split_statistics: bool = True,
  prepare_inputs: Callable[[Any, Any], Any] | None = None,
  description: processes.Description | None = None,
) -> processes.FairLearningProcess:
  """Composes a learning process.

  Args:
    model: The client model.
    client_work: The method's client work.
    rule: The method's aggregation rule; None for the weighted mean.
    server_optimizer: Applies the aggregated update to the trainable weights;
      None subtracts it.
    model_aggregator: Replaces `rule` for the trainable weights; non-trainable
      weights are always aggregated by `rule`. Not used without
      `split_statistics`.
    robust: Whether the trainable weights go through
      `aggregators.robust_factory` before the method's rule.
    split_statistics: Whether `rule` aggregates trainable and non-trainable
      weights separately; False for a rule that takes `ModelWeights`.
    prepare_inputs: As for `divergence.build_divergence`.
    description: How the process was built, without the rule; or None.

  Returns:
    A `FairLearningProcess`.
  """
  if rule is None:
    rule = tff.aggregators.MeanFactory(no_nan_division=True)
  if server_optimizer is None:
    server_optimizer = tff.learning.optimizers.build_sgdm(1.0)
  own = aggregators.robust_factory(rule) if robust else rule
  if split_statistics:
    own = aggregators.ModelWeightsFactory(model_aggregator or own, rule)
  client_result = client_work.next.type_signature.result.result.member
  aggregator = own.create(client_result.update, client_result.update_weight)

  @tff.tensorflow.computation
  def initial_model_weights():
    return tf.nest.map_structure(tf.constant, model.initial_weights)

  process = tff.learning.templates.compose_learning_process(
    initial_model_weights,
    tff.learning.templates.build_broadcast_process(model.weights_type),
    client_work,
    aggregator,
    _build_finalizer(server_optimizer, model.weights_type),
  )
  if description is not None:
    text = summary.format_value(model_aggregator or rule)
    text = f'{text}, robust' if robust else text
    description = description._replace(rule=text)
  return processes.FairLearningProcess(
    process,
    model,
    functools.partial(
      divergence.build_divergence, model, client_work, prepare_inputs
    ),
    description=description,
  )


def _build_finalizer(optimizer, weights_type):
  """TFF's finalizer, which here also updates the non-trainable weights.

  They stay as they are if their update is not finite, as the trainable weights
  do in TFF's.
  """
  trainable = tff.learning.templates.build_apply_optimizer_finalizer(
    optimizer, weights_type
  )

  @tff.tensorflow.computation(
    weights_type.non_trainable, weights_type.non_trainable
  )
  def subtract(weights, update):
    finite = [tf.reduce_all(tf.math.is_finite(u)) for u in update]
    usable = tf.reduce_all([True, *finite])
    return [
      tf.where(usable, w - u, w) for w, u in zip(weights, update, strict=True)
    ]

  @tff.federated_computation(
    trainable.initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.SERVER),
    tff.FederatedType(weights_type, tff.SERVER),
  )
  def next_fn(state, weights, update):
    output = trainable.next(state, weights, update.trainable)
    statistics = tff.federated_map(
      subtract, (weights.non_trainable, update.non_trainable)
    )
    new_weights = ModelWeights(output.result.trainable, statistics)
    return tff.templates.MeasuredProcessOutput(
      output.state, tff.federated_zip(new_weights), output.measurements
    )

  return tff.learning.templates.FinalizerProcess(
    trainable.initialize,
    next_fn,
    get_hparams_fn=trainable.get_hparams,
    set_hparams_fn=trainable.set_hparams,
  )
