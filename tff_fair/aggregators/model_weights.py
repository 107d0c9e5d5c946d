"""Aggregates trainable and non-trainable weights by separate rules.

Batch-norm statistics are averaged with the weights of the round, but take no
part in clipping, distances or selection. So a method's rule, which may do any
of these, receives only the trainable weights, exactly as in
`tff.learning.algorithms.build_weighted_fed_avg`.
"""

import tensorflow_federated as tff

from tff_fair import summary
from tff_fair.aggregators import type_checks

ModelWeights = tff.learning.models.ModelWeights


class ModelWeightsFactory(
  summary.ShowsArguments, tff.aggregators.WeightedAggregationFactory
):
  """Aggregates `ModelWeights` by one factory for each of its two parts.

  The created process has the states of both processes, as
  `(trainable, non_trainable)`, and the measurements of the first only. For a
  model without non-trainable weights there is no second process; the state is
  that of the first.
  """

  def __init__(
    self,
    trainable: tff.aggregators.WeightedAggregationFactory,
    non_trainable: tff.aggregators.WeightedAggregationFactory,
  ) -> None:
    """Keeps the factories.

    Args:
      trainable: Aggregates the trainable weights.
      non_trainable: Aggregates the non-trainable weights; it receives the same
        client weight.

    Raises:
      TypeError: If either is not a weighted aggregation factory.
    """
    for factory in (trainable, non_trainable):
      type_checks.check_weighted('model_aggregator', factory)
    self._trainable = trainable
    self._non_trainable = non_trainable

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: A `ModelWeights` type.
      weight_type: Any that the factories take.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If `value_type` is another type.
    """
    _check_model_weights(value_type)
    first = self._trainable.create(value_type.trainable, weight_type)
    if not len(value_type.non_trainable):  # pylint: disable=g-explicit-length-test
      return _without_statistics(first, value_type, weight_type)
    second = self._non_trainable.create(value_type.non_trainable, weight_type)

    @tff.federated_computation
    def init_fn():
      return tff.federated_zip((first.initialize(), second.initialize()))

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = first.next(state[0], value.trainable, weight)
      statistics = second.next(state[1], value.non_trainable, weight)
      return tff.templates.MeasuredProcessOutput(
        tff.federated_zip((output.state, statistics.state)),
        tff.federated_zip(ModelWeights(output.result, statistics.result)),
        output.measurements,
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


def _without_statistics(process, value_type, weight_type):
  """`process` for models that have trainable weights only."""

  @tff.federated_computation(
    process.initialize.type_signature.result,
    tff.FederatedType(value_type, tff.CLIENTS),
    tff.FederatedType(weight_type, tff.CLIENTS),
  )
  def next_fn(state, value, weight):
    output = process.next(state, value.trainable, weight)
    no_statistics = tff.federated_value([], tff.SERVER)
    return tff.templates.MeasuredProcessOutput(
      output.state,
      tff.federated_zip(ModelWeights(output.result, no_statistics)),
      output.measurements,
    )

  return tff.templates.AggregationProcess(process.initialize, next_fn)


def _check_model_weights(value_type) -> None:
  names = []
  if isinstance(value_type, tff.StructType):
    names = tff.structure.name_list(value_type)
  if list(names) != ['trainable', 'non_trainable']:
    raise TypeError(
      'ModelWeightsFactory requires values that are'
      f' tff.learning.models.ModelWeights. Found type: {value_type!r}.'
    )
