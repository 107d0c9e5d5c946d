"""Partitions of a labelled data set over clients.

Every partition is a function of (labels or number of examples, number of
clients, parameters, seed) and returns one sorted int64 index array per client.
No example belongs to two clients, with an exception in `classes`. The partition
by covariate shift, which also needs the features, is `tasks.covariate_shift`.
Arguments are those that `tasks.options` has checked; what depends on the data
is checked here.
"""

import bisect

import numpy as np

from tff_fair import checks
from tff_fair.tasks import sizes

_MAX_REDRAWS = 100

# Outside these bounds the partition no longer changes (one client a class, or
# equal shares), and NumPy's sampler overflows or never returns.
_MIN_ALPHA = 1e-6
_MAX_ALPHA = 1e6

# `a` of the density in `power_law`.
_POWER = 1.65911332899

REMAINDERS = ('use', 'drop')
SMALL_CLIENTS = ('top_up', 'leave_out')


def equal(
  num_examples: int, num_clients: int, *, seed: int, total: int | None = None
) -> list[np.ndarray]:
  """Deals the examples at random into parts whose sizes differ by at most 1.

  Args:
    num_examples: Number of examples `N`, at least `num_clients`.
    num_clients: Number of clients `K`, at least 1.
    seed: Seed, at least 0.
    total: Number of examples to deal, in `K..N`; None for all.

  Returns:
    `K` disjoint sorted int64 index arrays into `0..N-1`.
  """
  dealt = _draw(num_examples, num_clients, seed, total)
  return [np.sort(part) for part in np.array_split(dealt, num_clients)]


def power_law(
  num_examples: int, num_clients: int, *, seed: int, total: int | None = None
) -> list[np.ndarray]:
  """Deals the examples at random into parts that grow from client to client.

  CFFL only says "power law". Here the shares are equally spaced between two
  quantiles, 1 % and 99 %, of the density `a x^(a-1)` on [0, 1] with
  `a = 1.65911332899`:

      s_k = q(0.01) + (q(0.99) - q(0.01)) k / (K - 1),  q(p) = p^(1/a)

  for `k = 0..K-1`; `tasks.sizes.largest_remainder` turns them into sizes.

  Args:
    num_examples: Number of examples `N`, at least `num_clients`.
    num_clients: Number of clients `K`, at least 1.
    seed: Seed, at least 0.
    total: Number of examples to deal, in `K..N`; None for all.

  Returns:
    `K` disjoint sorted int64 index arrays into `0..N-1`, the smallest first.
  """
  dealt = _draw(num_examples, num_clients, seed, total)
  low, high = 0.01 ** (1 / _POWER), 0.99 ** (1 / _POWER)
  shares = np.linspace(low, high, num_clients)
  counts = sizes.largest_remainder(shares, len(dealt))
  return [np.sort(part) for part in np.split(dealt, np.cumsum(counts)[:-1])]


def zipf(
  num_examples: int, num_clients: int, *, seed: int, total: int | None = None
) -> list[np.ndarray]:
  """Deals the examples at random into parts of Zipf's sizes (FedAKD).

  Args:
    num_examples: Number of examples `N`, at least `num_clients`.
    num_clients: Number of clients `K`, at least 1.
    seed: Seed, at least 0.
    total: Number of examples to deal, in `K..N`; None for all.

  Returns:
    `K` disjoint sorted int64 index arrays into `0..N-1`, the largest first.
  """
  dealt = _draw(num_examples, num_clients, seed, total)
  counts = zipf_sizes(len(dealt), num_clients)
  return [np.sort(part) for part in np.split(dealt, np.cumsum(counts)[:-1])]


def equal_sizes(total: int, num_clients: int) -> np.ndarray:
  """Returns sizes that differ by at most 1, the largest first.

  Returns:
    int64 [K] that sums to `total`.
  """
  _check_enough_examples(total, num_clients, 1)
  return sizes.largest_remainder(np.ones(num_clients), total)


def zipf_sizes(total: int, num_clients: int) -> np.ndarray:
  """Returns sizes in proportion to `1 / k` for `k = 1..K`.

  Returns:
    int64 [K] that sums to `total`, by `tasks.sizes.largest_remainder`.
  """
  _check_enough_examples(total, num_clients, 1)
  ranks = np.arange(1, num_clients + 1, dtype=np.float64)
  return sizes.largest_remainder(1 / ranks, total)


