"""A weighted mean in which every entry has weights of its own.

For clients that train a part of a model each: an entry becomes the mean over
those that trained it.
"""

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import largest_values


class EntrywiseMeanFactory(tff.aggregators.WeightedAggregationFactory):
  """`sum_i m_i * v_i / sum_i m_i` for each entry, 0 where no client has it.

  The created process has no state and no measurements; the weight has the type
  of the value, not negative. FedSAC's server, with masks as weights.
  """

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: Structure of float32 tensors of known shape.
      weight_type: The same type.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    largest_values.check_float32('EntrywiseMeanFactory', value_type)
    if not value_type.is_equivalent_to(weight_type):
      raise TypeError(
        'EntrywiseMeanFactory requires a weight of the type of the value,'
        f' {value_type}. Found type: {weight_type!r}.'
      )

    @tff.tensorflow.computation(value_type, weight_type)
    def product(value, weight):
      # A weight of 0 also silences what is not finite.
      return tf.nest.map_structure(tf.math.multiply_no_nan, value, weight)

    @tff.tensorflow.computation(product.type_signature.result, weight_type)
    def divide(total, weight):
      return tf.nest.map_structure(tf.math.divide_no_nan, total, weight)

    @tff.federated_computation
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      total = tff.federated_sum(tff.federated_map(product, (value, weight)))
      mean = tff.federated_map(divide, (total, tff.federated_sum(weight)))
      return tff.templates.MeasuredProcessOutput(
        state, mean, tff.federated_value((), tff.SERVER)
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)
