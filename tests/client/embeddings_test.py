"""Tests of embeddings: their mean, each, and their sums by class."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import client
from tff_fair import models


def _double() -> tf.keras.Model:
  """An embedding that is twice the input."""
  x = tf.keras.Input([2])
  embedding = tf.keras.layers.Dense(
    2, use_bias=False, kernel_initializer=lambda *_, **__: 2 * tf.eye(2)
  )(x)
  logits = tf.keras.layers.Dense(3)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def _mean(x, normalize):
  model = models.StatelessModel(_double)
  x = tf.constant(x, tf.float32)
  return client.mean_embedding(
    model, model.initial_weights, x, normalize=normalize
  ).numpy()


def test_several_batches_are_one_mean():
  x = np.random.default_rng(0).normal(size=[501, 2])
  x[7] = 0  # Counts, with direction 0.
  unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
  for normalize, rows in ((False, 2 * x), (True, unit)):
    np.testing.assert_allclose(_mean(x, normalize), rows.mean(0), atol=1e-6)
  np.testing.assert_array_equal(_mean(x[:0], True), [0, 0])


def _moved():
  """Statistics and a dropout that inference must not take from the batch."""
  x = tf.keras.Input([2])
  h = tf.keras.layers.BatchNormalization(epsilon=0.0)(x)
  embedding = tf.keras.layers.Dropout(0.5)(h)
  logits = tf.keras.layers.Dense(3)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


@functools.cache
def _traced(name):
  """`client.embed_examples` or `client.class_sums`, traced for any number."""
  model = models.StatelessModel(_double)
  x = tf.TensorSpec([None, 2], tf.float32)
  if name == 'class_sums':
    y = tf.TensorSpec([None], tf.int32)
    x = collections.OrderedDict(x=x, y=y)
  return tf.function(
    lambda examples: getattr(client, name)(
      model, model.initial_weights, examples
    ),
    input_signature=[x],
  )


class TestEmbedExamples:
  def test_each_in_its_place(self):
    for n in (0, 1, 199, 200, 201, 501):
      x = np.random.default_rng(0).normal(size=[n, 2]).astype(np.float32)
      np.testing.assert_array_equal(_traced('embed_examples')(x), 2 * x)

  def test_inference_mode(self):
    model = models.StatelessModel(_moved)
    weights = model.initial_weights
    weights.non_trainable[:] = [np.float32([1, 2]), np.float32([4, 9])]
    x = np.array([[1, 2], [3, 2], [1, 5]], np.float32)
    np.testing.assert_allclose(
      client.embed_examples(model, weights, x), [[0, 0], [1, 0], [0, 1]]
    )


def _sums(x, y):
  examples = collections.OrderedDict(
    x=np.float32(x).reshape([-1, 2]), y=np.int32(y)
  )
  return _traced('class_sums')(examples)


@pytest.mark.parametrize('size', [0, 3, 501])
def test_class_sums(size):
  rng = np.random.default_rng(size)
  x, y = rng.normal(size=[size, 2]), rng.integers(0, 3, size)
  sums, counts = _sums(x, y)
  for label in range(3):
    np.testing.assert_allclose(
      sums[label], 2 * x[y == label].sum(axis=0), rtol=1e-4, atol=1e-4
    )
  np.testing.assert_array_equal(counts, np.bincount(y, minlength=3))
  assert (sums.dtype, counts.dtype) == (tf.float32, tf.int32)
