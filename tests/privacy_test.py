"""Epsilons against formulas of papers, and a published one."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy import special
from scipy import stats

from tff_fair import privacy


def _accounting(noise, clients, per_round):
  return privacy.Accounting(
    noise_multiplier=noise, num_clients=clients, clients_per_round=per_round
  )


def _of_zcdp(rho, delta):
  """Canonne, Kamath and Steinke, proposition 12, for D_a = rho a."""

  def epsilon(order):
    power = -math.log(delta * order) / (order - 1)
    return rho * order + power + math.log1p(-1 / order)

  return optimize.minimize_scalar(
    epsilon, bounds=(1.01, 2000), method='bounded'
  ).fun


def _exact(noise_by_sensitivity, delta):
  """Balle and Wang (ICML 2018), theorem 8, of a single Gaussian mechanism."""
  s = noise_by_sensitivity

  def excess(epsilon):
    above, below = 0.5 / s - epsilon * s, -0.5 / s - epsilon * s
    return (
      stats.norm.cdf(above) - np.exp(epsilon) * stats.norm.cdf(below) - delta
    )

  return optimize.brentq(excess, 0, 500)


def test_full_participation_is_the_gaussian_mechanism():
  for noise, clients, rounds in ((1.0, 100, 3), (4.0, 50, 20), (30.0, 1000, 5)):
    accounting = _accounting(noise, clients, clients)
    assert accounting.delta == pytest.approx(clients**-1.1)
    # A client that replaces another one moves the sum by 2 clips.
    rho = rounds * 2**2 / (2 * noise**2)
    found = accounting.epsilon(rounds)
    # Above the best order, by little.
    expected = _of_zcdp(rho, accounting.delta)
    assert expected * (1 - 1e-9) <= found <= expected * 1.01
    # Rounds add up to one of less noise, which no bound undercuts.
    assert found > _exact(noise / 2 / math.sqrt(rounds), accounting.delta)


def test_a_published_epsilon():
  """Gboard's first model with a guarantee: rho = 0.81 is epsilon = 8.9.

  Xu et al., "Federated Learning of Gboard Language Models with Differential
  Privacy" (ACL 2023); delta is 1e-10, and 2 * 162 / 20^2 is 0.81.
  """
  found = _accounting(20.0, 1000, 1000).epsilon(162, delta=1e-10)
  assert found == pytest.approx(8.9, abs=0.05)


def _sampled_divergence(order, q, s):
  """Wang et al., theorem 9 with the infinity of equation 6 left out.

  The theorem's bound for a mechanism with `D_j = j / (2 s^2)`: the minimum
  with `e^(D_inf)`, which is infinite, is not taken.
  """
  d = [j / (2 * s**2) for j in range(order + 1)]
  second = min(4 * math.expm1(d[2]), 2 * math.exp(d[2]))
  total = 1 + q**2 * special.comb(order, 2) * second
  total += sum(
    q**j * special.comb(order, j) * 2 * math.exp((j - 1) * d[j])
    for j in range(3, order + 1)
  )
  return math.log(total) / (order - 1)


def test_sampling_without_replacement():
  noise, clients, per_round, rounds = 4.0, 1000, 20, 50
  accounting = _accounting(noise, clients, per_round)
  found = accounting.epsilon(rounds)
  # The theorem for any mechanism; that for Gaussians is a little tighter.
  bounds = []
  for order in range(2, 40):
    divergence = rounds * _sampled_divergence(
      order, per_round / clients, noise / 2
    )
    power = -math.log(accounting.delta * order) / (order - 1)
    bounds.append(divergence + power + math.log1p(-1 / order))
  assert 0.7 * min(bounds) < found <= min(bounds) * (1 + 1e-9)
  # And nothing would be private if a drawn client were.
  everyone = _accounting(noise, clients, clients).epsilon(rounds)
  assert found < everyone / 5


def test_sampling_never_costs_privacy():
  """For cohorts of nearly all clients the theorem alone exceeds this."""
  noise, rounds = 1.0, 100
  everyone = _accounting(noise, 100, 100).epsilon(rounds)
  found = [_accounting(noise, 100, m).epsilon(rounds) for m in (10, 50, 99)]
  assert found == sorted(found) and found[-1] == everyone
  assert _accounting(noise, 100, 10).epsilon(0) == 0


def test_the_noise_of_adaptive_clipping_is_split():
  of_updates, of_count = privacy.split_noise(1.0, 20)
  assert of_count == 1.0
  # 1 / 1^2 = 1 / z^2 + 1 / 2^2.
  assert of_updates == pytest.approx(math.sqrt(4 / 3))
  with pytest.raises(ValueError, match='noise_multiplier must be below 1, a'):
    privacy.split_noise(1.0, 10)


def test_numbers_out_of_range():
  for noise, clients, per_round, message in (
    (0.0, 10, 10, 'noise_multiplier must be above 0'),
    (1.0, 1, 1, 'num_clients must be at least 2'),
    (1.0, 10, 11, 'clients_per_round must be at most num_clients=10, found 11'),
  ):
    with pytest.raises(ValueError, match=message):
      _accounting(noise, clients, per_round)
