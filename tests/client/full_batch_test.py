import collections

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


def test_logits_of_examples():
  model = models.StatelessModel(linear_task.model_fn)
  weights = model.initial_weights
  rng = np.random.default_rng(0)
  weights.trainable[:] = [
    rng.normal(size=w.shape).astype(np.float32) for w in weights.trainable
  ]
  for size in (0, 7, 403):
    (data,) = linear_task.make_clients([size], holdout=0)
    found = client.logits_of_examples(model, weights, tf.constant(data.x))
    expected = reference.LINEAR.logits(
      linear_task.vector(weights.trainable), data.x
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_minibatches_in_their_order():
  for size, batches in _SIZES.items():
    (data,) = linear_task.make_clients([size], holdout=0)
    arguments = _MODEL, _MODEL.initial_weights, _examples(data), 4
    parts = [
      linear_task.Client(data.x[i : i + 4], data.y[i : i + 4], None, None)
      for i in range(0, size, 4)
    ]
    w = linear_task.start()
    expected = np.zeros(5)
    expected[: len(batches)] = [_loss(w, part) for part in parts]
    found = client.batch_losses(*arguments, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    trace = sum(np.sum(_gradient(w, part) ** 2) for part in parts)
    np.testing.assert_allclose(
      client.fisher_trace(*arguments), trace, rtol=1e-5
    )
