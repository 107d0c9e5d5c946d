"""The arithmetic of the aggregation rules, against NumPy and SciPy."""

import collections
import functools
import math

from hypothesis import assume
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tff_fair import aggregators
from tff_fair.aggregators import clustering
from tff_fair.aggregators import cosine_shapley
from tff_fair.aggregators import fair_descent
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.aggregators import min_norm
from tff_fair.aggregators import q_fair
from tff_fair.aggregators import reputation
from tff_fair.aggregators import sparse_rewards
from tff_fair.aggregators import validated_rewards

pytestmark = pytest.mark.full

ModelWeights = tff.learning.models.ModelWeights

_K = 4
_SHARE = st.floats(0, 1)


def _doubles(shape, elements=strategies.MODERATE):
  return strategies.arrays(shape, elements, np.float64)


_MASK = strategies.arrays([_K], st.booleans(), bool)
_SHARES = _doubles([_K], _SHARE)


def _close(found, expected, rtol=1e-6, atol=1e-9):
  np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def _divided(values, total):
  return values / total if total else np.zeros_like(values)


def _unit(rows):
  rows = np.float64(rows)
  lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
  return rows / np.where(lengths > 1e-12, lengths, 1)


@given(_doubles([_K], st.floats(-1, 2)), st.integers(0, 100))
def test_samme_alpha(errors, num_classes):
  found = aggregators.samme_alpha(errors, num_classes).numpy()
  clipped = np.clip(errors, 1e-6, 1 - 1e-6)
  expected = np.log((1 - clipped) / clipped) + np.log(max(num_classes - 1, 1))
  _close(found, expected if num_classes > 1 else np.zeros(_K), 1e-5, 1e-6)
  # Positive just where a classifier beats chance.
  better = errors < 1 - 1 / max(num_classes, 1) - 1e-6
  assert np.all((found > 0)[better])


@given(
  _doubles([_K], st.one_of(st.floats(0, 100), st.just(1e60))),
  _doubles([_K], st.one_of(st.floats(1e-3, 10), st.sampled_from([0.0, 1e30]))),
  st.floats(1e-3, 10),
  st.floats(0, 5),
)
def test_q_fair_weight(squares, losses, rate, q):
  scale, weight = q_fair.q_fair_weight(squares, losses, rate, q)
  f = losses + 1e-10
  with np.errstate(over='ignore'):
    h = np.float32(q * f ** (q - 1) * squares / rate**2 + f**q / rate)
    _close(weight, h, 1e-5, 1e-37)
    _close(scale, 1 / (1 + q * squares / (rate * f)), 1e-5, 1e-37)
  assert np.all((scale.numpy() >= 0) & (scale.numpy() <= 1))


class TestClustering:
  @given(strategies.arrays([_K, 2], strategies.EXTREME))
  def test_cosine_distances(self, vectors):
    found = clustering.cosine_distances(vectors).numpy()
    expected = 1 - np.float64(_exact_unit(vectors)) @ _exact_unit(vectors).T
    _close(found, expected, atol=1e-12)
    assert -1e-12 <= found.min() <= found.max() <= 2 + 1e-12

  @given(
    strategies.arrays([5, 5], strategies.ANYTHING, np.float64),
    st.integers(1, 5),
  )
  def test_the_clustering_ends_whatever_the_distances(self, distances, number):
    labels = _linkage()(distances, number, [True] * 5).numpy()
    assert len(set(labels)) == number


def _exact_unit(vectors):
  rows = np.float64(vectors)
  lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
  return rows / np.where(lengths > 0, lengths, 1)


@functools.cache
def _linkage():
  return tf.function(
    clustering.average_linkage,
    input_signature=[
      tf.TensorSpec([5, 5], tf.float64),
      tf.TensorSpec([], tf.int32),
      tf.TensorSpec([5], tf.bool),
    ],
  )


