"""The losses of metric learning by hand.

`tests/client/metric_objectives_test.py` compares values and gradients of random
embeddings with a loop.
"""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_addons as tfa

from tff_fair import losses

# Anchor, positive and two negatives of the specification's example.
_ROLES = ([[1.0, 0.0]], [[1.0, 2.0]], [[2.0, 2.0]], [[0.0, 0.0]])
# Embeddings of the contrastive example, two of each class.
_PAIRS = ([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]], [0, 0, 1, 1])

_PER_ANCHOR = {
  'triplet': (losses.triplet_loss, 3),
  'quadruplet': (losses.quadruplet_loss, 4),
  'squared': (functools.partial(losses.quadruplet_loss, squared=True), 4),
  'classic': (losses.classic_quadruplet_loss, 4),
}


_EACH_LOSS = pytest.mark.parametrize('name', list(_PER_ANCHOR))


def _random(*shape, seed=0, dtype=np.float64):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def _value_and_gradient(fn, x):
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = fn(x)
  return value.numpy(), tape.gradient(value, x).numpy()


class TestDistances:
  def test_by_hand(self):
    u, v = [[1.0, 0.0], [1.0, 2.0]], [2.0, 2.0]
    np.testing.assert_allclose(losses.distances(u, v), [5**0.5, 1])
    np.testing.assert_allclose(losses.distances(u, v, squared=True), [5, 1])
    # Squares that overflow are infinite, not wrong.
    found = losses.distances(np.float32([[3e12, 4e12], [3e30, 0]]), [0.0, 0.0])
    np.testing.assert_allclose(found, [5e12, math.inf], rtol=1e-6)

  def test_no_shorter_than_the_floor_unless_squared(self):
    near = tf.constant([[3.0], [1e-7]])
    np.testing.assert_allclose(losses.distances(near, [[3.0], [0.0]]), 1e-6)
    assert float(losses.distances([3.0], [3.0], squared=True)) == 0

  def test_equal_vectors_have_no_gradient(self):
    for squared in (False, True):
      _, gradient = _value_and_gradient(
        functools.partial(losses.distances, v=[1.0, 2.0], squared=squared),
        [1.0, 2.0],
      )
      np.testing.assert_array_equal(gradient, [0, 0])


