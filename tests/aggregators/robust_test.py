import collections
import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import aggregators
from tff_fair import runtime

ModelWeights = tff.learning.models.ModelWeights

_VALUE = tff.types.to_type([tff.TensorType(np.float32, [2]), np.float32])
_NUMBER = tff.TensorType(np.float32)
_ONE = np.float32(1)

pytestmark = pytest.mark.usefixtures('default_runtime')


@functools.cache
def _process(rule=tff.aggregators.MeanFactory):
  return aggregators.robust_factory(rule()).create(_VALUE, _NUMBER)


def _value(a, b, c=0.0):
  return [np.float32([a, b]), np.float32(c)]


def _next(process, values, *, state=None, weights=None):
  state = process.initialize() if state is None else state
  return process.next(state, values, weights or [_ONE] * len(values))


def _check(output, expected, **measured):
  np.testing.assert_allclose(_floats(output.result), expected, 1e-6)
  found = {name: output.measurements[name] for name in measured}
  assert found == pytest.approx(measured)


def _floats(structure):
  return np.hstack([np.ravel(t) for t in tf.nest.flatten(structure)])


@pytest.mark.parametrize(
  'kind', ['device', pytest.param('native', marks=pytest.mark.full)]
)
def test_by_hand(kind):
  values = [_value(3, 0, 4), _value(0, 0.5), _value(30, 0)]
  process = _process()
  context = runtime.create_execution_context(kind)
  with tff.framework.get_context_stack().install(context):
    first = _next(process, values, weights=[_ONE, _ONE, np.float32(2)])
    second = _next(process, values, state=first.state)
  # The first is 5 long. The third has an entry above 2 * 10 + 1; it becomes
  # zeros of weight 2.
  _check(
    first,
    [0.6 / 4, 0.5 / 4, 0.8 / 4],
    num_zeroed=1,
    zeroing_norm=21.0,
    num_clipped=1,
    clipping_norm=1.0,
  )
  assert 'mean_value' in first.measurements
  # Estimates grow by exp(rate (quantile - share of clients below)). Two of
  # three were below 10, and two below 1: what was zeroed is 0 long.
  largest = 10 * math.exp(math.log(10) * (0.98 - 2 / 3))  # 20.6
  length = math.exp(0.2 * (0.8 - 2 / 3))
  _check(
    second,
    [(0.6 + 1) * length / 3, 0.5 / 3, 0.8 * length / 3],
    num_zeroed=0,
    zeroing_norm=2 * largest + 1,
    num_clipped=2,
    clipping_norm=length,
  )


def test_short_updates_give_the_same_bits_as_without():
  rng = np.random.default_rng(0)
  values = [_value(*rng.normal(scale=0.3, size=3)) for _ in range(5)]
  weights = [np.float32(w) for w in rng.uniform(1, 2, 5)]
  found = _next(_process(), values, weights=weights)
  plain = tff.aggregators.MeanFactory().create(_VALUE, _NUMBER)
  expected = plain.next(plain.initialize(), values, weights)
  assert _floats(found.result).tolist() == _floats(expected.result).tolist()
  assert found.measurements['num_clipped'] == 0


@pytest.mark.parametrize(
  'rule',
  [
    aggregators.SammeAlphaFactory,
    pytest.param(tff.aggregators.MeanFactory, marks=pytest.mark.full),
  ],
)
def test_an_outlier_moves_a_mean_by_less_than_the_clipping_norm(rule):
  process = _process(rule)
  honest = [_value(0.1, 0.2), _value(0.3, 0.1)]
  expected = _floats(_next(process, honest).result)
  # The squares of all but the first are infinite in float32.
  for entry in (20, 1e30, 1e38, -3e38, np.inf):
    output = _next(process, [*honest, _value(entry, entry, 1)])
    moved = np.linalg.norm(_floats(output.result) - expected)
    assert moved <= output.measurements['clipping_norm'], entry
    assert np.isfinite(_floats(output.state)).all(), entry


def test_norms_are_bounded_under_constant_attack():
  process, state = _process(), None
  # Three of four above C multiply it by 5.4: without a bound, the norm would be
  # 1e23 after these rounds, and infinite after 51.
  attack = [_value(3e38, 3e38), _value(3e38, 0), _value(1e30, 1e30)]
  for _ in range(30):
    output = _next(process, [_value(0.3, 0.4), *attack], state=state)
    state = output.state
  assert output.measurements['zeroing_norm'] < 1e20
  assert np.isfinite(_floats((state, output.result))).all()


def test_a_round_without_clients_changes_nothing():
  process = _process(aggregators.SammeAlphaFactory)
  before = process.initialize()
  output = process.next(before, [], [])
  assert _floats(output.state).tolist() == _floats(before).tolist()
  assert not _floats(output.result).any()


@pytest.mark.full
def test_ids_and_batch_norm_statistics_pass_unchanged():
  ids = (2, 0)
  values = [
    ModelWeights([np.float32([3, 4])], [np.float32([50])]),
    ModelWeights([np.float32([0, 0.5])], [np.float32([10])]),
  ]
  weights = [
    collections.OrderedDict(
      client_id=np.int32(i), accepted=_ONE, embedding=np.float32([1, i])
    )
    for i in ids
  ]
  value_type, weight_type = (
    tff.to_type(
      tf.nest.map_structure(lambda t: tff.TensorType(t.dtype, t.shape), first)
    )
    for first in (values[0], weights[0])
  )
  # Without its exponents, the rule is a mean.
  rule = aggregators.GradientReuseFactory(
    3, fairness_exponent=0.0, sharpness=0.0
  )
  process = aggregators.robust_factory(rule).create(value_type, weight_type)
  output = _next(process, values, weights=weights)
  _check(output, [0.3, (0.8 + 0.5) / 2, 30], num_clipped=1, num_zeroed=0)
  assert output.measurements['clients']['client_id'].tolist() == [0, 2]
  tff.test.assert_types_identical(
    process.next.type_signature.result.result.member, value_type
  )


class _Measured(tff.aggregators.WeightedAggregationFactory):
  """The sum of the weights as a measurement, of a name or of none."""

  def __init__(self, name):
    self._name = name

  def create(self, value_type, weight_type):
    rule = tff.aggregators.MeanFactory().create(value_type, weight_type)

    @tff.federated_computation(
      rule.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = rule.next(state, value, weight)
      total = tff.federated_sum(weight)
      if self._name:
        total = tff.federated_zip(collections.OrderedDict({self._name: total}))
      return tff.templates.MeasuredProcessOutput(
        output.state, output.result, total
      )

    return tff.templates.AggregationProcess(rule.initialize, next_fn)


def test_refusals():
  refusals.check(
    aggregators.robust_factory,
    [
      (
        {'rule': tff.aggregators.SumFactory()},
        TypeError,
        'rule must be a tff.aggregators.WeightedAggregationFactory, found'
        ' SumFactory',
      ),
    ],
  )
  refusals.check(
    lambda name: aggregators.robust_factory(_Measured(name)).create(
      _VALUE, _NUMBER
    ),
    [
      ({'name': None}, TypeError, 'named measurements. Found type: TensorType'),
      ({'name': 'num_clipped'}, ValueError, 'clipping_norm, found num_clipped'),
    ],
  )
