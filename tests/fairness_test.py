import math

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from tff_fair import fairness

_NAN, _INF = math.nan, math.inf


def test_confusion_matrices_by_hand():
  found = fairness.confusion_matrices(
    labels=[0, 0, 1, 1], predictions=[0, 1, 1, 1], groups=[0, 0, 0, 2],
    num_classes=2, num_groups=3,
  )  # fmt: skip
  np.testing.assert_array_equal(
    found, [[[1, 1], [0, 1]], [[0, 0], [0, 0]], [[0, 0], [0, 1]]]
  )


def test_macro_f1_by_hand():
  for confusion, expected, own_labels in (
    ([[1, 1], [0, 1]], 2 / 3, 2 / 3),  # 2/3 for either class.
    ([[3, 0], [0, 0]], 1, 1),  # A class that does not occur does not count.
    ([[0, 4], [0, 0]], 0, 0),
    # Class 1 is predicted but not true: (2*2/(4+2) + 0) / 2, or 2*2/(4+2).
    ([[2, 2], [0, 0]], 1 / 3, 2 / 3),
    ([[0, 0], [0, 0]], _NAN, _NAN),
  ):
    found = [
      fairness.macro_f1(confusion),
      fairness.macro_f1(confusion, own_labels=True),
    ]
    np.testing.assert_allclose(
      found, [expected, own_labels], err_msg=f'{confusion}'
    )


def test_macro_f1_and_accuracy_equal_scikit_learn():
  rng = np.random.default_rng(0)
  labels, predictions = rng.integers(0, 7, [2, 300])
  groups = rng.integers(0, 40, 300)
  confusion = fairness.confusion_matrices(labels, predictions, groups, 7, 40)
  f1, accuracy = fairness.macro_f1(confusion), fairness.accuracy(confusion)
  own = fairness.macro_f1(confusion, own_labels=True)
  weighted = fairness.weighted_f1(confusion)
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
    assert weighted[group] == pytest.approx(
      sklearn_metrics.f1_score(*pair, average='weighted', zero_division=0)
    )
    assert accuracy[group] == pytest.approx(
      sklearn_metrics.accuracy_score(*pair)
    )


def test_measures_by_hand():
  ten = [0.5, 0.1, 0.4, 1, 1, 1, 1, 1, 1, 0.3]
  for measure, scores, expected in (
    (fairness.minimum, [0.6, _NAN, 0.2, 0.9], 0.2),
    (fairness.minimum, [1, -_INF], -_INF),
    (fairness.worst_mean, ten, 0.1),
    (fairness.worst_mean, [*ten, 0.2], 0.15),  # ceil(1.1) = 2 clients.
    (fairness.worst_mean, [0.6, _NAN, 0.2], 0.2),  # At least one.
    (fairness.worst_mean, [2, -_INF], -_INF),
    # Mean .5; (.04 + .01 + .01) / 3.
    (fairness.variance, [0.3, 0.6, _NAN, 0.6], 0.02),
    (fairness.variance, [0.3, _INF], _NAN),
    # Shares 1/2, 1/4, 1/4: (1/2) ln 2 + (1/2) ln 4 = 1.5 ln 2.
    (fairness.entropy, [0.5, _NAN, 0.25, 0.25], 1.5 * math.log(2)),
    (fairness.entropy, [0.3, 0.3, 0.3], math.log(3)),
    (fairness.entropy, [0, 7, 0], 0),
    # 6^2 / (3 * (1 + 4 + 9)).
    (fairness.jain_index, [1, 2, _NAN, 3], 6 / 7),
    (fairness.jain_index, [0.3, 0.3, 0.3], 1),
    (fairness.jain_index, [0, 7, 0], 1 / 3),
    (fairness.jain_index, [1e-300, 3e-300], 16 / 20),
    (fairness.jain_index, [1e300, 3e300], 16 / 20),
  ):
    found = measure(scores)
    assert found == pytest.approx(expected, nan_ok=True), (measure, scores)
  for measure in (fairness.entropy, fairness.jain_index):
    for scores in ([0, 0], [1, -1], [-1, -1], [1, _INF]):
      assert math.isnan(measure(scores)), (measure, scores)