class TestLossesOfTuples:
  def test_quadruplet_loss_of_the_worked_example(self):
    # [2 - 2.236068 + 1]_+ + [2 - 1 + .5]_+ and [4 - 5 + 1]_+ + [4 - 1 + .5]_+.
    loss = losses.quadruplet_loss(*_ROLES)
    np.testing.assert_allclose(loss, [2.263932], rtol=1e-6)
    loss = losses.quadruplet_loss(*_ROLES, squared=True)
    np.testing.assert_allclose(loss, [3.5], rtol=1e-6)

  def test_each_margin_belongs_to_its_negative(self):
    options = {'margins': (0.5, 1.0)}
    loss = losses.quadruplet_loss(*_ROLES, **options)
    np.testing.assert_allclose(loss, [0.263932 + 2], rtol=1e-6)
    loss = losses.quadruplet_loss(*_ROLES, squared=True, **options)
    np.testing.assert_allclose(loss, [0 + 4], rtol=1e-6)
    # |a - p|^2 = 4, |a - n1|^2 = 5, |n1 - n2|^2 = 8.
    loss = losses.classic_quadruplet_loss(*_ROLES, margins=(1.5, 5.0))
    np.testing.assert_allclose(loss, [0.5 + 1], rtol=1e-6)

  def test_triplet_loss_by_hand(self):
    # Distances .5 and 1.2: .5 - 1.2 + 1, and nothing at a margin of .6.
    triplet = ([[0.0, 0.0]], [[0.3, 0.4]], [[0.0, -1.2]])
    np.testing.assert_allclose(losses.triplet_loss(*triplet), [0.3], rtol=1e-6)
    np.testing.assert_allclose(
      losses.triplet_loss(*triplet, margin=2.0), [1.3], rtol=1e-6
    )
    assert losses.triplet_loss(*triplet, margin=0.6).numpy() == [0]

  def test_classic_quadruplet_loss_by_hand(self):
    # Distances a-p .5, a-n1 1.2, n1-n2 .6: [.25 - 1.44 + 1]_+ + .25 - .36 + .5.
    roles = [[[0.0, 0.0]], [[0.3, 0.4]], [[0.0, -1.2]], [[0.6, -1.2]]]
    loss = losses.classic_quadruplet_loss(*roles)
    np.testing.assert_allclose(loss, [0.39], rtol=1e-6)

  @_EACH_LOSS
  def test_far_negatives_and_equal_embeddings_have_no_gradient(self, name):
    fn, number = _PER_ANCHOR[name]
    # A tuple whose negatives are far enough has no loss.
    far = [[[0.0, 0.0]], [[0.1, 0.0]], [[5.0, 0.0]], [[-5.0, 0.0]]]
    value, gradient = _value_and_gradient(
      lambda x: fn(*tf.unstack(x)), far[:number]
    )
    assert value == [0]
    np.testing.assert_array_equal(gradient, np.zeros([number, 1, 2]))

    # Of equal embeddings only the margins are left.
    value, gradient = _value_and_gradient(
      lambda x: fn(*tf.unstack(x)), np.ones([number, 2, 3], np.float32)
    )
    margin = 1 if name == 'triplet' else 1.5
    np.testing.assert_allclose(value, [margin] * 2, rtol=1e-6)
    np.testing.assert_array_equal(gradient, np.zeros([number, 2, 3]))

  @_EACH_LOSS
  def test_masked_slots_have_neither_value_nor_gradient(self, name):
    fn, number = _PER_ANCHOR[name]
    # None, the first alone, both; all hinges would be active.
    mask_1, mask_2 = [False, True, True], [False, False, True]
    options = {'mask_1': mask_1, 'mask_2': mask_2, 'margins': (100.0, 50.0)}
    if number == 3:
      options = {'mask': mask_1, 'margin': 100.0}
    roles = _random(number, 3, 4, dtype=np.float32)
    each = tf.function(lambda x: fn(*tf.unstack(x), **options))
    with tf.GradientTape() as tape:
      roles = tf.constant(roles)
      tape.watch(roles)
      value = each(roles)
    gradient = tape.gradient(value, roles).numpy()
    used = np.ones([number, 3], bool)
    used[:, 0] = False
    used[3:, 1] = False  # The second negative of the first alone.
    np.testing.assert_array_equal(gradient[~used], 0)
    assert np.all(np.any(gradient[used] != 0, axis=-1))
    assert value[0] == 0 and value[1] > 0
    # Whatever the masked slots hold, the values are the same.
    other = np.where(used[..., np.newaxis], roles, 7 * roles + 1)
    np.testing.assert_array_equal(each(tf.constant(other)), value)

  @pytest.mark.parametrize('name', ['quadruplet', 'squared', 'classic'])
  def test_each_mask_keeps_its_own_term(self, name):
    fn, _ = _PER_ANCHOR[name]
    roles = _random(4, 5, 3)
    options = {'margins': (100.0, 50.0)}
    first, second, both = (
      fn(*roles, mask_1=[v1] * 5, mask_2=[v2] * 5, **options)
      for v1, v2 in [(True, False), (False, True), (True, True)]
    )
    squared = name != 'quadruplet'
    a, p, n1, n2 = roles
    near, far = (
      losses.distances(u, v, squared=squared) for u, v in ((a, p), (a, n1))
    )
    np.testing.assert_allclose(first, near - far + 100)
    other = n1 if name == 'classic' else a
    far = losses.distances(other, n2, squared=squared)
    np.testing.assert_allclose(second, near - far + 50)
    np.testing.assert_allclose(both, first + second)
    np.testing.assert_array_equal(fn(*roles, **options), both)

  def test_the_triplet_loss_of_another_library_on_a_batch_without_choice(self):
    """Two examples of one class and one of another: each pair is forced.

    TensorFlow Addons means over all examples of the batch, as FedQuad over all
    its anchors. The example that is alone in its class has the positive
    distance 0 there and no term here, so both agree where its negatives are
    further off than the margin, and else differ by its hinge.
    """
    for distance in (1.5, 0.4):
      embeddings = tf.constant([[0.0, 0.0], [0.9, 0.0], [0.0, distance]])
      labels = tf.constant([0, 0, 1])
      each = losses.triplet_loss(
        embeddings,
        tf.gather(embeddings, [1, 0, 2]),
        tf.gather(embeddings, [2, 2, 2]),
        mask=[True, True, False],
      )
      # .9 - distance + 1 and .9 - |(.9, distance)| + 1.
      expected = [1.9 - distance, 1.9 - math.hypot(0.9, distance), 0]
      np.testing.assert_allclose(each, expected, rtol=1e-6)
      alone = max(0, 1 - distance)
      addons = tfa.losses.triplet_hard_loss(
        labels, embeddings, margin=1.0, distance_metric='L2'
      )
      np.testing.assert_allclose(addons, (np.sum(each) + alone) / 3, rtol=1e-6)


