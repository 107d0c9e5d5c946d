"""What all factories refuse: arguments, types of values and of weights."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair.aggregators import cosine_shapley
from tff_fair.aggregators import q_fair
from tff_fair.aggregators import reputation

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

_NO_NUMBERS = [np.nan, np.inf, '1', True]
_SHARE = [0, 1], [-1e-6, 1.001, *_NO_NUMBERS]
_COUNT = [1], [0, 1.5, *_NO_NUMBERS]
_POSITIVE = [1e-9], [0, -1e-9, *_NO_NUMBERS]
_NOT_NEGATIVE = [0], [-1e-9, *_NO_NUMBERS]
_CHOICE = [], ['other', None]
_FUNCTION = [], [0.1, 'rate']
_SUM_FACTORY = [None], [_MEAN, 1]
_MEAN_FACTORY = [None], [_SUM, 1]
# Argument, of any factory: values at its bounds, and values just outside.
_BOUNDS = {
  'agg_norm': _CHOICE,
  'altruism': _POSITIVE,
  'batch_losses_fn': _FUNCTION,
  'count_sum_factory': _SUM_FACTORY,
  'deviation': _SHARE,
  'distillation_rate': _SHARE,
  'download_base': _SHARE,
  'fairness_exponent': _NOT_NEGATIVE,
  'fallback': _CHOICE,
  'fraction': ([1e-9, 1], [0, 1.001, *_NO_NUMBERS]),
  'global_embedding': _CHOICE,
  'history_weight': _SHARE,
  'inner_agg_factory': _MEAN_FACTORY,
  'isolation': _CHOICE,
  'learning_rate_fn': _FUNCTION,
  'minimum': ([0], [-1, 0.5, *_NO_NUMBERS]),
  'num_clients': _COUNT,
  'num_clusters': _COUNT,
  'own_share': _CHOICE,
  'punishment_factor': ([1e-9, 700], [0, 701, *_NO_NUMBERS]),
  'q': _NOT_NEGATIVE,
  'scenario': _CHOICE,
  'sharpness': _NOT_NEGATIVE,
  'temperature': _POSITIVE,
  'threshold_absolute': ([0, 1, None], _SHARE[1]),
  'ties': _CHOICE,
  'update_length': _POSITIVE,
  'upload_fraction': ([1e-9, 1], [0, 1.001, *_NO_NUMBERS]),
  'validation_fn': _FUNCTION,
  'value_sum_factory': _SUM_FACTORY,
  'variant': _CHOICE,
  'weight_sum_factory': _SUM_FACTORY,
}
# Switches, and weights whose type `create` checks.
_WITHOUT_BOUNDS = {
  'gradient_reuse',
  'include_positive',
  'initial_weights',
  'normalize_before_mixing',
  'shadows',
}
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
  factory = getattr(aggregators, name)
  for field in dataclasses.fields(factory):
    if field.name in _WITHOUT_BOUNDS:
      continue
    legal, illegal = _BOUNDS[field.name]
    for value in legal:
      factory(**{**arguments, field.name: value})
    for value in illegal:
      with pytest.raises(_WRONG, match=rf'^{field.name} must be .*found'):
        factory(**{**arguments, field.name: value})
  create = factory(**arguments).create
  for odd in _ODD_VALUES:
    with pytest.raises(TypeError, match=f'^{name} requires values .* struct'):
      create(odd, tff.to_type(weight_type))
  if name != 'LargestValuesFactory':  # Takes what its inner factory takes.
    for odd in _ODD_WEIGHTS:
      with pytest.raises(TypeError, match=rf'^{name}\(.* the weight type'):
        create(_PAIR, odd)
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


def test_types_that_depend_on_arguments_and_values():
  def create(name, value_type, weight_type=None, **options):
    arguments, legal = _LEGAL[name]
    factory = getattr(aggregators, name)(**arguments, **options)
    factory.create(value_type, tff.to_type(weight_type or legal))

  triple = tff.TensorType(np.float32, [3])
  message = r'received=float32\[3\],losses=float32\[\?\].* with known sizes'
  with pytest.raises(TypeError, match=message):
    create('ValidatedRewardFactory', triple)
  with pytest.raises(TypeError, match='requires values like its initial_wei'):
    create('ReputationMaskedFactory', triple)
  both = _STRUCT(alpha=np.float32, num_examples=np.float32)
  with pytest.raises(
    TypeError, match=r'SammeAlphaFactory\(\) requires .* float32. F'
  ):
    create('SammeAlphaFactory', _PAIR, both, fallback='keep')
  with pytest.raises(TypeError, match='<alpha=float32,num_examples=float32>. '):
    create('SammeAlphaFactory', _PAIR, fallback='fed_avg')


def test_other_arguments():
  both = aggregators.ModelWeightsFactory
  for bad in ((_SUM, _MEAN), (_MEAN, 1)):
    with pytest.raises(TypeError, match='must be a .*Weighted.*, found'):
      both(*bad)
  for odd in (_FLOAT, tff.to_type([_PAIR, _PAIR]), tff.to_type([])):
    with pytest.raises(TypeError, match='values that are tff.learning'):
      both(_MEAN, _MEAN).create(odd, _FLOAT)
  for bad in (0, 0.5, -1, np.nan, '1e-6', None):
    with pytest.raises(_WRONG, match='error_clip must be .* found'):
      aggregators.samme_alpha(0.1, 10, error_clip=bad)
  with pytest.raises(ValueError, match="ties must be one of .* 'random'"):
    aggregators.keep_largest(np.ones(2, np.float32), 1, ties='random')
  with pytest.raises(TypeError, match='ranked by float32, found float64'):
    aggregators.keep_largest(np.ones(2), 1)
