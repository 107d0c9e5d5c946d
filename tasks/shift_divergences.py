"""Divergence of each client's inputs from the inputs of all clients.

A Gaussian is fitted to the principal components of each client's examples. Its
Kullback-Leibler divergence from the Gaussian of all examples stands next to the
approximations of this divergence by FedAKD's theorem 2.2.
"""

from collections.abc import Sequence
import math

import numpy as np

from tff_fair import streams
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import pooled
from tff_fair.tasks import task as task_lib

# The columns, in order.
COLUMNS = (
  'client_id',
  'num_examples',
  'num_distinct',
  'effective_sample_size',
  'effective_share',
  'kl',
  'kl_expansion',
  'kl_paper',
  'control_kl',
  'control_expansion',
)


def of_task(
  task: task_lib.Task,
  *,
  pca_dim: int,
  data_fraction: float,
  weighted: bool,
  seed: int,
  **options,
) -> list[dict[str, float]]:
  """Measures the clients of a task.

  Args:
    task: A task whose inputs are images or numbers.
    pca_dim: Number of principal components.
    data_fraction: The share of the data that was dealt to the clients.
    weighted: Whether the clients draw their examples by the probabilities of
      `covariate_shift.client_weights`.
    seed: The seed of the task.
    **options: `shift` and `weights` of `covariate_shift.client_weights`.
  """
  pool = np.arange(len(task.data.y))
  if task.server is not None:
    pool = task.server.to_deal
  pool = pooled.draw(pool, data_fraction, seed=seed)
  y = covariate_shift.principal_components(task.data.x[pool], pca_dim)
  probabilities = None
  if weighted:
    probabilities = covariate_shift.client_weights(
      y, task.num_clients, seed=seed, **options
    )
  clients = [
    np.searchsorted(pool, np.concatenate(split)) for split in task.splits
  ]
  return measure(y, clients, probabilities, seed=seed)


def measure(
  y: np.ndarray,
  clients: Sequence[np.ndarray],
  probabilities: np.ndarray | None,
  *,
  seed: int,
) -> list[dict[str, float]]:
  """Compares the Gaussian of each client with that of all examples.

  If the probabilities are known, the approximations are those of the shift of
  the distribution that a client draws from, plus the term for its number of
  examples; else those of the shift of the client's fitted Gaussian. The control
  of a client is as many examples, drawn from all with replacement.

  Args:
    y: float64 [N, M], the principal components of all examples.
    clients: For each client its positions in `y`, with repetitions.
    probabilities: float64 [K, N], by which clients draw with replacement; None
      if they do not: then the effective sample size is the number of examples.
    seed: Seed of the control, at least 0.

  Returns:
    A row per client with the names in `COLUMNS`: `num_distinct` examples, the
    `effective_sample_size` and its `effective_share` of N; the divergence `kl`
    in nats and its approximations `kl_expansion` and `kl_paper`; and for the
    control `control_kl` and `control_expansion`. The divergences of a client
    with at most M distinct examples, whose covariance is singular, are NaN.
  """
  base = covariate_shift.fit_gaussian(y)
  rows = []
  for k, own in enumerate(clients):
    p = None if probabilities is None else probabilities[k]
    distinct = len(np.unique(own))
    effective = float(len(own))
    if p is not None:
      effective = covariate_shift.effective_sample_size(p)
    row = {
      **dict.fromkeys(COLUMNS, math.nan),
      'client_id': k,
      'num_examples': len(own),
      'num_distinct': distinct,
      'effective_sample_size': effective,
      'effective_share': effective / len(y),
    }
    if distinct > y.shape[1]:
      rng = streams.generator(seed, streams.SHIFT_CONTROL, k)
      row |= _divergences(y, own, p, base, rng)
    rows.append(row)
  return rows


def _divergences(y, own, p, base, rng) -> dict[str, float]:
  mean, covariance = base
  fitted = covariate_shift.fit_gaussian(y[own])
  shifted, num_samples = fitted, math.inf
  if p is not None:
    shifted, num_samples = covariate_shift.fit_gaussian(y, p), len(own)
  shift = (shifted[0] - mean, shifted[1] - covariance, covariance, num_samples)
  control = covariate_shift.fit_gaussian(y[rng.choice(len(y), len(own))])
  no_shift = (np.zeros_like(mean), np.zeros_like(covariance), covariance)
  approximate = covariate_shift.approximate_kl
  return {
    'kl': covariate_shift.gaussian_kl(*fitted, *base),
    'kl_expansion': approximate(*shift),
    'kl_paper': approximate(*shift, form='paper'),
    'control_kl': covariate_shift.gaussian_kl(*control, *base),
    'control_expansion': approximate(*no_shift, len(own)),
  }
