"""Partitions: each example once, and sizes worked by hand.

`tests/fuzz/tasks_test.py` has the invariants for arguments of all kinds.
"""

import functools
import itertools

import numpy as np
import pytest

from tests.tasks import refusals
from tff_fair.tasks import partitions

LABELS = np.random.default_rng(7).integers(0, 10, 3000)


def _sizes(partition):
  return [len(indices) for indices in partition]


def _check_disjoint_and_sorted(partition, num_examples):
  for indices in partition:
    assert indices.dtype == np.int64
    assert (np.diff(indices) > 0).all()
  together = np.concatenate(partition)
  assert len(np.unique(together)) == len(together)
  assert together.min() >= 0
  assert together.max() < num_examples


def _class_counts(labels, partition):
  num_classes = labels.max() + 1
  return np.array(
    [np.bincount(labels[part], minlength=num_classes) for part in partition]
  )


def _same(first, second):
  return all(map(np.array_equal, first, second))


# Deal, number of examples and clients, total -> sizes.
_DEALS = [
  ('equal', (10, 3, None), [4, 3, 3]),
  ('equal', (5, 1, None), [5]),
  ('equal', (100, 3, 10), [4, 3, 3]),
  ('power_law', (54000, 5, 3000), [71, 335, 600, 865, 1129]),
  (
    'power_law',
    (54000, 10, 6000),
    [71, 188, 306, 424, 541, 659, 776, 894, 1012, 1129],
  ),
  ('power_law', (54000, 1, 7), [7]),
  # FedAKD's ten clients on Fashion-MNIST.
  (
    'zipf',
    (70000, 10, None),
    [23899, 11950, 7966, 5975, 4780, 3983, 3414, 2987, 2656, 2390],
  ),
  ('zipf', (11, 3, None), [6, 3, 2]),
  ('zipf', (3, 3, None), [1, 1, 1]),  # 1.64, .82, .55 without lifting to 1.
  ('zipf', (100, 3, 22), [12, 6, 4]),
]


@pytest.mark.parametrize(('name', 'arguments', 'expected'), _DEALS)
def test_sizes(name, arguments, expected):
  num_examples, num_clients, total = arguments
  deal = getattr(partitions, name)
  partition = deal(num_examples, num_clients, seed=0, total=total)
  assert _sizes(partition) == expected
  _check_disjoint_and_sorted(partition, num_examples)


@pytest.mark.parametrize(
  'deal', [partitions.equal, partitions.power_law, partitions.zipf]
)
class TestDeals:
  def test_are_random_and_repeatable(self, deal):
    partition = deal(100, 4, seed=1, total=40)
    assert _same(partition, deal(100, 4, seed=1, total=40))
    assert not _same(partition, deal(100, 4, seed=2, total=40))
    # Forty of 100 at random do not all lie in the first half.
    assert max(map(max, partition)) > 50
    largest = max(partition, key=len)
    assert largest.max() > 50 > largest.min()

  def test_refuse(self, deal):
    call = functools.partial(deal, num_examples=100, num_clients=3, seed=0)
    message = r'^{} clients .* need {} examples, found {}\.$'
    rows = [
      ({'num_clients': 101}, ValueError, message.format(101, 101, 100)),
      ({'total': 2}, ValueError, message.format(3, 3, 2)),
    ]
    refusals.check(call, rows)


