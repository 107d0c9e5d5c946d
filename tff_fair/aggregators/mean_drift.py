"""FedDC's server: the mean of the models and the mean drift of all clients.

Gao et al., "FedDC: Federated Learning with Non-IID Data via Local Drift
Decoupling and Correction" (CVPR 2022, https://arxiv.org/abs/2203.11751).
"""

import collections
import dataclasses
from typing import Annotated

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import client_table
from tff_fair.tensors import summable


@dataclasses.dataclass(eq=False, repr=False)
class MeanDriftFactory(factory.Factory):
  """`w <- mean_S y + mean_i h_i`, as an aggregate of updates.

  Values are updates with TFF's sign, `w - y`. The drift `h_i` of client i is
  the sum of its `y - w`; the server only needs the mean over all N clients:

      h <- h - (1/N) sum_S (w - y),    result = mean_S (w - y) - h

  Excluded from both are clients whose weight is not positive, or whose value or
  weight is not finite or too large (`summable.LARGEST`). If no client remains,
  the result is 0 and h is unchanged. Weights are float32; only their sign is
  used.

  h forgets nothing: a huge but finite value stays in the results of all later
  rounds. Bound the values before this rule, as by `robust_factory`.

  Two inner processes compute the sums, of values and of clients. The state of
  the created process is `OrderedDict(drift, value_sum_process,
  count_sum_process)`: h, a structure like the value, and the inner states.
  Measurements: those of the inner processes, `mean_value` and `mean_count`, and
  `num_non_finite`, the clients with non-finite or too large numbers.

  Args:
    num_clients: N.
    value_sum_factory: Sums the updates; `tff.aggregators.SumFactory()` if None.
    count_sum_factory: Sums an int32 1 for each client that is not excluded;
      `tff.aggregators.SumFactory()` if None.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  value_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None
  count_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None

  def _required_weight_type(self, value_type):
    return np.float32

  def _create(self, value_type, weight_type):
    sums = tff.aggregators.SumFactory()
    value_sum = (self.value_sum_factory or sums).create(value_type)
    count_sum = (self.count_sum_factory or sums).create(
      tff.TensorType(np.int32)
    )

    @tff.tensorflow.computation
    def no_drift():
      return tff.types.structure_from_tensor_type_tree(
        lambda t: client_table.zeros(t.shape), value_type
      )

    @tff.tensorflow.computation(value_type, np.float32)
    def zero_if_excluded(value, weight):
      usable = summable.is_summable((value, weight))
      present = usable & (weight > 0)
      return collections.OrderedDict(
        value=gathered.zeros_unless(present, value),
        present=tf.cast(present, tf.int32),
        non_finite=tf.cast(~usable, tf.int32),
      )

    @tff.tensorflow.computation(value_type, value_type, np.int32)
    def update_drift(drift, total, count):
      number = tf.cast(count, tf.float32)
      drift = tf.nest.map_structure(
        lambda h, t: h - t / self.num_clients, drift, total
      )
      result = tf.nest.map_structure(
        lambda h, t: tf.where(number > 0, t / number - h, tf.zeros_like(h)),
        drift,
        total,
      )
      return collections.OrderedDict(drift=drift, result=result)

    def initialize():
      return collections.OrderedDict(
        drift=tff.federated_eval(no_drift, tff.SERVER),
        value_sum_process=value_sum.initialize(),
        count_sum_process=count_sum.initialize(),
      )

    def next_fn(state, value, weight):
      # Client computation.
      clients = tff.federated_map(zero_if_excluded, (value, weight))
      # Inner aggregations.
      total = value_sum.next(state.value_sum_process, clients.value)
      count = count_sum.next(state.count_sum_process, clients.present)
      # Server computation.
      updated = tff.federated_map(
        update_drift, (state.drift, total.result, count.result)
      )
      # Output preparation.
      new_state = collections.OrderedDict(
        drift=updated.drift,
        value_sum_process=total.state,
        count_sum_process=count.state,
      )
      measurements = collections.OrderedDict(
        mean_value=total.measurements,
        mean_count=count.measurements,
        num_non_finite=tff.federated_sum(clients.non_finite),
      )
      return new_state, updated.result, measurements

    return factory.build_process(initialize, next_fn, value_type, weight_type)
