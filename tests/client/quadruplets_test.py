"""Tests of the drawing of quadruplets."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import client

_NUM_CLASSES = 8
# Anchor 0 has two positives, and three other classes of two, three and one.
_LABELS = np.array([0, 1, 0, 2, 2, 3, 0, 1, 2], np.int32)
_NUM_SEEDS = 5000


@functools.cache
def _traced(num_classes=_NUM_CLASSES):
  """One trace for label vectors of any length."""
  return tf.function(
    lambda labels, seed: client.sample_quadruplets(labels, num_classes, seed),
    input_signature=[
      tf.TensorSpec([None], tf.int32),
      tf.TensorSpec([2], tf.int32),
    ],
  )


def _sample(labels, seed=(0, 0), num_classes=_NUM_CLASSES):
  drawn = _traced(num_classes)(np.asarray(labels, np.int32), seed)
  return client.Quadruplets(*[values.numpy() for values in drawn])


def _check(labels, drawn):
  """Raises unless these are quadruplets of the labels, anchor by anchor."""
  labels = np.asarray(labels)
  classes, counts = np.unique(labels, return_counts=True)
  size = dict(zip(classes, counts, strict=True))
  for values in drawn:
    assert values.shape == labels.shape
  for i, (positive, negative_1, negative_2, v1, v2) in enumerate(
    zip(*drawn, strict=True)
  ):
    has_positive = size[labels[i]] > 1
    assert v1 == (has_positive and len(classes) > 1)
    assert v2 == (has_positive and len(classes) > 2)
    if v1:
      assert positive != i and labels[positive] == labels[i]
      assert labels[negative_1] != labels[i]
    else:
      assert positive == i and negative_1 == i
    if v2:
      assert labels[negative_2] not in (labels[i], labels[negative_1])
    else:
      assert negative_2 == negative_1


def test_random_labels():
  rng = np.random.default_rng(0)
  kinds = collections.Counter()
  for _ in range(400):
    size = rng.integers(0, 25)
    classes = rng.choice(_NUM_CLASSES, rng.integers(1, 9), replace=False)
    labels = rng.choice(classes, size)
    drawn = _sample(labels, rng.integers(-(2**31), 2**31, 2))
    _check(labels, drawn)
    counts = np.bincount(labels, minlength=1)
    kinds[min(3, np.count_nonzero(counts))] += 1
    kinds['alone'] += np.any(counts == 1)
  # No, one, two and more classes, and examples alone in theirs: all came up.
  assert min(kinds[kind] for kind in (0, 1, 2, 3, 'alone')) >= 10


def test_masks():
  for labels, v1, v2 in (
    ([], [], []),
    ([3], [0], [0]),
    ([3, 3, 3], [0, 0, 0], [0, 0, 0]),  # One class.
    ([3, 5, 3, 5], [1, 1, 1, 1], [0, 0, 0, 0]),  # Two.
    ([3, 5, 3], [1, 0, 1], [0, 0, 0]),
    ([7, 0], [0, 0], [0, 0]),
    ([0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 0, 0]),  # All alone in theirs.
    ([0, 1, 2, 0], [1, 0, 0, 1], [1, 0, 0, 1]),
  ):
    drawn = _sample(labels)
    np.testing.assert_array_equal(drawn.mask_1, np.array(v1, bool))
    np.testing.assert_array_equal(drawn.mask_2, np.array(v2, bool))
    _check(np.array(labels, np.int32), drawn)
    dtypes = [values.dtype for values in drawn]
    assert dtypes == [np.int32] * 3 + [np.bool_] * 2


def test_masked_slots_hold_the_anchor_or_the_first_negative():
  alone = _sample([4, 4])
  for index in alone[:3]:
    np.testing.assert_array_equal(index, [0, 1])
  # All but the third are forced: it is alone in its class.
  two = _sample([4, 4, 6])
  np.testing.assert_array_equal(two.positive, [1, 0, 2])
  np.testing.assert_array_equal(two.negative_1, [2, 2, 2])
  np.testing.assert_array_equal(two.negative_2, [2, 2, 2])


def test_the_seed_decides():
  labels = np.random.default_rng(0).integers(0, _NUM_CLASSES, 100)
  first, again = _sample(labels, [1, 2]), _sample(labels, [1, 2])
  eager = client.sample_quadruplets(
    tf.constant(labels, tf.int32), _NUM_CLASSES, [1, 2]
  )
  for found in (again, eager):
    np.testing.assert_array_equal(np.stack(found[:3]), np.stack(first[:3]))

  for seed in ([1, 3], [0, 2]):
    for a, b in zip(first[:3], _sample(labels, seed)[:3], strict=True):
      # Each slot has at least some ten choices.
      assert np.mean(a != b) > 0.7


def test_neither_the_number_nor_the_names_of_the_classes_matter():
  labels = np.random.default_rng(0).integers(0, 3, 50)
  few, many = _sample(labels, num_classes=3), _sample(labels, num_classes=100)
  renamed = _sample(np.array([2, 40, 99])[labels], num_classes=100)
  for found in (many, renamed):
    np.testing.assert_array_equal(np.stack(found), np.stack(few))


@pytest.mark.full
def test_large_client():
  labels = np.random.default_rng(0).integers(0, 100, 50_000)
  drawn = _sample(labels, num_classes=100)
  assert np.all(drawn.mask_1) and np.all(drawn.mask_2)
  anchors = np.arange(50_000)
  assert np.all(drawn.positive != anchors)
  np.testing.assert_array_equal(labels[drawn.positive], labels)
  classes = [labels, labels[drawn.negative_1], labels[drawn.negative_2]]
  for i, j in [(0, 1), (0, 2), (1, 2)]:
    assert np.all(classes[i] != classes[j])
  # The other classes come up equally often, as often as 99 of them can.
  for found in classes[1:]:
    _assert_frequencies((found - labels) % 100, dict.fromkeys(range(1, 100), 1))
  # Every example is the positive, and a negative, about equally often: a
  # Poisson number with mean 1, of which a share of 1/e is 0.
  for index in drawn[:3]:
    times = np.bincount(index, minlength=50_000)
    assert abs(np.mean(times == 0) - np.exp(-1)) < 0.01
    assert times.max() < 15


@functools.cache
def _draws():
  """Quadruplets of `_LABELS` for many seeds, `[seeds, 9]` each."""
  seeds = np.stack([np.arange(_NUM_SEEDS), np.zeros(_NUM_SEEDS)], axis=1)

  @tf.function
  def sample_each(seeds):
    return tf.map_fn(
      lambda seed: client.sample_quadruplets(_LABELS, _NUM_CLASSES, seed),
      seeds,
      fn_output_signature=client.Quadruplets(*[tf.int32] * 3, *[tf.bool] * 2),
    )

  return [values.numpy() for values in sample_each(seeds.astype(np.int32))]


def _assert_frequencies(outcomes, weights):
  """Chi-square of outcomes against weights, which name all that may happen."""
  outcomes = list(outcomes)
  counts = collections.Counter(outcomes)
  assert set(counts) <= set(weights)
  expected = np.array(list(weights.values()), np.float64)
  expected *= len(outcomes) / expected.sum()
  assert expected.min() > 20
  found = np.array([counts[outcome] for outcome in weights])
  statistic = np.sum((found - expected) ** 2 / expected)
  freedom = len(weights) - 1
  # Mean and deviation of chi-square; seeds are fixed, so it holds or does not.
  assert statistic <= freedom + 5 * (2 * freedom) ** 0.5


def _members(label):
  return np.flatnonzero(label == _LABELS)


def test_pairs_of_classes_are_uniform_in_either_order():
  """However many examples the classes have."""
  _, negative_1, negative_2, _, _ = _draws()
  for anchor in (0, 1, 3, 8):
    pairs = zip(
      _LABELS[negative_1[:, anchor]],
      _LABELS[negative_2[:, anchor]],
      strict=True,
    )
    others = set(_LABELS) - {_LABELS[anchor]}
    _assert_frequencies(
      pairs, {(a, b): 1 for a in others for b in others if a != b}
    )


def test_the_three_choices_are_uniform_and_independent():
  """Each combination as often as the product of the shares."""
  for anchor in (0, 2, 3, 4, 7, 8):
    drawn = [values[:, anchor] for values in _draws()[:3]]
    others = set(_LABELS) - {_LABELS[anchor]}
    positives = set(_members(_LABELS[anchor])) - {anchor}
    weights = {
      (p, n1, n2): 1 / len(_members(a)) / len(_members(b))
      for p in positives
      for a in others
      for b in others - {a}
      for n1 in _members(a)
      for n2 in _members(b)
    }
    _assert_frequencies(zip(*drawn, strict=True), weights)


def test_anchors_draw_independently():
  for slot in range(3):
    values = _draws()[slot]
    first, second = values[:, 0], values[:, 2]  # Both of class 0.
    if slot:
      first, second = _LABELS[first], _LABELS[second]
    weights = {(a, b): 1 for a in set(first) for b in set(second)}
    assert len(weights) == (9 if slot else 4)
    _assert_frequencies(zip(first, second, strict=True), weights)
