"""A client's own split into training, holdout and test examples.

The rule is that of FeDABoost, section 4: 20 % of a client's examples test it,
10 % of the rest (at least one) are held out for its own validation, the rest
trains. The split is random and not stratified.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np

from tff_fair import checks

# Keeps the streams of the splits apart from those of other draws by one seed.
_STREAM = 1


class Split(NamedTuple):
  """Positions of a client's examples in the whole data set, each sorted.

  Attributes:
    train: int64 [n_train].
    holdout: int64 [n_holdout].
    test: int64 [n_test].
  """

  train: np.ndarray
  holdout: np.ndarray
  test: np.ndarray


def split_sizes(
  num_examples: int,
  *,
  test_fraction: float = 0.2,
  holdout_fraction: float = 0.1,
) -> tuple[int, int, int]:
  """Returns the sizes of the three parts of a client.

  With `round(x) = floor(x + 1/2)`:

      test = round(test_fraction * n)
      holdout = max(1, round(holdout_fraction * (n - test)))
      train = n - test - holdout

  Training never loses its last example: where the formula leaves none, the
  holdout part gives way first, then the test part. A fraction of 0 means that
  the part is empty.

  Args:
    num_examples: The client's number of examples `n`, at least 0.
    test_fraction: Share in [0, 1) of all examples.
    holdout_fraction: Share in [0, 1) of the examples that are not tests.

  Returns:
    The tuple (train, holdout, test) of sizes, which sum to `num_examples`.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range.
  """
  n = checks.check_integer('num_examples', num_examples, 0)
  checks.check_fraction('test_fraction', test_fraction)
  checks.check_fraction('holdout_fraction', holdout_fraction)
  test = min(_round_half_up(test_fraction * n), max(n - 1, 0))
  holdout = _round_half_up(holdout_fraction * (n - test))
  if holdout_fraction > 0:
    holdout = max(1, holdout)
  holdout = min(holdout, max(n - test - 1, 0))
  return n - test - holdout, holdout, test


def split_client(
  indices: np.ndarray,
  *,
  client_id: int,
  seed: int,
  test_fraction: float = 0.2,
  holdout_fraction: float = 0.1,
) -> Split:
  """Splits one client's examples at random.

  Args:
    indices: int64 [n], positions of the client's examples in the data set.
    client_id: The client; together with `seed` it determines the draw.
    seed: Seed, at least 0.
    test_fraction: See `split_sizes`.
    holdout_fraction: See `split_sizes`.

  Returns:
    The three disjoint parts of `indices`.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range.
  """
  checks.check_integer('client_id', client_id, 0)
  checks.check_integer('seed', seed, 0)
  _, holdout, test = split_sizes(
    len(indices),
    test_fraction=test_fraction,
    holdout_fraction=holdout_fraction,
  )
  sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM, client_id))
  shuffled = np.random.default_rng(sequence).permutation(indices)
  parts = np.split(shuffled, [test, test + holdout])
  return Split(*(np.sort(part) for part in reversed(parts)))


def split_clients(
  partition: Sequence[np.ndarray],
  *,
  seed: int,
  test_fraction: float = 0.2,
  holdout_fraction: float = 0.1,
) -> tuple[Split, ...]:
  """Splits every client of a partition.

  Args:
    partition: One int64 index array per client, in the order of client ids.
    seed: Seed, at least 0.
    test_fraction: See `split_sizes`.
    holdout_fraction: See `split_sizes`.

  Returns:
    One `Split` per client.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range.
  """
  return tuple(
    split_client(
      indices,
      client_id=client_id,
      seed=seed,
      test_fraction=test_fraction,
      holdout_fraction=holdout_fraction,
    )
    for client_id, indices in enumerate(partition)
  )


def _round_half_up(value: float) -> int:
  # The small term keeps products such as 0.29 * 50 = 14.4999... at their half.
  return math.floor(value + 0.5 + 1e-9)
