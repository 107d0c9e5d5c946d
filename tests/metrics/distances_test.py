import numpy as np
import pytest

from tff_fair import metrics


def test_angle_by_hand():
  for u, v, expected in (
    ([1, 0], [0, 3], np.pi / 2),
    ([1, 1], [2, 2], 0),
    ([1, 0], [-5, 0], np.pi),
    ([1, 0], [1, 1], np.pi / 4),
    ([0, 0], [1, 1], np.pi / 2),
    # In float32 the cosine would be 1.
    ([1, 0], [1, 1e-4], np.arctan(1e-4)),
  ):
    found = metrics.angle(np.float32(u), np.float32(v))
    assert float(found) == pytest.approx(expected, abs=1e-7), (u, v)


def test_manhattan():
  u, v = np.array([1, -2], np.float32), np.array([0.5, 1], np.float32)
  assert float(metrics.manhattan(u, v)) == 3.5


def test_accuracy_distances_by_hand():
  for accuracies, cosine, manhattan in (
    # <(1, .5), (1, 1)> = 1.5, lengths 1.25^.5 and 2^.5.
    ([1, 0.5], np.arccos(1.5 / 2.5**0.5), 0.5),
    ([0.7, 0.7, np.nan], 0, 0),
    ([np.nan], np.nan, np.nan),
  ):
    assert metrics.accuracy_distances(accuracies) == pytest.approx(
      {'d_cosine': cosine, 'd_manhattan': manhattan}, abs=1e-7, nan_ok=True
    )


def test_vectors_are_not_broadcast():
  for distance in (metrics.angle, metrics.manhattan):
    for shape in ([1], [4], [3, 1], []):
      for u, v in (([3], shape), (shape, [3])):
        with pytest.raises(ValueError, match='must be vectors of one length'):
          print(u, v, distance(np.ones(u), np.ones(v)))
