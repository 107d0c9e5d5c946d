"""The losses of metric learning by hand, and at their edges.

`tests/client/metric_objectives_test.py` compares values and gradients of random
embeddings with a loop.
"""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import losses

# Anchor, positive and two negatives of the specification's example.
_ROLES = ([[1.0, 0.0]], [[1.0, 2.0]], [[2.0, 2.0]], [[0.0, 0.0]])
# Distances a-p .5, a-n1 1.2, n1-n2 .6.
_NEAR = ([[0.0, 0.0]], [[0.3, 0.4]], [[0.0, -1.2]], [[0.6, -1.2]])
# Embeddings of the contrastive example, two of each class.
_PAIRS = ([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]], [0, 0, 1, 1])
_triplet, _quadruplet = losses.triplet_loss, losses.quadruplet_loss
_squared = functools.partial(_quadruplet, squared=True)
_classic = losses.classic_quadruplet_loss
_contrastive = losses.supervised_contrastive_loss
_moon = losses.model_contrastive_loss
_EACH_LOSS = pytest.mark.parametrize(
  ('fn', 'number'),
  [(_triplet, 3), (_quadruplet, 4), (_squared, 4), (_classic, 4)],
)


def _value_and_gradient(fn, x):
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = fn(x)
  return value.numpy(), tape.gradient(value, x).numpy()


def test_distances():
  u, v = [[1.0, 0.0], [1.0, 2.0]], [2.0, 2.0]
  np.testing.assert_allclose(losses.distances(u, v), [5**0.5, 1])
  np.testing.assert_allclose(losses.distances(u, v, squared=True), [5, 1])
  # Squares that overflow are infinite, not wrong.
  found = losses.distances(np.float32([[3e12, 4e12], [3e30, 0]]), [0.0, 0.0])
  np.testing.assert_allclose(found, [5e12, math.inf], rtol=1e-6)
  # No shorter than the floor unless squared.
  near = tf.constant([[3.0], [1e-7]])
  np.testing.assert_allclose(losses.distances(near, [[3.0], [0.0]]), 1e-6)
  assert float(losses.distances([3.0], [3.0], squared=True)) == 0


@pytest.mark.parametrize(
  ('fn', 'roles', 'options', 'expected'),
  [
    # [2 - 2.236068 + 1]_+ + [2 - 1 + .5]_+ and [4 - 5 + 1]_+ + [4 - 1 + .5]_+.
    (_quadruplet, _ROLES, {}, 2.263932),
    (_squared, _ROLES, {}, 3.5),
    # Each margin belongs to its negative.
    (_quadruplet, _ROLES, {'margins': (0.5, 1.0)}, 0.263932 + 2),
    (_squared, _ROLES, {'margins': (0.5, 1.0)}, 0 + 4),
    # |a - p|^2 = 4, |a - n1|^2 = 5, |n1 - n2|^2 = 8.
    (_classic, _ROLES, {'margins': (1.5, 5.0)}, 0.5 + 1),
    # [.25 - 1.44 + 1]_+ + .25 - .36 + .5.
    (_classic, _NEAR, {}, 0.39),
    # .5 - 1.2 + 1.
    (_triplet, _NEAR[:3], {}, 0.3),
    (_triplet, _NEAR[:3], {'margin': 2.0}, 1.3),
    (_triplet, _NEAR[:3], {'margin': 0.6}, 0),
  ],
)
def test_tuples_by_hand(fn, roles, options, expected):
  np.testing.assert_allclose(fn(*roles, **options), [expected], rtol=1e-6)


@_EACH_LOSS
def test_far_negatives_and_equal_embeddings_have_no_gradient(fn, number):
  # A tuple whose negatives are far enough has no loss.
  far = [[[0.0, 0.0]], [[0.1, 0.0]], [[5.0, 0.0]], [[-5.0, 0.0]]]
  value, gradient = _value_and_gradient(
    lambda x: fn(*tf.unstack(x)), far[:number]
  )
  assert value == [0] and not gradient.any()
  # Of equal embeddings only the margins are left.
  value, gradient = _value_and_gradient(
    lambda x: fn(*tf.unstack(x)), np.ones([number, 2, 3], np.float32)
  )
  np.testing.assert_allclose(value, [1 if number == 3 else 1.5] * 2, rtol=1e-6)
  assert not gradient.any()


