"""q-FedAvg's server: updates weighted by a power of the clients' losses.

Li, Sanjabi, Beirami and Smith, "Fair Resource Allocation in Federated Learning"
(ICLR 2020, https://arxiv.org/abs/1905.10497; q-FFL), algorithm 2.
"""

import collections
import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import flat
from tff_fair.tensors import summable

WEIGHT_TYPE = tff.types.to_type(
  collections.OrderedDict(loss=np.float32, learning_rate=np.float32)
)
# Keeps F^(q - 1) finite where a client's loss is 0.
_LOWEST_LOSS = 1e-10


def q_fair_weight(
  squared_norm: Any, loss: Any, learning_rate: Any, q: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """The scale and the weight of one client's update `u = w - w_i`.

  The paper divides `sum_i Delta_i` by `sum_i h_i`, with `L = 1 / eta`:

      Delta_i = F^q L u,  h_i = q F^(q - 1) |L u|^2 + L F^q

  This is the mean of `Delta_i / h_i = u / s_i` with weights `h_i`:

      s_i = 1 + q |u|^2 / (eta F),  h_i = s_i F^q / eta

  Computed in float64, since 1 / F may be 1e10; F is the loss plus 1e-10. A
  negative loss, or a rate that is not positive, gives the weight 0.
  """
  squared_norm = tf.cast(squared_norm, tf.float64)
  loss = tf.cast(loss, tf.float64)
  rate = tf.cast(learning_rate, tf.float64)
  legal = (loss >= 0) & (rate > 0)
  loss = tf.where(legal, loss, 0.0) + _LOWEST_LOSS
  rate = tf.where(legal, rate, 0.0)
  stretch = 1 + q * tf.math.divide_no_nan(squared_norm, rate * loss)
  weight = tf.math.divide_no_nan(stretch * loss**q, rate)
  return tf.cast(1 / stretch, tf.float32), tf.cast(weight, tf.float32)


@dataclasses.dataclass(eq=False, repr=False)
class QFairFactory(factory.Factory):
  """The server side of q-FedAvg: `sum_i Delta_i / sum_i h_i`.

  Values are updates, old weights minus new, `u_i`. Each client scales its
  update (see `q_fair_weight`), and an inner weighted mean aggregates them. A
  client is excluded if its weight h_i is not positive, or if any of its numbers
  is not finite or too large (`summable.LARGEST`), including h_i and its product
  with the scaled update. If no client remains, the result is the inner mean of
  zero clients.

  If values are `tff.learning.models.ModelWeights`, this applies to the
  trainable part; batch-norm statistics are averaged with weights `h_i`.

  The created process:

  * `initialize`: the state of the inner process.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<loss=float32,learning_rate=float32>`.
  * measurements: `num_aggregated`, `num_non_finite` (clients with non-finite or
    too large numbers), `weight_sum` (of h_i) and `mean`, the measurements of
    the inner process.

  Args:
    q: Not negative; see `q_fair_weight`.
    inner_agg_factory: The weighted mean; None is
      `tff.aggregators.MeanFactory(no_nan_division=True)`.
  """

  q: Annotated[float, Limits(minimum=0)]
  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None

  def _required_weight_type(self, value_type):
    return WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    inner = factory.create_mean(
      self.inner_agg_factory, value_type, tff.TensorType(np.float32)
    )

    @tff.tensorflow.computation(value_type, weight_type)
    def scale(value, weight):
      return _scaled(value, weight, self.q)

    def next_fn(state, value, weight):
      # Client computation.
      scaled = tff.federated_map(scale, (value, weight))
      # Inner aggregation.
      output = inner.next(state, scaled.value, scaled.weight)
      # Output preparation.
      measurements = collections.OrderedDict(
        num_aggregated=tff.federated_sum(scaled.included),
        num_non_finite=tff.federated_sum(scaled.non_finite),
        weight_sum=tff.federated_sum(scaled.weight),
        mean=output.measurements,
      )
      return output.state, output.result, measurements

    return factory.build_process(
      inner.initialize, next_fn, value_type, weight_type
    )


def _scaled(value, weight, q) -> collections.OrderedDict:
  """A client's scaled value and h_i, zeros if it is excluded."""
  usable = summable.is_summable((value, weight))
  trainable = gathered.trainable_part(value)
  update = flat.flatten(trainable)
  squared_norm = tf.reduce_sum(tf.cast(update, tf.float64) ** 2)
  scale, h = q_fair_weight(
    squared_norm, weight['loss'], weight['learning_rate'], q
  )
  scaled = tf.nest.map_structure(lambda u: scale * u, trainable)
  value = gathered.with_trainable_part(value, scaled)
  usable &= summable.is_summable(value, h)
  included = usable & (h > 0)
  return collections.OrderedDict(
    value=gathered.zeros_unless(included, value),
    weight=gathered.zeros_unless(included, h),
    included=tf.cast(included, tf.int32),
    non_finite=tf.cast(~usable, tf.int32),
  )
