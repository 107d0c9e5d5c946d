"""Partitions of a labelled data set over clients.

Every partition is a function of (labels or number of examples, number of
clients, parameters, seed) and returns one sorted int64 index array per client.
No example belongs to two clients.
"""

import numpy as np

from tasks import sizes
from tff_fair import checks

_MAX_REDRAWS = 100

# Beyond these bounds the partition no longer changes (each class with one
# client, all shares equal), while NumPy's sampler overflows at one end and
# never returns at the other.
_MIN_ALPHA = 1e-6
_MAX_ALPHA = 1e6

REMAINDERS = ('use', 'drop')


def equal(
  num_examples: int, num_clients: int, *, seed: int
) -> list[np.ndarray]:
  """Deals the examples at random into parts whose sizes differ by at most 1.

  Args:
    num_examples: Number of examples `N`, at least `num_clients`.
    num_clients: Number of clients `K`, at least 1.
    seed: Seed, at least 0.

  Returns:
    `K` sorted int64 index arrays that together hold `0..N-1`.

  Raises:
    TypeError: If an argument is not an integer.
    ValueError: If an argument is outside its range.
  """
  checks.check_integer('num_clients', num_clients, 1)
  checks.check_integer('seed', seed, 0)
  checks.check_integer('num_examples', num_examples, 0)
  _check_enough_examples(num_examples, num_clients, 1)
  shuffled = np.random.default_rng(seed).permutation(num_examples)
  return [np.sort(part) for part in np.array_split(shuffled, num_clients)]


def dirichlet(
  labels: np.ndarray,
  num_clients: int,
  alpha: float,
  *,
  seed: int,
  remainder: str = 'use',
  balance_cap: bool = False,
  min_samples: int = 2,
) -> list[np.ndarray]:
  """Deals each class in shares drawn from a symmetric Dirichlet distribution.

  For each class `c` with the shuffled examples `D_c` and `K` clients:

      p_c ~ Dirichlet(alpha * 1_K)
      client k gets D_c[floor(P_(k-1) |D_c|) : floor(P_k |D_c|)]

  where `P_k = p_c1 + ... + p_ck`. If a client holds fewer than `min_samples`
  examples the shares of all classes are drawn again, at most 100 times; then
  random examples move from the largest clients to those that are short.
  Clients without some of the classes, or with only one, are legal.

  Args:
    labels: Integer [N], the class of each example.
    num_clients: Number of clients `K`, at least 1.
    alpha: Concentration in [1e-6, 1e6]; small values give each class to few
      clients, large values approach equal shares.
    seed: Seed, at least 0.
    remainder: 'use' cuts as above, so that every example has a client. 'drop'
      gives client `k` exactly `floor(p_ck |D_c|)` examples of class `c` and
      leaves the rest unused (FedAKD).
    balance_cap: Whether, before each class, the shares of the clients that
      already hold `N / K` examples or more are set to zero and the others
      renormalised (CoRe-Fed); if that leaves no share the draw is kept.
    min_samples: Least number of examples of a client, at least 0.

  Returns:
    `K` sorted int64 index arrays.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If an argument is outside its range, or if there are fewer than
      `num_clients * min_samples` examples to give.
  """
  labels = _check_labels(labels)
  checks.check_integer('num_clients', num_clients, 1)
  _check_alpha(alpha)
  checks.check_integer('seed', seed, 0)
  checks.check_choice('remainder', remainder, REMAINDERS)
  checks.check_integer('min_samples', min_samples, 0)
  _check_enough_examples(len(labels), num_clients, min_samples)
  rng = np.random.default_rng(seed)
  class_sizes = np.unique(labels, return_counts=True)[1]
  for _ in range(1 + _MAX_REDRAWS):
    shares = rng.dirichlet(np.full(num_clients, alpha), size=len(class_sizes))
    counts = _class_counts(shares, class_sizes, remainder, balance_cap)
    if counts.sum(axis=0).min() >= min_samples:
      break
  owners = _deal(labels, counts, rng)
  owners = _top_up(owners, num_clients, min_samples, rng)
  return _indices_by_owner(owners, num_clients)


