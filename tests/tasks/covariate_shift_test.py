import functools
import itertools
import math
import warnings

import numpy as np
import pytest

from tests import refusals
from tff_fair import splits
from tff_fair.tasks import covariate_shift

_RNG = np.random.default_rng(5)
# 2,000 examples of 4 x 3 features, of unequal variances and correlated.
FEATURES = (
  _RNG.standard_normal((2000, 12)) @ _RNG.standard_normal((12, 12))
).reshape(2000, 4, 3)


def _gaussian(dim, seed=0):
  """A mean and a covariance far from the unit matrix."""
  rng = np.random.default_rng(seed)
  root = rng.standard_normal((dim, dim)) + 2 * np.eye(dim)
  return rng.standard_normal(dim), root @ root.T


def _symmetric(dim, seed):
  root = np.random.default_rng(seed).standard_normal((dim, dim))
  return root + root.T


class TestCovariateShift:
  def test_half_of_the_examples_in_sizes(self):
    for method, (sizes, expected) in itertools.product(
      ('importance', 'pc1_sort'),
      [
        ('equal', [334, 333, 333]),
        # 1,000 / (k * 11 / 6) is 545.45, 272.73, 181.82.
        ('zipf', [545, 273, 182]),
      ],
    ):
      parts = covariate_shift.covariate_shift(
        FEATURES, 3, sizes=sizes, method=method, pca_dim=2, seed=0
      )
      assert [len(part) for part in parts] == expected
      for part in parts:
        assert part.dtype == np.int64
        assert (np.diff(part) >= 0).all()
        assert part[0] >= 0 and part[-1] < 2000

  def test_examples_are_drawn_with_replacement_and_shared(self):
    first, second = covariate_shift.covariate_shift(
      FEATURES, 2, pca_dim=2, seed=0, total=2000
    )
    assert len(np.unique(first)) < len(first)
    assert np.intersect1d(first, second).size

  def test_is_random_and_repeatable(self):
    def deal(seed):
      return covariate_shift.covariate_shift(
        FEATURES, 4, sizes='zipf', pca_dim=3, seed=seed
      )

    assert all(map(np.array_equal, deal(1), deal(1)))
    assert not any(map(np.array_equal, deal(1), deal(2)))

  def test_clients_draw_by_their_weights(self):
    y = covariate_shift.principal_components(FEATURES, 2)
    weights = covariate_shift.client_weights(y, 2, shift=2.0, seed=3)
    parts = covariate_shift.covariate_shift(
      FEATURES, 2, shift=2.0, pca_dim=2, seed=3, total=2000
    )
    for part, p in zip(parts, weights, strict=True):
      error = np.sqrt((p @ y**2 - (p @ y) ** 2) / len(part))
      assert (np.abs(y[part].mean(axis=0) - p @ y) < 4 * error).all()
    # Each client is nearer to its own point than to the other's.
    centres = weights @ y
    for k, part in enumerate(parts):
      away = np.linalg.norm(y[part].mean(axis=0) - centres, axis=1)
      assert away.argmin() == k

  def test_sorting_gives_slices_of_the_first_half(self):
    # One feature is its own component, but for the mean.
    feature = np.random.default_rng(0).permutation(20).astype(np.float32)
    ascending, descending = (
      covariate_shift.covariate_shift(
        feature[:, np.newaxis], 3, sizes='zipf', method=method, seed=0
      )
      for method in ('pc1_sort', 'pc1_sort_descending')
    )
    values = [sorted(feature[part]) for part in ascending]
    # 10 / (k * 11 / 6) is 5.45, 2.73, 1.82.
    assert values == [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9]]
    values = [sorted(feature[part]) for part in descending]
    assert values == [[15, 16, 17, 18, 19], [12, 13, 14], [10, 11]]

  def test_one_warning_names_the_clients_with_few_effective_examples(self):
    with pytest.warns(UserWarning) as caught:
      covariate_shift.covariate_shift(
        FEATURES, 2, sizes='zipf', shift=60.0, pca_dim=2, seed=0, total=2000
      )
    (warning,) = caught
    y = covariate_shift.principal_components(FEATURES, 2)
    weights = covariate_shift.client_weights(y, 2, shift=60.0, seed=0)
    effective = 1 / (weights**2).sum(axis=1)
    assert effective[0] < 133.3 and effective[1] < 66.7
    assert str(warning.message).endswith(
      f'(client 0: 1333 of {effective[0]:.1f}, client 1: 667 of'
      f' {effective[1]:.1f}).'
    )
    assert warning.filename == __file__

  def test_no_warning_where_enough_examples_count(self):
    with warnings.catch_warnings():
      warnings.simplefilter('error')
      covariate_shift.covariate_shift(FEATURES, 2, pca_dim=2, seed=0)

  def test_refuses(self):
    call = functools.partial(covariate_shift.covariate_shift, seed=0)
    legal = {'features': FEATURES, 'num_clients': 3}
    equal = np.ones((10, 2))
    rows = [
      ({'num_clients': 1001}, r'^1001 clients .* found 1000\.$'),
      ({'pca_dim': 13}, r'^pca_dim must be in 1\.\.12, found 13'),
      ({'features': equal, 'pca_dim': 2}, 'Examples must differ .* 10 equal'),
    ]
    refusals.check(
      call, [({**legal, **row}, ValueError, message) for row, message in rows]
    )


