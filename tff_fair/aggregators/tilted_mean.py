"""TERM's server: weights that grow exponentially with the clients' losses.

Li, Beirami, Sanjabi and Smith, "Tilted Empirical Risk Minimization" (ICLR 2021,
https://arxiv.org/abs/2007.01162), and "On Tilted Losses in Machine Learning:
Theory and Applications" (JMLR 2023).
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

WEIGHT_TYPE = tff.types.to_type(
  collections.OrderedDict(loss=np.float32, num_examples=np.float32)
)


def tilted_weight(
  loss: Any, num_examples: Any, largest_loss: Any, tilt: float
) -> tf.Tensor:
  """`n exp(t (F - F_max))`, float32.

  The divisor `exp(t F_max)` is the same for all clients, so it cancels in a
  mean, and no weight overflows. The client with the largest loss has the weight
  n; those far below it may have 0.
  """
  return num_examples * tf.exp(tilt * (loss - largest_loss))


@dataclasses.dataclass(eq=False, repr=False)
class TiltedMeanFactory(factory.Factory):
  """The server side of TERM: `sum_i n_i exp(t F_i) v_i / sum_i n_i exp(t F_i)`.

  Clients first send their losses `F_i`; the server returns the largest one, and
  an inner mean aggregates the values with weights by `tilted_weight`. For t = 0
  this is the mean by numbers of examples, bit for bit.

  A client is excluded if its number of examples is not positive, if a number is
  not finite or too large (`summable.LARGEST`), or if its product of value and
  number of examples is. If no client remains, the result is the inner mean of
  zero clients.

  The created process:

  * `initialize`: the state of the inner process.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<loss=float32,num_examples=float32>`.
  * measurements: `num_aggregated`, `num_non_finite` (clients with non-finite or
    too large numbers), `largest_loss` (-inf if no client remains) and `mean`,
    the measurements of the inner process.

  Args:
    tilt: The paper's t, not negative.
    inner_agg_factory: The weighted mean; None is
      `tff.aggregators.MeanFactory(no_nan_division=True)`.
  """

  tilt: Annotated[float, Limits(minimum=0)]
  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None

  def _required_weight_type(self, value_type):
    return WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    inner = factory.create_mean(
      self.inner_agg_factory, value_type, tff.TensorType(np.float32)
    )

    @tff.tensorflow.computation(value_type, weight_type)
    def check(value, weight):
      checked = gathered.counted_or_zeros(value, weight)
      loss = tf.where(checked['included'] > 0, weight['loss'], -np.inf)
      return collections.OrderedDict(checked, compared_loss=loss)

    @tff.tensorflow.computation(check.type_signature.result, np.float32)
    def weigh(checked, largest_loss):
      weight = checked['weight']
      tilted = tilted_weight(
        weight['loss'], weight['num_examples'], largest_loss, self.tilt
      )
      return tf.where(checked['included'] > 0, tilted, 0.0)

    def next_fn(state, value, weight):
      # Client computation.
      checked = tff.federated_map(check, (value, weight))
      # Server computation.
      largest_loss = tff.federated_max(checked.compared_loss)
      # Client computation.
      tilted = tff.federated_map(
        weigh, (checked, tff.federated_broadcast(largest_loss))
      )
      # Inner aggregation.
      output = inner.next(state, checked.value, tilted)
      # Output preparation.
      measurements = collections.OrderedDict(
        num_aggregated=tff.federated_sum(checked.included),
        num_non_finite=tff.federated_sum(checked.non_finite),
        largest_loss=largest_loss,
        mean=output.measurements,
      )
      return output.state, output.result, measurements

    return factory.build_process(
      inner.initialize, next_fn, value_type, weight_type
    )
