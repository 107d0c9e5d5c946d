"""The aggregation factories: cohorts of any size, values and weights."""

import collections
import functools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tff_fair import aggregators
from tff_fair.aggregators import cosine_shapley
from tff_fair.aggregators import q_fair
from tff_fair.aggregators import reputation

pytestmark = pytest.mark.full

ModelWeights = tff.learning.models.ModelWeights

_N = 5
_D = 2
_PAIR = tff.TensorType(np.float32, [_D])
_FLOAT = tff.TensorType(np.float32)

_LARGE = np.float32([1e-30, 1e12, -1e12, 1e30]).tolist()
_FINITE = st.one_of(strategies.MODERATE, st.sampled_from(_LARGE))
_VALUES = st.one_of(_FINITE, strategies.NOT_FINITE)
_WEIGHTS = st.one_of(
  st.floats(0.125, 8, width=32),
  st.sampled_from(np.float32([0, -1, 1e-30, 1e30]).tolist()),
  strategies.NOT_FINITE,
)
_COUNTS = st.integers(0, 9).map(np.float32)


@pytest.fixture(autouse=True)
def _runtime(default_runtime):
  del default_runtime  # All tests use it.


@st.composite
def _cohorts(draw, values=_VALUES, **weights):
  """Up to five clients: their ids, a row of values each, and vectors."""
  ids = draw(st.lists(st.integers(0, _N - 1), unique=True, max_size=_N))
  rows = draw(strategies.arrays([len(ids), _D], values))
  others = {
    name: draw(strategies.arrays([len(ids)], elements))
    for name, elements in weights.items()
  }
  return np.array(ids, np.int32), rows, others


def _finite(*parts):
  """Which clients send finite numbers only."""
  return np.isfinite(np.column_stack(parts)).all(axis=1)


def _doubles(values):
  return np.asarray(values, np.float64)


def _mean(rows, weights):
  """In float64, 0 over nobody."""
  rows, weights = _doubles(rows), _doubles(weights)
  return weights @ rows / weights.sum() if weights.any() else np.zeros(_D)


def _close(found, expected, scale=1.0):
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * scale)


def _size(rows):
  return max(1.0, np.max(np.abs(_doubles(rows)), initial=0))


def _structs(ids, others):
  return [
    collections.OrderedDict(
      client_id=client_id,
      **{name: values[i] for name, values in others.items()},
    )
    for i, client_id in enumerate(ids)
  ]


@functools.cache
def _process(name, *arguments, **options):
  """The process of a factory for pairs of numbers, built once."""
  factory = getattr(aggregators, name)(*arguments, **options)
  return factory.create(_PAIR, _WEIGHT_TYPES[name])


_WEIGHT_TYPES = {
  'ClusteredMeanFactory': tff.to_type(
    collections.OrderedDict(
      client_id=np.int32, num_examples=np.float32, change=_PAIR
    )
  ),
  'CosineShapleyFactory': cosine_shapley.WEIGHT_TYPE,
  'EntrywiseMeanFactory': _PAIR,
  'GradientReuseFactory': tff.to_type(
    collections.OrderedDict(client_id=np.int32, embedding=_PAIR)
  ),
  'LargestValuesFactory': _FLOAT,
  'MeanDriftFactory': _FLOAT,
  'MinNormFactory': _FLOAT,
  'QFairFactory': q_fair.WEIGHT_TYPE,
  'ReputationMaskedFactory': reputation.WEIGHT_TYPE,
  'SammeAlphaFactory': _FLOAT,
  'ValidatedRewardFactory': tff.to_type(
    collections.OrderedDict(
      client_id=np.int32,
      num_examples=np.float32,
      received=_PAIR,
      losses=tff.TensorType(np.float32, [3]),
      num_losses=np.int32,
    )
  ),
}


