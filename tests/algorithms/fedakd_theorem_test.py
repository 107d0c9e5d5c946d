"""Theorem 3.2 of FedAKD: its condition against its assumptions."""

import numpy as np

_RNG = np.random.default_rng(0)
_SIZE = 100_000


def _powers(low, high):
  """Numbers of all magnitudes in between."""
  return np.exp(_RNG.uniform(np.log(low), np.log(high), _SIZE))


def _rates(
  *, smooth, convex, dissimilar, alpha, beta, omega_1, omega_2, **inexact
):
  """`r`, `r1` and `r2` as printed; the norms of the matrices are numbers."""
  gamma, theta = inexact['gamma'], inexact['theta']
  error = (smooth * (1 + gamma) + convex) * gamma * (1 + theta) / convex
  step = error + 1 + theta + (1 + gamma) * beta * omega_2 / (4 * convex)
  r_1 = step * (1 + theta) * smooth + theta + error
  r_2 = smooth * (1 + gamma) / convex + gamma
  gain = 4 / (beta * omega_2) + 4 / (alpha * omega_1)
  r = (
    gain * dissimilar
    - smooth * dissimilar**2 / 2 * step**2
    - gain * (r_1 + r_2) * dissimilar
  )
  return r, r_1, r_2


def _constants():
  return {
    'dissimilar': _powers(1, 1e3),
    'alpha': _powers(1e-4, 1e4),
    'beta': _powers(1e-4, 1e4),
    'omega_1': _powers(1e-4, 1e4),
    'omega_2': _powers(1e-4, 1e4),
    'gamma': _RNG.uniform(0, 1, _SIZE),
    'theta': _powers(1e-4, 1e2),
  }


def test_by_hand():
  # step = 1 + .4 / 4 = 1.1, r1 = .11, r2 = .1, gain = 10 + 4 = 14.
  r, r_1, r_2 = _rates(
    smooth=0.1, convex=1, dissimilar=1, alpha=1, beta=0.4, omega_1=1, omega_2=1,
    gamma=0, theta=0,
  )  # fmt: skip
  np.testing.assert_allclose(
    [r, r_1, r_2], [14 - 0.05 * 1.21 - 14 * 0.21, 0.11, 0.1]
  )


def test_the_condition_cannot_hold():
  # An L-smooth loss is at most L-strongly convex: assumptions 1 and 2.
  convex = _powers(1e-4, 1e4)
  smooth = convex * _powers(1, 1e4)
  r, _, r_2 = _rates(smooth=smooth, convex=convex, **_constants())
  assert r_2.min() >= 1
  assert r.max() < 0


def test_without_the_assumption_it_can():
  convex = _powers(1, 1e4)
  smooth = convex * _powers(1e-8, 1e-4)
  r, *_ = _rates(smooth=smooth, convex=convex, **_constants())
  assert r.max() > 0
