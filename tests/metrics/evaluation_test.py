import collections
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import metrics

ModelWeights = tff.learning.models.ModelWeights

# With the kernel (1, 0) class 0 is predicted for positive x; with (-1, 0) for
# negative x. The tie at x = 0 goes to class 0.
_KERNEL = np.array([[1.0, 0.0]], np.float32)
_X = [[3.0], [-3.0], [0.0]]
# Of unequal numbers, so that a mean over examples is no mean over clients.
_EXAMPLES = [
  (np.array(_X, np.float32), np.array([0, 1, 1], np.int32)),
  (np.zeros([0, 1], np.float32), np.zeros([0], np.int32)),
  (np.array([[3.0]], np.float32), np.array([1], np.int32)),
]


def _model():
  x = tf.keras.Input([1])
  logits = tf.keras.layers.Dense(2, use_bias=False)(x)
  return tf.keras.Model(x, collections.OrderedDict(logits=logits))


def _loss(margin):
  """Cross-entropy of the class whose logit leads by `margin`."""
  return math.log1p(math.exp(-margin))


def test_global_model():
  scores = metrics.Evaluator(_model(), _EXAMPLES).evaluate_global(
    ModelWeights([_KERNEL], [])
  )
  np.testing.assert_array_equal(scores.num_examples, [3, 0, 1])
  np.testing.assert_allclose(scores.accuracy, [2 / 3, math.nan, 0])
  # Client 0: confusion [[1, 0], [1, 1]]. Client 2: no class found.
  np.testing.assert_allclose(scores.f1, [2 / 3, math.nan, 0])
  first = (2 * _loss(3) + _loss(0)) / 3
  last = _loss(-3)
  np.testing.assert_allclose(scores.loss, [first, math.nan, last], rtol=1e-6)
  # Over the four examples: clients' means would give 1/3 and other losses.
  assert scores.pooled['accuracy'] == pytest.approx(2 / 4)
  assert scores.pooled['loss'] == pytest.approx((3 * first + last) / 4)
  # Pooled confusion [[1, 0], [2, 1]]: F1 2/4 and 2/4.
  assert scores.pooled['f1'] == pytest.approx(1 / 2)


def test_client_models():
  table = ModelWeights([np.stack([_KERNEL, _KERNEL, -_KERNEL])], [])
  scores = metrics.Evaluator(_model(), _EXAMPLES).evaluate_clients(table)
  # Client 2's own model is right where the global one is wrong.
  np.testing.assert_allclose(scores.accuracy, [2 / 3, math.nan, 1])
  assert scores.loss[2] == pytest.approx(_loss(3), rel=1e-6)
  assert scores.pooled['accuracy'] == pytest.approx(3 / 4)
  # Pooled confusion [[1, 0], [1, 2]]: F1 2/3 and 4/5.
  assert scores.pooled['f1'] == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_a_stray_prediction_counts_in_one_of_the_two_f1():
  # True 0, 0, predicted 0, 1: F1 2/3 of class 0, and 0 of class 1.
  scores = metrics.score_predictions([[1, 0], [0, 1]], [0, 0], [0, 0], 1)
  np.testing.assert_allclose(scores.f1, [1 / 3])
  np.testing.assert_allclose(scores.f1_own_labels, [2 / 3])


def test_a_rare_class_weighs_little_in_the_weighted_f1():
  # True 0, 0, 0, 1, all predicted 0: F1 6/7 of class 0, and 0 of class 1.
  scores = metrics.score_predictions([[1, 0]] * 4, [0, 0, 0, 1], [0] * 4, 1)
  np.testing.assert_allclose(scores.f1, [3 / 7])
  np.testing.assert_allclose(scores.f1_weighted, [3 / 4 * 6 / 7])


def test_clients_without_test_data():
  # A layer that fails on an empty batch.
  x = tf.keras.Input([4, 4, 1])
  h = tf.keras.layers.Conv2D(32, 3, padding='same')(x)
  h = tf.keras.layers.Flatten()(tf.keras.layers.BatchNormalization()(h))
  model = tf.keras.Model(x, tf.keras.layers.Dense(2)(h))
  one = (np.ones([1, 4, 4, 1], np.float32), np.array([0]))
  none = (one[0][:0], one[1][:0])
  table = tf.nest.map_structure(
    lambda w: np.stack([w.numpy()] * 2),
    ModelWeights(model.trainable_variables, model.non_trainable_variables),
  )
  scores = metrics.Evaluator(model, [one, none]).evaluate_clients(table)
  np.testing.assert_array_equal(np.isnan(scores.accuracy), [False, True])
  scores = metrics.Evaluator(model, [none]).evaluate_clients(table)
  assert math.isnan(scores.accuracy[0]) and math.isnan(scores.pooled['loss'])


