import numpy as np
import tensorflow as tf

from tests import refusals
from tff_fair.tensors import geometry
from tff_fair.tensors import shapes

# Squares of 1e30 are infinite in float32.
_LARGE = np.float32([[3e30, 4e30], [1e30, 0.0]])


def _gradient(fn, vectors):
  vectors = tf.constant(vectors, tf.float32)
  with tf.GradientTape() as tape:
    tape.watch(vectors)
    value = fn(vectors)
  return tape.gradient(value, vectors).numpy()


def test_normalized():
  np.testing.assert_allclose(
    geometry.normalized([[3.0, 4.0], [0.0, 0.0]]), [[0.6, 0.8], [0, 0]]
  )
  np.testing.assert_allclose(
    geometry.normalized(_LARGE), [[0.6, 0.8], [1, 0]], rtol=1e-6
  )
  # Below a length of 1e-12 it stays, and the gradient is finite.
  for short in (0.0, 1e-30):
    vectors = np.full([2, 3], short, np.float32)
    np.testing.assert_array_equal(geometry.normalized(vectors), vectors)
    assert np.isfinite(_gradient(geometry.normalized, vectors)).all()

  # The gradient of large vectors is that of small ones by the factor.
  def first(vectors):
    return geometry.normalized(vectors)[:, 0]

  np.testing.assert_allclose(
    _gradient(first, _LARGE) * 1e30, _gradient(first, _LARGE / 1e30), rtol=1e-5
  )


def test_a_shortened_vector_keeps_its_direction():
  vectors = np.float32([[3e38, -1e30], [1e30, 1e12], [8.0, 0.0], [0.0, 0.0]])
  shorter, scale = geometry.scale_down_large(vectors)
  assert np.isfinite(shorter**2).all()
  np.testing.assert_allclose(
    np.float64(shorter) * np.float64(scale), vectors, rtol=1e-6
  )


def test_cosines():
  vectors = [[1.0, 0.0], [0.0, -2.0], [1e-9, 1e-9], [0.0, 0.0], [0.0, 1e-30]]
  np.testing.assert_allclose(
    geometry.cosines(vectors, [0.0, 5.0]), [0, -1, 0.5**0.5, 0, 0], atol=1e-6
  )
  np.testing.assert_allclose(
    geometry.cosines(_LARGE, [3.0, 4.0]), [1, 0.6], rtol=1e-6
  )
  vectors[1] = [np.nan, 1.0]
  assert np.isnan(geometry.cosines(vectors, vectors)[1])


def test_refined():
  refined = geometry.refined(
    tf.constant([[1, 0], [0.6, 0.8]], tf.float64),
    tf.constant([0.8, 0.4], tf.float64),
    0.5,
  )
  np.testing.assert_allclose(
    refined, [[0.857771, 0.178885], [0.657771, 0.578885]], atol=1e-6
  )
  for rate, expected in ((0.0, [2.0, 0.0]), (1.0, [0.0, 0.0])):
    refined = geometry.refined(tf.constant([2.0, 0.0]), [0.0, 3.0], rate)
    np.testing.assert_allclose(refined, expected, atol=1e-6)


def test_vectors_that_do_not_fit():
  one = tf.ones([3, 2])
  refusals.check(
    geometry.cosines,
    [
      ({'reference': tf.ones([3, 1])}, ValueError, 'ce must be vectors of the'),
      ({'reference': tf.ones([3])}, ValueError, 'reference must be vectors of'),
      ({'reference': tf.cast(one, tf.float64)}, TypeError, 'must be float32'),
      ({'vectors': tf.ones([3, 2], tf.int32)}, TypeError, 'of a float type, f'),
      ({'vectors': tf.ones([])}, ValueError, r'of the shape \[..., p\], found'),
    ],
    vectors=one,
    reference=one,
  )
  labels = np.zeros(3, np.int32)
  refusals.check(
    shapes.check_labels,
    [
      ({'labels': labels[:1]}, ValueError, 'an entry for each row'),
      ({'labels': labels[:, np.newaxis]}, ValueError, 'an entry for each row'),
      ({'labels': np.int32(0)}, ValueError, 'an entry for each row'),
      ({'labels': labels.astype(np.float32)}, TypeError, 'must be integers'),
      ({'labels': labels.astype(bool)}, TypeError, 'must be integers'),
      ({'outputs': one[0]}, ValueError, 'an entry for each row'),
      ({'outputs': one[..., tf.newaxis]}, ValueError, 'an entry for each row'),
      ({'outputs': tf.cast(one, tf.int32)}, TypeError, 'of a float type'),
    ],
    labels=labels,
    outputs=one,
  )
