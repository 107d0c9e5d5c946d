import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import client
from tff_fair import losses

_STUDENT = np.array([[1.0, 0, 0], [0, 2, 1]], np.float32)
_TEACHER = np.array([[2.0, 1, 0], [0, 1, 2]], np.float32)
_LABELS = np.array([0, 1], np.int32)


class _Forward:
  """A model whose inputs are its logits, or logits times one weight."""

  def __init__(self, trainable=()):
    self.trainable = trainable

  def __call__(self, x):
    return {'logits': x * tf.add_n(self.trainable) if self.trainable else x}


def _batch(logits, labels, index=None):
  index = range(len(labels)) if index is None else index
  return collections.OrderedDict(
    x=tf.constant(logits),
    y=tf.constant(labels),
    index=tf.constant(list(index), tf.int32),
  )


def _compute(objective, batch, context=()):
  """The loss, its gradient with respect to the logits, and the accuracy."""
  with tf.GradientTape() as tape:
    tape.watch(batch['x'])
    loss, metrics = objective.compute(_Forward(), batch, context)
  assert tuple(metrics) == objective.metric_names
  gradient = tape.gradient(loss, batch['x'])
  return float(loss), gradient.numpy(), float(metrics['accuracy'])


def _distillation(weight=1.0, temperature=1.0, focal_gamma=0.0):
  return client.distillation_objective(
    weight, temperature=temperature, focal_gamma=focal_gamma
  )


class TestDistillation:
  def test_worked_example(self):
    loss, gradient, accuracy = _compute(
      _distillation(), _batch(_STUDENT, _LABELS), tf.constant(_TEACHER)
    )
    assert loss == pytest.approx(0.716686, abs=1e-6)
    np.testing.assert_allclose(
      gradient,
      [[-0.256504, 0.089577, 0.166926], [0.045015, 0.042877, -0.087892]],
      atol=1e-6,
    )
    assert accuracy == 1.0

  def test_weight_and_temperature(self):
    for weight, temperature in ((0.5, 2.0), (3.0, 0.5)):
      loss, _, _ = _compute(
        _distillation(weight, temperature),
        _batch(_STUDENT, _LABELS),
        tf.constant(_TEACHER),
      )
      added = losses.distillation_loss(
        _STUDENT, _TEACHER, temperature=temperature
      )
      expected = 0.479525 + weight * np.mean(added)
      assert loss == pytest.approx(expected, abs=1e-6)

  def test_the_teacher_of_an_example_is_found_by_its_index(self):
    teacher = np.full([5, 3], np.nan, np.float32)
    teacher[[3, 1]] = _TEACHER
    loss, _, _ = _compute(
      _distillation(), _batch(_STUDENT, _LABELS, [3, 1]), tf.constant(teacher)
    )
    assert loss == pytest.approx(0.716686, abs=1e-6)

  def test_weight_0_is_cross_entropy_without_context(self):
    loss, gradient, _ = _compute(_distillation(0.0), _batch(_STUDENT, _LABELS))
    expected, slope, _ = _compute(
      client.classification_objective(), _batch(_STUDENT, _LABELS)
    )
    assert loss == expected == pytest.approx(0.479525, abs=1e-6)
    np.testing.assert_array_equal(gradient, slope)

  def test_the_focal_loss_takes_the_place_of_cross_entropy(self):
    for weight in (0.0, 0.5):
      loss, _, _ = _compute(
        _distillation(weight, focal_gamma=2.0),
        _batch(_STUDENT, _LABELS),
        tf.constant(_TEACHER),
      )
      focal = losses.focal_loss(_LABELS, _STUDENT, 2.0)
      expected = np.mean(focal) + weight * 0.237160
      assert loss == pytest.approx(expected, abs=1e-6)


def test_classification_against_numpy():
  batch = _batch(_TEACHER, _LABELS)
  p = np.exp(_TEACHER) / np.exp(_TEACHER).sum(axis=1, keepdims=True)
  p_true = p[[0, 1], _LABELS]
  for gamma in (0.0, 0.5, 2.0):
    # The second is wrong.
    loss, _, accuracy = _compute(client.classification_objective(gamma), batch)
    expected = np.mean(-((1 - p_true) ** gamma) * np.log(p_true))
    assert loss == pytest.approx(expected, rel=1e-5)
    assert accuracy == 0.5
    # FeDABoost's, whose context is gamma.
    objective = client.focal_objective(focal_weight=0.5)
    loss, _, _ = _compute(objective, batch, tf.constant(gamma))
    assert loss == pytest.approx(0.5 * expected, rel=1e-5)


class TestLinear:
  _SHIFT = [tf.constant([3.0, -1.0, 0.5]), tf.constant([10.0, 0.0, -7.0])]

  def _run(self, objective, context):
    trainable = [tf.ones([3]), tf.constant([1.0, 2.0, 3.0])]
    with tf.GradientTape() as tape:
      tape.watch(trainable)
      loss, metrics = objective.compute(
        _Forward(trainable), _batch(_STUDENT, _LABELS), context
      )
    return float(loss), tape.gradient(loss, trainable), metrics

  def test_adds_the_shift_to_the_gradient_and_nothing_to_the_loss(self):
    plain = client.classification_objective()
    loss, slope, metrics = self._run(plain, ())
    found = self._run(client.linear_objective(plain), (self._SHIFT, ()))
    assert found[0] == loss
    assert found[2] == metrics
    for g, s, shift in zip(found[1], slope, self._SHIFT, strict=True):
      np.testing.assert_allclose(g, s + shift, rtol=1e-6)

  def test_hands_on_the_rest_of_the_context(self):
    inner = client.proximal_objective(client.classification_objective(), 0.5)
    centre = [tf.zeros([3]), tf.constant([1.0, 0.0, 0.0])]
    loss, slope, _ = self._run(inner, centre)
    found = self._run(client.linear_objective(inner), (self._SHIFT, centre))
    assert found[0] == loss
    # .5 / 2 * (3 + 4 + 9)
    alone, _, _ = self._run(client.classification_objective(), ())
    assert loss - alone == pytest.approx(4.0, rel=1e-5)
    for g, s, shift in zip(found[1], slope, self._SHIFT, strict=True):
      np.testing.assert_allclose(g, s + shift, rtol=1e-6)
    # The proximal term pulls towards the centre.
    _, plain, _ = self._run(client.classification_objective(), ())
    for g, s, pull in zip(slope, plain, ([1, 1, 1], [0, 2, 3]), strict=True):
      np.testing.assert_allclose(g, s + 0.5 * np.array(pull), rtol=1e-5)