def test_logits_that_are_not_finite_have_no_loss_and_no_warning(recwarn):
  """exp(inf - inf) is NaN; -inf is a class that is never predicted."""
  inf = math.inf
  logits = [[inf, 0], [math.nan, 0], [0, -inf], [0, -inf], [0, 0]]
  scores = metrics.score_predictions(logits, [0, 1, 0, 1, 1], range(5), 5)
  expected = [math.nan, math.nan, 0, inf, math.log(2)]
  np.testing.assert_allclose(scores.loss, expected)
  nan = math.nan
  np.testing.assert_array_equal(scores.accuracy, [nan, nan, 1, 0, 0])
  for name in ('f1', 'f1_own_labels', 'f1_weighted'):
    found = np.isnan(getattr(scores, name))
    assert found.tolist() == [True, True, False, False, False]
  assert all(math.isnan(value) for value in scores.pooled.values())
  assert not recwarn.list


_SHARED = (np.array(_X, np.float32), np.array([0, 1, 1], np.int32))


def test_server_data_score_as_clients_that_all_hold_them():
  rng = np.random.default_rng(0)
  x = rng.normal(size=[1500, 1]).astype(np.float32)
  y = rng.integers(0, 2, 1500).astype(np.int32)
  table = ModelWeights([rng.normal(size=[4, 1, 2]).astype(np.float32)], [])
  shared = metrics.ServerEvaluator(_model(), (x, y), 4)
  copied = metrics.Evaluator(_model(), [(x, y)] * 4)
  one = ModelWeights([table.trainable[0][0]], [])
  for name, weights in (('evaluate_clients', table), ('evaluate_global', one)):
    found, expected = (getattr(e, name)(weights) for e in (shared, copied))
    for field in {*found._fields} - {'predicted'}:
      np.testing.assert_equal(getattr(found, field), getattr(expected, field))


