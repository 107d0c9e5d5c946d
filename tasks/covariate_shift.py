"""Covariate shift between clients: FedAKD's Algorithm 2, and its theorem 2.2.

The features of all examples are projected on their first principal components.
Each client gets a point at a fixed Mahalanobis distance from the mean, in its
own random direction, and draws its examples with weights that decrease with the
distance from that point. Labels do not change.

As printed, all clients draw from one pool and split what they have drawn: an
example that tests one client may train another. `split_covariate_shift` divides
the pool first.
"""

from collections.abc import Sequence
import math
import warnings

import numpy as np

from tff_fair import checks
from tff_fair import splits
from tff_fair import streams
from tff_fair.tasks import partitions

SIZES = ('equal', 'zipf')
WEIGHTS = ('density', 'ratio')
METHODS = ('importance', 'pc1_sort', 'pc1_sort_descending')
POOLS = ('split', 'shared')
# Squared; no example is nearly as far from the mean.
MAX_SHIFT = 1e6

# Share of the mean variance that is added to each variance: that of a constant
# pixel is 0.
_RIDGE = 1e-6


def covariate_shift(
  features: np.ndarray,
  num_clients: int,
  *,
  sizes: str = 'equal',
  shift: float = 5.0,
  pca_dim: int = 10,
  weights: str = 'density',
  method: str = 'importance',
  seed: int,
  total: int | None = None,
) -> list[np.ndarray]:
  """Deals examples so that the clients' inputs differ in distribution.

  Under 'importance', client `k` draws its examples with replacement by the
  probabilities `client_weights` gives it. Under 'pc1_sort', as in FedAKD's
  public code, the clients get consecutive slices of the first `total` examples
  in the order of their first principal component, under 'pc1_sort_descending'
  of the last ones: the sign of a component depends on the library's version.

  Args:
    features: Real [N, ...], the inputs of the examples.
    num_clients: Number of clients `K`, at least 1.
    sizes: 'equal' (FedAKD's BCS), the largest first by at most 1, or 'zipf'
      (its ICS), those of `partitions.zipf`.
    shift: See `client_weights`; without effect unless 'importance'.
    pca_dim: See `client_weights`; without effect unless 'importance'.
    weights: See `client_weights`; without effect unless 'importance'.
    method: 'importance', 'pc1_sort' or 'pc1_sort_descending'.
    seed: Seed, at least 0.
    total: Number of examples to deal, in `K..N`; None for `floor(N / 2)`.

  Returns:
    `K` sorted int64 index arrays. Under 'importance' a client may have an
    example several times, and several clients may have the same example.

  Warns:
    UserWarning: If the effective sample size of a client's weights is below a
      tenth of the number of examples that it draws.
  """
  counts = _client_sizes(len(features), num_clients, sizes, total)
  if method != 'importance':
    component = principal_components(features, 1)[:, 0]
    if method == 'pc1_sort_descending':
      component = -component
    order = np.argsort(component, kind='stable')
    ends = np.cumsum(counts)
    return [np.sort(p) for p in np.split(order[: ends[-1]], ends[:-1])]
  probabilities = client_weights(
    principal_components(features, pca_dim),
    num_clients,
    shift=shift,
    weights=weights,
    seed=seed,
  )
  _warn_of_few_effective(counts, probabilities)
  rng = np.random.default_rng(seed)
  return [
    np.sort(rng.choice(len(features), count, p=p))
    for count, p in zip(counts, probabilities, strict=True)
  ]


