"""The measures and evaluators, against scikit-learn, SciPy and NumPy."""

import math
import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import special
from scipy import stats
from sklearn import metrics as sklearn_metrics
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tff_fair import fairness
from tff_fair import metrics

ModelWeights = tff.learning.models.ModelWeights

_C, _FEATURES = 3, 2
_SCORE = st.one_of(st.floats(0, 1), st.just(math.nan))
_SCORES = st.lists(_SCORE, max_size=5)
_ANY_SCORES = st.lists(
  st.one_of(_SCORE, st.sampled_from([math.inf, -math.inf])), max_size=5
)


@st.composite
def _predictions(draw):
  """Labels, predictions and groups of up to six examples."""
  size = draw(st.integers(0, 6))
  return tuple(draw(strategies.labels(size, end)) for end in (_C, _C, 3))


class TestConfusion:
  @given(_predictions())
  def test_confusion_matrices_are_scikit_learns(self, parts):
    labels, predictions, groups = parts
    found = fairness.confusion_matrices(labels, predictions, groups, _C, 3)
    assert found.shape == (3, _C, _C)
    assert found.sum() == len(labels)
    for group, matrix in enumerate(found):
      own = groups == group
      if own.any():
        np.testing.assert_array_equal(
          matrix,
          sklearn_metrics.confusion_matrix(
            labels[own], predictions[own], labels=range(_C)
          ),
        )

  @given(_predictions())
  def test_scores_are_scikit_learns(self, parts):
    confusion = fairness.confusion_matrices(*parts, _C, 3)
    for group in range(3):
      y, predicted = (part[parts[2] == group] for part in parts[:2])
      found = [
        fairness.accuracy(confusion)[group],
        fairness.macro_f1(confusion)[group],
        fairness.macro_f1(confusion, own_labels=True)[group],
      ]
      if not len(y):
        assert np.isnan(found).all()
        continue
      np.testing.assert_allclose(
        found,
        [
          sklearn_metrics.accuracy_score(y, predicted),
          sklearn_metrics.f1_score(y, predicted, average='macro'),
          sklearn_metrics.f1_score(
            y, predicted, average='macro', labels=np.unique(y), zero_division=0
          ),
        ],
      )


class TestMeasures:
  @given(_ANY_SCORES, strategies.POSITIVE)
  def test_measures_of_scores(self, scores, share):
    share = min(share, 1)
    with warnings.catch_warnings():
      warnings.simplefilter('error')
      variance = fairness.variance(scores)
      worst = fairness.worst_mean(scores, share)
      warnings.filterwarnings('ignore', 'invalid value', RuntimeWarning)
      interval = fairness.mean_with_interval(scores)
      statistics = fairness.client_statistics(scores)
    known = fairness.defined('scores', scores)
    np.testing.assert_array_equal(known, [s for s in scores if s == s])
    if not len(known):
      undefined = [variance, worst, fairness.minimum(scores), *interval]
      assert all(map(math.isnan, [*undefined, *statistics.values()]))
      return
    assert fairness.minimum(scores) == min(known)
    count = math.ceil(share * len(known))
    np.testing.assert_allclose(worst, np.mean(sorted(known)[:count]))
    if len(known) < 2 or np.isinf(known).any():
      assert math.isnan(interval.low) and math.isnan(interval.high)
    else:
      half = 1.96 * stats.sem(known)
      mean = known.mean()
      np.testing.assert_allclose(interval, [mean, mean - half, mean + half])
    if np.isinf(known).any():
      assert math.isnan(variance)
      return
    np.testing.assert_allclose(variance, np.mean((known - known.mean()) ** 2))
    np.testing.assert_allclose(
      list(statistics.values()),
      [known.mean(), np.median(known), known.max(), variance],
    )

  @given(
    st.lists(st.one_of(st.floats(0, 1e300), st.just(math.nan)), max_size=5)
  )
  def test_evenness(self, scores):
    with warnings.catch_warnings():
      warnings.simplefilter('error')
      found = [fairness.entropy(scores), fairness.jain_index(scores)]
    known = fairness.defined('scores', scores)
    if not known.any():
      assert all(map(math.isnan, found))
      return
    assert found[0] == pytest.approx(stats.entropy(known / known.max()))
    assert 1 / len(known) - 1e-9 <= found[1] <= 1 + 1e-9
    shares = known / known.max()
    assert found[1] == pytest.approx(
      shares.mean() ** 2 / np.mean(np.square(shares))
    )

  @given(st.lists(st.tuples(_SCORE, _SCORE), max_size=5))
  def test_cf_coefficient(self, pairs):
    x, y = zip(*pairs, strict=True) if pairs else ((), ())
    found = fairness.cf_coefficient(x, y)
    known = np.array([p for p in pairs if p[0] == p[0] and p[1] == p[1]])
    spreads = np.ptp(known, axis=0) if len(known) > 1 else [0, 0]
    if min(spreads) == 0:
      assert math.isnan(found)
    elif min(spreads) > 1e-6:
      assert -100 <= found <= 100
      expected = 100 * stats.pearsonr(*known.T).statistic
      assert found == pytest.approx(expected, abs=1e-6)

  @given(_ANY_SCORES, st.integers(0, 4))
  def test_an_infinite_accuracy_has_no_coefficient(self, scores, position):
    scores = [0.1, 0.9, *scores]
    scores[position % len(scores)] = math.inf
    found = fairness.cf_coefficient(scores, np.negative(scores))
    assert math.isnan(found)


