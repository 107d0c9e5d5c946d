"""The losses, against their formulas in float64."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import special
import tensorflow as tf

from tests.fuzz import strategies
from tests.fuzz.strategies import fuzzes
from tests.fuzz.strategies import refused
from tff_fair import losses
from tff_fair.tensors import geometry
from tff_fair.tensors import shapes

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
  @fuzzes(geometry.normalized)
  @given(_LARGE_VECTORS)
  def test_a_vector_has_length_1_or_is_too_short(self, vectors):
    found, gradient = _gradient(geometry.normalized, vectors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, _unit(vectors), rtol=1e-5, atol=1e-6)
    assert np.isfinite(gradient).all()

  @fuzzes(geometry.scale_down_large)
  @given(_LARGE_VECTORS)
  def test_a_shortened_vector_keeps_its_direction(self, vectors):
    shorter, scale = map(np.float64, geometry.scale_down_large(vectors))
    np.testing.assert_allclose(
      shorter * scale, vectors, rtol=1e-6, atol=1e-30 * scale.max()
    )
    assert np.isfinite(np.float32(shorter) ** 2).all()

  @given(_VECTORS, strategies.NOT_FINITE)
  def test_what_is_not_finite_does_not_become_so(self, vectors, bad):
    vectors[1, 0] = bad
    assert np.isnan(geometry.normalized(vectors)[1]).any()
    assert np.isnan(geometry.cosines(vectors, vectors)[1])

  @fuzzes(geometry.cosines)
  @given(_LARGE_VECTORS, _LARGE_VECTORS)
  def test_cosines(self, vectors, references):
    found = geometry.cosines(vectors, references).numpy()
    expected = np.sum(_unit(vectors) * _unit(references), axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found).max() <= 1 + 1e-6
    np.testing.assert_array_equal(found, geometry.cosines(references, vectors))

  @fuzzes(geometry.refined)
  @given(_VECTORS, strategies.arrays([_P]), st.floats(0, 1))
  def test_refined_moves_towards_the_projection(self, z, reference, beta):
    found = geometry.refined(z, reference, beta)
    agreement = _unit(z) @ _unit(reference)
    _close(found, z + beta * (np.outer(agreement, reference) - z))
    np.testing.assert_array_equal(geometry.refined(z, reference, 0), z)


@fuzzes(losses.contrastive_loss)
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
  @fuzzes(losses.distances)
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

  @fuzzes(losses.triplet_loss, losses.TripletLoss)
  @given(*[_VECTORS] * 3, st.floats(0, 4), _MASKS)
  def test_triplet_loss(self, anchor, positive, negative, margin, mask):
    found, gradient = _gradient(
      lambda *roles: losses.triplet_loss(*roles, margin=margin, mask=mask),
      *(anchor, positive, negative),
    )
    gap = _distances(anchor, positive) - _distances(anchor, negative)
    _close(found, mask * np.maximum(gap + margin, 0))
    assert np.isfinite(gradient).all()
    keras = losses.TripletLoss(margin)
    stacked = np.stack([anchor, positive, negative], axis=1)
    _close(keras(np.float32(mask), stacked), found.mean())

  @fuzzes(
    losses.quadruplet_loss,
    losses.QuadrupletLoss,
    losses.classic_quadruplet_loss,
    losses.ClassicQuadrupletLoss,
  )
  @given(
    *[_VECTORS] * 4,
    st.tuples(st.floats(0, 4), st.floats(0, 4)),
    _MASKS,
    _MASKS,
    st.sampled_from(['plain', 'squared', 'classic']),
  )
  def test_quadruplet_losses(self, a, p, n1, n2, margins, mask_1, mask_2, kind):
    keras, loss, options = {
      'plain': (losses.QuadrupletLoss, losses.quadruplet_loss, {}),
      'squared': (
        losses.QuadrupletLoss,
        losses.quadruplet_loss,
        {'squared': True},
      ),
      'classic': (
        losses.ClassicQuadrupletLoss,
        losses.classic_quadruplet_loss,
        {},
      ),
    }[kind]
    found, gradient = _gradient(
      lambda *roles: loss(
        *roles, margins=margins, mask_1=mask_1, mask_2=mask_2, **options
      ),
      *(a, p, n1, n2),
    )
    power = 1 if kind == 'plain' else 2
    near, first = _distances(a, p) ** power, _distances(a, n1) ** power
    second = _distances(n1 if kind == 'classic' else a, n2) ** power
    expected = mask_1 * np.maximum(near - first + margins[0], 0)
    expected += mask_2 * np.maximum(near - second + margins[1], 0)
    _close(found, expected)
    assert np.isfinite(gradient).all()
    masks = np.stack([mask_1, mask_2], axis=1).astype(np.float32)
    stacked = np.stack([a, p, n1, n2], axis=1)
    _close(keras(margins, **options)(masks, stacked), found.mean())

  @fuzzes(losses.model_contrastive_loss)
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
  @fuzzes(losses.distillation_loss, losses.DistillationLoss)
  @given(
    strategies.arrays([_N, _C]),
    strategies.arrays([_N, _C]),
    st.floats(0.25, 20),
  )
  def test_distillation_loss(self, student, teacher, temperature):
    found, gradient = _gradient(
      lambda *logits: losses.distillation_loss(
        *logits, temperature=temperature
      ),
      *(student, teacher),
    )
    log_p, log_q = (
      special.log_softmax(np.float64(t) / temperature, axis=1)
      for t in (student, teacher)
    )
    p, q = np.exp(log_p), np.exp(log_q)
    expected = temperature**2 * np.sum(q * (log_q - log_p), axis=1)
    # Differences of logarithms are exact to the last bit of their sizes.
    atol = 1e-5 * temperature**2
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=atol)
    np.testing.assert_allclose(gradient, temperature * (p - q), atol=1e-4)
    keras = losses.DistillationLoss(temperature)
    np.testing.assert_allclose(keras(teacher, student), found.mean(), rtol=1e-6)

  @fuzzes(losses.focal_loss, losses.FocalLoss)
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
    keras = losses.FocalLoss(gamma, focal_weight=focal_weight)
    _close(keras(labels[:, np.newaxis], logits), found.mean())

  @fuzzes(losses.supervised_contrastive_loss, losses.SupervisedContrastiveLoss)
  @given(
    strategies.labels([_N + 1], 2),
    strategies.arrays([_N + 1, _P]),
    st.floats(0.05, 5),
    st.permutations(range(_N + 1)),
  )
  def test_supervised_contrastive_loss(
    self, labels, embeddings, temperature, order
  ):
    found, gradient = _gradient(
      lambda z: losses.supervised_contrastive_loss(
        labels, z, temperature=temperature
      ),
      embeddings,
    )
    z = _unit(embeddings)
    each = []
    for i, label in enumerate(labels):
      others = [j for j in range(_N + 1) if j != i]
      positives = [j for j in others if labels[j] == label]
      if positives:
        total = special.logsumexp(z[others] @ z[i] / temperature)
        each.append(total - np.mean(z[positives] @ z[i]) / temperature)
    _close(found, np.mean(each) if each else 0)
    assert np.isfinite(gradient).all()
    keras = losses.SupervisedContrastiveLoss(temperature)
    _close(keras(labels[order], embeddings[order]), found)


_Z = np.ones([_N, _P], np.float32)
_LABELS = np.zeros(_N, np.int32)
_QUADRUPLET = {
  'anchor': _Z,
  'positive': _Z,
  'negative_1': _Z,
  'negative_2': _Z,
}
# For each loss: legal arguments.
_LEGAL = {
  losses.distances: {'u': _Z, 'v': _Z},
  geometry.cosines: {'vectors': _Z, 'reference': _Z},
  losses.triplet_loss: {'anchor': _Z, 'positive': _Z, 'negative': _Z},
  losses.quadruplet_loss: _QUADRUPLET,
  losses.classic_quadruplet_loss: _QUADRUPLET,
  losses.model_contrastive_loss: {
    'embedding': _Z,
    'received': _Z,
    'previous': _Z,
  },
  losses.distillation_loss: {'student_logits': _Z, 'teacher_logits': _Z},
}
_NUMBERS = [
  (losses.TripletLoss, 'margin', strategies.NEGATIVE),
  (losses.DistillationLoss, 'temperature', strategies.NOT_POSITIVE),
  (losses.SupervisedContrastiveLoss, 'temperature', strategies.NOT_POSITIVE),
  (losses.FocalLoss, 'focal_weight', strategies.NOT_POSITIVE),
  (losses.FocalLoss, 'gamma', [-1, -0.5, np.float32(-1), np.nan, np.inf]),
]


class TestRefusals:
  @fuzzes(shapes.check_vectors, shapes.check_same_shape)
  @pytest.mark.parametrize('loss', _LEGAL, ids=lambda loss: loss.__name__)
  @given(
    st.data(),
    st.sampled_from(
      [
        np.ones([_N, 1], np.float32),
        np.ones([_N, _P + 1], np.float32),
        np.ones([], np.float32),
        tf.ones([_N, _P], tf.int32),
        tf.ones([_N, _P], tf.bool),
      ]
    ),
  )
  def test_no_tensor_is_stretched_to_the_others(self, loss, data, bad):
    legal = _LEGAL[loss]
    loss(**legal)
    name = data.draw(st.sampled_from(sorted(legal)))
    with refused():
      loss(**{**legal, name: bad})

  @pytest.mark.parametrize('loss', _LEGAL, ids=lambda loss: loss.__name__)
  def test_no_tensor_is_rounded_to_the_type_of_the_others(self, loss):
    first, *others = _LEGAL[loss]
    with refused():
      loss(
        **{first: tf.constant(_Z)},
        **dict.fromkeys(others, tf.ones([_N, _P], tf.float64)),
      )

  @fuzzes(shapes.check_labels)
  @pytest.mark.parametrize(
    'loss',
    [
      lambda labels, z: losses.focal_loss(labels, z, 1.0),
      losses.supervised_contrastive_loss,
    ],
    ids=['focal', 'supervised_contrastive'],
  )
  @pytest.mark.parametrize(
    ('labels', 'outputs'),
    [
      (_LABELS[:1], _Z),
      (_LABELS[:2, np.newaxis], _Z),
      (np.int32(0), _Z),
      (_LABELS.astype(np.float32), _Z),
      (_LABELS.astype(bool), _Z),
      (_LABELS, _Z[0]),
      (_LABELS, _Z[:, :, np.newaxis]),
      (_LABELS, _Z.astype(np.int32)),
    ],
  )
  def test_labels_that_do_not_fit(self, loss, labels, outputs):
    with refused():
      loss(labels, outputs)

  @pytest.mark.parametrize(
    ('make', 'name', 'bad'),
    [(make, name, bad) for make, name, values in _NUMBERS for bad in values],
  )
  def test_numbers_out_of_range(self, make, name, bad):
    with refused():
      make(**{name: bad})

  @pytest.mark.parametrize('bad', strategies.NOT_POSITIVE)
  def test_temperatures(self, bad):
    for call in (
      lambda: losses.distillation_loss(_Z, _Z, temperature=bad),
      lambda: losses.model_contrastive_loss(_Z, _Z, _Z, temperature=bad),
      lambda: losses.supervised_contrastive_loss(_LABELS, _Z, temperature=bad),
      lambda: losses.contrastive_loss(
        _Z[0], _Z[0], _Z, [True] * _N, temperature=bad
      ),
    ):
      with refused():
        call()

  @pytest.mark.parametrize(
    'margins', [1.0, (1.0,), (1.0, 2.0, 3.0), (1.0, -1), (np.nan, 1), ('1', 1)]
  )
  def test_margins(self, margins):
    for call in (
      lambda: losses.quadruplet_loss(**_QUADRUPLET, margins=margins),
      lambda: losses.classic_quadruplet_loss(**_QUADRUPLET, margins=margins),
      lambda: losses.QuadrupletLoss(margins),
      lambda: losses.ClassicQuadrupletLoss(margins),
    ):
      with refused():
        call()

  @pytest.mark.parametrize('beta', [-0.1, 1.1, np.nan, '1', None])
  def test_beta(self, beta):
    with refused():
      geometry.refined(_Z, _Z[0], beta)


class TestNothing:
  """Batches without examples."""

  def test_each_loss_has_no_entries(self):
    nothing = np.zeros([0, _P], np.float32)
    for loss, legal in _LEGAL.items():
      assert loss(**dict.fromkeys(legal, nothing)).shape == [0]
    labels = np.zeros([0], np.int32)
    assert losses.focal_loss(labels, nothing, 1.0).shape == [0]
    assert losses.supervised_contrastive_loss(labels, nothing) == 0

  def test_one_example_has_no_positive(self):
    assert losses.supervised_contrastive_loss([0], _Z[:1]) == 0