def split_covariate_shift(
  features: np.ndarray,
  num_clients: int,
  *,
  sizes: str = 'equal',
  shift: float = 5.0,
  pca_dim: int = 10,
  weights: str = 'density',
  seed: int,
  total: int | None = None,
  test_fraction: float = 0.2,
  holdout_fraction: float = 0.1,
) -> tuple[splits.Split, ...]:
  """Deals examples as 'importance' does, each part from its part of the pool.

  The pool is divided at random into a training, a holdout and a test part with
  the sizes of `splits.split_sizes`. A client of n examples, of which
  `split_sizes(n)` train, are held out and test, draws each of these from the
  pool's part of that name, with replacement, by the probabilities that
  `client_weights` gives it, normalised over the part. So no example that is
  held out or tests any client trains any client. The division is ours:
  Algorithm 2 has one pool, see `covariate_shift`.

  Args:
    features: See `covariate_shift`.
    num_clients: See `covariate_shift`.
    sizes: See `covariate_shift`.
    shift: See `client_weights`.
    pca_dim: See `client_weights`.
    weights: See `client_weights`.
    seed: Seed, at least 0.
    total: See `covariate_shift`.
    test_fraction: See `splits.split_sizes`.
    holdout_fraction: See `splits.split_sizes`.

  Returns:
    One `Split` per client. A client may have an example several times, and
    several clients may have the same example, in parts of the same name.

  Warns:
    UserWarning: As `covariate_shift`, of the training parts.
  """
  counts = _client_sizes(len(features), num_clients, sizes, total)
  fractions = {
    'test_fraction': test_fraction,
    'holdout_fraction': holdout_fraction,
  }
  pool = splits.split_pool(len(features), seed=seed, **fractions)
  part_sizes = [splits.split_sizes(int(n), **fractions) for n in counts]
  probabilities = client_weights(
    principal_components(features, pca_dim),
    num_clients,
    shift=shift,
    weights=weights,
    seed=seed,
  )
  _warn_of_few_effective(
    np.array([train for train, _, _ in part_sizes]),
    [p[pool.train] / p[pool.train].sum() for p in probabilities],
  )
  rng = np.random.default_rng(seed)
  return tuple(
    splits.Split(
      *(_draw(rng, part, size, p) for part, size in zip(pool, own, strict=True))
    )
    for own, p in zip(part_sizes, probabilities, strict=True)
  )


def principal_components(features: np.ndarray, dim: int) -> np.ndarray:
  """Projects centred features on their first principal components.

  Args:
    features: Real [N, ...], flattened to [N, D].
    dim: Number of components, at most `min(N, D)`.

  Returns:
    float64 [N, dim], the component of the largest variance first.
  """
  # Takes seconds to import, as does SciPy below.
  from sklearn import decomposition

  features = np.reshape(features, (len(features), -1))
  checks.check_integer('pca_dim', dim, 1, min(features.shape))
  pca = decomposition.PCA(dim, svd_solver='covariance_eigh')
  return pca.fit_transform(features).astype(np.float64)


def client_weights(
  y: np.ndarray,
  num_clients: int,
  *,
  shift: float = 5.0,
  weights: str = 'density',
  seed: int,
) -> np.ndarray:
  """Returns the probabilities by which each client draws the examples.

  With `mu` and `Sigma = L L'` of `fit_gaussian(y)`, client `k` has the shift

      delta_k = sqrt(shift) L e_k / ||e_k||,  e_k ~ N(0, I)

  so that `delta_k' Sigma^-1 delta_k = shift`.

  Args:
    y: float64 [N, M], the principal components of the examples.
    num_clients: Number of clients `K`.
    shift: Squared Mahalanobis length of the shifts, positive.
    weights: See `shift_weights`.
    seed: Seed, at least 0.

  Returns:
    float64 [K, N], rows that sum to 1.
  """
  mean, covariance = fit_gaussian(y)
  rng = streams.generator(seed, streams.SHIFT_DIRECTIONS)
  directions = rng.standard_normal((num_clients, len(mean)))
  directions /= np.linalg.norm(directions, axis=1, keepdims=True)
  deltas = math.sqrt(shift) * directions @ np.linalg.cholesky(covariance).T
  return np.array(
    [shift_weights(y, mean, covariance, d, form=weights) for d in deltas]
  )