class TestStateless:
  @strategies.costly
  @given(_cohorts(alpha=_WEIGHTS))
  def test_samme_alpha(self, cohort):
    _, rows, weights = cohort
    alphas = weights['alpha']
    process = _process('SammeAlphaFactory')
    output = process.next(process.initialize(), list(rows), list(alphas))
    finite = _finite(rows, alphas)
    chosen = finite & (alphas > 0)
    found = output.measurements
    assert found['num_aggregated'] == chosen.sum()
    assert found['num_non_finite'] == np.sum(~finite)
    assert found['num_excluded'] == np.sum(finite & ~chosen)
    assert found['fallback'] == (not chosen.any())
    _right_or_not_finite(
      output.result, _mean(rows[chosen], alphas[chosen]), rows[chosen]
    )

  @strategies.costly
  @given(
    _cohorts(loss=_WEIGHTS, learning_rate=_WEIGHTS),
    st.sampled_from([0.0, 1.0]),
  )
  def test_q_fair(self, cohort, q):
    _, rows, weights = cohort
    process = _process('QFairFactory', q)
    output = process.next(
      process.initialize(),
      list(rows),
      [
        collections.OrderedDict(loss=loss, learning_rate=rate)
        for loss, rate in zip(*weights.values(), strict=True)
      ],
    )
    squares = np.sum(_doubles(rows) ** 2, axis=1)
    f, rate = (_doubles(values) for values in weights.values())
    legal = _finite(rows, f, rate) & (f >= 0) & (rate > 0)
    f, rate = np.where(legal, f, 0) + 1e-10, np.where(legal, rate, 1)
    with np.errstate(all='ignore'):
      stretch = 1 + q * squares / (rate * f)
      h = np.float32(stretch * f**q / rate)
    counts = legal & np.isfinite(h) & (h > 0)
    assert output.measurements['num_aggregated'] == counts.sum()
    scaled = rows[counts] / stretch[counts, np.newaxis]
    _right_or_not_finite(output.result, _mean(scaled, h[counts]), rows[counts])

  @strategies.costly
  @given(_cohorts(number=_WEIGHTS), st.sampled_from([0.0, 1.0]))
  def test_min_norm(self, cohort, deviation):
    _, rows, weights = cohort
    numbers = weights['number']
    process = _process('MinNormFactory', deviation)
    output = process.next(process.initialize(), list(rows), list(numbers))
    norms = np.linalg.norm(_doubles(rows), axis=1)
    chosen = _finite(rows, numbers) & (numbers > 0) & (norms >= 1e-12)
    found = output.measurements
    assert found['num_aggregated'] == chosen.sum()
    assert output.state == 1
    if not chosen.any():
      np.testing.assert_array_equal(output.result, [0, 0])
      assert np.isnan([found['largest_weight'], found['smallest_weight']]).all()
      return
    units = _doubles(rows[chosen]) / norms[chosen, np.newaxis]
    np.testing.assert_allclose(
      np.linalg.norm(output.result), found['norm'], rtol=1e-4, atol=1e-5
    )
    assert found['norm'] <= 1 + 1e-6
    shares = _doubles(numbers[chosen])
    shares /= shares.sum()
    if deviation == 0:
      _close(output.result, shares @ units)
    elif deviation == 1:
      assert found['descent_violation'] < 1e-6
      assert np.all(units @ output.result >= found['norm'] ** 2 - 1e-4)
    assert found['largest_weight'] <= min(1, (shares + deviation).max()) + 1e-6

  @strategies.costly
  @given(_cohorts(), st.data())
  def test_entrywise_mean(self, cohort, data):
    _, rows, _ = cohort
    masks = data.draw(
      strategies.arrays(rows.shape, st.sampled_from([0.0, 0.5, 1.0]))
    )
    process = _process('EntrywiseMeanFactory')
    output = process.next(process.initialize(), list(rows), list(masks))
    for found, column, mask in zip(output.result, rows.T, masks.T, strict=True):
      own = column[mask > 0]
      if np.isfinite(own).all():
        expected = mask[mask > 0] @ _doubles(own) / max(mask.sum(), 0.5)
        _close(found, expected, _size(own))
      else:
        assert not np.isfinite(found)


def _right_or_not_finite(found, expected, rows):
  """A product of large numbers may be infinite, but never wrong."""
  if np.isfinite(found).all():
    _close(found, expected, _size(rows))
  else:
    assert _size(rows) > 1e6


def _rounds(process, cohorts):
  """The state before each round, its cohort, and what it gave."""
  state = process.initialize()
  for ids, rows, weights in cohorts:
    output = process.next(state, list(rows), weights)
    yield state, ids, rows, output
    state = output.state


def _all_finite(structure):
  return all(
    np.isfinite(t).all()
    for t in tf.nest.flatten(structure)
    if np.asarray(t).dtype.kind == 'f'
  )


