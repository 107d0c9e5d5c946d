from collections.abc import Sequence
import random

import pytest

from tff_fair.runtime.cluster import dealing


def _deal(sizes, homes='', workers='ab'):
  """The worker of each client; `homes` has '.' for a client without."""
  known = {i: home for i, home in enumerate(homes) if home != '.'}
  return ''.join(dealing.deal(sizes, known, workers))


@pytest.mark.parametrize(
  ('sizes', 'homes', 'workers', 'expected'),
  [
    # Without homes, workers get clients that follow each other.
    ([1, 1, 1, 1], '', 'ab', 'aabb'),
    ([3, 1, 1, 1], '', 'ab', 'abbb'),
    ([1, 1], '', 'abcd', 'bd'),
    ([0, 0, 0, 0], '', 'ab', 'aabb'),
    ([2, 0], '', 'ab', 'bb'),  # The last client comes after all of the work.
    ([], '', 'ab', ''),
    # Clients stay where they are, in any order, if the load is even.
    ([1, 1, 1, 1], 'abab', 'ab', 'abab'),
    ([5, 1, 4, 2], 'abba', 'ab', 'abba'),
    # A worker that would have too much gives up its smallest clients.
    ([1, 1, 1, 1], 'aaaa', 'ab', 'aabb'),
    ([4, 1, 1, 2], 'aaaa', 'ab', 'abbb'),
    # New clients go where there is least, the largest first.
    ([3, 1, 2], 'a..', 'ab', 'abb'),
    # A lost worker is the home of nobody.
    ([1, 1, 1, 1], 'xaxb', 'ab', 'aabb'),
    ([1, 1, 1, 1], 'xxxx', 'ab', 'aabb'),
  ],
)
def test_a_deal_worked_by_hand(
  sizes: Sequence[int], homes: str, workers: str, expected: str
):
  assert _deal(sizes, homes, workers) == expected


@pytest.mark.parametrize(
  ('sizes', 'groups', 'workers', 'expected'),
  [
    ([1, 1, 1, 1, 1, 1], '001122', 'ab', 'aabbbb'),
    ([3, 3, 1, 1, 1, 1], '001122', 'ab', 'aabbbb'),
    ([1, 1, 1, 1, 3, 3], '001122', 'ab', 'aaaabb'),
    ([1, 1, 1], '779', 'abcd', 'bbd'),
    ([], '', 'ab', ''),
  ],
)
def test_groups_stay_together_and_in_order(
  sizes: Sequence[int], groups: str, workers: str, expected: str
):
  assert ''.join(dealing.deal_groups(sizes, groups, workers)) == expected


def test_no_worker_has_much_more_than_an_even_deal_would_give():
  rng = random.Random(0)
  for _ in range(200):
    workers = 'abcde'[: rng.randint(1, 5)]
    sizes = [rng.randint(1, 50) for _ in range(rng.randint(1, 40))]
    homes = ''.join(rng.choice(workers + '.') for _ in sizes)
    homes = 'a' + homes[1:]
    dealt = _deal(sizes, homes, workers)
    loads = [
      sum(size for size, w in zip(sizes, dealt, strict=True) if w == worker)
      for worker in workers
    ]
    # The bound of an even deal, big clients first, and the tenth.
    even = sum(sizes) / len(workers) + max(sizes)
    assert max(loads) <= 1.1 * even
