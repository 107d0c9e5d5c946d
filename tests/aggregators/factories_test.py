"""All factories: what they refuse, and one bad upload among three.

NaN, infinity, 3e38   absent and counted, in the value or in the weight
1e30, zeros           aggregated, and finite
wrong id, id twice    refused with one sentence, if weights hold ids
"""

import collections
from collections.abc import Callable
import dataclasses
import functools
import math
import typing
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair import annotations

pytestmark = pytest.mark.usefixtures('default_runtime')

_NUM_CLIENTS = 4
_GOOD = {0: np.float32([1, -2]), 2: np.float32([0.5, 3])}
_BAD = 1  # Between the good ones.
_NOT_SUMMABLE = np.float32([np.nan, np.inf, -3e38])
_STRUCT = collections.OrderedDict


@dataclasses.dataclass(frozen=True, eq=False)
class _Row:
  """A factory, and what its clients send.

  Attributes:
    factory: The factory.
    weight: `(client_id, value) -> weight`.
    value: Makes a value of two entries.
    rejected: What a client with bad numbers counts as: an upload, or None for
      nothing.
    counts_1e30: Whether 1e30 is too large for the rule.
  """

  factory: tff.aggregators.WeightedAggregationFactory
  weight: Callable[[int, Any], Any] = lambda client_id, value: np.float32(2)
  value: Callable[[Any], Any] = lambda vector: vector
  rejected: Callable[[], tuple[Any, Any]] | None = None
  counts_1e30: bool = False

  @property
  def has_ids(self):
    _, weight = self.upload(0, _GOOD[0])
    return isinstance(weight, dict) and 'client_id' in weight

  @functools.cached_property
  def process(self):
    return rounds.create(self.factory, *self.upload(0, _GOOD[0]))

  def upload(self, client_id, vector):
    value = self.value(vector)
    return value, self.weight(client_id, value)

  def run(self, *bad, state=None):
    """A round of the good clients, with the bad uploads between them."""
    first, last = (self.upload(i, vector) for i, vector in _GOOD.items())
    uploads = zip(first, *bad, last, strict=True)
    return rounds.run(self.process, *uploads, state)


def _with_id(**parts):
  def weight(client_id, value):
    return rounds.weight(
      client_id,
      **{
        name: part(value) if callable(part) else part
        for name, part in parts.items()
      },
    )

  return weight


def _score(weights):
  return tf.sigmoid(tf.reduce_sum(weights))


_IN_VALIDATION = _with_id(amount=np.int32(5), accepted=1)
_ROWS = {
  'SammeAlphaFactory': _Row(aggregators.SammeAlphaFactory()),
  'SammeAlphaFactory, fed_avg': _Row(
    aggregators.SammeAlphaFactory(fallback='fed_avg'),
    lambda *_: _STRUCT(alpha=np.float32(-1), num_examples=np.float32(2)),
  ),
  'QFairFactory': _Row(
    aggregators.QFairFactory(0.5),
    lambda *_: _STRUCT(loss=np.float32(2), learning_rate=np.float32(0.1)),
    counts_1e30=True,  # Its weight is quadratic in the length.
  ),
  'TiltedMeanFactory': _Row(
    aggregators.TiltedMeanFactory(0.5),
    lambda *_: _STRUCT(loss=np.float32(2), num_examples=np.float32(5)),
  ),
  'LossSpreadFactory': _Row(
    aggregators.LossSpreadFactory(0.5),
    lambda client_id, _: _STRUCT(
      group=np.int32(client_id), loss=np.float32(2), num_examples=np.float32(5)
    ),
  ),
  'GroupGapFactory': _Row(
    aggregators.GroupGapFactory(_NUM_CLIENTS),
    lambda client_id, _: _STRUCT(
      client_id=np.int32(client_id),
      num_examples=np.float32(5),
      num_correct=np.float32(3),
      members=np.float32([2, 1 + client_id]),
      selected=np.float32([1, 1]),
    ),
  ),
  'LargestValuesFactory': _Row(aggregators.LargestValuesFactory(0.5)),
  'ModelWeightsFactory': _Row(
    aggregators.ModelWeightsFactory(
      aggregators.SammeAlphaFactory(), aggregators.SammeAlphaFactory()
    ),
    value=lambda v: rounds.ModelWeights([v], [2 * v]),
  ),
  'EntrywiseMeanFactory': _Row(
    aggregators.EntrywiseMeanFactory(), lambda _, value: np.ones_like(value)
  ),
  'MeanDriftFactory': _Row(aggregators.MeanDriftFactory(_NUM_CLIENTS)),
  'MinNormFactory': _Row(aggregators.MinNormFactory()),
  'GradientReuseFactory': _Row(
    aggregators.GradientReuseFactory(_NUM_CLIENTS),
    _with_id(accepted=1, embedding=[1, 2]),
  ),
  'FairAveragingFactory': _Row(
    aggregators.FairAveragingFactory(_NUM_CLIENTS),
    _with_id(accepted=1, loss=2),
  ),
  'ReputationMaskedFactory': _Row(
    aggregators.ReputationMaskedFactory(
      np.zeros(2, np.float32), _score, num_clients=_NUM_CLIENTS
    ),
    _IN_VALIDATION,
    # Its amount counts, as in a round in which its model is worthless.
    rejected=lambda: (
      np.zeros(2, np.float32),
      _with_id(amount=np.int32(5), accepted=0)(_BAD, None),
    ),
  ),
  'CosineShapleyFactory': _Row(
    aggregators.CosineShapleyFactory(_NUM_CLIENTS), _with_id(num_examples=5)
  ),
  'ValidatedRewardFactory': _Row(
    aggregators.ValidatedRewardFactory(
      _score, lambda weights: 1 + tf.sigmoid(weights), num_clients=_NUM_CLIENTS
    ),
    _with_id(
      num_examples=5,
      received=np.zeros_like,
      losses=[1, 2],
      num_losses=np.int32(2),
    ),
  ),
  'ClusteredMeanFactory': _Row(
    aggregators.ClusteredMeanFactory(_NUM_CLIENTS, num_clusters=2),
    _with_id(num_examples=5, change=lambda value: value + 0),
  ),
}
_WITH_IDS = [name for name, row in _ROWS.items() if row.has_ids]