class TestStateful:
  @strategies.costly
  @given(st.lists(_cohorts(number=_WEIGHTS), min_size=1, max_size=2))
  def test_mean_drift(self, cohorts):
    process = _process('MeanDriftFactory', _N)
    rounds = [
      (ids, rows, list(others['number'])) for ids, rows, others in cohorts
    ]
    drift = np.zeros(_D)
    for (_, _, rows, output), (_, _, numbers) in zip(
      _rounds(process, rounds), rounds, strict=True
    ):
      chosen = _finite(rows) & (np.array(numbers) > 0)
      total = _doubles(rows[chosen]).sum(axis=0)
      drift = drift - total / _N
      expected = total / chosen.sum() - drift if chosen.any() else np.zeros(_D)
      scale = _size([*rows[chosen], drift])
      _close(output.state['drift'], drift, scale)
      _close(output.result, expected, scale)

  @pytest.mark.parametrize('variant', cosine_shapley.VARIANTS)
  @strategies.costly
  @given(st.lists(_cohorts(num_examples=_COUNTS), min_size=1, max_size=2))
  def test_cosine_shapley(self, variant, cohorts):
    process = _process('CosineShapleyFactory', _N, variant=variant)
    rounds = [
      (ids, rows, _structs(ids, others)) for ids, rows, others in cohorts
    ]
    for before, ids, _, output in _rounds(process, rounds):
      state = output.state
      _check_rewards(before, ids, output)
      aggregate = _doubles(state['aggregate'])
      if variant == 'original':
        # A mean of updates of length 1/2.
        assert np.linalg.norm(aggregate) <= 0.5 + 1e-6

  @pytest.mark.parametrize('variant', ['original', 'fedakd'])
  @strategies.costly
  @given(
    st.lists(
      _cohorts(num_examples=_COUNTS, num_losses=st.integers(0, 4).map(float)),
      min_size=1,
      max_size=2,
    ),
    strategies.arrays([3], st.floats(0.125, 4, width=32)),
  )
  def test_validated_reward(self, variant, cohorts, losses):
    process = _validated_process(variant)
    received = np.float32([0.5, -0.5])
    rounds = []
    for ids, rows, others in cohorts:
      weights = [
        collections.OrderedDict(
          client_id=client_id,
          num_examples=others['num_examples'][i],
          received=received,
          losses=losses,
          num_losses=np.int32(others['num_losses'][i]),
        )
        for i, client_id in enumerate(ids)
      ]
      rounds.append((ids, rows, weights))
    for before, ids, rows, output in _rounds(process, rounds):
      _check_rewards(before, ids, output)
      clients = output.measurements['clients']
      order = np.argsort(ids)
      silent = ~_finite(rows)[order]
      assert not np.any(clients['validation_accuracy'][silent])

  @pytest.mark.parametrize('shadows', [True, False])
  @strategies.costly
  @given(
    st.lists(
      _cohorts(
        amount=st.integers(0, 9).map(float),
        accepted=st.sampled_from([0.0, 1.0]),
      ),
      min_size=1,
      max_size=2,
    )
  )
  def test_reputation_masked(self, shadows, cohorts):
    process = _reputation_process(shadows)
    rounds = []
    for ids, rows, others in cohorts:
      others['amount'] = others['amount'].astype(np.int32)
      rounds.append((ids, rows, _structs(ids, others)))
    for (before, ids, rows, output), (_, _, others) in zip(
      _rounds(process, rounds), cohorts, strict=True
    ):
      state, found = output.state, output.measurements
      was = before['reputable'][ids] > 0
      usable = was & _finite(rows) & (others['accepted'] > 0)
      assert found['num_non_finite'] == np.sum(was & ~usable)
      assert found['num_reputable'] == state['reputable'].sum()
      lost = before['reputable'].sum() - found['num_reputable']
      assert found['num_isolated'] == lost
      # Isolated is isolated for good, and gets nothing.
      assert np.all(state['reputable'] <= before['reputable'])
      assert not np.any(state['allocation'][state['reputable'] == 0])
      absent = np.setdiff1d(range(_N), ids)
      for name in ('reputation', 'reputable', 'rated'):
        np.testing.assert_array_equal(state[name][absent], before[name][absent])
      clients = found['clients']
      np.testing.assert_array_equal(clients['client_id'], np.sort(ids))
      total = clients['reputation'].sum()
      assert total == pytest.approx(1) or not clients['reputation'].any()
      amounts = _doubles(others['amount']) * was
      values = np.where(usable[:, np.newaxis], rows, 0)
      _close(output.result, _mean(values, amounts), _size(values))
      if _size(values) < 1e20:
        assert _all_finite(state)

  @strategies.costly
  @given(
    st.lists(
      st.tuples(_cohorts(), strategies.arrays([_N, _D], _VALUES)),
      min_size=1,
      max_size=2,
    )
  )
  def test_gradient_reuse(self, cohorts):
    process = _process('GradientReuseFactory', _N)
    rounds = [
      (ids, rows, _structs(ids, {'embedding': list(embeddings)}))
      for (ids, rows, _), embeddings in cohorts
    ]
    stored, seen = np.zeros([_N, _D]), set()
    for (_, ids, rows, output), (_, embeddings) in zip(
      _rounds(process, rounds), cohorts, strict=True
    ):
      present = _finite(rows, embeddings[: len(ids)])
      found, clients = output.measurements, output.measurements['clients']
      assert found['num_not_taking_part'] == np.sum(~present)
      assert _all_finite(output.state)
      stored[ids[present]] = rows[present]
      seen |= set(ids[present])
      np.testing.assert_array_equal(output.state['updates'], np.float32(stored))
      active = clients['client_id']
      assert set(ids[present]) <= set(active) <= seen
      assert found['num_stale'] == len(active) - present.sum()
      if not present.any():
        np.testing.assert_array_equal(output.result, [0, 0])
        assert not len(active) and np.isnan(found['contrastive_loss'])
        continue
      assert clients['weight'].sum() == pytest.approx(1)
      expected = clients['weight'] @ stored[active]
      _close(output.result, expected, _size(stored))

  @strategies.costly
  @given(
    st.lists(
      st.tuples(
        _cohorts(num_examples=_COUNTS),
        strategies.arrays([_N, _D], _VALUES),
      ),
      min_size=1,
      max_size=2,
    )
  )
  def test_clustered_mean(self, cohorts):
    process = _process('ClusteredMeanFactory', _N, 2)
    rounds = [
      (ids, rows, _structs(ids, {**others, 'change': list(changes)}))
      for (ids, rows, others), changes in cohorts
    ]
    for (_, ids, rows, output), ((_, _, others), changes) in zip(
      _rounds(process, rounds), cohorts, strict=True
    ):
      changes = changes[: len(ids)]
      counts = np.where(_finite(rows, changes), others['num_examples'], 0)
      values = np.where(counts[:, np.newaxis] > 0, rows, 0)
      _close(output.result, _mean(values, counts), _size(values))
      assert _all_finite(output.state)
      cluster, offsets = output.state['cluster'], output.state['offset']
      grouped = _finite(rows, changes) & changes.any(axis=1)
      assert np.all((cluster[ids] >= 0) == grouped)
      assert (
        len(set(cluster) - {-1}) == output.measurements['num_clusters'] <= 2
      )
      for name in set(cluster) - {-1}:
        own = cluster[ids] == name
        assert name == ids[own].min()
        if counts[own].any():
          expected = _mean(values[own], counts[own]) - _mean(values, counts)
          _close(offsets[name], expected, _size(values))


