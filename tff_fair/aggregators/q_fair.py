"""q-FedAvg's server: updates weighed by a power of the clients' losses.

Li, Sanjabi, Beirami and Smith, "Fair Resource Allocation in Federated Learning"
(ICLR 2020, https://arxiv.org/abs/1905.10497; q-FFL), algorithm 2.
"""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.aggregators import type_checks
from tff_fair.tensors import flat

WEIGHT_TYPE = tff.types.to_type(
  collections.OrderedDict(loss=np.float32, learning_rate=np.float32)
)
# Keeps F^(q - 1) finite where a client has no loss left.
_LOWEST_LOSS = 1e-10


def q_fair_weight(
  squared_norm: Any, loss: Any, learning_rate: Any, q: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """What q-FedAvg makes of one client's update `u = w - w_i`.

  The paper divides `sum_i Delta_i` by `sum_i h_i`, with `L = 1 / eta`:

      Delta_i = F^q L u,  h_i = q F^(q - 1) |L u|^2 + L F^q

  That is the mean of `Delta_i / h_i = u / s_i` with weights `h_i`:

      s_i = 1 + q |u|^2 / (eta F),  h_i = s_i F^q / eta

  Computed in float64, since 1 / F may be 1e10.

  Args:
    squared_norm: `|u|^2`, a scalar or a tensor.
    loss: The client's loss before its training, 1e-10 less than F; of the same
      shape, like all that follows. A negative one has the weight 0.
    learning_rate: eta, with which u was made; unless positive, the weight is 0.
    q: How much high losses count, not negative; at 0 all clients weigh alike.

  Returns:
    `1 / s_i` and `h_i`, float32.
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


class QFairFactory(tff.aggregators.WeightedAggregationFactory):
  """The server side of q-FedAvg: `sum_i Delta_i / sum_i h_i`.

  Values are updates, old weights minus new, `u_i`. Each client scales its own,
  and an inner weighted mean does the rest, see `q_fair_weight`. Whoever has no
  weight h_i that is positive and finite, or a value that is not finite, takes
  no part; if nobody does, the inner mean of nothing is the result.

  Of values that are `tff.learning.models.ModelWeights` the trainable part is
  meant; the other part, batch-norm statistics, is averaged by `h_i`.

  The created process:

  * `initialize`: the state of the inner process.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<loss=float32,learning_rate=float32>`.
  * measurements: `num_aggregated`, `weight_sum` (of h_i) and `mean`, the
    measurements of the inner process.
  """

  def __init__(
    self,
    q: float,
    inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None,
  ):
    """Keeps the parameters.

    Args:
      q: Not negative; see `q_fair_weight`.
      inner_agg_factory: The weighted mean; None is
        `tff.aggregators.MeanFactory(no_nan_division=True)`.

    Raises:
      TypeError: If an argument is of the wrong kind.
      ValueError: If `q` is negative.
    """
    if inner_agg_factory is None:
      inner_agg_factory = tff.aggregators.MeanFactory(no_nan_division=True)
    type_checks.check_weighted('inner_agg_factory', inner_agg_factory)
    self._q = checks.check_real('q', q, 0.0)
    self._inner_agg_factory = inner_agg_factory

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: A structure of float32 tensors of known shape.
      weight_type: `<loss=float32,learning_rate=float32>`.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    largest_values.check_float32('QFairFactory', value_type)
    if not WEIGHT_TYPE.is_equivalent_to(weight_type):
      raise TypeError(
        f'QFairFactory requires the weight type {WEIGHT_TYPE}. Found type:'
        f' {weight_type!r}.'
      )
    inner = self._inner_agg_factory.create(
      value_type, tff.TensorType(np.float32)
    )

    @tff.tensorflow.computation(value_type, weight_type)
    def weigh(value, weight):
      return _weighed(value, weight, self._q)

    @tff.tensorflow.computation(
      np.int32,
      np.float32,
      inner.next.type_signature.result.measurements.member,
    )
    def measure(number, weight_sum, mean):
      return collections.OrderedDict(
        num_aggregated=number, weight_sum=weight_sum, mean=mean
      )

    @tff.federated_computation(
      inner.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      weighed = tff.federated_map(weigh, (value, weight))
      output = inner.next(state, weighed.value, weighed.weight)
      measurements = tff.federated_map(
        measure,
        (
          tff.federated_sum(weighed.counts),
          tff.federated_sum(weighed.weight),
          output.measurements,
        ),
      )
      return tff.templates.MeasuredProcessOutput(
        output.state, output.result, measurements
      )

    return tff.templates.AggregationProcess(inner.initialize, next_fn)


def _weighed(value, weight, q) -> collections.OrderedDict:
  """A client's scaled value and h_i, zeros if it takes no part."""
  update = flat.flatten(gathered.trainable_part(value))
  squared_norm = tf.reduce_sum(tf.cast(update, tf.float64) ** 2)
  scale, h = q_fair_weight(
    squared_norm, weight['loss'], weight['learning_rate'], q
  )
  finite = tf.reduce_all(tf.math.is_finite(flat.flatten(value)))
  counts = finite & tf.math.is_finite(h) & (h > 0)

  def kept(tensor):
    return tf.where(counts, tensor, tf.zeros_like(tensor))

  scaled = [scale * u for u in tf.nest.flatten(gathered.trainable_part(value))]
  if isinstance(value, tff.learning.models.ModelWeights):
    value = tff.learning.models.ModelWeights(scaled, value.non_trainable)
  else:
    value = tf.nest.pack_sequence_as(value, scaled)
  return collections.OrderedDict(
    value=tf.nest.map_structure(kept, value),
    weight=kept(h),
    counts=tf.cast(counts, tf.int32),
  )