class TestCosineShapley:
  @given(
    strategies.arrays([_K, 3], strategies.EXTREME),
    strategies.arrays([3], strategies.EXTREME),
  )
  def test_contributions(self, updates, aggregate):
    found = cosine_shapley.contributions(updates, aggregate).numpy()
    _close(found, _unit(updates) @ _unit(aggregate), atol=1e-9)

  @given(
    _SHARES,
    _doubles([_K], st.floats(-1, 1)),
    _SHARE,
    st.floats(0.01, 1e3),
  )
  def test_reputations_and_shares(self, history, contribution, alpha, altruism):
    found = cosine_shapley.reputations(history, contribution, alpha).numpy()
    mixed = alpha * history + (1 - alpha) * contribution
    _close(found, np.maximum(mixed, 1e-3))
    assert found.min() >= 1e-3
    shares = cosine_shapley.reward_shares(found, altruism).numpy()
    earned = np.tanh(altruism * found)
    _close(shares, earned / earned.max())
    assert shares.min() >= 0 and shares.max() == 1
    # Who has the higher reputation never gets less.
    assert np.all(np.diff(shares[np.argsort(found)]) >= 0)

  @given(strategies.arrays([_K, 3], strategies.EXTREME), strategies.POSITIVE)
  def test_unit_updates(self, updates, length):
    found = sparse_rewards.unit_updates(updates, length).numpy()
    norms = np.linalg.norm(np.float64(updates), axis=1, keepdims=True)
    _close(found, length * np.float64(updates) / (norms + 1e-7), 1e-5, 1e-6)

  @given(
    strategies.arrays([2, 2]),
    strategies.arrays([3]),
    _doubles([_K], st.one_of(_SHARE, st.sampled_from([0.0, 0.25, 0.5, 1.0]))),
    st.booleans(),
  )
  def test_rewards(self, first, second, shares, per_layer):
    state = {'aggregate': [first, second], 'share': shares}
    state['aggregate'] = [tf.constant(part) for part in state['aggregate']]
    found = sparse_rewards.rewards(state, per_layer=per_layer)
    parts = [first.ravel(), second]
    if not per_layer:
      parts = [np.concatenate(parts)]
    for share, *kept in zip(shares, *found, strict=True):
      kept = [part.numpy().ravel() for part in kept]
      if not per_layer:
        kept = [np.concatenate(kept)]
      for vector, own in zip(parts, kept, strict=True):
        exact = share * len(vector)
        count = math.floor(exact + 1e-6)
        if per_layer:
          count = max(math.ceil(exact - 1e-6), int(share > 0))
        np.testing.assert_array_equal(own, _largest(vector, count))


def _largest(vector, count, ranking=None):
  """The entries of largest magnitude, the first ones of equals; else 0."""
  ranking = vector if ranking is None else ranking
  order = np.argsort(-np.abs(ranking), kind='stable')[: max(count, 0)]
  kept = np.zeros_like(vector)
  kept[order] = vector[order]
  return kept


