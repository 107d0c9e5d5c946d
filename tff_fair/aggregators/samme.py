"""FeDABoost's aggregation: weights from multiclass AdaBoost.

Equations 6 and 7 of the FeDABoost paper. The coefficient is that of SAMME: Zhu,
Zou, Rosset and Hastie, "Multi-class AdaBoost" (Statistics and Its Interface,
2009).
"""

import collections
import dataclasses
from typing import Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.aggregators import factory
from tff_fair.aggregators import type_checks
from tff_fair.tensors import summable

Fallback = Literal['keep', 'fed_avg']


def samme_alpha(
  error: Any, num_classes: Any, *, error_clip: float = 1e-6
) -> tf.Tensor:
  """The SAMME coefficient `ln((1 - e) / e) + ln(C - 1)` (equation 6).

  `e` is `error` clipped to `[error_clip, 1 - error_clip]`, which bounds the
  first term by 13.8 for the default. The coefficient is positive exactly where
  the error is below `1 - 1/C`, better than chance. It is computed in float64,
  because a float32 error near 1 has no digits left for `1 - e`.

  Args:
    error: Fraction of wrong predictions in [0, 1], a scalar or a tensor.
    num_classes: C, of the shape of `error` or a scalar. With a single class
      nothing is better than chance, so the coefficient is 0.
    error_clip: Epsilon, in (0, 0.5); the paper has 1e-6 as an example.

  Returns:
    float32, of the shape of `error`.

  Raises:
    TypeError: If `error_clip` is not a number.
    ValueError: If `error_clip` is not in (0, 0.5).
  """
  checks.check_real('error_clip', error_clip)
  if not 0 < error_clip < 0.5:
    raise ValueError(
      f'error_clip must be between 0 and 0.5, found {error_clip}.'
    )
  error = tf.cast(error, tf.float64)
  error = tf.clip_by_value(error, error_clip, 1 - error_clip)
  others = tf.cast(num_classes, tf.float64) - 1
  alpha = tf.math.log1p(-error) - tf.math.log(error)
  alpha += tf.math.log(tf.maximum(others, 1.0))
  return tf.cast(tf.where(others < 1, tf.zeros_like(alpha), alpha), tf.float32)