class TestSplitCovariateShift:
  def _deal(self, **options):
    return covariate_shift.split_covariate_shift(
      FEATURES, 3, pca_dim=2, sizes='zipf', **{'seed': 0, **options}
    )

  def test_sizes_by_hand(self):
    # Clients of 545, 273 and 182, as above; a fifth tests, an eighth of the
    # rest is held out: 109 and 436 / 8 = 54.5, 55 and 218 / 8 = 27.25, 36 and
    # 146 / 8 = 18.25.
    parts = self._deal(test_fraction=0.2, holdout_fraction=0.125)
    sizes = [tuple(map(len, split)) for split in parts]
    assert sizes == [(381, 55, 109), (191, 27, 55), (128, 18, 36)]
    for part in itertools.chain(*parts):
      assert part.dtype == np.int64
      assert (np.diff(part) >= 0).all()
    other = self._deal(seed=1, test_fraction=0.2, holdout_fraction=0.125)
    assert not np.array_equal(parts[0].train, other[0].train)
    # No part where its fraction is 0.
    parts = self._deal(test_fraction=0.0, holdout_fraction=0.0)
    assert tuple(map(len, parts[0])) == (545, 0, 0)

  def test_parts_come_from_their_parts_of_the_pool(self):
    fractions = {'test_fraction': 0.3, 'holdout_fraction': 0.2}
    pool = splits.split_pool(len(FEATURES), seed=4, **fractions)
    # 2,000: 600 test, a fifth of 1,400 is held out.
    assert tuple(map(len, pool)) == (1120, 280, 600)
    for split in self._deal(seed=4, total=2000, **fractions):
      for drawn, part in zip(split, pool, strict=True):
        assert np.isin(drawn, part).all()

  def test_every_part_is_drawn_by_the_weights_of_the_client(self):
    y = covariate_shift.principal_components(FEATURES, 2)
    weights = covariate_shift.client_weights(y, 2, shift=2.0, seed=3)
    fractions = {'test_fraction': 0.4, 'holdout_fraction': 0.5}
    pool = splits.split_pool(len(FEATURES), seed=3, **fractions)
    parts = covariate_shift.split_covariate_shift(
      FEATURES, 2, shift=2.0, pca_dim=2, seed=3, total=2000, **fractions
    )
    for split, p in zip(parts, weights, strict=True):
      for drawn, part in zip(split, pool, strict=True):
        own, here = p[part] / p[part].sum(), y[part]
        error = np.sqrt((own @ here**2 - (own @ here) ** 2) / len(drawn))
        away = np.abs(y[drawn].mean(axis=0) - own @ here)
        assert (away < 4 * error).all()
        # Without weights the mean would be far from there.
        assert (away < np.abs(here.mean(axis=0) - own @ here)).any()

  def test_warns_as_the_shared_pool_does(self):
    with pytest.warns(UserWarning, match=r'^The covariate shift .*client 0'):
      self._deal(shift=60.0, total=2000)


class TestPrincipalComponents:
  def test_are_those_of_the_singular_value_decomposition(self):
    flat = FEATURES.reshape(2000, 12)
    u, s, _ = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    expected = u[:, :3] * s[:3]
    found = covariate_shift.principal_components(FEATURES, 3)
    assert found.shape == (2000, 3) and found.dtype == np.float64
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)

  def test_pixels_in_float32_are_precise_and_repeatable(self):
    flat = FEATURES.reshape(2000, 12)
    exact = covariate_shift.principal_components(flat, 3)
    found = covariate_shift.principal_components(flat.astype(np.float32), 3)
    np.testing.assert_allclose(found, exact, atol=1e-3)
    again = covariate_shift.principal_components(flat.astype(np.float32), 3)
    np.testing.assert_array_equal(found, again)


