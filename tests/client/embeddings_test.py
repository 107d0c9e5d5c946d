"""Tests of mean embeddings."""

import collections

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


def test_mean():
  np.testing.assert_allclose(_mean([[3, 4], [0, 1]], False), [3, 5])


def test_mean_of_directions_counts_a_zero_embedding():
  x = [[3, 4], [0, 1], [0, 0]]
  np.testing.assert_allclose(_mean(x, True), [0.2, 0.6], rtol=1e-6)


@pytest.mark.parametrize('normalize', [False, True])
def test_several_batches_are_one_mean(normalize):
  x = np.random.default_rng(0).normal(size=[501, 2])
  rows = x / np.linalg.norm(x, axis=1, keepdims=True) if normalize else 2 * x
  np.testing.assert_allclose(_mean(x, normalize), rows.mean(0), atol=1e-6)


def test_no_examples():
  np.testing.assert_array_equal(_mean(np.zeros([0, 2]), True), [0, 0])


def test_a_model_without_embedding_is_refused():
  model = models.StatelessModel(
    lambda: tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
  )
  with pytest.raises(
    ValueError, match="'embedding' for build_x, found logits only"
  ):
    client.check_embedding('build_x', model)
