"""Aggregates trainable and non-trainable weights by separate rules.

Batch-norm statistics are averaged with the weights of the round, but take no
part in clipping, distances or selection. So a method's rule, which may do any
of these, receives only the trainable weights, exactly as in
`tff.learning.algorithms.build_weighted_fed_avg`.
"""

import dataclasses

import tensorflow_federated as tff

from tff_fair.aggregators import factory

ModelWeights = tff.learning.models.ModelWeights


@dataclasses.dataclass(eq=False, repr=False)
class ModelWeightsFactory(factory.Factory):
  """Aggregates `ModelWeights` by one factory for each of its two parts.

  The created process has the states of both processes, as
  `(trainable, non_trainable)`, and the measurements of the first only. For a
  model without non-trainable weights there is no second process; the state is
  that of the first.

  Args:
    trainable: Aggregates the trainable weights.
    non_trainable: Aggregates the non-trainable weights; it receives the same
      client weight, of any type that both factories take.
  """

  trainable: tff.aggregators.WeightedAggregationFactory
  non_trainable: tff.aggregators.WeightedAggregationFactory

  def _check_value_type(self, value_type) -> None:
    _check_model_weights(value_type)

  def _create(self, value_type, weight_type):
    first = self.trainable.create(value_type.trainable, weight_type)
    if not len(value_type.non_trainable):  # pylint: disable=g-explicit-length-test
      return _without_statistics(first, value_type, weight_type)
    second = self.non_trainable.create(value_type.non_trainable, weight_type)

    def initialize():
      return first.initialize(), second.initialize()

    def next_fn(state, value, weight):
      output = first.next(state[0], value.trainable, weight)
      statistics = second.next(state[1], value.non_trainable, weight)
      return (
        (output.state, statistics.state),
        ModelWeights(output.result, statistics.result),
        output.measurements,
      )

    return factory.build_process(initialize, next_fn, value_type, weight_type)


def _without_statistics(process, value_type, weight_type):
  """`process` for models that have trainable weights only."""

  def next_fn(state, value, weight):
    output = process.next(state, value.trainable, weight)
    no_statistics = tff.federated_value([], tff.SERVER)
    result = ModelWeights(output.result, no_statistics)
    return output.state, result, output.measurements

  return factory.build_process(
    process.initialize, next_fn, value_type, weight_type
  )


def _check_model_weights(value_type) -> None:
  names = []
  if isinstance(value_type, tff.StructType):
    names = tff.structure.name_list(value_type)
  if list(names) != ['trainable', 'non_trainable']:
    raise TypeError(
      'ModelWeightsFactory requires values that are'
      f' tff.learning.models.ModelWeights. Found type: {value_type!r}.'
    )