def test_worst_mean_rounds_the_number_of_clients_up():
  assert fairness.worst_mean(range(70)) == 3  # Of 0..6.
  # 0.07 * 100 is 7.000000000000001, but means 7 clients.
  assert fairness.worst_mean(range(100), share=0.07) == 3
  assert fairness.worst_mean([4, 2, 3], share=0.5) == 2.5
  assert fairness.worst_mean([4, 2, 3], share=1) == 3


def test_interval_by_hand():
  # sd of (1, 2, 3) with ddof 1 is 1: 2 +- 1.96 / sqrt(3).
  mean, low, high = fairness.mean_with_interval([1, 2, _NAN, 3])
  assert mean == 2
  assert (low, high) == pytest.approx((2 - 1.131607, 2 + 1.131607))
  mean, low, high = fairness.mean_with_interval([0.4])
  assert mean == 0.4 and math.isnan(low) and math.isnan(high)
  assert all(map(math.isnan, fairness.mean_with_interval([])))


def test_client_statistics():
  assert fairness.client_statistics([0.2, _NAN, 0.6, 1.0]) == pytest.approx(
    {
      'mean': 0.6,
      'median': 0.6,
      'min': 0.2,
      'worst10': 0.2,
      'max': 1.0,
      'variance': 0.32 / 3,
      'jain': 1.8**2 / (3 * 1.4),
    }
  )
  assert all(map(math.isnan, fairness.client_statistics([]).values()))


def test_cf_coefficient_by_hand():
  for alone, together, expected in (
    ([1, 2, 3], [10, 20, 30], 100),
    ([1, 2, 3], [3, 2, 1], -100),
    ([1, 2, 3], [1, 3, 2], 50),
    ([1, 2, 3, 9], [1, 3, 2, _NAN], 50),
    ([1], [1], _NAN),
    ([1, 1, 1], [1, 2, 3], _NAN),
    ([1, 2, 3], [2, 2, 2], _NAN),
    ([0, 1, _INF], [0, 1, -_INF], _NAN),
    ([0, 0], [0, 1], _NAN),
    # .1 + .2 is .30000000000000004: a spread of rounding is none,
    ([0.3, 0.1 + 0.2, 0.3, 0.3], [0.1, 0.4, 0.2, 0.6], _NAN),
    ([1, 2, 3], [1e300 / 3, 1e300 / 3, 1e300 / 9 * 3], _NAN),
    # and values are not constant because they are small.
    ([1e-100, 2e-100, 3e-100], [1, 3, 2], 50),
    ([1 + 1e-9, 1, 1 - 1e-9], [3, 2, 1], 100),
  ):
    found = fairness.cf_coefficient(alone, together)
    assert found == pytest.approx(expected, nan_ok=True), (alone, together)


def test_harm_by_hand():
  # 2 of 2 alone, 0 together: of C(4, 2) draws of two, one has none of the two.
  # 5 of 5 alone, 1 or 2 together: C(6, 1) C(4, 4) and C(7, 2) C(3, 3) of 252.
  found = fairness.harm_p_values(
    [1, 1, 1, 0.5, 0.5, _NAN, 1],
    [0, 0.2, 0.4, 0.5, 1, 0.5, 0],
    [2, 5, 5, 2, 2, 5, 0],
  )
  expected = [1 / 6, 6 / 252, 21 / 252, 5 / 6, 1, _NAN, _NAN]
  assert found == pytest.approx(expected, nan_ok=True)
  # A mean over evaluations is no whole number of examples.
  found = fairness.harm_p_values([0.99], [0.21], [5])
  assert found == pytest.approx([6 / 252])


def test_harm_is_found_by_chance_in_at_most_a_twentieth():
  right = np.random.default_rng(0).binomial(30, 0.8, (2, 20_000)) / 30
  p_values = fairness.harm_p_values(*right, np.full(20_000, 30))
  assert 0.01 < np.mean(p_values < 0.05) < 0.05


