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
_EXAMPLES = [
  (np.array(_X, np.float32), np.array([0, 1, 0], np.int32)),
  (np.zeros([0, 1], np.float32), np.zeros([0], np.int32)),
  (np.array(_X, np.float32), np.array([1, 1, 1], np.int32)),
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
  np.testing.assert_array_equal(scores.num_examples, [3, 0, 3])
  np.testing.assert_allclose(scores.accuracy, [1, math.nan, 1 / 3])
  # Client 2: class 0 is predicted twice and never true, class 1 found once.
  np.testing.assert_allclose(scores.f1, [1, math.nan, (0 + 2 / 4) / 2])
  right = (2 * _loss(3) + _loss(0)) / 3
  wrong = (_loss(-3) + _loss(3) + _loss(0)) / 3
  np.testing.assert_allclose(scores.loss, [right, math.nan, wrong], rtol=1e-6)
  assert scores.pooled['accuracy'] == pytest.approx(4 / 6)
  assert scores.pooled['loss'] == pytest.approx((right + wrong) / 2)
  # Pooled confusion [[2, 0], [2, 2]]: F1 4/6 and 4/6.
  assert scores.pooled['f1'] == pytest.approx(2 / 3)


def test_client_models():
  table = ModelWeights([np.stack([_KERNEL, _KERNEL, -_KERNEL])], [])
  scores = metrics.Evaluator(_model(), _EXAMPLES).evaluate_clients(table)
  # Client 2's own model says 1, 0, 0 (the tie) where 1, 1, 1 is true.
  np.testing.assert_allclose(scores.accuracy, [1, math.nan, 1 / 3])
  wrong = (_loss(3) + _loss(-3) + _loss(0)) / 3
  assert scores.loss[2] == pytest.approx(wrong, rel=1e-6)
  # Pooled confusion [[2, 0], [2, 2]].
  assert scores.pooled['f1'] == pytest.approx(2 / 3)


def test_batches_do_not_matter():
  x = np.random.default_rng(0).normal(size=[2500, 1]).astype(np.float32)
  y = (x[:, 0] < 0).astype(np.int32)
  scores = metrics.Evaluator(_model(), [(x, y)]).evaluate_global(
    ModelWeights([_KERNEL], [])
  )
  assert scores.accuracy == [1] and scores.num_examples == [2500]


def test_no_test_data_at_all():
  scores = metrics.Evaluator(_model(), _EXAMPLES[1:2]).evaluate_global(
    ModelWeights([_KERNEL], [])
  )
  assert math.isnan(scores.accuracy[0]) and math.isnan(scores.pooled['loss'])


def test_clients_without_test_data_and_layers_that_fail_on_an_empty_batch():
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


def test_label_out_of_range():
  with pytest.raises(ValueError, match=r'labels must lie in 0\.\.1, found 2'):
    metrics.score_predictions([[0.0, 1.0]], [2], [0], 1)


_SHARED = (np.array(_X, np.float32), np.array([0, 1, 1], np.int32))


def test_server_data_global_model_is_every_client_s():
  evaluator = metrics.ServerEvaluator(_model(), _SHARED, 2)
  scores = evaluator.evaluate_global(ModelWeights([_KERNEL], []))
  # The tie at 0 is taken for class 0. Confusion [[1, 0], [1, 1]].
  np.testing.assert_array_equal(scores.num_examples, [3, 3])
  np.testing.assert_allclose(scores.accuracy, [2 / 3] * 2)
  np.testing.assert_allclose(scores.f1, [2 / 3] * 2)
  loss = (2 * _loss(3) + _loss(0)) / 3
  np.testing.assert_allclose(scores.loss, [loss] * 2, rtol=1e-6)
  assert scores.pooled == pytest.approx(
    {'accuracy': 2 / 3, 'f1': 2 / 3, 'loss': loss}
  )


def test_server_data_each_client_s_own_model():
  evaluator = metrics.ServerEvaluator(_model(), _SHARED, 3)
  table = ModelWeights([np.stack([_KERNEL, -_KERNEL, 2 * _KERNEL])], [])
  scores = evaluator.evaluate_clients(table)
  np.testing.assert_allclose(scores.accuracy, [2 / 3, 0, 2 / 3])
  # Confusion [[1, 0], [1, 1]], then [[0, 1], [2, 0]].
  np.testing.assert_allclose(scores.f1, [2 / 3, 0, 2 / 3])
  losses = [(2 * _loss(3 * factor) + _loss(0)) / 3 for factor in (1, -1, 2)]
  np.testing.assert_allclose(scores.loss, losses, rtol=1e-6)
  assert scores.pooled['accuracy'] == pytest.approx(4 / 9)
  assert scores.pooled['loss'] == pytest.approx(np.mean(losses))
  # Pooled confusion [[2, 1], [4, 2]]: F1 4/9 and 4/9.
  assert scores.pooled['f1'] == pytest.approx(4 / 9)


def test_server_data_score_as_clients_that_all_hold_them():
  rng = np.random.default_rng(0)
  x = rng.normal(size=[1500, 1]).astype(np.float32)
  y = rng.integers(0, 2, 1500).astype(np.int32)
  table = ModelWeights([rng.normal(size=[4, 1, 2]).astype(np.float32)], [])
  shared = metrics.ServerEvaluator(_model(), (x, y), 4)
  copied = metrics.Evaluator(_model(), [(x, y)] * 4)
  found, expected = (e.evaluate_clients(table) for e in (shared, copied))
  np.testing.assert_equal(found._asdict(), expected._asdict())