class TestDistances:
  @given(
    strategies.arrays([3], strategies.EXTREME),
    strategies.arrays([3], strategies.EXTREME),
    strategies.POSITIVE,
  )
  def test_distances_of_models(self, u, v, factor):
    a, b = np.float64(u), np.float64(v)
    found = float(metrics.angle(u, v))
    assert 0 <= found <= math.pi
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    expected = np.clip(a @ b / lengths, -1, 1) if lengths else 0.0
    assert math.cos(found) == pytest.approx(expected, abs=1e-12)
    scaled = float(metrics.angle(a * factor, v))
    assert math.cos(scaled) == pytest.approx(math.cos(found), abs=1e-12)
    np.testing.assert_allclose(metrics.manhattan(u, v), np.abs(a - b).sum())
    assert metrics.manhattan(u, u) == 0

  @given(strategies.arrays([3]), strategies.NOT_FINITE)
  def test_a_model_that_is_not_finite_has_no_distance(self, u, bad):
    v = u.copy()
    v[1] = bad
    assert not np.isfinite(metrics.manhattan(u, v))
    assert np.isnan(metrics.angle(u, v))

  @given(_SCORES)
  def test_accuracy_distances(self, accuracies):
    found = metrics.accuracy_distances(accuracies)
    known = np.array([a for a in accuracies if a == a])
    if not len(known):
      assert all(map(math.isnan, found.values()))
      return
    assert found['d_manhattan'] == pytest.approx(
      np.abs(known - known.mean()).sum()
    )
    # Not negative: at most 45 degrees for two of them, 90 for very many.
    assert 0 <= found['d_cosine'] <= math.pi / 2
    if np.ptp(known) == 0 and known[0] > 1e-3:
      assert found['d_cosine'] == pytest.approx(0, abs=1e-6)


_LOGITS = strategies.arrays(
  [4, _C], st.sampled_from([-2.0, 0.0, 1.0, 3.0, 1e30, -1e30]), np.float64
)


