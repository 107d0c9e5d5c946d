"""FairFed's server: weights by how far a client's gap is from that of all.

Ezzeldin, Yan, He, Ferrara and Avestimehr, "FairFed: Enabling Group Fairness in
Federated Learning" (AAAI 2023, https://arxiv.org/abs/2110.00857).
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
from tff_fair.tensors import client_table

WEIGHT_TYPE = tff.types.to_type(
  collections.OrderedDict(
    client_id=np.int32,
    num_examples=np.float32,
    num_correct=np.float32,
    members=tff.TensorType(np.float32, [2]),
    selected=tff.TensorType(np.float32, [2]),
  )
)


def group_gap(members: Any, selected: Any) -> tf.Tensor:
  """`F`, the rate of group 0 less that of group 1, `[...]`.

  A rate is the share of the members of a group whose prediction is positive. F
  is NaN, not defined, if a group has no members.

  Args:
    members: `float64[..., 2]`, how many the rate of each group counts.
    selected: `float64[..., 2]`, how many of them are predicted positive.
  """
  rates = selected / members
  return rates[..., 0] - rates[..., 1]


def distances(counts: Any) -> tf.Tensor:
  """`Delta_k`, `float64[m]`.

  `|F_global - F_k|`, or `|Acc_global - Acc_k|` where F_k is not defined. The
  global ones are of the sums of all counts.

  Args:
    counts: `OrderedDict(num_examples, num_correct, members, selected)`,
      `float64[m]` and `float64[m, 2]`.
  """
  total = tf.nest.map_structure(lambda t: tf.reduce_sum(t, axis=0), counts)
  own, overall = (
    group_gap(c['members'], c['selected']) for c in (counts, total)
  )
  accuracy, overall_accuracy = (
    c['num_correct'] / c['num_examples'] for c in (counts, total)
  )
  return tf.where(
    tf.math.is_nan(own),
    tf.abs(overall_accuracy - accuracy),
    tf.abs(overall - own),
  )


def moved_factors(
  factors: Any, num_examples: Any, distance: Any, rate: float
) -> tf.Tensor:
  """The factors by which the clients' numbers of examples count, `float64[m]`.

  The shares `omega_k = f_k n_k / T`, with `T = sum_k f_k n_k`, become

      max(omega_k - rate (Delta_k - mean Delta), 0)

  divided by their sum. The result has the same T, so that it changes no share
  of a client that is absent. With a rate of 0 it is `factors`, bit for bit.

  Args:
    factors: `float64[m]`, the f_k, at least 0.
    num_examples: `float64[m]`, the n_k, positive.
    distance: `float64[m]`, the Delta_k.
    rate: beta.
  """
  total = tf.reduce_sum(factors * num_examples)
  excess = distance - tf.reduce_mean(distance)
  moved = tf.maximum(factors - rate * total * excess / num_examples, 0.0)
  return moved * tf.math.divide_no_nan(
    total, tf.reduce_sum(moved * num_examples)
  )


@dataclasses.dataclass(eq=False, repr=False)
class GroupGapFactory(factory.Factory):
  """The server side of FairFed: a mean whose weights follow fairness gaps.

  Clients first send counts of their predictions by the received model; the
  server moves their factors by `moved_factors`, at first all 1. Then an inner
  mean aggregates the values with the weights `f_k n_k`. With a rate of 0 this
  is the mean by numbers of examples, bit for bit.

  A client is excluded, and keeps its factor, if its number of examples is not
  positive, if a number is not finite or too large (`summable.LARGEST`), or if
  its product of value and number of examples is. If no client remains, or all
  have the factor 0, the result is the inner mean of zero clients.

  The created process:

  * `initialize`: `OrderedDict(factor=float32[N], mean=<the inner state>)`.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<client_id=int32, num_examples=float32, num_correct=float32,
    members=float32[2], selected=float32[2]>`, see `group_gap`.
  * measurements: `num_aggregated`, `num_non_finite` (clients with non-finite or
    too large numbers), `num_without_gap` (clients that are judged by their
    accuracy), `global_gap` (F_global, 0 if it is not defined), `clients` with
    `client_id`, `distance` (Delta_k) and `share` (the new omega_k), and `mean`,
    the measurements of the inner process.

  Args:
    num_clients: N.
    rate: beta, at least 0.
    inner_agg_factory: The weighted mean; None is
      `tff.aggregators.MeanFactory(no_nan_division=True)`.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  _: dataclasses.KW_ONLY
  rate: Annotated[float, Limits(minimum=0)] = 1.0
  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None

  def _required_weight_type(self, value_type):
    return WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    inner = factory.create_mean(
      self.inner_agg_factory, value_type, tff.TensorType(np.float32)
    )

    @tff.tensorflow.computation
    def initial_factors():
      return client_table.build_table(np.float32(1), self.num_clients)

    uploads = gathered.build_counted_uploads(value_type, weight_type)

    @tff.tensorflow.computation(
      initial_factors.type_signature.result, uploads.rows_type
    )
    @tf.function(autograph=False)
    def rate_clients(factors, rows):
      return _rate_clients(factors, rows, self.num_clients, self.rate)

    rated_type = rate_clients.type_signature.result

    @tff.tensorflow.computation(
      uploads.check.type_signature.result, rated_type['weights']
    )
    def weigh(checked, weights):
      own = tf.equal(weights['client_id'], checked['weight']['client_id'])
      weight = tf.reduce_sum(tf.boolean_mask(weights['weight'], own))
      return tf.where(checked['included'] > 0, weight, 0.0)

    def initialize():
      return collections.OrderedDict(
        factor=tff.federated_eval(initial_factors, tff.SERVER),
        mean=inner.initialize(),
      )

    def next_fn(state, value, weight):
      # Client computation.
      checked = tff.federated_map(uploads.check, (value, weight))
      # Server computation.
      rows = uploads.gather(checked)
      rated = tff.federated_map(rate_clients, (state.factor, rows))
      # Client computation.
      weights = tff.federated_broadcast(rated.weights)
      total = tff.federated_map(weigh, (checked, weights))
      # Inner aggregation.
      output = inner.next(state.mean, checked.value, total)
      # Output preparation.
      new_state = collections.OrderedDict(
        factor=rated.factors, mean=output.state
      )
      measurements = collections.OrderedDict(
        num_aggregated=tff.federated_sum(checked.included),
        num_non_finite=tff.federated_sum(checked.non_finite),
        num_without_gap=rated.num_without_gap,
        global_gap=rated.global_gap,
        clients=rated.clients,
        mean=output.measurements,
      )
      return new_state, output.result, measurements

    return factory.build_process(initialize, next_fn, value_type, weight_type)


def _rate_clients(factors, rows, num_clients, rate) -> collections.OrderedDict:
  """The server's part between the two uploads of clients."""
  weight = gathered.counted_weights(rows)
  with tf.control_dependencies(
    gathered.check_ids(weight['client_id'], num_clients)
  ):
    weight = gathered.sort_rows(weight['client_id'], weight)
  ids = weight['client_id']
  counts = collections.OrderedDict(
    (name, tf.cast(value, tf.float64))
    for name, value in weight.items()
    if name != 'client_id'
  )
  distance = distances(counts)
  numbers = counts['num_examples']
  new = moved_factors(
    tf.cast(tf.gather(factors, ids), tf.float64), numbers, distance, rate
  )
  overall = group_gap(
    *(tf.reduce_sum(counts[n], axis=0) for n in ('members', 'selected'))
  )
  own = group_gap(counts['members'], counts['selected'])
  return collections.OrderedDict(
    factors=client_table.write_rows(factors, ids, tf.cast(new, tf.float32)),
    weights=collections.OrderedDict(
      client_id=ids, weight=tf.cast(new * numbers, tf.float32)
    ),
    num_without_gap=tf.math.count_nonzero(tf.math.is_nan(own), dtype='int32'),
    global_gap=tf.cast(
      tf.where(tf.math.is_nan(overall), tf.zeros_like(overall), overall),
      tf.float32,
    ),
    clients=collections.OrderedDict(
      client_id=ids,
      distance=tf.cast(distance, tf.float32),
      share=tf.cast(gathered.divide_by_sum(new * numbers), tf.float32),
    ),
  )
