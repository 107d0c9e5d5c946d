"""The divergences of clients' inputs, against NumPy's means and covariances."""

import math

import numpy as np
import pytest

from tff_fair import tasks
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import shift_divergences


def _gaussian(y, weights=None):
  """Mean and covariance, as NumPy has them."""
  return np.average(y, axis=0, weights=weights), np.cov(y.T, aweights=weights)


def _divergence(one, base):
  """The sum over the axes in which both covariances are diagonal."""
  root = np.linalg.inv(np.linalg.cholesky(base[1]))
  values, axes = np.linalg.eigh(root @ one[1] @ root.T)
  away = axes.T @ root @ (one[0] - base[0])
  return 0.5 * np.sum(values - 1 + away**2 - np.log(values))


class TestShiftedDigits:
  @pytest.fixture(scope='class', name='measured')
  def _measured(self):
    """The task, its components, the clients' probabilities, and the rows."""
    task = tasks.build_task(
      'digits',
      num_clients=3,
      partition='covariate_shift',
      shift_sizes='zipf',
      shift=3.0,
      pca_dim=4,
    )
    rows = shift_divergences.of_task(
      task, pca_dim=4, data_fraction=1, weighted=True, seed=0, shift=3.0
    )
    y = covariate_shift.principal_components(task.data.x, 4)
    weights = covariate_shift.client_weights(y, 3, shift=3.0, seed=0)
    return task, y, weights, rows

  def test_sizes(self, measured):
    task, _, weights, rows = measured
    effective = 1 / (weights**2).sum(axis=1)
    for k, (row, split) in enumerate(zip(rows, task.splits, strict=True)):
      assert tuple(row) == shift_divergences.COLUMNS
      own = np.concatenate(split)
      assert (row['client_id'], row['num_examples']) == (k, len(own))
      assert row['num_distinct'] == len(np.unique(own))
      assert row['effective_sample_size'] == pytest.approx(effective[k])
      assert row['effective_share'] == pytest.approx(effective[k] / 1797)

  def test_divergences_are_those_of_the_clients_examples(self, measured):
    task, y, _, rows = measured
    for row, split in zip(rows, task.splits, strict=True):
      own = _gaussian(y[np.concatenate(split)])
      expected = _divergence(own, _gaussian(y))
      assert row['kl'] == pytest.approx(expected, rel=1e-4)

  def test_approximations_are_those_of_what_clients_draw_from(self, measured):
    _, y, weights, rows = measured
    mean, covariance = _gaussian(y)
    for row, p in zip(rows, weights, strict=True):
      moved, shrunk = _gaussian(y, p)
      # The weighted covariance of NumPy is unbiased for fewer examples.
      shrunk *= 1 - (p**2).sum()
      for form in ('expansion', 'paper'):
        expected = covariate_shift.approximate_kl(
          moved - mean, shrunk - covariance, covariance, row['num_examples'],
          form=form,
        )  # fmt: skip
        assert row[f'kl_{form}'] == pytest.approx(expected, rel=1e-3)

  def test_controls_are_small_and_as_large_as_their_sizes_say(self, measured):
    *_, rows = measured
    ratios = []
    for row in rows:
      expected = 4 * 7 / (4 * row['num_examples'])
      assert row['control_expansion'] == pytest.approx(expected)
      ratios.append(row['control_kl'] / expected)
      assert row['control_kl'] < row['kl'] / 10
    # Of 14 degrees of freedom: the mean of three deviates by a fifth.
    assert 0.4 < np.mean(ratios) < 1.8


def test_the_approximation_without_weights_is_of_the_fitted_gaussian():
  rng = np.random.default_rng(0)
  y = rng.standard_normal((600, 2))
  clients = [np.arange(300), np.flatnonzero(y[:, 0] > -0.5)]
  rows = shift_divergences.measure(y, clients, None, seed=0)
  base = _gaussian(y)
  for row, own in zip(rows, clients, strict=True):
    mean, covariance = _gaussian(y[own])
    expected = covariate_shift.approximate_kl(
      mean - base[0], covariance - base[1], base[1], math.inf
    )
    assert row['kl_expansion'] == pytest.approx(expected, rel=1e-3)
    assert row['effective_sample_size'] == row['num_examples'] == len(own)


def test_a_client_with_too_few_examples_has_no_divergence():
  y = np.random.default_rng(0).standard_normal((50, 3))
  clients = [np.array([4, 4, 4, 5, 6]), np.arange(4), np.array([], int)]
  rows = shift_divergences.measure(y, clients, None, seed=0)
  assert [row['num_distinct'] for row in rows] == [3, 4, 0]
  for name in ('kl', 'kl_paper', 'control_kl', 'control_expansion'):
    undefined = [math.isnan(row[name]) for row in rows]
    assert undefined == [True, False, True]
