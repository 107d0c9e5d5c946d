import numpy as np
import pytest
import tensorflow as tf

from tff_fair import losses

_STUDENT = np.array([[1.0, 0, 0], [0, 2, 1]], np.float32)
_TEACHER = np.array([[2.0, 1, 0], [0, 1, 2]], np.float32)
_COLUMN = np.array([[5.0], [-3.0]], np.float32)


def _softmax(logits):
  p = np.exp(logits)
  return p / p.sum(axis=1, keepdims=True)


def test_by_hand():
  for options, expected in (
    ({}, 0.237160),
    ({'temperature': 1.0}, 0.237160),
    ({'temperature': 2.0}, 0.241175),
  ):
    loss = losses.distillation_loss(_STUDENT, _TEACHER, **options)
    assert loss.shape == [2]
    assert np.mean(loss) == pytest.approx(expected, abs=1e-6)
  # Two classes with odds 1 for the student and 3 for the teacher.
  loss = losses.distillation_loss(
    tf.zeros([2, 2]), tf.constant([[np.log(3.0), 0.0], [0.0, 0.0]], tf.float32)
  )
  expected = 0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.5)
  np.testing.assert_allclose(loss, [expected, 0], rtol=1e-6, atol=1e-7)


def test_the_gradient_is_that_of_the_cross_entropy_form():
  student, teacher = tf.constant(_STUDENT), tf.constant(_TEACHER)
  for temperature in (0.5, 1.0, 3.0):
    with tf.GradientTape() as tape:
      tape.watch([student, teacher])
      loss = losses.distillation_loss(student, teacher, temperature=temperature)
    of_student, of_teacher = tape.gradient(loss, [student, teacher])
    p, q = (_softmax(logits / temperature) for logits in (_STUDENT, _TEACHER))
    np.testing.assert_allclose(of_student, temperature * (p - q), atol=1e-6)
    assert of_teacher is None


def test_a_constant_on_all_logits_of_an_example_does_not_matter():
  loss = losses.distillation_loss(_STUDENT, _TEACHER)
  moved = losses.distillation_loss(_STUDENT + _COLUMN, _TEACHER - 2 * _COLUMN)
  np.testing.assert_allclose(moved, loss, rtol=1e-5)


def test_certain_predictions_have_a_finite_loss():
  student = tf.constant([[200.0, 0.0], [0.0, 200.0]])
  with tf.GradientTape() as tape:
    tape.watch(student)
    loss = losses.distillation_loss(student, [[200.0, 0.0], [200.0, 0.0]])
  np.testing.assert_allclose(loss, [0.0, 200.0])
  np.testing.assert_allclose(
    tape.gradient(loss, student), [[0, 0], [-1, 1]], atol=1e-6
  )