def test_against_alone_by_hand():
  found = fairness.against_alone(
    [1, 0.4, 0.6, 0.5, 0.9], [0.2, 0.6, 0.6, _NAN, 1], [5, 5, 0, 5, 10]
  )
  # Gains of -.8, .2, 0 and .1; of the first, second and last the test part is
  # known, and the first is harmed.
  deviations = np.array([-0.675, 0.325, 0.125, 0.225])
  assert found == pytest.approx(
    {
      'cf': found['cf'],
      'better_off': 0.5,
      'gain_mean': -0.125,
      'gain_sd': math.sqrt(np.mean(deviations**2)),
      'gain_min': -0.8,
      'harmed': 1,
      'harmed_share': 1 / 3,
    }
  )
  # To be as alone is the best order, and no gain.
  accuracy = [0.3, 0.6, 0.9]
  found = fairness.against_alone(accuracy, accuracy)
  assert found['cf'] == pytest.approx(100)
  assert found['gain_mean'] == found['gain_sd'] == found['better_off'] == 0
  assert math.isnan(found['harmed']) and math.isnan(found['harmed_share'])


_MEASURES = (
  fairness.minimum,
  fairness.worst_mean,
  fairness.variance,
  fairness.entropy,
  fairness.jain_index,
  fairness.client_statistics,
  fairness.mean_with_interval,
  lambda scores: fairness.cf_coefficient(scores, scores),
  lambda scores: fairness.against_alone(scores, scores),
)


def test_measures_of_no_scores_are_undefined():
  for measure in _MEASURES:
    for scores in ([], [_NAN, _NAN]):
      found = measure(scores)
      found = list(found.values()) if isinstance(found, dict) else found
      assert np.isnan(found).all(), (measure, scores)


def test_refusals():
  confusion, f1 = fairness.confusion_matrices, fairness.macro_f1
  rows = [
    (confusion, ([2], [0], [0], 2, 1), ValueError, r'labels must .* 2 to 2'),
    (confusion, ([0], [-1], [0], 2, 1), ValueError, 'predictions must .* -1'),
    (confusion, ([0], [0], [1], 2, 1), ValueError, r'groups must .* 0\.\.0'),
    # NumPy would broadcast the one prediction.
    (confusion, ([0, 1], [0], [0, 0], 2, 1), ValueError, r'\(2,\), \(1,\)'),
    (confusion, ([[0]], [0], [0], 2, 1), ValueError, 'must be vectors of one'),
    (confusion, ([0.9], [0], [0], 2, 1), TypeError, 'labels must be integers'),
    (confusion, ([0], [0], [0], 0, 1), ValueError, 'num_classes must be'),
    (f1, ([[1, 2]],), ValueError, r'the shape \[..., C, C\]'),
    (fairness.accuracy, ([[1, -1], [0, 1]],), ValueError, 'at least -1'),
    (fairness.accuracy, ([[1.0]],), TypeError, 'confusion must be integers'),
    (fairness.cf_coefficient, ([1, 2], [1, 2, 3]), ValueError, r'\(2,\) and '),
    (fairness.worst_mean, ([1, 2], 0), ValueError, 'share must be'),
    (fairness.harm_p_values, ([1], [1, 0], [1]), ValueError, r'\(1,\) and '),
    (fairness.harm_p_values, ([1], [1], [1, 2]), ValueError, 'num_examples mu'),
    (fairness.harm_p_values, ([1], [2], [1]), ValueError, 'in 0..1 .* 1 to 2'),
    (fairness.harm_p_values, ([1], [1], [0.5]), TypeError, 'num_examples must'),
    *(
      (measure, (bad,), ValueError, 'must be a vector of numbers, found')
      for measure in _MEASURES
      for bad in ([[0.1, 0.2]], ['a'])
    ),
  ]
  for function, arguments, error, message in rows:
    with pytest.raises(error, match=message):
      print(function(*arguments), 'for', function, arguments)
