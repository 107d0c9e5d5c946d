"""Splits examples into training, validation and test parts.

Clients are split as in FeDABoost, section 4: 20 % of a client's examples test
it, 10 % of the rest (at least one) are held out for its own validation, the
others train. The server's split is that of CFFL: it keeps the test file as test
set and 10 % of the training file for validation; the rest is dealt to clients
that only train. Every split is random and not stratified.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np

from tff_fair import checks
from tff_fair import streams

TEST_LEAKS = ('test_trains', 'train_tests', 'test_validates')
"""Leaks of a client's test data: `with_leak`."""


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


class ServerSplit(NamedTuple):
  """Positions of examples in the whole data set, each sorted.

  Attributes:
    to_deal: int64 [n], what is left for the clients.
    validation: int64 [n_validation], what the server validates on.
    test: int64 [n_test], what the server scores models on.
  """

  to_deal: np.ndarray
  validation: np.ndarray
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

  At least one example trains: if the formula leaves none, it is taken from the
  holdout part, or else from the test part. A fraction of 0 means that the part
  is empty.

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

  A position that the client has several times counts once in `split_sizes`, and
  all its copies go to the same part. Otherwise the client would be tested on
  examples that it has trained on.

  Args:
    indices: int64 [n], positions of the client's examples in the data set.
    client_id: The client; with `seed` it determines the draw.
    seed: Seed, at least 0.
    test_fraction: See `split_sizes`.
    holdout_fraction: See `split_sizes`.

  Returns:
    The three disjoint parts of `indices`, each sorted.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range.
  """
  checks.check_integer('client_id', client_id, 0)
  checks.check_integer('seed', seed, 0)
  distinct, counts = np.unique(indices, return_counts=True)
  _, holdout, test = split_sizes(
    len(distinct),
    test_fraction=test_fraction,
    holdout_fraction=holdout_fraction,
  )
  rng = streams.generator(seed, streams.CLIENT_SPLIT, client_id)
  parts = _draw_parts(rng, np.arange(len(distinct)), holdout, test)
  return Split(*(np.repeat(distinct[part], counts[part]) for part in parts))


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


def split_pool(
  num_examples: int,
  *,
  seed: int,
  test_fraction: float = 0.2,
  holdout_fraction: float = 0.1,
) -> Split:
  """Splits a pool of examples at random, before clients draw from it.

  Args:
    num_examples: Number of examples `N` of the pool, at least 0.
    seed: Seed, at least 0.
    test_fraction: See `split_sizes`.
    holdout_fraction: See `split_sizes`.

  Returns:
    The three disjoint parts of `0..N-1`.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range.
  """
  checks.check_integer('seed', seed, 0)
  _, holdout, test = split_sizes(
    num_examples,
    test_fraction=test_fraction,
    holdout_fraction=holdout_fraction,
  )
  rng = streams.generator(seed, streams.POOL_SPLIT)
  return Split(*_draw_parts(rng, np.arange(num_examples), holdout, test))


def with_leak(split: Split, leak: str) -> Split:
  """Returns a client's parts with its test examples among the other ones.

  For control runs only, which tell what published numbers owe to such a leak:
  the scores are not those of unseen examples.

  Args:
    split: The client's parts.
    leak: 'test_trains': the test part is as drawn, and trains, too.
      'train_tests': moreover the client is tested on all that it trains on.
      With both, examples that are held out neither train nor test.
      'test_validates': the test part is the validation part, too, in place of
      what is held out.

  Raises:
    ValueError: If there is no such leak.
  """
  checks.check_choice('leak', leak, TEST_LEAKS)
  if leak == 'test_validates':
    return split._replace(holdout=split.test)
  train = np.sort(np.concatenate([split.train, split.test]))
  test = train if leak == 'train_tests' else split.test
  return split._replace(train=train, test=test)


def split_server(
  num_examples: int,
  *,
  seed: int,
  test_start: int | None = None,
  test_fraction: float = 0.2,
  validation_fraction: float = 0.1,
) -> ServerSplit:
  """Splits a data set between the server and all clients together.

  The test file is the server's test set; without one the server takes
  `round(test_fraction * N)` examples at random. Of the `n` other examples it
  takes `max(1, round(validation_fraction * n))` at random for validation.

  Args:
    num_examples: Number of examples `N` of the data set, at least 1.
    seed: Seed, at least 0.
    test_start: Position at which the examples of the test file begin; None if
      there is no test file.
    test_fraction: Share in (0, 1) of all examples; ignored if there is a test
      file.
    validation_fraction: Share in [0, 1) of the examples that are not tests.

  Returns:
    The three disjoint parts of `0..N-1`.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range, or if there is no test
      example.
  """
  checks.check_integer('seed', seed, 0)
  checks.check_fraction('validation_fraction', validation_fraction)
  if test_start is None:
    num_drawn = num_examples
  else:
    num_drawn = checks.check_integer('test_start', test_start, 1, num_examples)
    test_fraction = 0.0
  _, holdout, test = split_sizes(
    num_drawn,
    test_fraction=test_fraction,
    holdout_fraction=validation_fraction,
  )
  if not test and num_drawn == num_examples:
    raise ValueError(
      'The test set of the server must hold at least one example, found none '
      f'with test_fraction={test_fraction} of {num_examples} examples.'
    )
  rng = streams.generator(seed, streams.SERVER_SPLIT)
  to_deal, validation, drawn = _draw_parts(
    rng, np.arange(num_drawn), holdout, test
  )
  in_file = np.arange(num_drawn, num_examples)
  return ServerSplit(to_deal, validation, np.concatenate([drawn, in_file]))


def draw_unseen(
  sizes: Sequence[int], *, fraction: float, seed: int
) -> np.ndarray:
  """Draws clients that take no part in the training, of all sizes.

  With `round(x) = floor(x + 1/2)`, m is `round(fraction * k)`. The clients, in
  the order of their sizes, are cut into m groups whose numbers of clients
  differ by at most one, and one client of each group is drawn at random.

  Args:
    sizes: `int[k]`, each client's number of examples.
    fraction: Share in [0, 1) of the clients.
    seed: Seed, at least 0.

  Returns:
    `int64[m]`, the places of the clients that are drawn, ascending.

  Raises:
    TypeError: If an argument is not a number of its kind.
    ValueError: If an argument is outside its range, or if the fraction is above
      0 and draws no client, or all of them.
  """
  checks.check_fraction('fraction', fraction)
  checks.check_integer('seed', seed, 0)
  count = _round_half_up(fraction * len(sizes))
  if not fraction:
    return np.empty(0, np.int64)
  if not 0 < count < len(sizes):
    raise ValueError(
      'unseen_fraction must leave some clients out and some in, found'
      f' {fraction:g}, which leaves out {count} of {len(sizes)}.'
    )
  rng = streams.generator(seed, streams.UNSEEN)
  groups = np.array_split(np.argsort(sizes, kind='stable'), count)
  return np.sort([rng.choice(group) for group in groups])


def _draw_parts(
  rng: np.random.Generator, indices: np.ndarray, holdout: int, test: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns the parts (rest, holdout, test) of `indices`, each sorted."""
  shuffled = rng.permutation(indices)
  parts = np.split(shuffled, [test, test + holdout])
  return tuple(np.sort(part) for part in reversed(parts))


def _round_half_up(value: float) -> int:
  # The small term keeps products such as 0.29 * 50 = 14.4999... at their half.
  return math.floor(value + 0.5 + 1e-9)