def test_every_factory_is_in_the_table():
  exported = {name for name in aggregators.__all__ if name.endswith('Factory')}
  assert {name.partition(',')[0] for name in _ROWS} == exported
  assert len(_WITH_IDS) == 7


@pytest.mark.parametrize('name', _ROWS)
def test_a_bad_upload(name):
  row = _ROWS[name]
  rejected = row.run(*([row.rejected()] if row.rejected else []))
  for number in _NOT_SUMMABLE:
    for upload in _uploads_with(row, number):
      output = row.run(upload)
      for found, expected in zip(
        *map(tf.nest.flatten, (output.result, rejected.result)), strict=True
      ):
        np.testing.assert_array_equal(found, expected, str(upload))
      assert output.measurements['num_non_finite'] == 1, upload
      _assert_finite_now_and_later(row, output, upload)
  for number, counted in ((1e30, row.counts_1e30), (0, False)):
    upload = row.upload(_BAD, np.full(2, number, np.float32))
    output = row.run(upload)
    assert output.measurements['num_non_finite'] == counted, upload
    _assert_finite_now_and_later(row, output, upload)


@pytest.mark.parametrize('name', _ROWS)
def test_a_round_without_clients_moves_nothing(name):
  row = _ROWS[name]
  before = row.run().state
  output = rounds.run(row.process, [], [], before)
  assert not any(np.any(t) for t in tf.nest.flatten(output.result))
  for tensor in tf.nest.flatten(output.state):
    assert np.isfinite(tensor).all()
  if isinstance(before, dict):
    for kept in {'drift', 'updates', 'reputable', 'shadow'} & set(before):
      np.testing.assert_array_equal(output.state[kept], before[kept])
    if 'reputation' in before:
      np.testing.assert_allclose(
        output.state['reputation'], before['reputation']
      )


@pytest.mark.parametrize('name', _WITH_IDS)
def test_a_bad_id(name):
  row = _ROWS[name]
  for client_id, message in (
    (-1, r'Client ids must lie in 0\.\.3, found'),
    (_NUM_CLIENTS, r'Client ids must lie in 0\.\.3, found'),
    (2, 'A client must take part once a round, found the ids'),
  ):
    with pytest.raises(RuntimeError, match=message):
      row.run(row.upload(client_id, np.ones(2, np.float32)))


def _uploads_with(row, number):
  """Uploads with the number in the value, or in one float of the weight."""
  yield row.upload(_BAD, np.float32([1, number]))
  value, weight = row.upload(_BAD, np.ones(2, np.float32))
  leaves = tf.nest.flatten(weight)
  for place, leaf in enumerate(leaves):
    if leaf.dtype == np.float32:
      bad = np.array(leaf)
      bad.flat[0] = number
      changed = [*leaves[:place], bad, *leaves[place + 1 :]]
      yield value, tf.nest.pack_sequence_as(weight, changed)


def _assert_finite_now_and_later(row, output, upload):
  later = row.run(state=output.state)
  for tensor in tf.nest.flatten(
    (output.result, output.state, later.result, later.state)
  ):
    assert np.isfinite(tensor).all(), upload


_LIMITS = {
  'at least 0 and at most 1': 'deviation distillation_rate download_base'
  ' history_weight keep_share share threshold_absolute',
  'above 0 and at most 1': 'fraction upload_fraction',
  'above 0 and at most 700': 'punishment_factor',
  'above 0': 'altruism temperature update_length',
  'at least 0': 'fairness_exponent memory_rounds minimum q rate sharpness tilt',
  'at least 1': 'num_clients num_clusters',
}