def dirichlet(
  labels: np.ndarray,
  num_clients: int,
  alpha: float,
  *,
  seed: int,
  remainder: str = 'use',
  balance_cap: bool = False,
  min_samples: int = 2,
  small_clients: str = 'top_up',
) -> list[np.ndarray]:
  """Deals each class in shares drawn from a symmetric Dirichlet distribution.

  For each class `c` with the shuffled examples `D_c` and `K` clients:

      p_c ~ Dirichlet(alpha * 1_K)
      client k gets D_c[floor(P_(k-1) |D_c|) : floor(P_k |D_c|)]

  where `P_k = p_c1 + ... + p_ck`. If a client holds fewer than `min_samples`
  examples the shares of all classes are drawn again, at most 100 times; then
  random examples move from the largest clients to those that have too few. With
  `small_clients='leave_out'` these clients and their examples are left out of
  the first draw instead. Clients may lack some of the classes.

  Args:
    labels: Integer [N], the class of each example.
    num_clients: Number of clients `K`, in `1..N`.
    alpha: Concentration in [1e-6, 1e6]; small values give each class to few
      clients, large values approach equal shares.
    seed: Seed, at least 0.
    remainder: 'use' cuts as above, so that every example has a client. 'drop'
      gives client `k` exactly `floor(p_ck |D_c|)` examples of class `c` and
      leaves the rest unused (FedAKD).
    balance_cap: Whether, before each class, the shares of the clients that
      already hold `N / K` examples or more are set to zero and the others
      renormalised (CoRe-Fed); if that leaves no share the draw is kept.
    min_samples: Minimum number of examples of a client, at least 0.
    small_clients: 'top_up' as above, 'leave_out' for fewer than `K` clients, a
      number that depends on the draw (the public preprocessing of FeDABoost's
      authors).

  Returns:
    `K` sorted int64 index arrays; with 'leave_out' those of the clients that
    are left, in their order.
  """
  leaves_out = small_clients == 'leave_out'
  _check_enough_examples(
    len(labels), num_clients, 0 if leaves_out else min_samples
  )
  # With min_samples=0 clients may be empty, but not more than the examples.
  checks.check_integer('num_clients', num_clients, 1, len(labels))
  rng = np.random.default_rng(seed)
  class_sizes = np.unique(labels, return_counts=True)[1]
  for _ in range(1 + _MAX_REDRAWS):
    shares = rng.dirichlet(np.full(num_clients, alpha), size=len(class_sizes))
    counts = _class_counts(shares, class_sizes, remainder, balance_cap)
    if leaves_out or counts.sum(axis=0).min() >= min_samples:
      break
  owners = _deal(labels, counts, rng)
  if leaves_out:
    return _large_ones(_indices_by_owner(owners, num_clients), min_samples)
  owners = _top_up(owners, num_clients, min_samples, rng)
  return _indices_by_owner(owners, num_clients)


def classes(
  labels: np.ndarray,
  num_clients: int,
  *,
  seed: int,
  total: int | None = None,
  random_classes: bool = False,
) -> list[np.ndarray]:
  """Deals equal numbers of examples of increasing numbers of classes (CFFL).

  With `C` classes and `K` clients, client `k = 0..K-1` owns

      class_k = trunc(1 + (C - 1) k / (K - 1))

  classes. All clients get the same number of examples, in equal parts of their
  classes, the remainder from the lowest ones. A class is dealt without
  replacement over all clients; once it runs out, the last clients get examples
  of it that are drawn again, with replacement.

  Args:
    labels: Integer [N], the class of each example.
    num_clients: Number of clients `K`, at least 1.
    seed: Seed, at least 0.
    total: Number of examples to deal, at most `N`, of which each client gets
      `floor(total / K)`; None for the largest number, at most `N`, with which
      no class runs out.
    random_classes: Whether the classes of a client are drawn at random;
      otherwise they are the `class_k` lowest.

  Returns:
    `K` sorted int64 index arrays, disjoint except for examples drawn again.
  """
  rng = np.random.default_rng(seed)
  class_sizes = np.unique(labels, return_counts=True)[1]
  num_classes = len(class_sizes)
  if num_clients > len(labels):  # Before arrays of that length exhaust memory.
    _check_client_size(0, num_classes)
  # The small term keeps 2.9999999999999996 at its integer.
  owned = np.linspace(1, num_classes, num_clients) + 1e-9
  owned = np.arange(num_classes) < np.trunc(owned)[:, np.newaxis]
  if random_classes:
    owned = rng.permuted(owned, axis=1)
  if total is None:
    size = _largest_size(owned, class_sizes)
  else:
    size = total // num_clients
  _check_client_size(size, num_classes)
  return _deal_classes(labels, _class_quotas(owned, size), rng)


