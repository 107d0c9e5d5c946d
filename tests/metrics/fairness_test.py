import math

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from tff_fair import metrics
from tff_fair.metrics import fairness


def test_confusion_matrices_by_hand():
  found = metrics.confusion_matrices(
    labels=[0, 0, 1, 1], predictions=[0, 1, 1, 1], groups=[0, 0, 0, 2],
    num_classes=2, num_groups=3,
  )  # fmt: skip
  np.testing.assert_array_equal(
    found, [[[1, 1], [0, 1]], [[0, 0], [0, 0]], [[0, 0], [0, 1]]]
  )


@pytest.mark.parametrize(
  ('labels', 'predictions', 'groups', 'message'),
  [
    ([2], [0], [0], r'labels must lie in 0\.\.1, found 2 to 2'),
    ([0], [-1], [0], r'predictions must lie in 0\.\.1, found -1 to -1'),
    ([0], [0], [1], r'groups must lie in 0\.\.0, found 1 to 1'),
  ],
)
def test_confusion_out_of_range(labels, predictions, groups, message):
  with pytest.raises(ValueError, match=message):
    metrics.confusion_matrices(labels, predictions, groups, 2, 1)


@pytest.mark.parametrize(
  ('confusion', 'expected'),
  [
    ([[1, 1], [0, 1]], 2 / 3),  # 2/3 for either class.
    ([[3, 0], [0, 0]], 1.0),  # A class that occurs nowhere does not count.
    ([[0, 4], [0, 0]], 0.0),  # Predicted but not true: counts, with 0.
    ([[2, 2], [0, 0]], 1 / 3),  # (2*2/(4+2) + 0) / 2
    ([[0, 0], [0, 0]], math.nan),
  ],
)
def test_macro_f1_by_hand(confusion, expected):
  np.testing.assert_allclose(metrics.macro_f1(confusion), expected)


def test_macro_f1_over_own_labels_by_hand():
  # Class 1 is predicted twice and never true: 2*2/(4+2), and no 0 beside it.
  confusion = [[[2, 2], [0, 0]], [[0, 0], [0, 0]]]
  found = metrics.macro_f1(confusion, own_labels=True)
  np.testing.assert_allclose(found, [2 / 3, math.nan])


def test_macro_f1_and_accuracy_equal_scikit_learn():
  rng = np.random.default_rng(0)
  labels, predictions = rng.integers(0, 7, [2, 300])
  groups = rng.integers(0, 40, 300)
  confusion = metrics.confusion_matrices(labels, predictions, groups, 7, 40)
  f1, accuracy = metrics.macro_f1(confusion), fairness.accuracy(confusion)
  own = metrics.macro_f1(confusion, own_labels=True)
  for group in range(40):
    pair = labels[groups == group], predictions[groups == group]
    assert f1[group] == pytest.approx(
      sklearn_metrics.f1_score(*pair, average='macro', zero_division=0)
    )
    assert own[group] == pytest.approx(
      sklearn_metrics.f1_score(
        *pair, average='macro', labels=np.unique(pair[0]), zero_division=0
      )
    )
    assert accuracy[group] == pytest.approx(
      sklearn_metrics.accuracy_score(*pair)
    )


def test_fairness_variance_is_of_the_population():
  # Mean .5; (.04 + .01 + .01) / 3.
  assert metrics.fairness_variance([0.3, 0.6, 0.6]) == pytest.approx(0.02)
  assert metrics.fairness_variance([0.3, math.nan, 0.7]) == pytest.approx(0.04)
  assert math.isnan(metrics.fairness_variance([math.nan]))


def test_interval_by_hand():
  # sd of (1, 2, 3) with ddof 1 is 1: 2 +- 1.96 / sqrt(3).
  mean, low, high = metrics.mean_with_interval([1, 2, math.nan, 3])
  assert mean == 2
  assert (low, high) == pytest.approx((2 - 1.131607, 2 + 1.131607))
  mean, low, high = metrics.mean_with_interval([0.4])
  assert mean == 0.4 and math.isnan(low) and math.isnan(high)
  assert math.isnan(metrics.mean_with_interval([]).mean)


def test_client_statistics():
  assert metrics.client_statistics([0.2, math.nan, 0.6, 1.0]) == pytest.approx(
    {'mean': 0.6, 'median': 0.6, 'max': 1.0, 'variance': 0.32 / 3}
  )
  assert all(map(math.isnan, metrics.client_statistics([]).values()))


@pytest.mark.parametrize(
  ('standalone', 'collaborative', 'expected'),
  [
    ([1, 2, 3], [10, 20, 30], 100.0),
    ([1, 2, 3], [3, 2, 1], -100.0),
    ([1, 2, 3], [1, 3, 2], 50.0),
    ([1, 2, 3, 9], [1, 3, 2, math.nan], 50.0),
    ([1], [1], math.nan),
    ([1, 1, 1], [1, 2, 3], math.nan),
    ([1, 2, 3], [2, 2, 2], math.nan),
  ],
)
def test_cf_coefficient(standalone, collaborative, expected):
  found = metrics.cf_coefficient(standalone, collaborative)
  assert found == pytest.approx(expected, nan_ok=True)


def test_cf_coefficient_needs_pairs():
  with pytest.raises(ValueError, match=r'found shapes \(2,\) and \(3,\)'):
    metrics.cf_coefficient([1, 2], [1, 2, 3])


def test_cf_coefficient_of_opposite_infinities_is_undefined():
  found = metrics.cf_coefficient([0, 1, math.inf], [0, 1, -math.inf])
  assert math.isnan(found)


def test_one_prediction_is_not_stretched_to_all():
  with pytest.raises(ValueError, match=r'found shapes \(3,\), \(3,\), \(1,\)'):
    metrics.confusion_matrices([0, 1, 1], [0], [0, 0, 0], 2, 1)


def test_labels_are_not_rounded():
  with pytest.raises(TypeError, match='labels must be integers, found dtype f'):
    metrics.confusion_matrices([0.9], [0], [0], 2, 1)


@pytest.mark.parametrize('score', [metrics.macro_f1, fairness.accuracy])
@pytest.mark.parametrize('confusion', [[[1, 2]], [1, 2], [[1, -1], [0, 1]]])
def test_what_is_no_confusion_matrix(score, confusion):
  with pytest.raises(ValueError, match=r'must have the shape \[..., C, C\]'):
    score(confusion)


def test_scores_are_a_vector():
  with pytest.raises(ValueError, match='scores must be a vector of numbers, f'):
    metrics.fairness_variance([[0.1, 0.2], [0.3, 0.4]])