class TestClasses:
  # As MNIST's training file without a tenth: 5,400 of each class.
  labels = np.random.default_rng(3).permutation(np.repeat(np.arange(10), 5400))

  def test_numbers_of_classes(self):
    for num_clients, expected in [
      (5, [1, 3, 5, 7, 10]),
      (20, [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10]),
      (1, [1]),
    ]:
      partition = partitions.classes(
        self.labels, num_clients, seed=0, total=600 * num_clients + 4
      )
      _check_disjoint_and_sorted(partition, len(self.labels))
      assert min(_sizes(partition)) == max(_sizes(partition))
      counts = _class_counts(self.labels, partition)
      for count, owned in zip(counts, expected, strict=True):
        # Equal parts of the lowest classes, the remainder from the very lowest.
        part, remainder = divmod(600 + (4 if num_clients == 1 else 0), owned)
        assert count.tolist() == (
          [part + 1] * remainder
          + [part] * (owned - remainder)
          + [0] * (10 - owned)
        )

  def test_examples_are_random(self):
    first, *_ = partitions.classes(self.labels, 5, seed=1, total=3000)
    # A random 600 of 5,400 do not all lie in one half.
    assert first.min() < len(self.labels) / 2 < first.max()

  def test_without_a_total_no_class_runs_out(self):
    # Client k of K=2 has 1 or 2 classes: with n examples each, class 0 gives
    # n + ceil(n/2) <= 10 for n <= 6.
    labels = np.repeat([0, 1], 10)
    partition = partitions.classes(labels, 2, seed=0)
    assert _class_counts(labels, partition).tolist() == [[6, 0], [3, 3]]
    _check_disjoint_and_sorted(partition, 20)

  def test_without_a_total_no_more_than_an_equal_share(self):
    labels = np.repeat([0, 1], [15, 2])
    assert _sizes(partitions.classes(labels, 1, seed=0)) == [15]
    labels = np.repeat([0, 1], [100, 60])
    # Class 1 alone would allow 120 each; class 0 allows 66, and so it is.
    assert _sizes(partitions.classes(labels, 2, seed=0)) == [66, 66]

  def test_replaces_only_within_a_class_that_ran_out(self):
    # Ten each: client 0 takes 10 of class 0, client 1 needs 5 of each.
    labels = np.repeat([0, 1], [12, 8])
    first, second = partitions.classes(labels, 2, seed=0, total=20)
    assert len(np.unique(first)) == 10
    assert labels[second].tolist() == [0] * 5 + [1] * 5
    assert len(np.unique(second[5:])) == 5
    # Two of class 0 are left; the three others are drawn from the whole class.
    assert len(np.setdiff1d(second[:5], first)) >= 2
    assert set(second[:5]) & set(first)

  def test_random_classes(self):
    partition = partitions.classes(
      self.labels, 10, seed=0, total=6000, random_classes=True
    )
    _check_disjoint_and_sorted(partition, len(self.labels))
    owned = _class_counts(self.labels, partition) > 0
    assert owned.sum(axis=1).tolist() == list(range(1, 11))
    # Clients 3 to 6 own the lowest classes with a chance below 1 % each.
    lowest = np.tri(10, dtype=bool)
    assert not (owned == lowest)[3:7].all(axis=1).any()
    # Each client has its own draw: their sets of classes are not nested.
    assert (owned[:-1] & ~owned[1:]).any()

  def test_classes_are_the_labels_that_occur(self):
    labels = np.repeat([3, 5, 9], 10)
    partition = partitions.classes(labels, 3, seed=0, total=9)
    expected = [[3, 3, 3], [3, 3, 5], [3, 5, 9]]
    assert [labels[part].tolist() for part in partition] == expected

  def test_refuses(self):
    call = functools.partial(partitions.classes, LABELS, 5, seed=0)
    message = r'as many examples as there are classes, 10, found {}\.$'
    refusals.check(call, [({'total': 49}, ValueError, message.format(9))])
    call = functools.partial(partitions.classes, LABELS, seed=0)
    many = {'num_clients': 2**40}
    refusals.check(call, [(many, ValueError, message.format(0))])