def _class_counts(
  shares: np.ndarray,
  class_sizes: np.ndarray,
  remainder: str,
  balance_cap: bool,
) -> np.ndarray:
  """Returns int64 [C, K]: how many examples of a class each client gets."""
  counts = np.zeros(shares.shape, np.int64)
  held = np.zeros(shares.shape[1], np.int64)
  cap = class_sizes.sum() / shares.shape[1]
  for c, size in enumerate(class_sizes):
    share = shares[c]
    if balance_cap:
      below_cap = np.where(held < cap, share, 0.0)
      share = below_cap if below_cap.any() else share
    counts[c] = _cut(share, size, remainder)
    held += counts[c]
  return counts


def _cut(share: np.ndarray, size: int, remainder: str) -> np.ndarray:
  """Returns int64 [K], the integer parts of `size` for one class."""
  if remainder == 'drop':
    return np.floor(share / share.sum() * size).astype(np.int64)
  ends = np.cumsum(share)
  # Dividing by the last sum makes the last cut exact, so no example is lost
  # and none falls to a client behind it whose share is zero.
  ends = np.floor(ends / ends[-1] * size).astype(np.int64)
  return np.diff(ends, prepend=0)


def _deal(
  labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
  """Returns int64 [N], the client of each example, -1 for none."""
  owners = np.full(len(labels), -1, np.int64)
  clients = np.arange(counts.shape[1])
  for label, count in zip(np.unique(labels), counts, strict=True):
    members = rng.permutation(np.flatnonzero(labels == label))
    owners[members[: count.sum()]] = np.repeat(clients, count)
  return owners


def _top_up(
  owners: np.ndarray,
  num_clients: int,
  min_samples: int,
  rng: np.random.Generator,
) -> np.ndarray:
  """Moves random examples so that each client holds at least `min_samples`."""
  held = np.bincount(owners[owners >= 0], minlength=num_clients)
  if held.min() >= min_samples:
    return owners
  if held.sum() < num_clients * min_samples:
    raise ValueError(
      f"remainder='drop' must leave at least num_clients * min_samples = "
      f'{num_clients * min_samples} examples with the clients, found '
      f'{held.sum()}.'
    )
  change = sizes.lift(held, min_samples) - held
  freed = [
    rng.choice(np.flatnonzero(owners == k), -change[k], replace=False)
    for k in np.flatnonzero(change < 0)
  ]
  owners = owners.copy()
  owners[rng.permutation(np.concatenate(freed))] = np.repeat(
    np.arange(num_clients), np.maximum(change, 0)
  )
  return owners


def _indices_by_owner(owners: np.ndarray, num_clients: int) -> list[np.ndarray]:
  order = np.argsort(owners, kind='stable').astype(np.int64)
  bounds = np.searchsorted(owners[order], np.arange(num_clients + 1))
  return [order[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _check_labels(labels: np.ndarray) -> np.ndarray:
  labels = np.asarray(labels)
  if not np.issubdtype(labels.dtype, np.integer):
    raise TypeError(f'labels must be integers, found dtype {labels.dtype}.')
  if labels.ndim != 1 or not labels.size:
    raise ValueError(
      'labels must be a vector of at least one label, found shape '
      f'{labels.shape}.'
    )
  return labels


def _check_alpha(alpha: float) -> None:
  checks.check_real('alpha', alpha)
  if not _MIN_ALPHA <= alpha <= _MAX_ALPHA:
    raise ValueError(
      f'alpha must be in [{_MIN_ALPHA:g}, {_MAX_ALPHA:g}], found {alpha}.'
    )


def _check_enough_examples(
  num_examples: int, num_clients: int, min_samples: int
) -> None:
  if num_clients * min_samples > num_examples:
    raise ValueError(
      f'{num_clients} clients with at least {min_samples} examples each need '
      f'{num_clients * min_samples} examples, found {num_examples}.'
    )
