"""Tests of CoRe-Fed's contrastive loss of embeddings."""

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import losses


def _contrastive(embedding, negatives, is_negative, **options):
  return float(
    losses.contrastive_loss(
      tf.constant(embedding, tf.float64),
      tf.constant([0.8, 0.4], tf.float64),
      tf.constant(negatives, tf.float64),
      is_negative,
      temperature=0.5,
      **options,
    )
  )


def _gradient(positive, negative, is_negative, **options):
  embedding = tf.constant([1.0, 0.0])
  with tf.GradientTape() as tape:
    tape.watch(embedding)
    loss = losses.contrastive_loss(
      embedding, positive, [negative], [is_negative], **options
    )
  return float(loss), tape.gradient(loss, embedding)


def test_by_hand():
  # cos(z, z_g) = .894427, cos(z, z_1) = .6, both by .5.
  loss = _contrastive([1.0, 0.0], [[0.6, 0.8]], [True])
  assert loss == pytest.approx(1.2 - 1.788854, abs=1e-6)
  loss = _contrastive([1.0, 0.0], [[0.6, 0.8]], [True], include_positive=True)
  expected = np.log(1 + np.exp(1.2 - 1.788854))
  assert loss == pytest.approx(expected, abs=1e-6)


def test_only_negatives_count():
  negatives = [[0.6, 0.8], [1.0, 0.0]]
  alone = _contrastive([1.0, 0.0], negatives[:1], [True])
  assert _contrastive([1.0, 0.0], negatives, [True, False]) == alone
  assert _contrastive([1.0, 0.0], negatives, [True, True]) > alone


def test_without_negatives_value_and_gradient_are_0():
  for include_positive in (False, True):
    loss, gradient = _gradient(
      [0.8, 0.4],
      [0.6, 0.8],
      False,
      temperature=0.07,
      include_positive=include_positive,
    )
    assert loss == 0
    np.testing.assert_array_equal(gradient, [0, 0])


def test_the_gradient_points_from_the_positive_to_the_negative():
  _, gradient = _gradient([0.0, 1.0], [0.0, -1.0], True, temperature=1.0)
  # Tangential to the unit circle.
  np.testing.assert_allclose(gradient, [0, -2], atol=1e-6)
