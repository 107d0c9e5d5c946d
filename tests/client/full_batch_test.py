import collections
import dataclasses

import numpy as np
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import client
from tff_fair import models
from tff_fair.client import full_batch

_MODEL = models.StatelessModel(linear_task.model_fn)


def _examples(data):
  return collections.OrderedDict(
    x=tf.constant(data.x), y=tf.constant(data.y, tf.int32)
  )


_loss = reference.LINEAR.loss


def _gradient(w, data, gamma=0.0):
  return reference.gradient(lambda v: _loss(v, data, gamma), w)


def _scaled(data):
  """As batch normalisation of variance 1 gives it."""
  return dataclasses.replace(data, x=data.x / np.sqrt(1.001))


def test_against_numpy():
  (data,) = linear_task.make_clients([7])
  w = linear_task.start()
  right = reference.LINEAR.right(w, data.x, data.y)
  for batch_size in (3, 7, 200):
    arguments = _MODEL, _MODEL.initial_weights, _examples(data), batch_size
    for gamma in (0.0, 1.5):
      gradient, metrics = client.mean_gradient(*arguments, gamma)
      found, expected = linear_task.vector(gradient), _gradient(w, data, gamma)
      np.testing.assert_allclose(found, expected, atol=1e-6)
      assert metrics['loss'] == client.mean_loss(*arguments, gamma)
    loss = client.mean_loss(*arguments)
    np.testing.assert_allclose(loss, _loss(w, data), rtol=1e-6)
    np.testing.assert_allclose(metrics['accuracy'], right.mean(), rtol=1e-6)


def test_the_gradient_of_an_embedding_by_hand():
  x = tf.keras.Input([1])
  rows = tf.keras.layers.Embedding(3, 2, embeddings_initializer='zeros')(x)
  outputs = tf.keras.layers.Flatten()(rows)
  model = models.StatelessModel(lambda: tf.keras.Model(x, outputs))
  examples = collections.OrderedDict(
    x=tf.constant([[1.0], [0.0], [1.0]]), y=tf.constant([0, 1, 0])
  )
  (gradient,), _ = client.mean_gradient(model, model.initial_weights, examples)
  # Logits are 0, so each of three examples has (p - y) / 3 = -+ 1 / 6.
  expected = [[1 / 6, -1 / 6], [-2 / 6, 2 / 6], [0, 0]]
  np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_no_examples():
  (data,) = linear_task.make_clients([0])
  gradient, metrics = client.mean_gradient(
    _MODEL, _MODEL.initial_weights, _examples(data)
  )
  assert all(np.all(g == 0) for g in gradient)
  assert metrics == {'loss': 0, 'accuracy': 0}


def test_inference_mode():
  """Moving statistics, here mean 0 and variance 1, not those of the batch."""
  model = models.StatelessModel(linear_task.batch_norm_model_fn)
  weights = model.initial_weights
  (data,) = linear_task.make_clients([7])
  kernel = np.eye(linear_task.NUM_FEATURES, linear_task.NUM_CLASSES)
  *others, _, bias = weights.trainable
  weights.trainable[:] = [*others, kernel.astype(np.float32), bias]
  linear = np.append(kernel / np.sqrt(1.001), np.zeros(3))
  np.testing.assert_allclose(
    client.mean_loss(model, weights, _examples(data)),
    _loss(linear, data),
    rtol=1e-5,
  )


# None, fewer than a batch of 4, exactly a batch, more, and just two batches.
_SIZES = {0: [], 3: [3], 4: [4], 7: [4, 3], 8: [4, 4], 9: [4, 4, 1]}


def test_mapping():
  taken = []

  def square(x):
    taken.append(len(x))
    return x**2

  for size, batches in _SIZES.items():
    x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    taken.clear()
    found = full_batch.map_over_batches(square, tf.constant(x), [2], 4)
    assert found.dtype == tf.float32
    np.testing.assert_array_equal(found, x**2)
    # No more than a batch at once.
    assert taken == batches


def _trained_weights(model, seed=0):
  """Weights of a linear model other than the first."""
  rng = np.random.default_rng(seed)
  weights = model.initial_weights
  kernel = rng.normal(size=[linear_task.NUM_FEATURES, linear_task.NUM_CLASSES])
  bias = rng.normal(size=[linear_task.NUM_CLASSES])
  *others, _, _ = weights.trainable
  weights.trainable[:] = [
    *others,
    kernel.astype(np.float32),
    bias.astype(np.float32),
  ]
  return weights, np.append(kernel, bias)


class TestLogitsOfExamples:
  def test_against_numpy(self):
    model = models.StatelessModel(linear_task.model_fn)
    weights, linear = _trained_weights(model)
    for size in (0, 7, 403):
      (data,) = linear_task.make_clients([size], holdout=0)
      found = client.logits_of_examples(model, weights, tf.constant(data.x))
      assert found.shape == [size, linear_task.NUM_CLASSES]
      np.testing.assert_allclose(
        found, reference.LINEAR.logits(linear, data.x), rtol=1e-5, atol=1e-5
      )

  def test_inference_mode(self):
    model = models.StatelessModel(linear_task.batch_norm_model_fn)
    (data,) = linear_task.make_clients([7])
    weights, linear = _trained_weights(model)
    np.testing.assert_allclose(
      client.logits_of_examples(model, weights, tf.constant(data.x)),
      reference.LINEAR.logits(linear, _scaled(data).x),
      rtol=1e-5,
      atol=1e-5,
    )


class TestBatchLosses:
  def test_of_minibatches_in_their_order(self):
    for size in _SIZES:
      (data,) = linear_task.make_clients([size], holdout=0)
      found = client.batch_losses(
        _MODEL, _MODEL.initial_weights, _examples(data), 4, 5
      ).numpy()
      expected = np.zeros(5)
      for i in range(len(_SIZES[size])):
        rows = slice(4 * i, 4 * i + 4)
        batch = linear_task.Client(data.x[rows], data.y[rows], None, None)
        expected[i] = _loss(linear_task.start(), batch)
      assert found.dtype == np.float32
      np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_fisher_trace_sums_over_minibatches_in_their_order():
  for size in _SIZES:
    (data,) = linear_task.make_clients([size], holdout=0)
    expected = 0.0
    for i in range(len(_SIZES[size])):
      rows = slice(4 * i, 4 * i + 4)
      batch = linear_task.Client(data.x[rows], data.y[rows], None, None)
      expected += np.sum(_gradient(linear_task.start(), batch) ** 2)
    found = client.fisher_trace(
      _MODEL, _MODEL.initial_weights, _examples(data), 4
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
