import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import models

ModelWeights = tff.learning.models.ModelWeights

_SEED = tf.constant([3, 4])


def _model_fn():
  """Batch normalisation and dropout before a linear encoder and classifier."""
  return linear_task.embedding_behind_batch_norm_model_fn(0.5)


@pytest.fixture(scope='module', name='model')
def _model():
  return models.StatelessModel(_model_fn)


def _weights(model, seed):
  rng = np.random.default_rng(seed)
  # Variances are positive.
  return tf.nest.map_structure(
    lambda w: tf.constant(rng.uniform(0.5, 1.5, w.shape), tf.float32),
    model.initial_weights,
  )


def _x():
  return tf.random.stateless_normal([6, linear_task.NUM_FEATURES], [1, 2])


def _assert_close(found, expected):
  tf.nest.map_structure(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected
  )


def test_parted_is_the_inverse_of_joined(model):
  pair = models.PairedModel(model)
  first, second = _weights(model, 0), _weights(model, 1)
  joined = pair.joined(first, second)
  assert len(joined.trainable) == 2 * len(first.trainable)
  assert len(joined.non_trainable) == 2 * len(first.non_trainable)
  for found, expected in zip(pair.parted(joined), (first, second), strict=True):
    assert isinstance(found, ModelWeights)
    linear_task.assert_equal(found, expected)


@pytest.mark.parametrize('training', [False, True])
def test_each_copy_is_the_model_alone(training):
  model = models.StatelessModel(
    linear_task.embedding_behind_batch_norm_model_fn
  )
  pair = models.PairedModel(model)
  parts = _weights(model, 0), _weights(model, 1)
  outputs, statistics = pair(
    pair.joined(*parts), _x(), training=training, seed=_SEED
  )
  assert list(outputs) == ['first', 'second']
  moved = np.split(np.array(statistics), 2)
  for name, weights, own in zip(outputs, parts, moved, strict=True):
    expected, alone = model(weights, _x(), training=training, seed=_SEED)
    _assert_close(outputs[name], expected)
    _assert_close(list(own), alone)


def test_the_first_copy_has_the_dropout_that_it_would_have_alone(model):
  pair = models.PairedModel(model)
  weights = _weights(model, 0)
  outputs, _ = pair(
    pair.joined(weights, weights), _x(), training=True, seed=_SEED
  )
  alone, _ = model(weights, _x(), training=True, seed=_SEED)
  linear_task.assert_equal(outputs['first'], alone)
  # The second copy has different masks.
  gap = outputs['first']['logits'] - outputs['second']['logits']
  assert np.abs(gap).max() > 0.1


def test_batch_norm_is_that_of_the_model(model):
  assert models.PairedModel(model).has_batch_norm
  linear = models.StatelessModel(linear_task.model_fn)
  assert not models.PairedModel(linear).has_batch_norm