class TestWeights:
  y = np.random.default_rng(8).standard_normal((200_000, 2)) @ np.array(
    [[2.0, 0.5], [0.0, 0.3]]
  )

  @pytest.mark.parametrize(
    ('form', 'moved', 'shrunk'), [('density', 0.5, 0.5), ('ratio', 1.0, 1.0)]
  )
  def test_moments_of_a_shifted_gaussian(self, form, moved, shrunk):
    mean, covariance = covariate_shift.fit_gaussian(self.y)
    delta = np.linalg.cholesky(covariance) @ [0.8, -0.6]
    p = covariate_shift.shift_weights(
      self.y, mean, covariance, delta, form=form
    )
    assert p.sum() == pytest.approx(1)
    fitted_mean, fitted = covariate_shift.fit_gaussian(self.y, p)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(
      (fitted_mean - mean) / scale, moved * delta / scale, atol=0.02
    )
    np.testing.assert_allclose(
      fitted / np.outer(scale, scale),
      shrunk * covariance / np.outer(scale, scale),
      atol=0.03,
    )

  def test_shifts_have_the_mahalanobis_length_asked_for(self):
    y = self.y[:500]
    _, covariance = covariate_shift.fit_gaussian(y)
    weights = covariate_shift.client_weights(
      y, 5, shift=3.0, weights='ratio', seed=2
    )
    # log p_i is linear in y_i, with the slope Sigma^-1 delta.
    inputs = np.column_stack([y, np.ones(len(y))])
    slopes = np.linalg.lstsq(inputs, np.log(weights.T), rcond=None)[0][:2].T
    lengths = np.einsum('ki,ij,kj->k', slopes, covariance, slopes)
    np.testing.assert_allclose(lengths, 3.0)
    assert len(np.unique(slopes.round(6), axis=0)) == 5

  def test_density_weights_by_hand(self):
    # Away from 0 + 1 by -1, 0, 2 with variance 4: exp of -1/8, 0, -1/2.
    p = covariate_shift.shift_weights(
      np.array([[0.0], [1.0], [3.0]]),
      np.array([0.0]),
      np.array([[4.0]]),
      np.array([1.0]),
    )
    expected = np.exp([-0.125, 0.0, -0.5])
    np.testing.assert_allclose(p, expected / expected.sum())

  def test_effective_sample_size(self):
    size = covariate_shift.effective_sample_size
    assert size(np.full(8, 1 / 8)) == pytest.approx(8)
    assert size(np.array([0.0, 1.0, 0.0])) == 1
    assert size(np.array([0.5, 0.25, 0.25])) == pytest.approx(8 / 3)


class TestDivergence:
  def test_by_hand(self):
    one = np.ones(1), np.full((1, 1), 2.0)
    base = np.zeros(1), np.ones((1, 1))
    # (2 - 1 + 1 - log 2) / 2
    assert covariate_shift.gaussian_kl(*one, *base) == pytest.approx(0.6534264)
    assert covariate_shift.gaussian_kl(*one, *one) == pytest.approx(0)
    # The inverse of the base is [[2, -1], [-1, 2]] / 3, its determinant is 3.
    base = np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]])
    found = covariate_shift.gaussian_kl(np.array([1.0, 0]), np.eye(2), *base)
    assert found == pytest.approx((4 / 3 - 2 + 2 / 3 + np.log(3)) / 2)

  def test_approximations_by_hand(self):
    # Sigma = 4, D = 1, d = 2, A = 100; E = 1/4.
    arguments = (np.full(1, 2.0), np.ones((1, 1)), np.full((1, 1), 4.0), 100)
    expansion = 1 / 64 - 1 / 384 + 1 / 2 + 4 / 400
    found = covariate_shift.approximate_kl(*arguments)
    assert found == pytest.approx(expansion)
    printed = 1 / 1024 - 1 / 128 + 3 / 8 + 4 / 400
    found = covariate_shift.approximate_kl(*arguments, form='paper')
    assert found == pytest.approx(printed)

  def test_the_expansion_is_exact_to_the_third_order(self):
    mean, covariance = _gaussian(4)

    def error(size):
      d, change = size * np.array([0.5, -1, 0.3, 0.8]), size * _symmetric(4, 3)
      exact = covariate_shift.gaussian_kl(
        mean + d, covariance + change, mean, covariance
      )
      found = covariate_shift.approximate_kl(d, change, covariance, math.inf)
      return found - exact

    # An error of fourth order falls by 16 where the shift is halved.
    assert error(0.02) / error(0.01) == pytest.approx(16, rel=0.1)

  def test_the_printed_form_in_matrices(self):
    _, covariance = _gaussian(3)
    d, change = np.array([0.5, -1, 2]), _symmetric(3, 1)
    inverse = np.linalg.inv(covariance)
    relative = change @ inverse
    expected = (
      np.linalg.norm(inverse @ change @ inverse) ** 2 / 4
      - np.trace(np.linalg.matrix_power(relative, 3)) / 2
      + d @ inverse @ (np.eye(3) - relative) @ d / 2
      + 3 * 6 / 200
    )
    found = covariate_shift.approximate_kl(
      d, change, covariance, 50, form='paper'
    )
    assert found == pytest.approx(expected)

  def test_the_sampling_term_is_the_mean_divergence_of_fitted_gaussians(self):
    mean, covariance = _gaussian(3)
    samples = np.random.default_rng(4).multivariate_normal(
      mean, covariance, (1000, 400)
    )
    found = np.mean(
      [
        covariate_shift.gaussian_kl(
          *covariate_shift.fit_gaussian(sample), mean, covariance
        )
        for sample in samples
      ]
    )
    nothing = np.zeros(3), np.zeros((3, 3))
    expected = covariate_shift.approximate_kl(*nothing, covariance, 400)
    assert expected == pytest.approx(3 * 6 / 1600)
    # M (M + 4) would be 17 % more.
    assert found == pytest.approx(expected, rel=0.06)
