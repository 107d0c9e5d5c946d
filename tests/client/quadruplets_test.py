"""The drawing of quadruplets, against a loop over all anchors."""

import collections
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import stats
import tensorflow as tf

from tests import properties
from tff_fair import client

_NUM_CLASSES = 8
# Anchor 0 has two positives, and three other classes of two, three and one.
_LABELS = np.array([0, 1, 0, 2, 2, 3, 0, 1, 2], np.int32)
_NUM_SEEDS = 5000
_WORD = st.integers(-(2**31), 2**31 - 1)


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
  return [values.numpy() for values in drawn]


@properties.SETTINGS
@hypothesis.given(
  labels=st.lists(st.integers(0, _NUM_CLASSES - 1), max_size=24),
  seed=st.tuples(_WORD, _WORD),
)
@hypothesis.example([], (0, 0))
@hypothesis.example([3, 3, 3], (0, 0))  # One class.
@hypothesis.example([3, 5, 3, 5], (0, 0))  # Two.
@hypothesis.example([3, 5, 3], (0, 0))  # One is alone in its class.
@hypothesis.example([0, 1, 2, 3], (0, 0))  # All are.
def test_every_quadruplet_is_legal(labels, seed):
  drawn = _sample(labels, seed)
  assert [values.dtype for values in drawn] == [np.int32] * 3 + [np.bool_] * 2
  for i, own in enumerate(labels):
    positive, negative_1, negative_2, v1, v2 = (values[i] for values in drawn)
    has_positive = labels.count(own) > 1
    assert v1 == (has_positive and len({*labels}) > 1)
    assert v2 == (has_positive and len({*labels}) > 2)
    if v1:
      assert positive != i and labels[positive] == own
      assert labels[negative_1] != own
    else:
      assert positive == negative_1 == i
    if v2:
      assert labels[negative_2] not in (own, labels[negative_1])
    else:
      assert negative_2 == negative_1


def test_the_seed_decides():
  labels = np.random.default_rng(0).integers(0, _NUM_CLASSES, 100)
  first = _sample(labels, [1, 2])
  eager = client.sample_quadruplets(
    tf.constant(labels, tf.int32), _NUM_CLASSES, [1, 2]
  )
  for found in (_sample(labels, [1, 2]), eager):
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
  counts = collections.Counter(outcomes)
  assert set(counts) <= set(weights)
  expected = np.array(list(weights.values()), np.float64)
  expected *= sum(counts.values()) / expected.sum()
  assert expected.min() > 20
  # Seeds are fixed, so it holds or does not.
  found = [counts[outcome] for outcome in weights]
  assert stats.chisquare(found, expected).pvalue > 1e-5


def _members(label):
  return np.flatnonzero(label == _LABELS)


@pytest.mark.parametrize('anchor', [0, 2, 3, 4, 7, 8])
def test_the_three_choices_are_uniform_and_independent(anchor):
  """However many examples the classes have: classes are drawn first."""
  drawn = [values[:, anchor] for values in _draws()[:3]]
  others = set(_LABELS) - {_LABELS[anchor]}
  weights = {
    (p, n1, n2): 1 / len(_members(a)) / len(_members(b))
    for p in set(_members(_LABELS[anchor])) - {anchor}
    for a in others
    for b in others - {a}
    for n1 in _members(a)
    for n2 in _members(b)
  }
  _assert_frequencies(zip(*drawn, strict=True), weights)


@pytest.mark.parametrize('slot', [0, 1, 2])
def test_anchors_draw_independently(slot):
  first, second = _draws()[slot][:, [0, 2]].T  # Both of class 0.
  if slot:
    first, second = _LABELS[first], _LABELS[second]
  weights = {(a, b): 1 for a in set(first) for b in set(second)}
  assert len(weights) == (9 if slot else 4)
  _assert_frequencies(zip(first, second, strict=True), weights)
