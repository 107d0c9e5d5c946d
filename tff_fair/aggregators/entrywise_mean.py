"""A weighted mean with a separate weight for every entry.

For clients that each train a part of the model: an entry becomes the mean over
the clients that trained it.
"""

import collections
import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.tensors import summable


@dataclasses.dataclass(eq=False, repr=False)
class EntrywiseMeanFactory(factory.Factory):
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

  Args:
    value_sum_factory: Sums `m_i * v_i`; `tff.aggregators.SumFactory()` if None.
    weight_sum_factory: Sums `m_i`; `tff.aggregators.SumFactory()` if None.
  """

  value_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None
  weight_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None

  def _required_weight_type(self, value_type):
    return value_type

  def _create(self, value_type, weight_type):
    sums = tff.aggregators.SumFactory()
    value_sum = (self.value_sum_factory or sums).create(value_type)
    weight_sum = (self.weight_sum_factory or sums).create(weight_type)

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

    def initialize():
      return collections.OrderedDict(
        value_sum_process=value_sum.initialize(),
        weight_sum_process=weight_sum.initialize(),
      )

    def next_fn(state, value, weight):
      # Client computation.
      clients = tff.federated_map(multiply, (value, weight))
      # Inner aggregations.
      total = value_sum.next(state.value_sum_process, clients.product)
      weights = weight_sum.next(state.weight_sum_process, clients.weight)
      # Server computation and output preparation.
      new_state = collections.OrderedDict(
        value_sum_process=total.state, weight_sum_process=weights.state
      )
      result = tff.federated_map(divide, (total.result, weights.result))
      measurements = collections.OrderedDict(
        mean_value=total.measurements,
        mean_weight=weights.measurements,
        num_non_finite=tff.federated_sum(clients.non_finite),
      )
      return new_state, result, measurements

    return factory.build_process(initialize, next_fn, value_type, weight_type)
