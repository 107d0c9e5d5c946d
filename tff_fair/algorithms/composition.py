"""Composes a method's parts into a learning process.

A method is a `tff.learning` process of a distributor (TFF's broadcast), its own
client work, its own aggregation rule and a finalizer.
"""

import collections
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

  An update that is not finite leaves the weights, trainable or not, as they
  are. TFF's own needs AutoGraph, which takes half of the time of a build.
  """

  @tff.tensorflow.computation
  def initialize():
    return optimizer.initialize(
      tff.types.type_to_tf_tensor_specs(weights_type.trainable)
    )

  state_type = initialize.type_signature.result

  @tff.tensorflow.computation(state_type, weights_type, weights_type)
  @tf.function(autograph=False)
  def finalize(state, weights, update):
    def subtract():
      changes = zip(weights.non_trainable, update.non_trainable, strict=True)
      return [w - u for w, u in changes]

    is_finite = _is_finite(update.trainable)
    state, trainable = tf.cond(
      is_finite,
      lambda: optimizer.next(state, weights.trainable, update.trainable),
      lambda: (state, weights.trainable),
    )
    statistics = tf.cond(
      _is_finite(update.non_trainable), subtract, lambda: weights.non_trainable
    )
    measured = collections.OrderedDict(
      update_non_finite=1 - tf.cast(is_finite, tf.int32)
    )
    return state, ModelWeights(trainable, statistics), measured

  @tff.tensorflow.computation(state_type)
  def get_hparams(state):
    return optimizer.get_hparams(state)

  @tff.tensorflow.computation(state_type, get_hparams.type_signature.result)
  def set_hparams(state, hparams):
    return optimizer.set_hparams(state, hparams)

  @tff.federated_computation
  def init_fn():
    return tff.federated_eval(initialize, tff.SERVER)

  @tff.federated_computation(
    init_fn.type_signature.result,
    tff.FederatedType(weights_type, tff.SERVER),
    tff.FederatedType(weights_type, tff.SERVER),
  )
  def next_fn(state, weights, update):
    new_state, new_weights, measured = tff.federated_map(
      finalize, (state, weights, update)
    )
    return tff.templates.MeasuredProcessOutput(new_state, new_weights, measured)

  return tff.learning.templates.FinalizerProcess(
    init_fn, next_fn, get_hparams_fn=get_hparams, set_hparams_fn=set_hparams
  )


def _is_finite(tensors) -> tf.Tensor:
  finite = [tf.reduce_all(tf.math.is_finite(t)) for t in tensors]
  return tf.reduce_all([True, *finite])
