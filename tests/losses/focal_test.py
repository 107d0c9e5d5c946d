import math

import numpy as np
import tensorflow as tf

from tff_fair import losses


def _logits(p):
  """Two logits that give class 0 the probability p."""
  return [[math.log(p / (1 - p)), 0.0]]


def test_value_by_hand():
  for p, gamma, expected in (
    (0.25, 0.0, 1.3862944),  # -ln .25
    (0.25, 1.0, 1.0397208),  # .75 * -ln .25
    (0.25, 2.0, 0.7797906),  # .75^2 * -ln .25
    (0.9, 2.0, 0.0010536),  # .1^2 * -ln .9
    (0.5, 5.0, 0.0216608),  # .5^5 * -ln .5
  ):
    loss = losses.focal_loss([0], _logits(p), gamma)
    np.testing.assert_allclose(loss, [expected], rtol=1e-4)
  loss = losses.focal_loss([0], _logits(0.25), 1.0, focal_weight=0.5)
  np.testing.assert_allclose(loss, [0.5198604], rtol=1e-5)
  # Gamma may be a tensor and differ between examples.
  each = losses.focal_loss([0, 0], _logits(0.25) * 2, tf.constant([0.0, 2.0]))
  np.testing.assert_allclose(each, [1.3862944, 0.7797906], rtol=1e-5)


def test_the_gradient_is_that_of_the_formula():
  logits = tf.random.stateless_normal([20, 5], [1, 2])
  labels = tf.range(20) % 5
  for gamma in (0.0, 0.5, 1.0, 3.0):
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(logits)
      focal = losses.focal_loss(labels, logits, gamma)
      p = tf.gather(tf.nn.softmax(logits), labels, batch_dims=1)
      plain = -((1 - p) ** gamma) * tf.math.log(p)
    np.testing.assert_allclose(focal, plain, rtol=1e-5)
    np.testing.assert_allclose(
      tape.gradient(focal, logits), tape.gradient(plain, logits), atol=1e-5
    )


def test_probability_is_clipped_at_both_ends():
  wrong = losses.focal_loss([1], [[50.0, 0.0]], 2.0)
  np.testing.assert_allclose(wrong, [-math.log(1e-7)], rtol=1e-5)
  right = losses.focal_loss([0], [[50.0, 0.0]], 1.0)
  np.testing.assert_allclose(right, [1e-7 * 1e-7], rtol=1e-4)


def test_gradient_is_finite_at_both_ends_and_kept_for_wrong_examples():
  logits = tf.constant([[50.0, 0.0], [0.0, 50.0]])
  for gamma in (0.0, 0.25, 1.0, 5.0):
    with tf.GradientTape() as tape:
      tape.watch(logits)
      loss = losses.focal_loss([0, 0], logits, gamma)
    gradient = tape.gradient(loss, logits).numpy()
    np.testing.assert_array_equal(gradient[0], [0.0, 0.0])
    np.testing.assert_allclose(gradient[1], [-1.0, 1.0], rtol=1e-4)
