"""Adaptive zeroing and clipping around any weighted rule.

Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with
Adaptive Clipping" (NeurIPS 2021, https://arxiv.org/abs/1905.03871), without
noise, as in `tff.learning.robust_aggregator`.
"""

import collections
import dataclasses
import math

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.aggregators import type_checks

# Norms from here on are equal for the estimated quantiles, which then stay
# finite whatever clients send: the next estimate is below 1e19.
_LARGEST_NORM = 1e18

_MEASURED = ('num_zeroed', 'zeroing_norm', 'num_clipped', 'clipping_norm')


def robust_factory(
  rule: tff.aggregators.WeightedAggregationFactory,
) -> tff.aggregators.WeightedAggregationFactory:
  """Puts TFF's adaptive zeroing and clipping around a rule.

  1. A value with an entry of magnitude above the zeroing norm is replaced by
     zeros. This norm is `2 C + 1`, where C quickly follows the 0.98 quantile of
     the largest magnitudes; it is 21 in the first round.
  2. A value of length (L2) above the clipping norm is scaled down to it. This
     norm slowly follows the 0.8 quantile of the lengths; it is 1 in the first
     round. Rounds without clients change neither norm.
  3. The rule aggregates what is left, with the clients' weights as they are.

  The parameters are those of `tff.learning.robust_aggregator`. A value of at
  most the clipping norm reaches the rule unchanged. A mean is at most as long
  as the clipping norm, whatever values clients send. Weights are not bounded,
  nor are vectors within them. As in TFF, clients of weight 0 count for the
  norms like all others.

  NaN is neither above nor below a norm: such a value reaches the rule as it is,
  and this package's rules count its client as absent. TFF's mean does not;
  `SammeAlphaFactory()` with the clients' weights as alpha is a mean that does.

  If values are `tff.learning.models.ModelWeights`, this applies to the
  trainable part. Batch-norm statistics pass unchanged: they are means of the
  data and not updates of comparable lengths.

  The created process:

  * `initialize`: TFF's states around that of the rule, which is
    `state['inner_agg']['inner_agg']`.
  * `next`: as that of the rule.
  * measurements: those of the rule, and `num_zeroed`, `zeroing_norm`,
    `num_clipped` and `clipping_norm`, with the norms of this round.

  Args:
    rule: A weighted rule, such as this package's factories or
      `tff.aggregators.MeanFactory()`.

  Returns:
    A factory for the value and weight types of the rule.

  Raises:
    TypeError: If `rule` is not a weighted aggregation factory.
  """
  type_checks.check_weighted('rule', rule)
  return _RobustFactory(rule)


@dataclasses.dataclass(eq=False, repr=False)
class _RobustFactory(factory.Factory):
  """See `robust_factory`."""

  rule: tff.aggregators.WeightedAggregationFactory

  def _check_value_type(self, value_type) -> None:
    del value_type  # The rule checks it.

  def _create(self, value_type, weight_type):
    @tff.tensorflow.computation(value_type, weight_type)
    def split(value, weight):
      rest = ()
      if isinstance(value, tff.learning.models.ModelWeights):
        rest = value.non_trainable
      return gathered.trainable_part(value), (rest, weight)

    part_type, extended_type = split.type_signature.result
    process = _zeroed_and_clipped(_Rejoined(self.rule, value_type)).create(
      part_type, extended_type
    )
    measure = _build_measure(
      process.next.type_signature.result.measurements.member
    )

    def next_fn(state, value, weight):
      part, extended = tff.federated_map(split, (value, weight))
      state, result, measurements = process.next(state, part, extended)
      return state, result, tff.federated_map(measure, measurements)

    return factory.build_process(
      process.initialize, next_fn, value_type, weight_type
    )


class _Rejoined(tff.aggregators.WeightedAggregationFactory):
  """A rule for whole values that come in two parts.

  TFF's factories change all of a value and none of the weight. So the
  statistics travel with the weight, `(statistics, weight)`.
  """

  def __init__(self, rule, value_type) -> None:
    self._rule = rule
    self._value_type = value_type

  def create(self, value_type, weight_type):
    process = self._rule.create(self._value_type, weight_type[1])
    whole = gathered.is_model_weights(self._value_type)

    @tff.tensorflow.computation(value_type, weight_type)
    def join(part, extended):
      rest, weight = extended
      if whole:
        part = tff.learning.models.ModelWeights(part, rest)
      return part, weight

    def next_fn(state, part, extended):
      value, weight = tff.federated_map(join, (part, extended))
      return process.next(state, value, weight)

    return factory.build_process(
      process.initialize, next_fn, value_type, weight_type
    )


def _zeroed_and_clipped(rule) -> tff.aggregators.WeightedAggregationFactory:
  """The rule within TFF's factories, with TFF's own parameters."""
  quantile = tff.aggregators.PrivateQuantileEstimationProcess.no_noise
  clipping_norm = quantile(
    initial_estimate=1.0, target_quantile=0.8, learning_rate=0.2
  )
  zeroing_norm = quantile(
    initial_estimate=10.0,
    target_quantile=0.98,
    learning_rate=math.log(10.0),
    multiplier=2.0,
    increment=1.0,
  )
  return tff.aggregators.zeroing_factory(
    _always_finite(zeroing_norm),
    tff.aggregators.clipping_factory(_always_finite(clipping_norm), rule),
  )


def _always_finite(quantile) -> tff.templates.EstimationProcess:
  """The process with large norms cut and rounds without clients skipped.

  TFF's estimate would overflow, or be NaN, and then remain so.
  """
  state_type = quantile.initialize.type_signature.result

  @tff.tensorflow.computation(np.float32)
  def cut(norm):
    # NaN is not smaller either.
    return tf.where(norm < _LARGEST_NORM, norm, _LARGEST_NORM)

  @tff.tensorflow.computation(state_type.member, state_type.member, np.int32)
  def skip_if_empty(old, new, number):
    return tf.nest.map_structure(
      lambda a, b: tf.where(number > 0, b, a), old, new
    )

  @tff.federated_computation(
    state_type, tff.FederatedType(np.float32, tff.CLIENTS)
  )
  def next_fn(state, norms):
    new_state = quantile.next(state, tff.federated_map(cut, norms))
    number = tff.federated_sum(tff.federated_value(1, tff.CLIENTS))
    return tff.federated_map(skip_if_empty, (state, new_state, number))

  return tff.templates.EstimationProcess(
    quantile.initialize, next_fn, quantile.report
  )


def _build_measure(measured_type) -> tff.Computation:
  """From TFF's nested measurements to one level."""
  _check_measurements(measured_type.zeroing.clipping)

  @tff.tensorflow.computation(measured_type)
  def measure(measured):
    clipped = measured['zeroing']
    return collections.OrderedDict(
      clipped['clipping'],
      num_zeroed=measured['zeroed_count'],
      zeroing_norm=measured['zeroing_norm'],
      num_clipped=clipped['clipped_count'],
      clipping_norm=clipped['clipping_norm'],
    )

  return measure


def _check_measurements(measured_type) -> None:
  named = isinstance(measured_type, tff.StructType)
  names = tff.structure.name_list(measured_type) if named else []
  if not named or len(names) < len(measured_type):
    raise TypeError(
      'robust_factory requires a rule with named measurements. Found type:'
      f' {measured_type!r}.'
    )
  taken = [name for name in names if name in _MEASURED]
  if taken:
    raise ValueError(
      'robust_factory requires a rule without measurements named'
      f' {", ".join(_MEASURED)}, found {", ".join(taken)}.'
    )
