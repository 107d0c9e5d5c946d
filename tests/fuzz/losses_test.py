"""The losses, against their formulas in float64."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import special
import tensorflow as tf

from tests.fuzz import strategies
from tff_fair import losses
from tff_fair.tensors import geometry

pytestmark = pytest.mark.full

_N, _P, _C = 3, 2, 4
_VECTORS = strategies.arrays([_N, _P])
_LARGE_VECTORS = strategies.arrays([_N, _P], strategies.EXTREME)
_MASKS = strategies.arrays([_N], st.booleans(), bool)


def _close(found, expected, rtol=1e-4):
  np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-4)


def _gradient(loss, *arguments):
  """The value, and the gradient with respect to the first argument."""
  first, *others = map(tf.convert_to_tensor, arguments)
  with tf.GradientTape() as tape:
    tape.watch(first)
    value = loss(first, *others)
  return value.numpy(), tape.gradient(value, first).numpy()


def _unit(vectors):
  vectors = np.asarray(vectors, np.float64)
  lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
  # Near the bound, the last bits decide.
  return vectors / np.where(lengths > 1e-12, lengths, 1)


def _distances(u, v):
  return np.linalg.norm(np.float64(u) - np.float64(v), axis=-1)


class TestDirections:
  @given(_LARGE_VECTORS)
  def test_a_vector_has_length_1_or_is_too_short(self, vectors):
    found, gradient = _gradient(geometry.normalized, vectors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, _unit(vectors), rtol=1e-5, atol=1e-6)
    assert np.isfinite(gradient).all()

  @given(_LARGE_VECTORS)
  def test_a_shortened_vector_keeps_its_direction(self, vectors):
    shorter, scale = map(np.float64, geometry.scale_down_large(vectors))
    np.testing.assert_allclose(
      shorter * scale, vectors, rtol=1e-6, atol=1e-30 * scale.max()
    )
    assert np.isfinite(np.float32(shorter) ** 2).all()

  @given(_LARGE_VECTORS, _LARGE_VECTORS)
  def test_cosines(self, vectors, references):
    found = geometry.cosines(vectors, references).numpy()
    expected = np.sum(_unit(vectors) * _unit(references), axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found).max() <= 1 + 1e-6
    np.testing.assert_array_equal(found, geometry.cosines(references, vectors))

  @given(_VECTORS, strategies.arrays([_P]), st.floats(0, 1))
  def test_refined_moves_towards_the_projection(self, z, reference, beta):
    found = geometry.refined(z, reference, beta)
    agreement = _unit(z) @ _unit(reference)
    _close(found, z + beta * (np.outer(agreement, reference) - z))
    np.testing.assert_array_equal(geometry.refined(z, reference, 0), z)


@given(
  strategies.arrays([_P]),
  strategies.arrays([_P]),
  _VECTORS,
  _MASKS,
  st.floats(0.05, 5),
  st.booleans(),
)
def test_contrastive_loss(
  embedding, positive, negatives, mask, temperature, include_positive
):
  def loss(z):
    return losses.contrastive_loss(
      z,
      positive,
      negatives,
      mask,
      temperature=temperature,
      include_positive=include_positive,
    )

  found, gradient = _gradient(loss, embedding)
  attraction = _unit(embedding) @ _unit(positive) / temperature
  terms = list(_unit(negatives)[mask] @ _unit(embedding) / temperature)
  expected = 0.0
  if terms:
    terms += [attraction] * include_positive
    expected = special.logsumexp(terms) - attraction
  _close(found, expected)
  assert np.isfinite(gradient).all()
  if include_positive:
    assert found >= -1e-5


class TestTuples:
  @given(_VECTORS, _VECTORS)
  def test_distances(self, u, v):
    found, gradient = _gradient(losses.distances, u, v)
    _close(found, np.maximum(_distances(u, v), 1e-6))
    assert np.isfinite(gradient).all()
    same = np.all(u == v, axis=1)
    assert np.all(gradient[same] == 0)
    squares = losses.distances(u, v, squared=True)
    _close(squares, _distances(u, v) ** 2)
    np.testing.assert_array_equal(squares, losses.distances(v, u, squared=True))

  @given(_LARGE_VECTORS, _LARGE_VECTORS)
  def test_a_large_distance_is_right_or_infinite(self, u, v):
    found = losses.distances(u, v).numpy()
    finite = np.isfinite(found)
    _close(found[finite], np.maximum(_distances(u, v), 1e-6)[finite])

  @given(*[_LARGE_VECTORS] * 3, st.floats(0.05, 5))
  def test_model_contrastive_loss(self, z, received, previous, temperature):
    found, gradient = _gradient(
      lambda *parts: losses.model_contrastive_loss(
        *parts, temperature=temperature
      ),
      *(z, received, previous),
    )
    near, far = (
      np.sum(_unit(z) * _unit(other), axis=1) / temperature
      for other in (received, previous)
    )
    _close(found, np.logaddexp(0, far - near))
    assert np.isfinite(gradient).all()


class TestClassification:
  @given(
    strategies.labels([_N], _C),
    strategies.arrays([_N, _C], st.floats(-40, 40, width=32)),
    st.floats(0, 5, width=32),
    strategies.POSITIVE,
  )
  def test_focal_loss(self, labels, logits, gamma, focal_weight):
    found, gradient = _gradient(
      lambda z: losses.focal_loss(labels, z, gamma, focal_weight=focal_weight),
      logits,
    )
    log_p = special.log_softmax(np.float64(logits), axis=1)
    log_p = log_p[np.arange(_N), labels]
    clipped = np.clip(log_p, np.log(1e-7), np.log1p(-1e-7))
    expected = -focal_weight * (-np.expm1(clipped)) ** gamma * clipped
    _close(found, expected, rtol=1e-3)
    assert found.min() >= 0
    assert np.isfinite(gradient).all()
    # Logits are free up to a constant.
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-4)
