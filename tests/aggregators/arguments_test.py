"""What all factories refuse: arguments, types of values and of weights."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import aggregators
from tff_fair.aggregators import cosine_shapley
from tff_fair.aggregators import q_fair
from tff_fair.aggregators import reputation
from tff_fair.aggregators import type_checks

_FLOAT = tff.TensorType(np.float32)
_PAIR = tff.TensorType(np.float32, [2])
_SUM = tff.aggregators.SumFactory()
_MEAN = tff.aggregators.MeanFactory()
_VECTOR = np.zeros(2, np.float32)
_STRUCT = collections.OrderedDict

# For each factory: legal arguments, and a legal weight type for `_PAIR`.
_LEGAL = {
  'ClusteredMeanFactory': (
    {'num_clients': 3},
    _STRUCT(client_id=np.int32, num_examples=np.float32, change=_PAIR),
  ),
  'CosineShapleyFactory': ({'num_clients': 3}, cosine_shapley.WEIGHT_TYPE),
  'EntrywiseMeanFactory': ({}, _PAIR),
  'GradientReuseFactory': (
    {'num_clients': 3},
    _STRUCT(
      client_id=np.int32,
      accepted=np.float32,
      embedding=tff.TensorType(np.float32, [5]),
    ),
  ),
  'LargestValuesFactory': ({'fraction': 0.5}, _FLOAT),
  'MeanDriftFactory': ({'num_clients': 3}, _FLOAT),
  'MinNormFactory': ({}, _FLOAT),
  'QFairFactory': ({'q': 1.0}, q_fair.WEIGHT_TYPE),
  'ReputationMaskedFactory': (
    {
      'num_clients': 3,
      'initial_weights': _VECTOR,
      'validation_fn': tf.reduce_sum,
    },
    reputation.WEIGHT_TYPE,
  ),
  'SammeAlphaFactory': ({}, _FLOAT),
  'ValidatedRewardFactory': (
    {
      'num_clients': 3,
      'validation_fn': tf.reduce_sum,
      'batch_losses_fn': tf.abs,
    },
    _STRUCT(
      client_id=np.int32,
      num_examples=np.float32,
      received=_PAIR,
      losses=tff.TensorType(np.float32, [4]),
      num_losses=np.int32,
    ),
  ),
}

_SUMS = _STRUCT(value_sum_process=(), weight_sum_process=())
_MEANS = _STRUCT(mean_value=(), mean_weight=())
# The types of a factory's state and of its measurements.
_RETURNED = {
  'EntrywiseMeanFactory': (
    _SUMS,
    _STRUCT(mean_value=(), mean_weight=(), num_non_finite=np.int32),
  ),
  'LargestValuesFactory': (
    _SUMS,
    _STRUCT(num_non_finite=np.int32, inner_agg=_MEANS),
  ),
  'MeanDriftFactory': (
    _STRUCT(drift=_PAIR, value_sum_process=(), count_sum_process=()),
    _STRUCT(mean_value=(), mean_count=(), num_non_finite=np.int32),
  ),
  'MinNormFactory': (
    np.int32,
    _STRUCT(
      num_aggregated=np.int32,
      num_non_finite=np.int32,
      norm=np.float64,
      largest_weight=np.float64,
      smallest_weight=np.float64,
      descent_violation=np.float64,
    ),
  ),
  'QFairFactory': (
    _SUMS,
    _STRUCT(
      num_aggregated=np.int32,
      num_non_finite=np.int32,
      weight_sum=np.float32,
      mean=_MEANS,
    ),
  ),
  'SammeAlphaFactory': (
    _SUMS,
    _STRUCT(
      num_aggregated=np.int32,
      num_excluded=np.int32,
      num_non_finite=np.int32,
      alpha_sum=np.float32,
      fallback=np.int32,
      mean=_MEANS,
    ),
  ),
}

_NO_COUNT = [0, -1, 1.5, np.nan, '1', None, True]
_NOT_POSITIVE = [0, -1.0, np.nan, np.inf, '1', None, True]
_NEGATIVE = _NOT_POSITIVE[1:]
_NO_FRACTION = [0, -0.1, 1.1, np.nan, '1', None, True]
_NO_SHARE = _NO_FRACTION[1:]
# Factory, argument, and values that it must refuse.
_BAD = [
  ('ClusteredMeanFactory', 'num_clients', _NO_COUNT),
  ('ClusteredMeanFactory', 'num_clusters', _NO_COUNT),
  ('CosineShapleyFactory', 'num_clients', _NO_COUNT),
  ('CosineShapleyFactory', 'update_length', _NOT_POSITIVE),
  ('CosineShapleyFactory', 'history_weight', _NO_SHARE),
  ('CosineShapleyFactory', 'altruism', _NOT_POSITIVE),
  ('CosineShapleyFactory', 'variant', ['fed_akd', None]),
  ('EntrywiseMeanFactory', 'value_sum_factory', [_MEAN, 1]),
  ('EntrywiseMeanFactory', 'weight_sum_factory', [_MEAN, 1]),
  ('GradientReuseFactory', 'num_clients', _NO_COUNT),
  ('GradientReuseFactory', 'fairness_exponent', _NEGATIVE),
  ('GradientReuseFactory', 'sharpness', _NEGATIVE),
  ('GradientReuseFactory', 'distillation_rate', _NO_SHARE),
  ('GradientReuseFactory', 'temperature', _NOT_POSITIVE),
  ('GradientReuseFactory', 'global_embedding', ['median', None]),
  ('GradientReuseFactory', 'learning_rate_fn', [0.1]),
  ('LargestValuesFactory', 'fraction', _NO_FRACTION),
  ('LargestValuesFactory', 'minimum', [-1, 0.5, '1', None, True]),
  ('LargestValuesFactory', 'ties', ['random', None]),
  ('LargestValuesFactory', 'inner_agg_factory', [_SUM, 1]),
  ('MeanDriftFactory', 'num_clients', _NO_COUNT),
  ('MeanDriftFactory', 'value_sum_factory', [_MEAN, 1]),
  ('MeanDriftFactory', 'count_sum_factory', [_MEAN, 1]),
  ('MinNormFactory', 'deviation', _NO_SHARE),
  ('MinNormFactory', 'learning_rate_fn', [0.1, 'rate']),
  ('QFairFactory', 'q', _NEGATIVE),
  ('QFairFactory', 'inner_agg_factory', [_SUM, 1]),
  ('ReputationMaskedFactory', 'validation_fn', [None, 0.5]),
  ('ReputationMaskedFactory', 'num_clients', _NO_COUNT),
  ('ReputationMaskedFactory', 'punishment_factor', [701, *_NOT_POSITIVE]),
  ('ReputationMaskedFactory', 'history_weight', _NO_SHARE),
  ('ReputationMaskedFactory', 'threshold_absolute', [-0.1, 1.1, np.nan, '1']),
  ('ReputationMaskedFactory', 'scenario', ['both', None]),
  ('ReputationMaskedFactory', 'agg_norm', ['mean']),
  ('ReputationMaskedFactory', 'own_share', ['none']),
  ('ReputationMaskedFactory', 'isolation', ['never']),
  ('ReputationMaskedFactory', 'ties', ['preclip']),
  ('SammeAlphaFactory', 'fallback', ['drop', None]),
  ('SammeAlphaFactory', 'inner_agg_factory', [_SUM, 1]),
  ('ValidatedRewardFactory', 'validation_fn', [None, 0.5]),
  ('ValidatedRewardFactory', 'batch_losses_fn', [None, []]),
  ('ValidatedRewardFactory', 'num_clients', _NO_COUNT),
  ('ValidatedRewardFactory', 'update_length', _NOT_POSITIVE),
  ('ValidatedRewardFactory', 'history_weight', _NO_SHARE),
  ('ValidatedRewardFactory', 'altruism', _NOT_POSITIVE),
  ('ValidatedRewardFactory', 'upload_fraction', _NO_FRACTION),
  ('ValidatedRewardFactory', 'download_base', _NO_SHARE),
  ('ValidatedRewardFactory', 'variant', ['mine', None]),
]
_ODD_VALUES = [
  tff.TensorType(np.int32, [2]),
  tff.TensorType(np.bool_),
  tff.TensorType(np.str_),
  tff.to_type([]),
  tff.to_type([np.float32, np.int32]),
  tff.TensorType(np.float32, [None]),
  tff.TensorType(np.float32, None),
  tff.TensorType(np.float32, [0]),
  tff.SequenceType(np.float32),
  tff.FunctionType(None, np.float32),
  tff.FederatedType(np.float32, tff.CLIENTS),
]
_ODD_WEIGHTS = [
  tff.TensorType(np.float64),
  tff.TensorType(np.int32),
  tff.TensorType(np.float32, [3]),
  tff.TensorType(np.float32, [None]),
  tff.to_type([]),
  tff.to_type([np.int32, _PAIR]),
  tff.to_type(_STRUCT(client_id=np.int32)),
]
_WRONG = (TypeError, ValueError)


@pytest.mark.parametrize('name', _LEGAL)
def test_arguments_and_types(name):
  arguments, weight_type = _LEGAL[name]
  make = functools.partial(getattr(aggregators, name), **arguments)
  for factory, argument, values in _BAD:
    if factory == name:
      message = rf'^{argument} must be .*found'
      refusals.check(make, [({argument: v}, _WRONG, message) for v in values])
  create = make().create
  message = f'^{name} requires values that are struct.* Found type: '
  for odd in _ODD_VALUES:
    row = ({'value_type': odd}, TypeError, message)
    refusals.check(create, [row], weight_type=tff.to_type(weight_type))
  if name != 'LargestValuesFactory':  # Takes what its inner factory takes.
    message = f'^{name}.* requires the weight type .*Found type: '
    rows = [({'weight_type': odd}, TypeError, message) for odd in _ODD_WEIGHTS]
    refusals.check(create, rows, value_type=_PAIR)
  if name in _RETURNED:
    state, measurements = _RETURNED[name]
    process = create(_PAIR, tff.to_type(weight_type))
    assert process.is_weighted
    output = process.next.type_signature.result
    for found, expected in (
      (process.initialize.type_signature.result, state),
      (output.state, state),
      (output.result, _PAIR),
      (output.measurements, measurements),
    ):
      tff.test.assert_types_identical(
        found, tff.FederatedType(expected, tff.SERVER)
      )


def test_every_factory_is_here():
  factories = {n for n in aggregators.__all__ if n.endswith('Factory')}
  assert factories - set(_LEGAL) == {'ModelWeightsFactory'}
  assert {name for name, *_ in _BAD} == set(_LEGAL)


def test_messages_name_the_requirement():
  check = type_checks.check_weight_type
  required = _STRUCT(
    client_id=np.int32, losses=tff.TensorType(np.float32, [None])
  )
  check('X', required, tff.to_type(_STRUCT(client_id=np.int32, losses=_PAIR)))
  refusals.check(
    lambda found: check('X', required, tff.to_type(found)),
    [
      (
        {'found': np.float32},
        TypeError,
        r'^X requires the weight type <client_id=int32,losses=float32\[\?\]>'
        r' with known sizes. Found type: TensorType\(np.float32\)\.$',
      ),
      ({'found': required}, TypeError, 'with known sizes'),
      # Assignable to the required type, but without its names.
      ({'found': [np.int32, _PAIR]}, TypeError, 'with known sizes'),
    ],
  )
  for check_factory, factory, message in (
    (
      type_checks.check_weighted,
      _SUM,
      r'^x must be a tff.aggregators.WeightedAggregationFactory, found'
      r' SumFactory \(wrap an unweighted factory with',
    ),
    (
      type_checks.check_unweighted,
      _MEAN,
      r'^x must be a .*\.UnweightedAggregationFactory, found MeanFactory\.$',
    ),
  ):
    with pytest.raises(TypeError, match=message):
      check_factory(name='x', factory=factory)


def test_types_that_depend_on_arguments_and_values():
  def create(name, value_type, weight_type=None, **options):
    arguments, legal = _LEGAL[name]
    factory = getattr(aggregators, name)(**arguments, **options)
    factory.create(value_type, tff.to_type(weight_type or legal))

  triple = tff.TensorType(np.float32, [3])
  with pytest.raises(TypeError, match=r'received=float32\[3\]'):
    create('ValidatedRewardFactory', triple)
  with pytest.raises(TypeError, match='requires values like its initial_wei'):
    create('ReputationMaskedFactory', triple)
  both = _STRUCT(alpha=np.float32, num_examples=np.float32)
  with pytest.raises(TypeError, match="fallback='keep' requires .* float32. F"):
    create('SammeAlphaFactory', _PAIR, both, fallback='keep')
  with pytest.raises(TypeError, match='<alpha=float32,num_examples=float32>. '):
    create('SammeAlphaFactory', _PAIR, fallback='fed_avg')


def test_model_weights_and_error_clip():
  parts = aggregators.ModelWeightsFactory
  refusals.check(
    parts,
    [
      ({'trainable': _SUM}, TypeError, 'must be a .*Weighted.*found SumFact'),
      ({'non_trainable': 1}, TypeError, 'must be a .*Weighted.*found int'),
    ],
    **{'trainable': _MEAN, 'non_trainable': _MEAN},
  )
  for odd in (_FLOAT, tff.to_type([_PAIR, _PAIR]), tff.to_type([])):
    with pytest.raises(
      TypeError, match='requires values that are tff.learning'
    ):
      parts(_MEAN, _MEAN).create(odd, _FLOAT)
  for bad in (0, 0.5, -1, np.nan, '1e-6', None):
    with pytest.raises(_WRONG, match='error_clip must be .* found'):
      aggregators.samme_alpha(0.1, 10, error_clip=bad)
  with pytest.raises(ValueError, match="ties must be one of .* 'random'"):
    aggregators.keep_largest(np.ones(2, np.float32), 1, ties='random')
  with pytest.raises(TypeError, match='ranked by float32, found float64'):
    aggregators.keep_largest(np.ones(2), 1)
