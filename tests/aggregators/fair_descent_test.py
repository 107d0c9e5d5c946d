import math

import numpy as np
import pytest
import tensorflow as tf

from tff_fair.aggregators import fair_descent

_AXES = np.eye(2)
_NO_CLIENT = np.zeros([0, 2])
_UNEVEN = np.array([3.0, 1.0])
_direct = tf.function(
  lambda gradients, losses, absent, angle, forced: fair_descent.fair_direction(
    gradients, losses, absent, angle=angle, forced=forced
  ),
  input_signature=[
    tf.TensorSpec([None, 2], tf.float64),
    tf.TensorSpec([None], tf.float64),
    tf.TensorSpec([None, 2], tf.float64),
    tf.TensorSpec([], tf.float64),
    tf.TensorSpec([], tf.bool),
  ],
)


def _direction(
  gradients=_AXES,
  losses=_UNEVEN,
  absent=_NO_CLIENT,
  angle=math.pi / 180,
  forced=False,
):
  found = _direct(gradients, losses, absent, angle, forced)
  return {name: value.numpy() for name, value in found.items()}


class TestFairGuidance:
  def test_by_hand(self):
    phi, guide = fair_descent.fair_guidance(_UNEVEN)
    np.testing.assert_allclose(phi, math.radians(26.565051), rtol=1e-7)
    np.testing.assert_allclose(guide, [0.316228, -0.948683], atol=1e-6)

  def test_equal_losses_need_none(self):
    for losses in ([0.7, 0.7, 0.7], [0, 0], [0.3], []):
      phi, guide = fair_descent.fair_guidance(np.array(losses, np.float64))
      assert phi == 0
      np.testing.assert_array_equal(guide, np.zeros(len(losses)))


class TestFairDirection:
  def test_inactive(self):
    found = _direction(angle=math.pi / 2)
    np.testing.assert_allclose(found['direction'], [0.5, 0.5], atol=1e-9)
    assert found['scale'] == pytest.approx(1)
    assert not found['active']

  def test_active(self):
    # d = (0, .5, .5) Q = (.158114, .025658), of length .160182; the mean
    # gradient has length sqrt(.5).
    found = _direction()
    np.testing.assert_allclose(
      found['direction'], [0.697976, 0.113266], atol=1e-6
    )
    assert found['scale'] == pytest.approx(4.414389, abs=1e-5)
    assert found['active']

  def test_forced_at_any_angle(self):
    forced = _direction(angle=math.pi / 2, forced=True)
    np.testing.assert_allclose(
      forced['direction'], _direction()['direction'], rtol=1e-12
    )

  def test_equal_losses_cannot_be_forced(self):
    found = _direction(losses=np.ones(2), forced=True)
    assert not found['active']
    np.testing.assert_allclose(found['direction'], [0.5, 0.5], atol=1e-9)

  def test_absent_clients_count(self):
    # The shortest mix of (1, 0) and (-.6, .8) is (.2, .4); length 1 is that of
    # the only gradient.
    found = _direction(
      np.array([[1.0, 0]]), np.ones(1), np.array([[-0.6, 0.8]])
    )
    expected = np.array([0.2, 0.4]) / math.hypot(0.2, 0.4)
    np.testing.assert_allclose(found['direction'], expected, atol=1e-6)
    assert found['scale'] == pytest.approx(1 / math.hypot(0.2, 0.4))

  def test_nothing_descends(self):
    for gradients, losses, absent in (
      (np.array([[1.0, 0], [-1, 0]]), [2, 2], _NO_CLIENT),
      (_NO_CLIENT, [], _NO_CLIENT),
      (_NO_CLIENT, [], np.ones([1, 2])),
    ):
      found = _direction(gradients, np.array(losses, float), absent)
      np.testing.assert_array_equal(found['direction'], [0, 0])
      assert found['scale'] == 0


def test_step_ladder():
  rate = tf.constant(0.1, tf.float64)
  for scale, left, s, expected in (
    (1.0, False, 1, [2, 1, 0.5]),
    (1.0, True, 1, [1, 0.5]),
    (1.0, False, 3, [8, 4, 2, 1, 0.5, 0.25, 0.125]),
    # Down to .5 / 4.4 = .1136.
    (4.4, False, 1, [2, 1, 0.5, 0.25, 0.125]),
    (1e9, True, 0, [1 / 2**k for k in range(8)]),
    (0.0, False, 1, []),
  ):
    steps = fair_descent.step_ladder(rate, scale, left, s)
    assert steps.shape == 2 * s + 8
    np.testing.assert_allclose(
      steps, np.pad(0.1 * np.array(expected), (0, 2 * s + 8 - len(expected)))
    )


class TestChooseStep:
  def _choose(
    self,
    trials,
    *,
    losses=(3, 1),
    slopes=(1, 1),
    active=False,
    longest=math.inf,
  ):
    """Trials are a list for each of the steps 4, 2, 1; then one of none."""
    step, accepted = fair_descent.choose_step(
      np.array(losses, float),
      np.transpose([*trials, [math.inf] * len(losses)]),
      np.array([4.0, 2.0, 1.0, 0.0]),
      np.array(slopes, float),
      tf.constant(active),
      tf.constant(longest, tf.float64),
    )
    return step.numpy(), bool(accepted)

  def test_by_hand(self):
    sloped = [[2.97, 0.9], [2.985, 0.9], [2.985, 0.9]]
    uneven = [[2.9, 0.5], [2.4, 0.9], [2, 0.95]]
    for trials, options, expected in (
      # The largest at which all descend,
      ([[0, 2], [2.5, 0.9], [2, 0.5]], {}, (2, True)),
      # by a share of the slope: 3 - 1e-4 * 4 * 100 = 2.96,
      (sloped, {'slopes': (100, 1)}, (1, True)),
      # and none by a small increase.
      ([[2, 1.0001], [2, 1.00005], [3.5, 3]], {}, (4, False)),
      # Guidance also asks for more equal losses.
      (uneven, {'active': True}, (2, True)),
      (uneven, {}, (4, True)),
      # Else the largest with a lower sum, else the lowest sum.
      ([[9, 9], [1, 2], [0.1, 1.1]], {}, (2, False)),
      ([[9, 9], [5, 4], [5, 5]], {}, (2, False)),
      # Not the largest, if it is too long; but the lowest sum may be.
      ([[9, 9], [1, 2], [0.5, 2]], {'longest': 1.0}, (1, False)),
      ([[9, 9], [1, 2], [5, 5]], {'longest': 1.0}, (2, False)),
      # Steps that are accepted may be long.
      (uneven, {'longest': 1.0}, (4, True)),
      # Steps without finite losses do not count.
      ([[math.nan, 0], [math.inf, 0], [5, 5]], {}, (1, False)),
      ([[math.nan, 0]] * 3, {}, (0, False)),
    ):
      assert self._choose(trials, **options) == expected, (trials, options)