@_EACH_LOSS
def test_masked_slots_have_neither_value_nor_gradient(fn, number):
  # None, the first alone, both; all hinges would be active.
  mask_1, mask_2 = [False, True, True], [False, False, True]
  options = {'mask_1': mask_1, 'mask_2': mask_2, 'margins': (100.0, 50.0)}
  if number == 3:
    options = {'mask': mask_1, 'margin': 100.0}
  roles = np.random.default_rng(0).normal(size=[number, 3, 4]).astype('f')
  each = tf.function(lambda x: fn(*tf.unstack(x), **options))
  value, gradient = _value_and_gradient(each, roles)
  used = np.ones([number, 3], bool)
  used[:, 0] = False
  used[3:, 1] = False  # The second negative of the first alone.
  np.testing.assert_array_equal(gradient[~used], 0)
  assert np.all(np.any(gradient[used] != 0, axis=-1))
  assert value[0] == 0 and value[1] > 0
  # Whatever the masked slots hold, the values are the same.
  other = np.where(used[..., np.newaxis], roles, 7 * roles + 1)
  np.testing.assert_array_equal(each(tf.constant(other)), value)


def test_supervised_contrastive_loss_by_hand():
  embeddings, labels = _PAIRS
  # Of each: .233257, .627123, .627123, .233257; the third of three has no
  # positive and is no part of the mean.
  for n, expected in ((4, 0.430190), (3, 0.348458)):
    loss = _contrastive(labels[:n], embeddings[:n], temperature=0.5)
    np.testing.assert_allclose(loss, expected, atol=1e-6)
  found = _contrastive(labels, embeddings)
  assert found == _contrastive(labels, embeddings, temperature=0.07)
  # Nor is there a loss if all other examples are of the same class.
  assert float(_contrastive([4, 4], [[1.0, 0.0], [0.0, 1.0]])) == 0
  for n in (0, 1, 3):
    value, gradient = _value_and_gradient(
      functools.partial(_contrastive, range(n)), np.ones([n, 2], 'f')
    )
    assert value == 0 and not gradient.any()


def test_model_contrastive_loss_by_hand():
  high, low = ([cosine, (1 - cosine**2) ** 0.5] for cosine in (0.9, 0.5))
  # ln(1 + exp(-(.9 - .5) / .5)), and the other way round.
  loss = _moon([[1.0, 0.0], [2.0, 0.0]], [high, low], [low, high])
  np.testing.assert_allclose(loss, [0.371101, 1.171101], atol=1e-6)


@pytest.mark.parametrize(
  ('fn', 'z', 'expected'),
  [
    # Logarithms of e^(.8 / T) to e^(-.6 / T), and of e^0 to e^(-.6 / T).
    (
      functools.partial(_contrastive, [0, 1, 0], temperature=1e-5),
      [[1, 0], [0.8, 0.6], [-0.6, 0.8]],
      1e5,
    ),
    (
      lambda z: _moon(z, [[0.0, 1.0]], [[1.0, 0.0]], temperature=1e-5),
      [[1, 0]],
      1e5,
    ),
    # Of an embedding of zeros every cosine is 0.
    (
      functools.partial(_contrastive, [0, 0, 1], temperature=1.0),
      [[0, 0], [1, 0], [0, 1]],
      math.log(2),
    ),
    (lambda z: _moon(z, [[0.0, 1.0]], [[0.0, 0.0]]), [[0, 0]], math.log(2)),
  ],
)
def test_small_temperatures_and_zeros_have_a_finite_gradient(fn, z, expected):
  value, gradient = _value_and_gradient(fn, np.array(z, np.float32))
  np.testing.assert_allclose(value, expected, rtol=1e-6)
  assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)


def test_pure_functions_keep_the_dtype():
  for dtype in (tf.float32, tf.float64):
    x = tf.cast(np.ones([4, 5, 3]), dtype)
    found = [fn(*x[:3]) for fn in (_triplet, _moon)]
    found += [fn(*x) for fn in (_quadruplet, _squared, _classic)]
    found += [losses.distances(x[0], x[1]), _contrastive(range(5), x[0])]
    assert {value.dtype for value in found} == {dtype}