class TestEvaluation:
  @given(_LOGITS, strategies.labels([4], _C), strategies.labels([4], 3))
  def test_scores_of_logits(self, logits, labels, clients):
    found = metrics.score_predictions(logits, labels, clients, 3)
    log_p = special.log_softmax(np.float64(logits), axis=1)[range(4), labels]
    hits = logits.argmax(axis=1) == labels
    for client in range(3):
      own = clients == client
      assert found.num_examples[client] == own.sum()
      for name, each in (('accuracy', hits), ('loss', -log_p)):
        expected = each[own].mean() if own.any() else math.nan
        np.testing.assert_allclose(getattr(found, name)[client], expected)
    assert found.pooled['accuracy'] == pytest.approx(hits.mean())
    np.testing.assert_allclose(found.pooled['loss'], -log_p.mean())

  @given(
    strategies.arrays([4, 2]),
    strategies.arrays([_C, 2]),
    strategies.labels([_C], 4),
  )
  def test_the_nearest_centroid_has_the_largest_logit(self, z, sums, counts):
    centroids = {'sums': sums, 'counts': counts}
    found = metrics.nearest_centroid_logits(z, centroids)
    assert found.shape == (4, _C)
    if not counts.any():
      assert np.isnan(found).all()
      return
    means = np.float64(sums) / np.maximum(counts, 1)[:, np.newaxis]
    squares = np.square(z[:, np.newaxis] - means).sum(axis=2)
    squares[:, counts == 0] = np.inf
    nearest = squares[range(4), found.argmax(axis=1)]
    np.testing.assert_allclose(nearest, squares.min(axis=1), atol=1e-6)
    gaps = found.max(axis=1, keepdims=True) - found
    expected = squares - squares.min(axis=1, keepdims=True)
    np.testing.assert_allclose(gaps, expected, rtol=1e-6, atol=1e-6)


def _model():
  x = tf.keras.Input([_FEATURES])
  embedding = tf.keras.layers.Dense(2, use_bias=False)(x)
  logits = tf.keras.layers.Dense(_C, use_bias=False)(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


@pytest.fixture(scope='module')
def model():
  return _model()


@st.composite
def _clients(draw):
  """Examples of one to three clients, some of them without any."""
  sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
  return [
    (
      draw(strategies.arrays([size, _FEATURES])),
      draw(strategies.labels([size], _C)),
    )
    for size in sizes
  ]


_WEIGHTS = st.builds(
  lambda *trainable: ModelWeights(list(trainable), []),
  strategies.arrays([_FEATURES, 2]),
  strategies.arrays([2, _C]),
)


class TestEvaluators:
  @strategies.costly
  @given(data=st.data(), clients=_clients(), weights=_WEIGHTS)
  def test_they_agree_with_the_functions(self, model, data, clients, weights):
    x = np.concatenate([x for x, _ in clients])
    y = np.concatenate([y for _, y in clients])
    ids = np.repeat(range(len(clients)), [len(y) for _, y in clients])
    first, second = map(np.float64, weights.trainable)
    embedded = metrics.embeddings(model, weights, x)
    np.testing.assert_allclose(embedded, x @ first, rtol=1e-4, atol=1e-4)

    def same(found, expected):
      for name in ('num_examples', 'loss'):
        np.testing.assert_allclose(
          getattr(found, name), getattr(expected, name), rtol=1e-3, atol=1e-3
        )

    # Predictions may differ where two logits are nearly equal: losses do not.
    expected = metrics.score_predictions(
      x @ first @ second, y, ids, len(clients)
    )
    evaluator = metrics.Evaluator(model, clients)
    same(evaluator.evaluate_global(weights), expected)
    rows = tf.nest.map_structure(
      lambda w: np.stack([w] * len(clients)), weights
    )
    same(evaluator.evaluate_clients(rows), expected)
    server = metrics.ServerEvaluator(model, (x, y), len(clients))
    pooled = metrics.score_predictions(
      x @ first @ second, y, np.zeros_like(y), 1
    )
    for found in (
      server.evaluate_global(weights),
      server.evaluate_clients(rows),
    ):
      assert found.num_examples.tolist() == [len(y)] * len(clients)
      expected_loss = np.repeat(pooled.loss, len(clients))
      np.testing.assert_allclose(
        found.loss, expected_loss, rtol=1e-3, atol=1e-3
      )
    centroids = {
      'sums': data.draw(strategies.arrays([_C, 2])),
      'counts': data.draw(strategies.labels([_C], 3)),
    }
    by_centroid = evaluator.evaluate_global(weights, centroids)
    assert np.isnan(by_centroid.loss).all()
    np.testing.assert_array_equal(
      by_centroid.num_examples, expected.num_examples
    )
