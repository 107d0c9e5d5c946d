import math

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import losses


def _logits(p):
  """Two logits that give class 0 the probability p."""
  return [[math.log(p / (1 - p)), 0.0]]


@pytest.mark.parametrize(
  ('p', 'gamma', 'expected'),
  [
    (0.25, 0.0, 1.3862944),  # -ln .25
    (0.25, 1.0, 1.0397208),  # .75 * -ln .25
    (0.25, 2.0, 0.7797906),  # .75^2 * -ln .25
    (0.9, 2.0, 0.0010536),  # .1^2 * -ln .9
    (0.5, 5.0, 0.0216608),  # .5^5 * -ln .5
  ],
)
def test_value_by_hand(p, gamma, expected):
  loss = losses.focal_loss([0], _logits(p), gamma)
  np.testing.assert_allclose(loss, [expected], rtol=1e-4)


def test_focal_weight_is_a_factor():
  loss = losses.focal_loss([0], _logits(0.25), 1.0, focal_weight=0.5)
  np.testing.assert_allclose(loss, [0.5198604], rtol=1e-5)


def test_gamma_zero_is_cross_entropy_with_its_gradient():
  logits = tf.random.stateless_normal([20, 5], [1, 2])
  labels = tf.range(20) % 5
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(logits)
    focal = losses.focal_loss(labels, logits, 0.0)
    plain = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
  np.testing.assert_allclose(focal, plain, rtol=1e-6)
  np.testing.assert_allclose(
    tape.gradient(focal, logits), tape.gradient(plain, logits), atol=1e-6
  )


def test_probability_is_clipped_at_both_ends():
  wrong = losses.focal_loss([1], [[50.0, 0.0]], 2.0)
  np.testing.assert_allclose(wrong, [-math.log(1e-7)], rtol=1e-5)
  right = losses.focal_loss([0], [[50.0, 0.0]], 1.0)
  np.testing.assert_allclose(right, [1e-7 * 1e-7], rtol=1e-4)


@pytest.mark.parametrize('gamma', [0.0, 0.25, 1.0, 5.0])
def test_gradient_is_finite_at_both_ends_and_kept_for_the_wrong(gamma):
  logits = tf.constant([[50.0, 0.0], [0.0, 50.0]])
  with tf.GradientTape() as tape:
    tape.watch(logits)
    loss = losses.focal_loss([0, 0], logits, gamma)
  gradient = tape.gradient(loss, logits).numpy()
  np.testing.assert_array_equal(gradient[0], [0.0, 0.0])
  np.testing.assert_allclose(gradient[1], [-1.0, 1.0], rtol=1e-4)


def test_gamma_may_be_a_tensor_or_differ_between_examples():
  logits = _logits(0.25) * 2
  each = losses.focal_loss([0, 0], logits, tf.constant([0.0, 2.0]))
  np.testing.assert_allclose(each, [1.3862944, 0.7797906], rtol=1e-5)


def test_keras_loss_follows_its_gamma_within_compile():
  gamma = tf.Variable(0.0)
  model = tf.keras.Sequential([tf.keras.layers.Dense(2, use_bias=False)])
  model.build([None, 2])
  model.set_weights([np.eye(2, dtype=np.float32)])
  model.compile(loss=losses.FocalLoss(gamma), jit_compile=False)
  x, y = np.array(_logits(0.25), np.float32), np.array([0])
  assert model.evaluate(x, y, verbose=0) == pytest.approx(1.3862944)
  gamma.assign(2.0)
  assert model.evaluate(x, y, verbose=0) == pytest.approx(0.7797906)


def test_keras_loss_is_rebuilt_from_its_config():
  loss = losses.FocalLoss(2.0, focal_weight=0.5)
  rebuilt = losses.FocalLoss.from_config(loss.get_config())
  assert (rebuilt.gamma, rebuilt.focal_weight) == (2.0, 0.5)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'gamma': -1.0}, 'gamma must be at least 0.0, found -1.0'),
    ({'gamma': math.nan}, 'gamma must be finite, found nan'),
    ({'focal_weight': 0.0}, 'focal_weight must be positive, found 0.0'),
  ],
)
def test_bad_parameters(arguments, message):
  with pytest.raises(ValueError, match=message):
    losses.FocalLoss(**arguments)