def _class_quotas(owned: np.ndarray, size: int) -> np.ndarray:
  """Returns int64 [K, C]: how many examples of a class each client gets."""
  num_owned = owned.sum(axis=1, keepdims=True)
  rank = np.cumsum(owned, axis=1) - 1
  return owned * (size // num_owned + (rank < size % num_owned))


def _largest_size(owned: np.ndarray, class_sizes: np.ndarray) -> int:
  """Returns the largest client size with which no class runs out."""

  def runs_out(size):
    return (_class_quotas(owned, size).sum(axis=0) > class_sizes).any()

  limit = class_sizes.sum() // len(owned)
  return bisect.bisect_left(range(1, limit + 1), True, key=runs_out)


def _deal_classes(
  labels: np.ndarray, quotas: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
  parts = []
  for label, quota in zip(np.unique(labels), quotas.T, strict=True):
    members = rng.permutation(np.flatnonzero(labels == label))
    missing = max(0, quota.sum() - len(members))
    again = rng.choice(members, missing)
    dealt = np.concatenate([members, again])[: quota.sum()]
    parts.append(np.split(dealt, np.cumsum(quota)[:-1]))
  return [
    np.sort(np.concatenate(of_client)) for of_client in zip(*parts, strict=True)
  ]


def _draw(
  num_examples: int, num_clients: int, seed: int, total: int | None
) -> np.ndarray:
  """Returns `total` of `0..num_examples-1` at random, each at most once."""
  total = num_examples if total is None else total
  _check_enough_examples(total, num_clients, 1)
  return np.random.default_rng(seed).permutation(num_examples)[:total]


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
  # Dividing by the last sum makes the last cut exact: no example is lost, and
  # none goes to a later client whose share is zero.
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


def check_alpha(name: str, alpha: float) -> None:
  """Checks the concentration of a Dirichlet distribution.

  Args:
    name: What the message calls it.
    alpha: The concentration.
  """
  checks.check_real(name, alpha)
  if not _MIN_ALPHA <= alpha <= _MAX_ALPHA:
    raise ValueError(
      f'{name} must be in [{_MIN_ALPHA:g}, {_MAX_ALPHA:g}], found {alpha}.'
    )


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


def _large_ones(parts: list[np.ndarray], min_samples: int) -> list[np.ndarray]:
  """Returns the parts of at least `min_samples` examples."""
  large = [part for part in parts if len(part) >= min_samples]
  if not large:
    raise ValueError(
      "small_clients='leave_out' must leave at least one client of min_samples"
      f' = {min_samples} examples, found {max(map(len, parts))} at most.'
    )
  return large


def _indices_by_owner(owners: np.ndarray, num_clients: int) -> list[np.ndarray]:
  order = np.argsort(owners, kind='stable').astype(np.int64)
  bounds = np.searchsorted(owners[order], np.arange(num_clients + 1))
  return [order[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _check_client_size(size: int, num_classes: int) -> None:
  if size < num_classes:
    raise ValueError(
      'Every client must get at least as many examples as there are classes, '
      f'{num_classes}, found {size}.'
    )


def _check_enough_examples(
  num_examples: int, num_clients: int, min_samples: int
) -> None:
  if num_clients * min_samples > num_examples:
    raise ValueError(
      f'{num_clients} clients with at least {min_samples} examples each need '
      f'{num_clients * min_samples} examples, found {num_examples}.'
    )