class TestDirichlet:
  def test_gives_every_example_to_one_client(self):
    for alpha, num_clients, cap in itertools.product(
      (1e-6, 0.5, 1e6), (1, 200), (False, True)
    ):
      partition = partitions.dirichlet(
        LABELS, num_clients, alpha, seed=0, balance_cap=cap, min_samples=15
      )
      assert len(partition) == num_clients
      _check_disjoint_and_sorted(partition, len(LABELS))
      assert sum(_sizes(partition)) == len(LABELS)
      assert min(_sizes(partition)) >= 15

  def test_examples_of_a_class_are_shuffled(self):
    labels = np.zeros(1000, np.int64)
    partition = partitions.dirichlet(labels, 2, 1e6, seed=0)
    assert partition[0].max() > 900

  def test_large_alpha_gives_equal_shares_of_each_class(self):
    partition = partitions.dirichlet(LABELS, 5, 1e6, seed=0)
    expected = np.bincount(LABELS) / 5
    # Shares differ by about 1e-3 of their size; a cut moves one example.
    np.testing.assert_allclose(
      _class_counts(LABELS, partition), np.tile(expected, (5, 1)), atol=2
    )

  def test_small_alpha_gives_each_class_to_one_client(self):
    partition = partitions.dirichlet(LABELS, 20, 1e-6, seed=0, min_samples=0)
    assert ((_class_counts(LABELS, partition) > 0).sum(axis=0) == 1).all()
    # Without `min_samples` clients may be empty.
    assert min(_sizes(partition)) == 0

  def test_shares_vary_as_the_distribution_says(self):
    # The share of one of K clients is Beta(a, (K-1)a): mean 1/K and variance
    # (1/K)(1-1/K)/(Ka+1) = 0.25*0.75/3 = 0.0625 for K=4, a=0.5.
    labels = np.repeat(np.arange(400), 100)
    partition = partitions.dirichlet(labels, 4, 0.5, seed=0, min_samples=0)
    shares = _class_counts(labels, partition) / 100
    # The standard error of a variance from 400 draws is about 7 %.
    np.testing.assert_allclose(shares.var(axis=1), 0.0625, rtol=0.25)

  def test_redraws_before_it_moves_examples(self):
    # Three whole classes for two clients: one draw in four leaves a client
    # empty. Another draw keeps classes whole, moving examples would not.
    labels = np.repeat(np.arange(3), 50)
    for seed in range(20):
      partition = partitions.dirichlet(labels, 2, 1e-6, seed=seed)
      assert set(_class_counts(labels, partition).ravel()) == {0, 50}

  def test_moves_from_the_largest_after_the_last_redraw(self):
    # One class cannot reach all four clients with so small an alpha: 40 in one
    # hand become 10 in each.
    labels = np.zeros(40, np.int64)
    for min_samples, expected in [(10, [10] * 4), (3, [3, 3, 3, 31])]:
      partition = partitions.dirichlet(
        labels, 4, 1e-6, seed=0, min_samples=min_samples
      )
      assert sorted(_sizes(partition)) == expected
      _check_disjoint_and_sorted(partition, 40)

  def test_drop_gives_the_integer_part_of_each_share(self):
    used, dropped = (
      partitions.dirichlet(
        LABELS, 20, 0.5, seed=5, min_samples=0, remainder=remainder
      )
      for remainder in ('use', 'drop')
    )
    _check_disjoint_and_sorted(dropped, len(LABELS))
    # The cuts of both lie within one example of the same exact share.
    difference = _class_counts(LABELS, used) - _class_counts(LABELS, dropped)
    assert (difference.min(), difference.max()) == (0, 1)
    unused = np.bincount(LABELS) - _class_counts(LABELS, dropped).sum(axis=0)
    assert (unused < 20).all()
    assert unused.sum() > 0

  def test_balance_cap_closes_full_clients(self):
    labels = np.repeat(np.arange(10), 30)
    overfull = []
    for balance_cap in (False, True):
      partition = partitions.dirichlet(
        labels, 5, 0.1, seed=0, balance_cap=balance_cap, min_samples=0
      )
      counts = _class_counts(labels, partition)
      held_before = np.cumsum(counts, axis=1) - counts
      # What clients that already hold N/K = 60 take all the same.
      overfull.append(counts[held_before >= 60].sum())
    assert overfull[0] > 0
    assert overfull[1] == 0

  def test_balance_cap_closes_a_client_with_exactly_its_share(self):
    # Cuts give the only example of a class to the last client that is open.
    for cap, expected in [(False, [0, 20]), (True, [10, 10])]:
      partition = partitions.dirichlet(
        np.arange(20), 2, 0.5, seed=0, balance_cap=cap, min_samples=0
      )
      assert _sizes(partition) == expected

  def test_balance_cap_keeps_a_draw_that_it_would_empty(self):
    # With so small an alpha the other shares are zero in floating point.
    labels = np.repeat([0, 1, 2], 10)
    partition = partitions.dirichlet(
      labels, 2, 1e-6, seed=0, balance_cap=True, min_samples=0
    )
    assert sum(_sizes(partition)) == 30

  def test_refuses(self):
    call = functools.partial(partitions.dirichlet, LABELS, alpha=0.5, seed=0)
    rows = [
      ({'min_samples': 301}, r'^10 clients .* need 3010 examples, found 3000'),
      ({'remainder': 'drop', 'min_samples': 300}, r"^remainder='drop' .* 3000"),
      ({'num_clients': 3001, 'min_samples': 0}, r'^num_clients .*1\.\.3000'),
    ]
    refusals.check(
      call,
      [({'num_clients': 10, **row}, ValueError, text) for row, text in rows],
    )