def shift_weights(
  y: np.ndarray,
  mean: np.ndarray,
  covariance: np.ndarray,
  delta: np.ndarray,
  *,
  form: str = 'density',
) -> np.ndarray:
  """Returns the probabilities of a client that is shifted by `delta`.

  They are the softmax over the examples `i` of

      density:  -1/2 (y_i - mu - delta)' Sigma^-1 (y_i - mu - delta)
      ratio:    delta' Sigma^-1 (y_i - mu)

  Drawn by 'density', as Algorithm 2 prints it, examples of `N(mu, Sigma)` are
  distributed as `N(mu + delta / 2, Sigma / 2)`; drawn by 'ratio', the ratio of
  the densities, as the `N(mu + delta, Sigma)` that the paper mentions.

  Args:
    y: float64 [N, M], the examples.
    mean: float64 [M], `mu`.
    covariance: float64 [M, M], `Sigma`, positive definite.
    delta: float64 [M].
    form: 'density' or 'ratio'.

  Returns:
    float64 [N], which sum to 1.
  """
  from scipy import linalg
  from scipy import special

  factor = linalg.cho_factor(covariance, lower=True)
  if form == 'ratio':
    return special.softmax((y - mean) @ linalg.cho_solve(factor, delta))
  away = y - mean - delta
  distances = np.einsum('nm,mn->n', away, linalg.cho_solve(factor, away.T))
  return special.softmax(-0.5 * distances)


def effective_sample_size(probabilities: np.ndarray) -> float:
  """Returns `1 / sum_i p_i^2`: N for equal probabilities, 1 for one of 1."""
  return 1 / float(np.square(probabilities).sum())