def _embedding_model():
  """An embedding `x A`, and a classifier that always predicts class 0."""
  x = tf.keras.Input([2])
  embedding = tf.keras.layers.Dense(3, use_bias=False)(x)
  logits = tf.keras.layers.Dense(4, kernel_initializer='zeros')(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


_ENCODER = np.array([[1, 2, -1], [0.5, -1, 2]], np.float32)
# Of the encoder, and the classifier's kernel and bias.
_EMBEDDING_WEIGHTS = ModelWeights(
  [
    _ENCODER,
    np.zeros([3, 4], np.float32),
    np.array([1, 0, 0, 0], np.float32),
  ],
  [],
)


def _centroids(means, counts):
  counts = np.array(counts, np.int32)
  sums = np.array(means, np.float32) * counts[:, np.newaxis]
  return collections.OrderedDict(sums=sums, counts=counts)


class TestNearestCentroidLogits:
  def test_against_brute_force(self):
    rng = np.random.default_rng(0)
    # Far from 0 and of unequal lengths: the inner product or the angle alone
    # would give other classes.
    z = 5 + rng.normal(size=[500, 3]) * [1, 2, 3]
    means = 5 + rng.normal(size=[6, 3]) * [3, 2, 1]
    counts = np.array([1, 2, 30, 4, 500, 6])
    found = metrics.nearest_centroid_logits(
      z, {'sums': means * counts[:, np.newaxis], 'counts': counts}
    )
    assert found.shape == (500, 6) and found.dtype == np.float64
    squares = np.sum((z[:, np.newaxis] - means) ** 2, axis=2)
    np.testing.assert_array_equal(found.argmax(axis=1), squares.argmin(axis=1))
    # The whole order: the logits differ from it by |z|^2.
    np.testing.assert_allclose(
      found - np.sum(z**2, axis=1, keepdims=True), -squares, atol=1e-9
    )
    assert set(found.argmax(axis=1)) == set(range(6))

  def test_a_class_without_examples_is_never_predicted(self):
    # Its centroid would be 0, or what remains in its sum.
    centroids = _centroids([[0, 0], [3, 0], [0, 0]], [0, 1, 0])
    centroids['sums'][2] = [0.1, 0.1]
    logits = metrics.nearest_centroid_logits(
      np.array([[0, 0], [0.1, 0.1], [-9, 0]], np.float32), centroids
    )
    np.testing.assert_array_equal(logits.argmax(axis=1), [1, 1, 1])
    assert np.all(np.isneginf(logits[:, [0, 2]]))
    assert np.all(np.isfinite(logits[:, 1]))
    nothing = metrics.nearest_centroid_logits(
      [[1.0, 2.0]], _centroids([[0, 0], [0, 0]], [0, 0])
    )
    np.testing.assert_array_equal(nothing, [[math.nan, math.nan]])


def _centroid_task():
  """Examples of three clients, one without any, and four centroids.

  Class 3 has no training examples; a tenth of the test examples are of it.
  """
  rng = np.random.default_rng(1)
  x = rng.normal(size=[400, 2]).astype(np.float32)
  y = rng.integers(0, 4, 400).astype(np.int32)
  means = np.float32([[1, 2, -1], [-1, 0, 1], [0.5, -1, 2], [0, 0, 0]])
  return x, y, means, _centroids(means, [5, 2, 30, 0])


def _nearest(x, means):
  """The class, below 3, of the nearest centroid."""
  z = x.astype(np.float64) @ _ENCODER
  return np.array(
    [min(range(3), key=lambda c: np.linalg.norm(v - means[c])) for v in z]
  )


def test_nearest_centroids_score_clients_examples():
  x, y, means, centroids = _centroid_task()
  examples = [(x[:100], y[:100]), (x[:0], y[:0]), (x[100:], y[100:])]
  evaluator = metrics.Evaluator(_embedding_model(), examples)
  scores = evaluator.evaluate_global(_EMBEDDING_WEIGHTS, centroids)
  predicted = _nearest(x, means)
  assert set(predicted) == {0, 1, 2}
  expected = metrics.score_predictions(
    np.eye(4)[predicted], y, [0] * 100 + [2] * 300, 3
  )
  right = predicted == y
  np.testing.assert_allclose(
    scores.accuracy, [right[:100].mean(), math.nan, right[100:].mean()]
  )
  np.testing.assert_array_equal(scores.num_examples, [100, 0, 300])
  np.testing.assert_array_equal(scores.f1, expected.f1)
  np.testing.assert_array_equal(scores.f1_own_labels, expected.f1_own_labels)
  assert scores.pooled['accuracy'] == pytest.approx(right.mean())
  assert scores.pooled['f1'] == expected.pooled['f1']
  assert np.isnan([*scores.loss, scores.pooled['loss']]).all()
  # The classifier, which always predicts class 0, is still there.
  plain = evaluator.evaluate_global(_EMBEDDING_WEIGHTS)
  assert plain.pooled['accuracy'] == pytest.approx(np.mean(y == 0))
  assert math.isfinite(plain.pooled['loss'])


def test_refusals():
  weights = ModelWeights([_KERNEL], [])
  centroids = _centroids([[1], [2]], [1, 1])
  local = metrics.Evaluator(_model(), _EXAMPLES)
  server = metrics.ServerEvaluator(_model(), _SHARED, 2)
  two_inputs = np.ones([2, 1]), np.zeros(1, np.int32)
  no_number = np.full([1, 1], np.nan), np.zeros(1, np.int32)
  logits, nearest = metrics.score_predictions, metrics.nearest_centroid_logits
  no_embedding = r"^The model must have an output 'embedding', found none\.$"
  shapes = r'the shapes \[n, p\], \[C, p\] and \[C\]'
  for function, arguments, message in (
    (local.evaluate_global, (weights, centroids), no_embedding),
    (server.evaluate_global, (weights, centroids), no_embedding),
    (metrics.embeddings, (_model(), weights, _X), no_embedding),
    (logits, ([0.5, 0.5], [0], [0], 1), 'logits must have the shape'),
    (logits, ([[[0.5]]], [0], [0], 1), 'logits must have the shape'),
    (logits, (np.zeros([1, 0]), [0], [0], 1), 'logits must have the shape'),
    (logits, ([[0, 1]], [0, 1], [0, 0], 1), 'must be vectors of one length'),
    (logits, ([[0.0, 1.0]], [2], [0], 1), r'labels must lie in 0\.\.1, found'),
    (metrics.Evaluator, (_model(), []), 'at least one client, found none'),
    (metrics.Evaluator, (_model(), [two_inputs]), 'as many inputs as labels'),
    (metrics.ServerEvaluator, (_model(), two_inputs, 1), 'as many inputs as'),
    (
      metrics.Evaluator,
      (_model(), [_SHARED, no_number]),
      r'part of client 1 .* finite inputs, .* 1 others, the first nan at',
    ),
    (metrics.ServerEvaluator, (_model(), no_number, 1), "The server's part"),
    (metrics.ServerEvaluator, (_model(), _SHARED, 0), 'num_clients must be at'),
    (nearest, ([[1.0, 2.0]], centroids), shapes),
    (nearest, ([1.0], centroids), shapes),
    (nearest, ([[1.0]], {'sums': [[1.0]] * 3, 'counts': [1]}), shapes),
  ):
    with pytest.raises(ValueError, match=message):
      print(function, arguments, function(*arguments))
  # Without centroids, the classifier still works.
  assert not np.isnan(local.evaluate_global(weights).pooled['loss'])