class TestSupervisedContrastiveLoss:
  def test_by_hand(self):
    embeddings, labels = _PAIRS
    loss = losses.supervised_contrastive_loss(
      labels, embeddings, temperature=0.5
    )
    # Of each: .233257, .627123, .627123, .233257.
    np.testing.assert_allclose(loss, 0.430190, atol=1e-6)
    loss = losses.supervised_contrastive_loss(
      labels[:3], embeddings[:3], temperature=0.5
    )
    # The third has no positive and is no part of the mean.
    np.testing.assert_allclose(loss, 0.348458, atol=1e-6)

  def test_the_default_temperature(self):
    found = losses.supervised_contrastive_loss(_PAIRS[1], _PAIRS[0])
    given = losses.supervised_contrastive_loss(
      _PAIRS[1], _PAIRS[0], temperature=0.07
    )
    assert found == given

  def test_without_positives_value_and_gradient_are_0(self):
    for n in (0, 1, 3):
      value, gradient = _value_and_gradient(
        functools.partial(losses.supervised_contrastive_loss, range(n)),
        _random(n, 2, dtype=np.float32),
      )
      assert value == 0
      np.testing.assert_array_equal(gradient, np.zeros([n, 2]))
    # Nor is there a loss if all other examples are of the same class.
    loss = losses.supervised_contrastive_loss([4, 4], [[1.0, 0.0], [0.0, 1.0]])
    assert float(loss) == 0

  def test_equal_embeddings_cost_the_log_of_the_others(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss([0, 0, 1, 1], z),
      np.full([4, 3], 2.0, np.float32),
    )
    np.testing.assert_allclose(value, math.log(3), rtol=1e-6)
    np.testing.assert_allclose(gradient, np.zeros([4, 3]), atol=1e-6)

  def test_small_temperatures_do_not_overflow(self):
    # Logarithms of e^(.8 / T) to e^(-.6 / T), and of e^0 to e^(-.6 / T).
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss(
        [0, 1, 0], z, temperature=1e-5
      ),
      np.array([[1, 0], [0.8, 0.6], [-0.6, 0.8]], np.float32),
    )
    np.testing.assert_allclose(value, 1e5, rtol=1e-6)
    assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)

  def test_a_zero_embedding_has_cosine_0_and_a_finite_gradient(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss(
        [0, 0, 1], z, temperature=1.0
      ),
      np.array([[0, 0], [1, 0], [0, 1]], np.float32),
    )
    # Every cosine is 0.
    np.testing.assert_allclose(value, math.log(2), rtol=1e-6)
    assert np.all(np.isfinite(gradient))

  def test_lengths_do_not_matter(self):
    z, labels = np.array(_PAIRS[0]), _PAIRS[1]
    lengths = np.array([[0.01], [1], [10], [1e4]])
    np.testing.assert_allclose(
      losses.supervised_contrastive_loss(labels, lengths * z),
      losses.supervised_contrastive_loss(labels, z),
    )


class TestModelContrastiveLoss:
  @staticmethod
  def _with_cosine(cosine):
    return [cosine, (1 - cosine**2) ** 0.5]

  def test_by_hand(self):
    # ln(1 + exp(-(.9 - .5) / .5)), and the other way round.
    loss = losses.model_contrastive_loss(
      [[1.0, 0.0], [2.0, 0.0]],
      [self._with_cosine(0.9), self._with_cosine(0.5)],
      [self._with_cosine(0.5), self._with_cosine(0.9)],
    )
    np.testing.assert_allclose(loss, [0.371101, 1.171101], atol=1e-6)

  def test_the_temperature(self):
    loss = losses.model_contrastive_loss(
      [[1.0, 0.0]],
      [self._with_cosine(0.9)],
      [self._with_cosine(0.5)],
      temperature=0.1,
    )
    np.testing.assert_allclose(loss, [math.log1p(math.exp(-4))], rtol=1e-5)

  def test_equal_models_cost_ln_2(self):
    z, other = _random(2, 5, 3)
    loss = losses.model_contrastive_loss(z, other, other)
    np.testing.assert_allclose(loss, [math.log(2)] * 5)

  def test_small_temperatures_do_not_overflow(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.model_contrastive_loss(
        z, [[0.0, 1.0]], [[1.0, 0.0]], temperature=1e-5
      ),
      [[1.0, 0.0]],
    )
    np.testing.assert_allclose(value, [1e5], rtol=1e-6)
    # Uphill is away from the received model's, along the circle.
    np.testing.assert_allclose(gradient, [[0, -1e5]], rtol=1e-5)

  def test_a_zero_embedding_has_a_finite_gradient(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.model_contrastive_loss(z, [[0.0, 1.0]], [[0.0, 0.0]]),
      [[0.0, 0.0]],
    )
    np.testing.assert_allclose(value, [math.log(2)], rtol=1e-6)
    assert np.all(np.isfinite(gradient))


def test_pure_functions_keep_the_dtype():
  for dtype in (tf.float32, tf.float64):
    x = tf.cast(_random(4, 5, 3), dtype)
    found = [fn(*x[:number]) for fn, number in _PER_ANCHOR.values()]
    found += [losses.distances(x[0], x[1])]
    found += [losses.supervised_contrastive_loss([0, 0, 1, 1, 1], x[0])]
    found += [losses.model_contrastive_loss(*x[:3])]
    assert [value.dtype for value in found] == [dtype] * 7