def _around(annotation):
  """Values at the limits of an argument, and values just outside."""
  limits, kind = annotation.limits, annotation.kind
  if kind not in (int, float):  # Nor is it a function or a factory.
    return annotation.choices, ['other']
  step = (lambda x, to: x + np.sign(to)) if kind is int else math.nextafter
  tiny = 2.0**-126  # The smallest normal number of float32.
  above = None if limits.above is None else tiny
  at = [limits.minimum, above, limits.maximum]
  outside = [
    None if limits.minimum is None else step(limits.minimum, -math.inf),
    limits.above,
    None if limits.maximum is None else step(limits.maximum, math.inf),
  ]
  given = [[x for x in values if x is not None] for values in (at, outside)]
  return given[0], [*given[1], np.nan, np.inf, '1', True]


@pytest.mark.parametrize('name', _ROWS)
def test_arguments_just_outside_their_range(name):
  factory = _ROWS[name].factory
  hints = typing.get_type_hints(type(factory), include_extras=True)
  for field in dataclasses.fields(factory):
    annotation = annotations.read(hints[field.name])
    if hints[field.name] is Any:  # Weights, whose type `create` checks.
      continue
    if annotation.kind in (int, float):
      assert field.name in _LIMITS[str(annotation.limits)].split()
    legal, illegal = _around(annotation)
    for value in [*legal, *[None] * annotation.optional]:
      dataclasses.replace(factory, **{field.name: value})
    for value in illegal:
      with pytest.raises(
        (TypeError, ValueError), match=rf'^{field.name} must be .*found'
      ):
        dataclasses.replace(factory, **{field.name: value})


_FLOAT = tff.TensorType(np.float32)
_PAIR = tff.TensorType(np.float32, [2])
_ODD_VALUES = [
  tff.TensorType(np.int32, [2]),
  tff.TensorType(np.str_),
  tff.to_type([]),
  tff.to_type([np.float32, np.int32]),
  tff.TensorType(np.float32, [None]),
  tff.TensorType(np.float32, None),
  tff.TensorType(np.float32, [0]),
  tff.SequenceType(np.float32),
  tff.FederatedType(np.float32, tff.CLIENTS),
]
_ODD_WEIGHTS = [
  tff.TensorType(np.float64),
  tff.TensorType(np.float32, [3]),
  tff.TensorType(np.float32, [None]),
  tff.to_type([]),
  tff.to_type([np.int32, _PAIR]),
  tff.to_type(_STRUCT(client_id=np.int32)),
]


@pytest.mark.parametrize('name', _ROWS)
def test_types(name):
  row, class_name = _ROWS[name], name.partition(',')[0]
  value_type, weight_type = map(rounds.type_of, row.upload(0, _GOOD[0]))
  found = row.process.next.type_signature.result.result.member
  tff.test.assert_types_identical(found, value_type)
  for odd in _ODD_VALUES:
    with pytest.raises(TypeError, match=f'^{class_name} requires values '):
      row.factory.create(odd, weight_type)
  # Two take what their inner factories take.
  if class_name not in ('LargestValuesFactory', 'ModelWeightsFactory'):
    for odd in _ODD_WEIGHTS:
      with pytest.raises(TypeError, match=rf'^{class_name}\(.* the weight ty'):
        row.factory.create(value_type, odd)


def test_types_that_depend_on_arguments_and_values():
  triple = tff.TensorType(np.float32, [3])
  for name, message in (
    ('ValidatedRewardFactory', r'received=float32\[3\],.* with known sizes'),
    ('ReputationMaskedFactory', 'requires values like its initial_weights'),
  ):
    row = _ROWS[name]
    _, weight = row.upload(0, _GOOD[0])
    with pytest.raises(TypeError, match=message):
      row.factory.create(triple, rounds.type_of(weight))
  for name, weight, message in (
    ('SammeAlphaFactory', _STRUCT(alpha=np.float32), r'\(\) requires .* float'),
    ('SammeAlphaFactory, fed_avg', np.float32, '<alpha=float32,num_examples='),
  ):
    with pytest.raises(TypeError, match=message):
      _ROWS[name].factory.create(_PAIR, tff.to_type(weight))


def test_factories_that_are_not_weighted_and_other_arguments():
  sums, means = tff.aggregators.SumFactory(), tff.aggregators.MeanFactory()
  for factory, arguments in (
    (aggregators.ModelWeightsFactory, (sums, means)),
    (aggregators.SammeAlphaFactory, (sums,)),
    (aggregators.EntrywiseMeanFactory, (means,)),
  ):
    with pytest.raises(TypeError, match='must be a .*eighted.*, found'):
      factory(*arguments)
  for bad in (0, 0.5, np.nan, '1e-6', None):
    with pytest.raises(
      (TypeError, ValueError), match='error_clip must be .* f'
    ):
      aggregators.samme_alpha(0.1, 10, error_clip=bad)
  with pytest.raises(ValueError, match="ties must be one of .* 'random'"):
    aggregators.keep_largest(np.ones(2, np.float32), 1, ties='random')
  with pytest.raises(TypeError, match='ranked by float32, found float64'):
    aggregators.keep_largest(np.ones(2), 1)
