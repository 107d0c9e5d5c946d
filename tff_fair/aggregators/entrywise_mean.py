"""A weighted mean with a separate weight for every entry.

For clients that each train a part of the model: an entry becomes the mean over
the clients that trained it.
"""

import collections

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import summary
from tff_fair.aggregators import gathered
from tff_fair.aggregators import type_checks
from tff_fair.tensors import summable


class EntrywiseMeanFactory(
  summary.ShowsArguments, tff.aggregators.WeightedAggregationFactory
):
  """`sum_i m_i * v_i / sum_i m_i` for each entry, 0 where no client has it.

  The weight has the type of the value and must not be negative. This is
  FedSAC's server, with masks as weights.

  A client counts as absent if a weight, or its product with the value, is not
  finite or too large (`summable.LARGEST`). Where a weight is 0, the value may
  be anything.

  As in `tff.aggregators.MeanFactory`, two inner processes compute the sums. The
  created process has their states, `OrderedDict(value_sum_process,
  weight_sum_process)`. Measurements: theirs, `mean_value` and `mean_weight`,
  and `num_non_finite`, how many clients count as absent.
  """

  def __init__(
    self,
    value_sum_factory: (
      tff.aggregators.UnweightedAggregationFactory | None
    ) = None,
    weight_sum_factory: (
      tff.aggregators.UnweightedAggregationFactory | None
    ) = None,
  ) -> None:
    """Keeps the factories.

    Args:
      value_sum_factory: Sums `m_i * v_i`; `tff.aggregators.SumFactory()` if
        None.
      weight_sum_factory: Sums `m_i`; `tff.aggregators.SumFactory()` if None.

    Raises:
      TypeError: If either is not an unweighted aggregation factory.
    """
    self._value_sum_factory = value_sum_factory or tff.aggregators.SumFactory()
    self._weight_sum_factory = (
      weight_sum_factory or tff.aggregators.SumFactory()
    )
    type_checks.check_unweighted('value_sum_factory', self._value_sum_factory)
    type_checks.check_unweighted('weight_sum_factory', self._weight_sum_factory)

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: Structure of float32 tensors of known shape.
      weight_type: The same type as `value_type`.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    type_checks.check_float32('EntrywiseMeanFactory', value_type)
    type_checks.check_weight_type(
      'EntrywiseMeanFactory', value_type, weight_type
    )
    value_sum = self._value_sum_factory.create(value_type)
    weight_sum = self._weight_sum_factory.create(weight_type)

    @tff.tensorflow.computation(value_type, weight_type)
    def multiply(value, weight):
      # A weight of 0 also removes non-finite values.
      product = tf.nest.map_structure(tf.math.multiply_no_nan, value, weight)
      usable = summable.is_summable((product, weight))
      return collections.OrderedDict(
        product=gathered.zeros_unless(usable, product),
        weight=gathered.zeros_unless(usable, weight),
        non_finite=tf.cast(~usable, tf.int32),
      )

    @tff.tensorflow.computation(value_type, weight_type)
    def divide(total, weight):
      return tf.nest.map_structure(tf.math.divide_no_nan, total, weight)

    @tff.federated_computation
    def init_fn():
      return tff.federated_zip(
        collections.OrderedDict(
          value_sum_process=value_sum.initialize(),
          weight_sum_process=weight_sum.initialize(),
        )
      )

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      clients = tff.federated_map(multiply, (value, weight))
      total = value_sum.next(state.value_sum_process, clients.product)
      weights = weight_sum.next(state.weight_sum_process, clients.weight)
      return tff.templates.MeasuredProcessOutput(
        tff.federated_zip(
          collections.OrderedDict(
            value_sum_process=total.state, weight_sum_process=weights.state
          )
        ),
        tff.federated_map(divide, (total.result, weights.result)),
        tff.federated_zip(
          collections.OrderedDict(
            mean_value=total.measurements,
            mean_weight=weights.measurements,
            num_non_finite=tff.federated_sum(clients.non_finite),
          )
        ),
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)
