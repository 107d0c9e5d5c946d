"""Tests of CoRe-Fed's comparison of embeddings."""

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import losses
from tff_fair.tensors import geometry

_EVERYBODY = [True, True]


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


class TestNormalized:
  def test_length_1_and_zero_stays(self):
    np.testing.assert_allclose(
      geometry.normalized([[3.0, 4.0], [0.0, 0.0]]), [[0.6, 0.8], [0, 0]]
    )

  def test_the_gradient_of_a_zero_vector_is_finite(self):
    vectors = tf.zeros([2, 3])
    with tf.GradientTape() as tape:
      tape.watch(vectors)
      total = tf.reduce_sum(geometry.normalized(vectors))
    assert np.isfinite(tape.gradient(total, vectors)).all()


def test_cosines():
  vectors = [[1.0, 0.0], [0.0, -2.0], [1e-9, 1e-9], [0.0, 0.0]]
  np.testing.assert_allclose(
    geometry.cosines(vectors, [0.0, 5.0]),
    [0, -1, 0.5**0.5, 0],
    atol=1e-6,
  )


class TestContrastiveLoss:
  def test_by_hand(self):
    # cos(z, z_g) = .894427, cos(z, z_1) = .6, both by .5.
    loss = _contrastive([1.0, 0.0], [[0.6, 0.8]], [True])
    assert loss == pytest.approx(1.2 - 1.788854, abs=1e-6)

  def test_with_the_positive_in_the_denominator(self):
    loss = _contrastive([1.0, 0.0], [[0.6, 0.8]], [True], include_positive=True)
    expected = np.log(1 + np.exp(1.2 - 1.788854))
    assert loss == pytest.approx(expected, abs=1e-6)

  def test_only_negatives_count(self):
    negatives = [[0.6, 0.8], [1.0, 0.0]]
    alone = _contrastive([1.0, 0.0], negatives[:1], [True])
    assert _contrastive([1.0, 0.0], negatives, [True, False]) == alone
    assert _contrastive([1.0, 0.0], negatives, _EVERYBODY) > alone

  @pytest.mark.parametrize('include_positive', [False, True])
  def test_without_negatives_it_is_0_and_pulls_nowhere(self, include_positive):
    embedding = tf.constant([1.0, 0.0])
    with tf.GradientTape() as tape:
      tape.watch(embedding)
      loss = losses.contrastive_loss(
        embedding,
        [0.8, 0.4],
        [[0.6, 0.8]],
        [False],
        temperature=0.07,
        include_positive=include_positive,
      )
    assert float(loss) == 0
    np.testing.assert_array_equal(tape.gradient(loss, embedding), [0, 0])

  def test_its_gradient_points_from_the_negative_to_the_positive(self):
    embedding = tf.constant([1.0, 0.0])
    with tf.GradientTape() as tape:
      tape.watch(embedding)
      loss = losses.contrastive_loss(
        embedding, [0.0, 1.0], [[0.0, -1.0]], [True], temperature=1.0
      )
    # Uphill is towards the negative, and along the circle.
    np.testing.assert_allclose(
      tape.gradient(loss, embedding), [0, -2], atol=1e-6
    )


class TestRefined:
  def test_by_hand(self):
    refined = geometry.refined(
      tf.constant([[1, 0], [0.6, 0.8]], tf.float64),
      tf.constant([0.8, 0.4], tf.float64),
      0.5,
    )
    np.testing.assert_allclose(
      refined, [[0.857771, 0.178885], [0.657771, 0.578885]], atol=1e-6
    )

  @pytest.mark.parametrize(
    ('beta', 'expected'), [(0.0, [2.0, 0.0]), (1.0, [0.0, 0.0])]
  )
  def test_limits(self, beta, expected):
    refined = geometry.refined(tf.constant([2.0, 0.0]), [0.0, 3.0], beta)
    np.testing.assert_allclose(refined, expected, atol=1e-6)


class TestLargeVectors:
  # Squares of 1e30 are infinite in float32.
  _LARGE = np.float32([[3e30, 4e30], [1e30, 0.0]])

  def test_they_have_a_direction(self):
    np.testing.assert_allclose(
      geometry.normalized(self._LARGE), [[0.6, 0.8], [1, 0]], rtol=1e-6
    )
    np.testing.assert_allclose(
      geometry.cosines(self._LARGE, [3.0, 4.0]), [1, 0.6], rtol=1e-6
    )

  def test_their_gradient_is_that_of_small_ones_by_the_factor(self):
    def gradient(vectors):
      with tf.GradientTape() as tape:
        tape.watch(vectors)
        first = geometry.normalized(vectors)[:, 0]
      return tape.gradient(first, vectors)

    small = gradient(tf.constant(self._LARGE / 1e30))
    large = gradient(tf.constant(self._LARGE))
    np.testing.assert_allclose(large * 1e30, small, rtol=1e-5)


@pytest.mark.parametrize(
  ('vectors', 'reference', 'error', 'message'),
  [
    (
      [[1.0, 2.0]],
      [1.0],
      ValueError,
      r'reference must be vectors of the shape',
    ),
    ([1, 2], [1, 2], TypeError, 'vectors must be of a float type, found int32'),
    (
      1.0,
      [1.0],
      ValueError,
      r'vectors must be vectors of the shape \[..., p\]',
    ),
  ],
)
def test_what_has_no_cosine(vectors, reference, error, message):
  with pytest.raises(error, match=message):
    geometry.cosines(vectors, reference)
