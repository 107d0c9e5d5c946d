"""GIFAIR-FL's server: weights by the ranks of the losses of groups of clients.

Yue, Nouiehed and Al Kontar, "GIFAIR-FL: A Framework for Group and Individual
Fairness in Federated Learning" (INFORMS Journal on Data Science 2023,
https://arxiv.org/abs/2108.02741).
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
  collections.OrderedDict(
    group=np.int32, loss=np.float32, num_examples=np.float32
  )
)


def ranks(losses: Any, groups: Any) -> tf.Tensor:
  """`r_k = sum_h sign(L_g(k) - L_h)` over the groups h, `float64[m]`.

  L is the mean loss of a group. Of d groups with different losses, the ranks
  are -(d - 1), -(d - 3), ..., d - 1.

  Args:
    losses: `float64[m]`, one of each client.
    groups: `int[m]`, the group g(k) of each client.
  """
  same, sizes = _same_group(groups)
  means = tf.linalg.matvec(tf.cast(same, tf.float64), losses) / sizes
  signs = tf.sign(means[:, tf.newaxis] - means)
  # Clients of one group may have means that differ by rounding.
  signs = tf.where(same, tf.zeros_like(signs), signs)
  return tf.reduce_sum(signs / sizes, axis=1)


def spread_bonuses(
  losses: Any, num_examples: Any, groups: Any, share: float
) -> tf.Tensor:
  """Returns what the penalty adds to the numbers of examples, `float64[m]`.

  The gradient of the penalised loss has the weights `p_k + lambda r_k / |A_k|`,
  where `p_k = n_k / n` with the sum n of the n_k, `|A_k|` is the size of the
  client's group, and

      lambda = share lambda_max,  lambda_max = min_k p_k |A_k| / (d - 1)

  The result is `n lambda r_k / |A_k|`. It is the same for a whole group, has
  the sum 0, and is at most n_k in magnitude, so no weight is negative.

  Args:
    losses: `float64[m]`.
    num_examples: `float64[m]`, the n_k, positive.
    groups: `int[m]`.
    share: In [0, 1].
  """
  _, sizes = _same_group(groups)
  num_groups = tf.round(tf.reduce_sum(1 / sizes))
  largest = tf.math.divide_no_nan(
    tf.reduce_min(num_examples * sizes), num_groups - 1
  )
  return share * largest * ranks(losses, groups) / sizes


@dataclasses.dataclass(eq=False, repr=False)
class LossSpreadFactory(factory.Factory):
  """The server side of GIFAIR-FL: a mean with weights by ranks of losses.

  Clients first send their losses and numbers of examples, and the server
  returns the `spread_bonuses`; then an inner mean aggregates the values, with
  the sums of both as weights. With a share of 0 this is the mean by numbers of
  examples, bit for bit.

  A client is excluded if its number of examples is not positive, if a number is
  not finite or too large (`summable.LARGEST`), or if its product of value and
  number of examples is. If no client remains, the result is the inner mean of
  zero clients.

  The created process:

  * `initialize`: the state of the inner process.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<group=int32,loss=float32,num_examples=float32>`.
  * measurements: `num_aggregated`, `num_non_finite` (clients with non-finite or
    too large numbers), and `mean`, the measurements of the inner process.

  Args:
    share: lambda as a share of lambda_max, in [0, 1].
    inner_agg_factory: The weighted mean; None is
      `tff.aggregators.MeanFactory(no_nan_division=True)`.
  """

  share: Annotated[float, Limits(minimum=0, maximum=1)]
  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None

  def _required_weight_type(self, value_type):
    return WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    inner = factory.create_mean(
      self.inner_agg_factory, value_type, tff.TensorType(np.float32)
    )

    uploads = gathered.build_counted_uploads(value_type, weight_type)

    @tff.tensorflow.computation(uploads.rows_type)
    def rate(rows):
      weight = gathered.counted_weights(rows)
      bonuses = spread_bonuses(
        tf.cast(weight['loss'], tf.float64),
        tf.cast(weight['num_examples'], tf.float64),
        weight['group'],
        self.share,
      )
      return collections.OrderedDict(
        group=weight['group'], bonus=tf.cast(bonuses, tf.float32)
      )

    @tff.tensorflow.computation(
      uploads.check.type_signature.result, rate.type_signature.result
    )
    def weigh(checked, rated):
      weight = checked['weight']
      own = tf.equal(rated['group'], weight['group'])
      # All of a group have the same.
      bonus = tf.reduce_sum(tf.boolean_mask(rated['bonus'], own)[:1])
      total = weight['num_examples'] + bonus
      return tf.where(checked['included'] > 0, total, 0.0)

    def next_fn(state, value, weight):
      # Client computation.
      checked = tff.federated_map(uploads.check, (value, weight))
      # Server computation.
      rows = uploads.gather(checked)
      rated = tff.federated_broadcast(tff.federated_map(rate, rows))
      # Client computation.
      total = tff.federated_map(weigh, (checked, rated))
      # Inner aggregation.
      output = inner.next(state, checked.value, total)
      # Output preparation.
      measurements = collections.OrderedDict(
        num_aggregated=tff.federated_sum(checked.included),
        num_non_finite=tff.federated_sum(checked.non_finite),
        mean=output.measurements,
      )
      return output.state, output.result, measurements

    return factory.build_process(
      inner.initialize, next_fn, value_type, weight_type
    )


def _same_group(groups) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns who shares a group, `bool[m, m]`, and its size, `float64[m]`."""
  same = tf.equal(groups[:, tf.newaxis], groups)
  return same, tf.reduce_sum(tf.cast(same, tf.float64), axis=1)
