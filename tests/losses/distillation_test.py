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


@pytest.mark.parametrize(
  ('options', 'expected'),
  [
    ({}, 0.237160),
    ({'temperature': 1.0}, 0.237160),
    ({'temperature': 2.0}, 0.241175),
  ],
)
class TestWorkedExample:
  def test_mean_of_the_pure_function(self, options, expected):
    loss = losses.distillation_loss(_STUDENT, _TEACHER, **options)
    assert loss.shape == [2]
    assert np.mean(loss) == pytest.approx(expected, abs=1e-6)

  def test_keras_loss(self, options, expected):
    loss = losses.DistillationLoss(**options)
    found = float(loss(_TEACHER, _STUDENT))
    assert found == pytest.approx(expected, abs=1e-6)


def test_each_example_by_hand():
  # Two classes with odds 1 for the student and 3 for the teacher.
  loss = losses.distillation_loss(
    tf.zeros([2, 2]), tf.constant([[np.log(3.0), 0.0], [0.0, 0.0]], tf.float32)
  )
  expected = 0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.5)
  np.testing.assert_allclose(loss, [expected, 0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize('temperature', [0.5, 1.0, 3.0])
def test_the_gradient_is_that_of_the_cross_entropy_form(temperature):
  student, teacher = tf.constant(_STUDENT), tf.constant(_TEACHER)
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


def test_who_is_sure_costs_a_finite_loss():
  student = tf.constant([[200.0, 0.0], [0.0, 200.0]])
  with tf.GradientTape() as tape:
    tape.watch(student)
    loss = losses.distillation_loss(student, [[200.0, 0.0], [200.0, 0.0]])
  np.testing.assert_allclose(loss, [0.0, 200.0])
  np.testing.assert_allclose(
    tape.gradient(loss, student), [[0, 0], [-1, 1]], atol=1e-6
  )


class TestKerasLoss:
  def test_reductions_and_sample_weights(self):
    each = losses.distillation_loss(_STUDENT, _TEACHER).numpy()
    total = losses.DistillationLoss(reduction='sum')
    np.testing.assert_allclose(total(_TEACHER, _STUDENT), each.sum(), rtol=1e-6)
    weighted = total(_TEACHER, _STUDENT, sample_weight=[1.0, 3.0])
    np.testing.assert_allclose(weighted, each[0] + 3 * each[1], rtol=1e-6)

  def test_trains_a_student_in_fit(self):
    rng = np.random.default_rng(0)
    x = rng.normal(size=[64, 3]).astype(np.float32)
    kernel = rng.normal(size=[3, 3]).astype(np.float32)
    student = tf.keras.Sequential(
      [tf.keras.layers.Dense(3, use_bias=False, kernel_initializer='zeros')]
    )
    student.compile(tf.keras.optimizers.SGD(0.5), losses.DistillationLoss(2.0))
    fit = student.fit(x, x @ kernel, epochs=30, verbose=0)
    assert fit.history['loss'][-1] < 0.05 * fit.history['loss'][0]
    # Up to a constant on all logits of an example.
    found = student.get_weights()[0] - kernel
    assert np.ptp(found, axis=1).max() < 0.3

  def test_is_rebuilt_from_its_config(self):
    loss = losses.DistillationLoss(2.0, reduction='sum', name='teacher')
    rebuilt = losses.DistillationLoss.from_config(loss.get_config())
    assert rebuilt.get_config() == loss.get_config()
    assert (rebuilt.temperature, rebuilt.name) == (2.0, 'teacher')


@pytest.mark.parametrize(
  ('temperature', 'error', 'message'),
  [
    (0, ValueError, 'temperature must be positive, found 0'),
    (-1.0, ValueError, 'temperature must be positive, found -1.0'),
    (np.nan, ValueError, 'temperature must be finite, found nan'),
    ('1', TypeError, "temperature must be a real number, found '1'"),
  ],
)
def test_a_temperature_that_is_not_positive_is_refused(
  temperature, error, message
):
  with pytest.raises(error, match=message):
    losses.DistillationLoss(temperature)


def test_logits_of_other_classes_are_refused():
  with pytest.raises(ValueError, match=r'the same shape, found \(3, 1\), \(3,'):
    losses.distillation_loss(tf.ones([3, 1]), tf.ones([3, 1, 1]))
  with pytest.raises(ValueError, match=r'teacher_logits must be vectors of'):
    losses.distillation_loss(tf.ones([3, 4]), tf.ones([3, 1]))