def fit_gaussian(
  y: np.ndarray, probabilities: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the mean and the (positive definite) covariance of examples.

  The covariance is that of the examples plus `1e-6` of its mean variance on
  the diagonal.

  Args:
    y: float64 [N, M], the examples.
    probabilities: float64 [N], the examples' weights; None for equal ones.

  Returns:
    float64 [M] and float64 [M, M].
  """
  mean = np.average(y, axis=0, weights=probabilities)
  # Unbiased without weights, as in Algorithm 2; with them exact.
  covariance = np.atleast_2d(
    np.cov(y.T, aweights=probabilities, ddof=int(probabilities is None))
  )
  if not np.trace(covariance) > 0:
    raise ValueError(
      f'Examples must differ from each other, found {len(y)} equal ones.'
    )
  ridge = _RIDGE * np.trace(covariance) / len(mean)
  return mean, covariance + ridge * np.eye(len(mean))


def gaussian_kl(
  mean: np.ndarray,
  covariance: np.ndarray,
  base_mean: np.ndarray,
  base_covariance: np.ndarray,
) -> float:
  """Returns the Kullback-Leibler divergence of a Gaussian from a base.

      KL(N(mu_1, S_1) || N(mu_0, S_0)) = 1/2 (tr(S_0^-1 S_1) - M
        + (mu_1 - mu_0)' S_0^-1 (mu_1 - mu_0) - log(det S_1 / det S_0))

  Args:
    mean: float64 [M], `mu_1`.
    covariance: float64 [M, M], `S_1`, positive definite.
    base_mean: float64 [M], `mu_0`.
    base_covariance: float64 [M, M], `S_0`, positive definite.

  Returns:
    The divergence in nats, not negative.
  """
  from scipy import linalg

  d_mean = mean - base_mean
  factor = linalg.cho_factor(base_covariance, lower=True)
  log_dets = [np.linalg.slogdet(s)[1] for s in (covariance, base_covariance)]
  return 0.5 * float(
    np.trace(linalg.cho_solve(factor, covariance))
    - len(d_mean)
    + d_mean @ linalg.cho_solve(factor, d_mean)
    - (log_dets[0] - log_dets[1])
  )


def approximate_kl(
  d_mean: np.ndarray,
  d_covariance: np.ndarray,
  base_covariance: np.ndarray,
  num_samples: float,
  *,
  form: str = 'expansion',
) -> float:
  """Approximates the divergence of a client's fitted Gaussian from the base.

  The Gaussian is fitted to `A` examples of `N(mu + d, Sigma + D)`, the base is
  `N(mu, Sigma)`. With `E = Sigma^-1 D`, the expectation of `gaussian_kl` is,
  for small `d`, `D` and `1 / A`,

      expansion:  1/4 tr(E^2) - 1/6 tr(E^3) + 1/2 d' Sigma^-1 d
                  + M (M + 3) / (4 A)

  up to the fourth order in `d` and `D`: the first two terms are half those of
  `tr(E) - log det(I + E)`, and the third is exact. FedAKD's theorem 2.2 prints

      paper:  1/4 ||Sigma^-1 D Sigma^-1||_F^2 - 1/2 tr((D Sigma^-1)^3)
              + 1/2 d' Sigma^-1 (I - D Sigma^-1) d + M (M + 3) / (4 A)

  Its first term changes with the units of the data; it equals the expansion's
  only for `Sigma = I`. The factor `I - D Sigma^-1` belongs to the opposite
  divergence, of the base from the client. The cubic term belongs to neither
  divergence: the opposite one has `-1/3 tr(E^3)`, of which `-1/2` comes from
  the trace of `(I + E)^-1` and `1/6`, which is missing, from `log det(I + E)`.

  Args:
    d_mean: float64 [M], `d`.
    d_covariance: float64 [M, M], `D`, symmetric.
    base_covariance: float64 [M, M], `Sigma`, positive definite.
    num_samples: Number of examples `A`, positive; infinite if `d` and `D` are
      those of the fitted Gaussian itself.
    form: 'expansion' or 'paper'.

  Returns:
    The approximation in nats, which may be negative for large shifts.
  """
  from scipy import linalg

  dim = len(d_mean)
  factor = linalg.cho_factor(base_covariance, lower=True)
  e = linalg.cho_solve(factor, d_covariance)
  scaled = linalg.cho_solve(factor, d_mean)
  sampling = dim * (dim + 3) / (4 * num_samples)
  cubic = np.trace(e @ e @ e)
  if form == 'expansion':
    terms = np.trace(e @ e) / 4 - cubic / 6 + d_mean @ scaled / 2
  else:
    both = linalg.cho_solve(factor, e.T)
    pulled = d_mean - d_covariance @ scaled
    terms = np.square(both).sum() / 4 - cubic / 2
    terms += scaled @ pulled / 2
  return float(terms + sampling)


def _client_sizes(
  num_examples: int, num_clients: int, sizes: str, total: int | None
) -> np.ndarray:
  """The number of examples of each client."""
  total = num_examples // 2 if total is None else total
  by_name = {'equal': partitions.equal_sizes, 'zipf': partitions.zipf_sizes}
  return by_name[sizes](total, num_clients)


def _draw(
  rng: np.random.Generator, part: np.ndarray, size: int, p: np.ndarray
) -> np.ndarray:
  """Draws from a part of the pool by probabilities of the whole pool."""
  if not size:
    return np.array([], np.int64)
  return np.sort(rng.choice(part, size, p=p[part] / p[part].sum()))


def _warn_of_few_effective(
  counts: np.ndarray, probabilities: Sequence[np.ndarray]
) -> None:
  effective = np.array([effective_sample_size(p) for p in probabilities])
  few = np.flatnonzero(effective < counts / 10)
  if few.size:
    listing = ', '.join(
      f'client {k}: {counts[k]} of {effective[k]:.1f}' for k in few
    )
    warnings.warn(
      'The covariate shift makes clients draw more than ten times as many '
      f'examples as their effective sample size ({listing}).',
      stacklevel=3,
    )
