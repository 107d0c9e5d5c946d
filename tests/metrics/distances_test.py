"""Tests of the distances between models."""

import numpy as np
import pytest

from tff_fair import metrics


@pytest.mark.parametrize(
  ('u', 'v', 'expected'),
  [
    ([1, 0], [0, 3], np.pi / 2),
    ([1, 1], [2, 2], 0),
    ([1, 0], [-5, 0], np.pi),
    ([1, 0], [1, 1], np.pi / 4),
    ([0, 0], [1, 1], np.pi / 2),
    # In float32 the cosine would be 1.
    ([1, 0], [1, 1e-4], np.arctan(1e-4)),
  ],
)
def test_angle(u, v, expected):
  u, v = np.asarray(u, np.float32), np.asarray(v, np.float32)
  assert float(metrics.angle(u, v)) == pytest.approx(expected, abs=1e-7)


def test_manhattan():
  u, v = np.array([1, -2], np.float32), np.array([0.5, 1], np.float32)
  assert float(metrics.manhattan(u, v)) == 3.5


def test_equal_accuracies_are_at_no_distance():
  distances = metrics.accuracy_distances([0.7, 0.7, np.nan])
  assert distances == pytest.approx({'d_cosine': 0, 'd_manhattan': 0}, abs=1e-7)


def test_accuracy_distances_by_hand():
  # <(1, .5), (1, 1)> = 1.5, lengths 1.25^.5 and 2^.5.
  assert metrics.accuracy_distances([1, 0.5]) == pytest.approx(
    {'d_cosine': np.arccos(1.5 / 2.5**0.5), 'd_manhattan': 0.5}
  )


def test_accuracies_of_nobody_have_no_distance():
  assert metrics.accuracy_distances([np.nan]) == pytest.approx(
    {'d_cosine': np.nan, 'd_manhattan': np.nan}, nan_ok=True
  )


@pytest.mark.parametrize('distance', [metrics.angle, metrics.manhattan])
def test_a_short_vector_is_not_stretched(distance):
  with pytest.raises(ValueError, match=r'found shapes \(3,\) and \(1,\)'):
    distance(np.ones(3), np.ones(1))