class TestLargestValues:
  @given(
    strategies.arrays([6], strategies.EXTREME),
    strategies.arrays([6]),
    st.integers(-2, 8),
    st.booleans(),
  )
  def test_keep_largest(self, vector, ranking, count, by_ranking):
    ranking = ranking if by_ranking else None
    found = aggregators.keep_largest(vector, count, ranking=ranking)
    np.testing.assert_array_equal(found, _largest(vector, count, ranking))

  @given(
    strategies.arrays([6], strategies.ANYTHING),
    st.integers(1, 6),
    st.sampled_from(largest_values.TIES),
  )
  def test_what_is_not_finite_stays_in_sight(self, vector, count, ties):
    assume(not np.isfinite(vector).all())
    one = aggregators.keep_largest(vector, count, ties=ties)
    each = largest_values.keep_largest_of_each(
      vector, tf.constant([count]), ties=ties
    )
    assert not np.isfinite(one).all()
    assert not np.isfinite(each).all()

  @given(st.integers(1, 100), st.integers(0, 10**6), st.integers(0, 10))
  def test_num_kept_is_exact_in_percent(self, percent, size, minimum):
    found = largest_values.num_kept(percent / 100, size, minimum)
    assert found == min(size, max(minimum, percent * size // 100))


@functools.cache
def _minimum():
  return tf.function(
    min_norm.min_norm,
    input_signature=[
      tf.TensorSpec([None, None], tf.float64),
      *[tf.TensorSpec([None], tf.float64)] * 3,
    ],
  )


@functools.cache
def _projection():
  return tf.function(
    min_norm.project, input_signature=[tf.TensorSpec([None], tf.float64)] * 3
  )


def _cheapest(prices, lower, upper):
  """The least `prices x` with `lower <= x <= upper` and `sum x = 1`."""
  x = lower.copy()
  for i in np.argsort(prices):
    x[i] += min(upper[i] - x[i], 1 - x.sum())
  return prices @ x


@st.composite
def _bounds(draw):
  """Shares, and bounds around them as `MinNormFactory` has them."""
  counts = draw(_doubles([_K], st.floats(1e-3, 10)))
  deviation = draw(_SHARE)
  shares = counts / counts.sum()
  return (
    shares,
    np.maximum(shares - deviation, 0),
    np.minimum(shares + deviation, 1),
  )


class TestMinNorm:
  @given(_doubles([_K], st.floats(-1e3, 1e3)), _bounds())
  def test_project(self, vector, bounds):
    _, lower, upper = bounds
    found = _projection()(vector, lower, upper).numpy()
    assert np.all((lower <= found) & (found <= upper))
    assert found.sum() == pytest.approx(1)
    # No feasible point lies further along what was cut off.
    away = vector - found
    assert -_cheapest(-away, lower, upper) <= away @ found + 1e-6
    again = _projection()(found, lower, upper)
    _close(again, found, atol=1e-9)

  @given(_doubles([_K, 3]), _bounds())
  def test_min_norm(self, rows, bounds):
    shares, lower, upper = bounds
    gram = rows @ rows.T
    found = _minimum()(gram, lower, upper, shares).numpy()
    assert np.all((lower - 1e-12 <= found) & (found <= upper + 1e-12))
    assert found.sum() == pytest.approx(1)
    slope = gram @ found
    gap = slope @ found - _cheapest(slope, lower, upper)
    assert gap <= 1e-6 * max(np.trace(gram), 1e-12)


class TestFairDescent:
  @given(
    _doubles([_K], st.one_of(st.floats(0, 10), st.sampled_from([0, 1e-3, 1e9])))
  )
  def test_fair_guidance(self, losses):
    phi, guide = fair_descent.fair_guidance(losses)
    if not losses.any():
      assert phi == 0
      np.testing.assert_array_equal(guide, np.zeros(_K))
      return
    cosine = losses.sum() / np.linalg.norm(losses) / math.sqrt(_K)
    assert math.cos(phi) == pytest.approx(min(cosine, 1), abs=1e-9)
    length = np.linalg.norm(guide)
    assert length == pytest.approx(1) or length == 0
    # To descend along it is to make the losses more equal.
    assert np.sum(guide * losses) <= 1e-9 * losses.max()

  @given(
    _doubles([_K], st.floats(0, 6)),
    _doubles([_K], st.floats(0.1, 10)),
    _doubles([1, 2], st.floats(-1, 1)),
    st.sampled_from([0, 1, _K]),
  )
  def test_nobody_climbs(self, angles, losses, absent, number):
    gradients = 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    gradients, losses = gradients[:number], losses[:number]
    found = _direction()(gradients, losses, absent)
    direction = found['direction'].numpy()
    assert np.isfinite(direction).all()
    assert np.all(np.vstack([gradients, absent]) @ direction >= -1e-4)
    mean = gradients.mean(axis=0) if number else np.zeros(2)
    assert np.linalg.norm(direction) <= np.linalg.norm(mean) + 3 + 1e-6
    assert found['scale'].numpy() >= 0
    if not number:
      assert not direction.any()

  @given(
    st.floats(1e-3, 10),
    st.one_of(st.floats(0.01, 100), st.just(0.0)),
    st.booleans(),
    st.integers(0, 5),
  )
  def test_step_ladder(self, rate, scale, left, s):
    rate, scale = (tf.constant(v, tf.float64) for v in (rate, scale))
    steps = fair_descent.step_ladder(rate, scale, left, s).numpy()
    assert len(steps) == 2 * s + 8
    used = steps[steps > 0]
    np.testing.assert_array_equal(steps[len(used) :], 0)
    np.testing.assert_allclose(used[1:], used[:-1] / 2)
    if len(used):
      assert used[0] == (rate if left else rate * 2**s)
      assert used[-1] >= rate / 2**s / scale * (1 - 1e-6)

  @given(
    _doubles([2], st.floats(0, 3)),
    _doubles([2, 4], st.one_of(st.floats(0, 3), strategies.NOT_FINITE)),
    st.booleans(),
  )
  def test_choose_step(self, losses, trials, active):
    steps, slopes = np.array([4.0, 2.0, 1.0, 0.0]), np.ones(2)
    step, accepted = fair_descent.choose_step(
      losses, trials, steps, slopes, tf.constant(active)
    )
    totals = trials.sum(axis=0)
    usable = np.isfinite(totals) & (steps > 0)
    if not usable.any():
      assert step == 0 and not accepted
      return
    (chosen,) = np.flatnonzero(steps == step)
    assert usable[chosen]
    if accepted:
      assert np.all(trials[:, chosen] <= losses - 1e-4 * steps[chosen])
    else:
      # What was not accepted is the largest that helps, or the least evil.
      helps = usable & (totals < losses.sum())
      best = np.flatnonzero(helps) if helps.any() else [chosen]
      assert chosen == best[0]
      assert helps.any() or totals[chosen] == totals[usable].min()


@functools.cache
def _direction():
  @tf.function(
    input_signature=[
      tf.TensorSpec([None, 2], tf.float64),
      tf.TensorSpec([None], tf.float64),
      tf.TensorSpec([None, 2], tf.float64),
    ]
  )
  def direction(gradients, losses, absent):
    return fair_descent.fair_direction(
      gradients, losses, absent, angle=0.1, forced=tf.constant(False)
    )

  return direction


def _upload(ids, values):
  return collections.OrderedDict(
    value=[tf.constant(values)],
    weight=collections.OrderedDict(client_id=tf.constant(ids, tf.int32)),
  )


class TestGathered:
  @given(st.permutations(range(_K)), strategies.arrays([_K, 2]))
  def test_rows_by_client(self, ids, values):
    found = gathered.by_client(_upload(ids, values), _K)
    np.testing.assert_array_equal(found['weight']['client_id'], range(_K))
    np.testing.assert_array_equal(found['value'][0], values[np.argsort(ids)])

  @given(
    strategies.arrays([2], strategies.ANYTHING),
    strategies.arrays([], strategies.ANYTHING),
  )
  def test_finite_or_zeros(self, value, number):
    weight = collections.OrderedDict(
      client_id=tf.constant(3), number=tf.constant(number)
    )
    found = gathered.finite_or_zeros([tf.constant(value)], weight)
    finite = np.isfinite(value).all() and np.isfinite(number)
    np.testing.assert_array_equal(found['value'][0], value * 1 if finite else 0)
    assert found['weight']['client_id'] == 3
    assert found['weight']['number'] == (number if finite else 0)

  @given(
    strategies.arrays([_K, 2]),
    strategies.arrays([_K, 1]),
    _doubles([_K]),
    _doubles([_K]),
  )
  def test_weighted_sum(self, rows, statistics, weights, others):
    value = ModelWeights([rows], [statistics])
    found = gathered.weighted_sum(value, weights, others)
    _close(found.trainable[0], weights @ rows, 1e-4, 1e-4)
    _close(found.non_trainable[0], others @ statistics, 1e-4, 1e-4)
    assert gathered.trainable_part(value) == [rows]
    plain = gathered.weighted_sum([rows], weights, others)
    np.testing.assert_array_equal(plain[0], found.trainable[0])
    assert gathered.trainable_part(rows) is rows


class TestReputation:
  @given(
    _SHARES,
    _SHARES,
    _MASK,
    _MASK,
    st.floats(0.1, 700),
    _SHARE,
    st.booleans(),
  )
  def test_reputations(
    self, accuracies, history, rated, active, factor, weight, normalize
  ):
    found = reputation.reputations(
      accuracies,
      history,
      rated,
      active,
      punishment_factor=factor,
      history_weight=weight,
      normalize_before_mixing=normalize,
    ).numpy()
    equal = _divided(active.astype(float), active.sum())
    shares = accuracies * active
    shares = shares / shares.sum() if shares.sum() else equal
    fresh = np.sinh(factor * shares)
    if normalize:
      fresh = _divided(fresh, fresh.sum())
    mixed = weight * np.where(rated, history, equal) + (1 - weight) * fresh
    chosen = (mixed if (rated & active).any() else fresh) * active
    _close(found, _divided(chosen, chosen.sum()))
    assert not found[~active].any()

  @given(
    _SHARES,
    _MASK,
    st.one_of(st.just(None), _SHARE),
    st.booleans(),
  )
  def test_isolate(self, scores, active, absolute, cascade):
    c = _divided(scores * active, np.sum(scores * active))
    remaining, kept, threshold = (
      part.numpy()
      for part in reputation.isolate(
        c,
        active,
        threshold_share=1 / 3,
        threshold_absolute=absolute,
        cascade=cascade,
      )
    )
    expected = 1 / 3 / max(active.sum(), 1) if absolute is None else absolute
    if absolute is not None or active.any():
      assert threshold == pytest.approx(expected)
    assert not (remaining & ~active).any()
    # Who is best stays, and the others only if they are good enough.
    assert np.all(remaining[active & (c == c.max())])
    first = active & ((c >= threshold) | (c == c.max()))
    assert not (remaining & ~first).any()
    if not cascade:
      np.testing.assert_array_equal(remaining, first)
    _close(kept, _divided(c * remaining, np.sum(c * remaining)))

  @given(_SHARES, strategies.arrays([_K], st.integers(0, 9), np.float64), _MASK)
  def test_allocations(self, scores, amounts, active):
    own = amounts * active
    by_sum, by_max = (
      reputation.aggregation_weights(amounts, active, norm)
      for norm in ('sum', 'max')
    )
    _close(by_sum, _divided(own, own.sum()))
    _close(by_max, _divided(own, own.max()))
    counts = reputation.allocation_counts(scores, amounts, active, 10).numpy()
    c = scores * active
    exact = 10 * _divided(c, c.max()) * _divided(own, own.max())
    np.testing.assert_array_equal(counts, np.floor(exact + 1e-9))
    assert 0 <= counts.min() <= counts.max() <= 10


class TestValidatedRewards:
  @given(
    _doubles([_K, 3], st.one_of(st.floats(0.1, 5), st.just(0.0))),
    _doubles([_K, 3], st.one_of(st.floats(0.1, 5), st.just(0.0))),
    strategies.labels([_K], 4),
  )
  def test_divergences(self, losses, reference, numbers):
    found = validated_rewards.loss_divergences(losses, reference, numbers)
    found = found.numpy()
    known = numbers > 1
    for i in np.flatnonzero(known):
      p, q = (
        np.maximum(_divided(part, part.sum()), 1e-12)
        for part in (losses[i, : numbers[i]], reference[i, : numbers[i]])
      )
      expected = max(np.sum(p * np.log(p / q)), 1e-12)
      _close(found[i], expected, 1e-6, 1e-10)
    largest = found[known].max() if known.any() else 1.0
    _close(found[~known], largest)
    close = validated_rewards.closeness(found).numpy()
    _close(close, found.min() / found)
    assert close.min() > 0 and close.max() == 1

  @given(_SHARES, _SHARES, _SHARES, _SHARE, st.floats(0.01, 1e3), _SHARE)
  def test_reputations_and_shares(
    self, history, accuracies, close, alpha, altruism, base
  ):
    found = validated_rewards.reputations(
      history, accuracies, close, alpha
    ).numpy()
    fresh = accuracies * close**2
    mixed = alpha * history + (1 - alpha) * fresh
    _close(found, np.maximum(np.where(history > 0, mixed, fresh), 1e-3))
    shares = validated_rewards.reward_shares(found, close, altruism).numpy()
    earned = np.tanh(altruism * found)
    _close(shares, close * earned / earned.max())
    assert 0 <= shares.min() <= shares.max() <= 1
    fractions = validated_rewards.download_fractions(
      found, tf.constant(base, tf.float64), altruism
    )
    _close(fractions, base + (1 - base) * earned)
