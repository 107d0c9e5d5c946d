"""Every factory, used alone, with one bad upload among three.

NaN, infinity, 3e38   absent and counted, in the value or in the weight
1e30, zeros           aggregated, and finite
wrong id, id twice    refused with one sentence, if weights hold ids
"""

import collections
from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators

pytestmark = pytest.mark.usefixtures('default_runtime')

_NUM_CLIENTS = 4
_GOOD = {0: np.float32([1, -2]), 2: np.float32([0.5, 3])}
_BAD = 1  # Between the good ones.
_TOO_LARGE = np.float32(3e38)
_NOT_SUMMABLE = np.float32([np.nan, np.inf, -_TOO_LARGE])


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
    has_ids: Whether the weight has a `client_id`.
  """

  factory: tff.aggregators.WeightedAggregationFactory
  weight: Callable[[int, Any], Any] = lambda client_id, value: np.float32(2)
  value: Callable[[Any], Any] = lambda vector: vector
  rejected: Callable[[], tuple[Any, Any]] | None = None
  counts_1e30: bool = False

  @property
  def has_ids(self):
    return isinstance(self.weight(0, _GOOD[0]), dict) and (
      'client_id' in self.weight(0, _GOOD[0])
    )

  @functools.cached_property
  def process(self):
    value, weight = self.upload(0, _GOOD[0])
    return self.factory.create(_type_of(value), _type_of(weight))

  def upload(self, client_id, vector):
    value = self.value(vector)
    return value, self.weight(client_id, value)

  def run(self, *bad, state=None):
    """A round of the good clients, with the bad uploads between them."""
    first, last = (self.upload(i, vector) for i, vector in _GOOD.items())
    values, weights = zip(first, *bad, last, strict=True)
    state = self.process.initialize() if state is None else state
    return self.process.next(state, [*values], [*weights])


def _with_id(**parts):
  def weight(client_id, value):
    numbers = {
      name: part(value) if callable(part) else part
      for name, part in parts.items()
    }
    return collections.OrderedDict(client_id=np.int32(client_id), **numbers)

  return weight


def _type_of(structure):
  return tff.to_type(
    tf.nest.map_structure(lambda t: tff.TensorType(t.dtype, t.shape), structure)
  )


def _score(weights):
  return tf.sigmoid(tf.reduce_sum(weights))


_IN_VALIDATION = _with_id(amount=np.int32(5), accepted=np.float32(1))
_ROWS = {
  'SammeAlphaFactory': _Row(aggregators.SammeAlphaFactory()),
  'SammeAlphaFactory, fed_avg': _Row(
    aggregators.SammeAlphaFactory(fallback='fed_avg'),
    lambda *_: collections.OrderedDict(
      alpha=np.float32(-1), num_examples=np.float32(2)
    ),
  ),
  'QFairFactory': _Row(
    aggregators.QFairFactory(0.5),
    lambda *_: collections.OrderedDict(
      loss=np.float32(2), learning_rate=np.float32(0.1)
    ),
    counts_1e30=True,  # Its weight is quadratic in the length.
  ),
  'LargestValuesFactory': _Row(aggregators.LargestValuesFactory(0.5)),
  'ModelWeightsFactory': _Row(
    aggregators.ModelWeightsFactory(
      aggregators.SammeAlphaFactory(), aggregators.SammeAlphaFactory()
    ),
    value=lambda v: tff.learning.models.ModelWeights([v], [2 * v]),
  ),
  'EntrywiseMeanFactory': _Row(
    aggregators.EntrywiseMeanFactory(), lambda _, value: np.ones_like(value)
  ),
  'MeanDriftFactory': _Row(aggregators.MeanDriftFactory(_NUM_CLIENTS)),
  'MinNormFactory': _Row(aggregators.MinNormFactory()),
  'GradientReuseFactory': _Row(
    aggregators.GradientReuseFactory(_NUM_CLIENTS),
    _with_id(accepted=np.float32(1), embedding=np.float32([1, 2])),
  ),
  'ReputationMaskedFactory': _Row(
    aggregators.ReputationMaskedFactory(
      np.zeros(2, np.float32), _score, num_clients=_NUM_CLIENTS
    ),
    _IN_VALIDATION,
    # Its amount counts, as in a round in which its model is worthless.
    rejected=lambda: (
      np.zeros(2, np.float32),
      _with_id(amount=np.int32(5), accepted=np.float32(0))(_BAD, None),
    ),
  ),
  'CosineShapleyFactory': _Row(
    aggregators.CosineShapleyFactory(_NUM_CLIENTS),
    _with_id(num_examples=np.float32(5)),
  ),
  'CosineShapleyFactory, fedakd': _Row(
    aggregators.CosineShapleyFactory(_NUM_CLIENTS, variant='fedakd'),
    _with_id(num_examples=np.float32(5)),
  ),
  'ValidatedRewardFactory': _Row(
    aggregators.ValidatedRewardFactory(
      _score, lambda weights: 1 + tf.sigmoid(weights), num_clients=_NUM_CLIENTS
    ),
    _with_id(
      num_examples=np.float32(5),
      received=np.zeros_like,
      losses=np.float32([1, 2]),
      num_losses=np.int32(2),
    ),
  ),
  'ClusteredMeanFactory': _Row(
    aggregators.ClusteredMeanFactory(_NUM_CLIENTS, num_clusters=2),
    _with_id(num_examples=np.float32(5), change=lambda value: value + 0),
  ),
}
# Their weights have no ids.
_WITHOUT_IDS = (
  'SammeAlphaFactory',
  'SammeAlphaFactory, fed_avg',
  'QFairFactory',
  'LargestValuesFactory',
  'ModelWeightsFactory',
  'EntrywiseMeanFactory',
  'MeanDriftFactory',
  'MinNormFactory',
)


def test_every_factory_is_in_the_table():
  exported = {name for name in aggregators.__all__ if name.endswith('Factory')}
  assert {name.partition(',')[0] for name in _ROWS} == exported
  assert [n for n, row in _ROWS.items() if not row.has_ids] == [*_WITHOUT_IDS]


@pytest.mark.parametrize('name', _ROWS)
def test_a_bad_upload(name):
  row = _ROWS[name]
  rejected = row.run(*([row.rejected()] if row.rejected else []))
  for number in _NOT_SUMMABLE:
    for upload in _uploads_with(row, number):
      output = row.run(upload)
      _assert_equal(output.result, rejected.result, upload)
      assert output.measurements['num_non_finite'] == 1, upload
      _assert_finite_now_and_later(row, output, upload)
  for number, counted in ((1e30, row.counts_1e30), (0, False)):
    upload = row.upload(_BAD, np.full(2, number, np.float32))
    output = row.run(upload)
    assert output.measurements['num_non_finite'] == counted, upload
    _assert_finite_now_and_later(row, output, upload)


@pytest.mark.parametrize('name', [n for n in _ROWS if n not in _WITHOUT_IDS])
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


def _assert_equal(found, expected, upload):
  for a, b in zip(
    tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
  ):
    np.testing.assert_array_equal(a, b, str(upload))


def _assert_finite_now_and_later(row, output, upload):
  later = row.run(state=output.state)
  for tensor in tf.nest.flatten(
    (output.result, output.state, later.result, later.state)
  ):
    assert np.isfinite(tensor).all(), upload