@dataclasses.dataclass(eq=False, repr=False)
class SammeAlphaFactory(factory.Factory):
  """Mean over the clients whose alpha is positive (equation 7).

  `sum_P alpha_j * value_j / sum_P alpha_j` with `P = {j : alpha_j > 0}`.
  Excluded are clients whose alpha is not positive, and clients of which a
  number, or the product of value and weight, is not finite (NaN times a weight
  of 0 would still be NaN) or too large (`summable.LARGEST`).

  If no client remains, the result is zero with `fallback='keep'`: for model
  updates this means "the previous model". With `fallback='fed_avg'` it is the
  mean weighted by numbers of examples, without the clients excluded for their
  numbers; the weight is then a structure of both.

  The created process:

  * `initialize`: the state of the inner process.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> ->
    <state, result=value@SERVER, measurements@SERVER>` with `weight` either
    `float32` or, for `fallback='fed_avg'`,
    `<alpha=float32,num_examples=float32>`.
  * measurements: `num_aggregated`, also by the fallback; `num_excluded`
    (finite, but not aggregated); `num_non_finite` (a number not finite, or too
    large); `alpha_sum` (over the clients with a positive alpha); `fallback` (1
    if there is none); and `mean`, the measurements of the inner process.
  Values are structures of floating-point tensors of known shape.

  Args:
    inner_agg_factory: The weighted mean; `tff.aggregators.MeanFactory()` if
      None. For excluded clients it receives zeros with weight 0.
    fallback: 'keep' or 'fed_avg', for rounds without any positive alpha.
  """

  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None
  _: dataclasses.KW_ONLY
  fallback: Fallback = 'keep'

  def _check_value_type(self, value_type) -> None:
    floats = tff.types.is_structure_of_floats(value_type)
    if not floats or not type_checks.has_known_entries(value_type):
      raise TypeError(
        'SammeAlphaFactory requires values that are structures of'
        ' floating-point tensors of known shape. Found type:'
        f' {value_type!r}.'
      )

  def _required_weight_type(self, value_type):
    if self.fallback == 'keep':
      return np.float32
    return collections.OrderedDict(alpha=np.float32, num_examples=np.float32)

  def _create(self, value_type, weight_type):
    inner_factory = self.inner_agg_factory or tff.aggregators.MeanFactory()
    inner = inner_factory.create(value_type, tff.TensorType(np.float32))
    by_examples = self.fallback == 'fed_avg'

    def alpha_of(weight):
      return weight['alpha'] if by_examples else weight

    @tff.tensorflow.computation(value_type, weight_type)
    def count(value, weight):
      alpha = alpha_of(weight)
      finite = summable.is_summable(value, weight)
      positive = finite & (alpha > 0)
      return collections.OrderedDict(
        num_positive=tf.cast(positive, tf.int32),
        num_finite=tf.cast(finite, tf.int32),
        num_non_finite=tf.cast(~finite, tf.int32),
        alpha_sum=tf.where(positive, alpha, 0.0),
      )

    totals_type = count.type_signature.result

    @tff.tensorflow.computation(value_type, weight_type, np.int32)
    def select(value, weight, num_positive):
      usable = summable.is_summable(value, weight)
      chosen = tf.maximum(alpha_of(weight), 0.0)
      if by_examples:
        chosen = tf.where(num_positive > 0, chosen, weight['num_examples'])
      chosen = tf.where(usable, chosen, 0.0)
      value = tf.nest.map_structure(
        lambda v: tf.where(chosen > 0, v, tf.zeros_like(v)), value
      )
      return value, chosen

    @tff.tensorflow.computation(value_type, np.float32)
    def zero_if_empty(result, weight_sum):
      return tf.nest.map_structure(
        lambda r: tf.where(weight_sum > 0, r, tf.zeros_like(r)), result
      )

    @tff.tensorflow.computation(np.float32)
    def is_aggregated(chosen):
      return tf.cast(chosen > 0, tf.int32)

    @tff.tensorflow.computation(
      totals_type,
      np.int32,
      inner.next.type_signature.result.measurements.member,
    )
    def measure(totals, num_aggregated, mean):
      return collections.OrderedDict(
        num_aggregated=num_aggregated,
        num_excluded=totals['num_finite'] - num_aggregated,
        num_non_finite=totals['num_non_finite'],
        alpha_sum=totals['alpha_sum'],
        fallback=tf.cast(tf.equal(totals['num_positive'], 0), tf.int32),
        mean=mean,
      )

    def next_fn(state, value, weight):
      # Client computation.
      totals = tff.federated_sum(tff.federated_map(count, (value, weight)))
      if by_examples:
        num_positive = tff.federated_broadcast(totals.num_positive)
      else:  # Clients need not wait for the totals.
        num_positive = tff.federated_value(1, tff.CLIENTS)
      value, chosen = tff.federated_map(select, (value, weight, num_positive))
      # Inner aggregation.
      output = inner.next(state, value, chosen)
      # Server computation.
      weight_sum, num_aggregated = totals.alpha_sum, totals.num_positive
      if by_examples:
        weight_sum = tff.federated_sum(chosen)
        num_aggregated = tff.federated_sum(
          tff.federated_map(is_aggregated, chosen)
        )
      result = tff.federated_map(zero_if_empty, (output.result, weight_sum))
      # Output preparation.
      measurements = tff.federated_map(
        measure, (totals, num_aggregated, output.measurements)
      )
      return output.state, result, measurements

    return factory.build_process(
      inner.initialize, next_fn, value_type, weight_type
    )