def _check_rewards(before, ids, output):
  """What the servers that reward have in common."""
  state, clients = output.state, output.measurements['clients']
  assert _all_finite(state) and _all_finite(output.measurements)
  assert state['reputation'].min() >= 0
  total = state['reputation'].sum()
  assert total == pytest.approx(1) or total == 0
  assert 0 <= state['share'].min() <= state['share'].max() <= 1 + 1e-9
  absent = np.setdiff1d(range(_N), ids)
  assert not np.any(state['share'][absent])
  kept = before['reputation'][absent]
  if kept.sum() > 0:
    own = state['reputation'][absent]
    np.testing.assert_allclose(own / own.sum(), kept / kept.sum(), rtol=1e-6)
  np.testing.assert_array_equal(clients['client_id'], np.sort(ids))
  np.testing.assert_array_equal(output.result, -state['aggregate'])


@functools.cache
def _validated_process(variant):
  return _process(
    'ValidatedRewardFactory',
    lambda weights: tf.cast(tf.reduce_sum(weights) > 0, tf.float32),
    lambda weights: tf.fill(
      [3], 1 + tf.abs(tf.clip_by_value(weights[0], 0, 9))
    ),
    num_clients=_N,
    variant=variant,
  )


@functools.cache
def _reputation_process(shadows):
  return aggregators.ReputationMaskedFactory(
    np.zeros(_D, np.float32),
    lambda weights: tf.cast(tf.reduce_sum(weights) > 0, tf.float32),
    num_clients=_N,
    shadows=shadows,
  ).create(_PAIR, reputation.WEIGHT_TYPE)
