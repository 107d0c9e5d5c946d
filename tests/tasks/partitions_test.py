import functools
import itertools

import numpy as np
import pytest

from tests.tasks import refusals
from tff_fair.tasks import partitions

LABELS = np.random.default_rng(7).integers(0, 10, 3000)


def _sizes(partition):
  return np.array([len(indices) for indices in partition])


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
    [
      np.bincount(labels[indices], minlength=num_classes)
      for indices in partition
    ]
  )


def _same(first, second):
  return all(map(np.array_equal, first, second))


class TestEqual:
  def test_sizes(self):
    for num_examples, num_clients, expected in [
      (10, 3, [4, 3, 3]),
      (12, 4, [3, 3, 3, 3]),
      (2, 2, [1, 1]),
      (5, 1, [5]),
    ]:
      partition = partitions.equal(num_examples, num_clients, seed=0)
      assert _sizes(partition).tolist() == expected
      _check_disjoint_and_sorted(partition, num_examples)
      sizes = partitions.equal_sizes(num_examples, num_clients)
      assert sizes.tolist() == expected

  def test_total(self):
    partition = partitions.equal(100, 3, seed=0, total=10)
    assert _sizes(partition).tolist() == [4, 3, 3]
    _check_disjoint_and_sorted(partition, 100)
    # Ten of 100 at random do not all lie in the first half.
    assert max(map(max, partition)) > 50


class TestPowerLaw:
  def test_sizes(self):
    for num_clients, total, expected in [
      (5, 3000, [71, 335, 600, 865, 1129]),
      (10, 6000, [71, 188, 306, 424, 541, 659, 776, 894, 1012, 1129]),
      (1, 7, [7]),
    ]:
      partition = partitions.power_law(54000, num_clients, seed=0, total=total)
      assert _sizes(partition).tolist() == expected
      _check_disjoint_and_sorted(partition, 54000)

  def test_gives_every_example_by_default(self):
    partition = partitions.power_law(1001, 20, seed=0)
    assert sorted(np.concatenate(partition)) == list(range(1001))
    assert (np.diff(_sizes(partition)) > 0).all()


class TestZipf:
  def test_sizes(self):
    for num_examples, num_clients, expected in [
      # FedAKD's ten clients on Fashion-MNIST.
      (
        70000,
        10,
        [23899, 11950, 7966, 5975, 4780, 3983, 3414, 2987, 2656, 2390],
      ),
      (11, 3, [6, 3, 2]),
      (3, 3, [1, 1, 1]),  # 1.64, .82, .55 without lifting to 1.
      (7, 1, [7]),
    ]:
      partition = partitions.zipf(num_examples, num_clients, seed=0)
      assert _sizes(partition).tolist() == expected
      _check_disjoint_and_sorted(partition, num_examples)
      assert sum(map(len, partition)) == num_examples

  def test_a_total_is_dealt(self):
    partition = partitions.zipf(100, 3, seed=0, total=22)
    assert _sizes(partition).tolist() == [12, 6, 4]
    _check_disjoint_and_sorted(partition, 100)


@pytest.mark.parametrize(
  'deal', [partitions.equal, partitions.power_law, partitions.zipf]
)
class TestDeals:
  def test_are_random_and_repeatable(self, deal):
    partition = deal(100, 4, seed=1, total=80)
    assert _same(partition, deal(100, 4, seed=1, total=80))
    assert not _same(partition, deal(100, 4, seed=2, total=80))
    for part in (partition[0], partition[-1]):
      if len(part) > 9:
        assert part.max() > 50 > part.min()

  def test_refuse(self, deal):
    legal = {'num_examples': 100, 'num_clients': 3, 'seed': 0}
    call = functools.partial(deal, **legal)
    refusals.check_values(
      call,
      {
        'num_clients': [0, 1.5, True],
        'num_examples': [9.0],
        'seed': [-1],
        'total': [101, 50.0],
      },
    )
    rows = [
      (
        {'num_clients': 101},
        r'^101 clients .* need 101 examples, found 100\.$',
      ),
      ({'total': 2}, r'^3 clients .* need 3 examples, found 2\.$'),
    ]
    refusals.check(
      call, [(arguments, ValueError, message) for arguments, message in rows]
    )


class TestClasses:
  # As MNIST's training file without a tenth: 5,400 of each class.
  labels = np.random.default_rng(3).permutation(np.repeat(np.arange(10), 5400))

  def test_numbers_of_classes(self):
    for num_clients, expected in [
      (5, [1, 3, 5, 7, 10]),
      (10, list(range(1, 11))),
      (20, [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10]),
      (1, [1]),
    ]:
      partition = partitions.classes(
        self.labels, num_clients, seed=0, total=600 * num_clients
      )
      _check_disjoint_and_sorted(partition, len(self.labels))
      assert set(_sizes(partition)) == {600}
      counts = _class_counts(self.labels, partition)
      for count, owned in zip(counts, expected, strict=True):
        # Equal parts of the lowest classes, the remainder from the very lowest.
        part, remainder = divmod(600, owned)
        assert count.tolist() == (
          [part + 1] * remainder
          + [part] * (owned - remainder)
          + [0] * (10 - owned)
        )

  def test_examples_are_random(self):
    first, *_ = partitions.classes(self.labels, 5, seed=1, total=3000)
    # A random 600 of 5,400 do not all lie in one half.
    assert first.min() < len(self.labels) / 2 < first.max()

  def test_a_total_is_divided_without_the_remainder(self):
    partition = partitions.classes(self.labels, 5, seed=0, total=3004)
    assert set(_sizes(partition)) == {600}

  def test_without_a_total_no_class_runs_out(self):
    # Client k of K=2 has 1 or 2 classes: with n examples each, class 0 gives
    # n + ceil(n/2) <= 10 for n <= 6.
    labels = np.repeat([0, 1], 10)
    partition = partitions.classes(labels, 2, seed=0)
    assert _class_counts(labels, partition).tolist() == [[6, 0], [3, 3]]
    _check_disjoint_and_sorted(partition, 20)

  def test_without_a_total_no_more_than_an_equal_share(self):
    labels = np.repeat([0, 1], [15, 2])
    assert _sizes(partitions.classes(labels, 1, seed=0)).tolist() == [15]
    labels = np.repeat([0, 1], [100, 60])
    # Class 1 alone would allow 120 each; class 0 allows 66, and so it is.
    assert _sizes(partitions.classes(labels, 2, seed=0)).tolist() == [66, 66]

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
    assert [labels[part].tolist() for part in partition] == [
      [3, 3, 3],
      [3, 3, 5],
      [3, 5, 9],
    ]

  def test_refuses(self):
    legal = {'labels': LABELS, 'num_clients': 5, 'seed': 0}
    call = functools.partial(partitions.classes, **legal)
    refusals.check_values(
      call,
      {
        'num_clients': [0],
        'seed': [-1],
        'total': [3001, 60.0],
        'labels': [LABELS / 2],
      },
    )
    message = (
      r'^Every client must get at least as many examples as there are classes, '
      r'10, found {}\.$'
    )
    rows = [
      ({'total': 49}, ValueError, message.format(9)),
      ({'num_clients': 2**40}, ValueError, message.format(0)),
    ]
    refusals.check(call, rows)


class TestDirichlet:
  def test_gives_every_example_to_one_client(self):
    for alpha, num_clients, balance_cap in itertools.product(
      (1e-6, 0.5, 1e6), (1, 20, 200), (False, True)
    ):
      for min_samples in (2, 15):
        partition = partitions.dirichlet(
          LABELS,
          num_clients,
          alpha,
          seed=0,
          balance_cap=balance_cap,
          min_samples=min_samples,
        )
        assert len(partition) == num_clients
        _check_disjoint_and_sorted(partition, len(LABELS))
        assert _sizes(partition).sum() == len(LABELS)
        assert _sizes(partition).min() >= min_samples

  def test_examples_of_a_class_are_shuffled(self):
    labels = np.zeros(1000, np.int64)
    partition = partitions.dirichlet(labels, 2, 1e6, seed=0)
    assert partition[0].max() > 900

  def test_large_alpha_gives_equal_shares_of_each_class(self):
    partition = partitions.dirichlet(LABELS, 5, 1e6, seed=0)
    counts = _class_counts(LABELS, partition)
    expected = np.bincount(LABELS) / 5
    # Shares differ by about 1e-3 of their size; a cut moves one example.
    np.testing.assert_allclose(counts, np.tile(expected, (5, 1)), atol=2)

  def test_small_alpha_gives_each_class_to_one_client(self):
    partition = partitions.dirichlet(LABELS, 5, 1e-6, seed=0, min_samples=0)
    counts = _class_counts(LABELS, partition)
    assert ((counts > 0).sum(axis=0) == 1).all()

  def test_shares_vary_as_the_distribution_says(self):
    # The share of one of K clients is Beta(a, (K-1)a): mean 1/K and variance
    # (1/K)(1-1/K)/(Ka+1) = 0.25*0.75/3 = 0.0625 for K=4, a=0.5.
    labels = np.repeat(np.arange(400), 100)
    partition = partitions.dirichlet(labels, 4, 0.5, seed=0, min_samples=0)
    shares = _class_counts(labels, partition) / 100
    # The standard error of a variance from 400 draws is about 7 %.
    np.testing.assert_allclose(shares.var(axis=1), 0.0625, rtol=0.25)

  def test_without_min_samples_clients_may_be_empty(self):
    # One class cannot reach more than a few clients with so small an alpha.
    labels = np.zeros(100, np.int64)
    partition = partitions.dirichlet(labels, 20, 0.01, seed=0, min_samples=0)
    assert _sizes(partition).min() == 0

  def test_redraws_before_it_moves_examples(self):
    # Three whole classes for two clients: one draw in four leaves a client
    # empty. Another draw keeps classes whole, moving examples would not.
    labels = np.repeat(np.arange(3), 50)
    for seed in range(20):
      partition = partitions.dirichlet(labels, 2, 1e-6, seed=seed)
      counts = _class_counts(labels, partition)
      assert set(counts.ravel()) == {0, 50}

  def test_moves_from_the_largest_after_the_last_redraw(self):
    # One class cannot reach all four clients with so small an alpha: 40 in one
    # hand become 10 in each.
    labels = np.zeros(40, np.int64)
    partition = partitions.dirichlet(labels, 4, 1e-6, seed=0, min_samples=10)
    assert _sizes(partition).tolist() == [10, 10, 10, 10]
    _check_disjoint_and_sorted(partition, 40)
    partition = partitions.dirichlet(labels, 4, 1e-6, seed=0, min_samples=3)
    assert sorted(_sizes(partition)) == [3, 3, 3, 31]

  def test_drop_gives_the_integer_part_of_each_share(self):
    used = partitions.dirichlet(LABELS, 20, 0.5, seed=5, min_samples=0)
    dropped = partitions.dirichlet(
      LABELS, 20, 0.5, seed=5, min_samples=0, remainder='drop'
    )
    _check_disjoint_and_sorted(dropped, len(LABELS))
    # The cuts of both lie within one example of the same exact share.
    difference = _class_counts(LABELS, used) - _class_counts(LABELS, dropped)
    assert difference.min() >= 0
    assert difference.max() == 1
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
    sizes = [
      _sizes(
        partitions.dirichlet(
          np.arange(20), 2, 0.5, seed=0, balance_cap=cap, min_samples=0
        )
      ).tolist()
      for cap in (False, True)
    ]
    assert sizes == [[0, 20], [10, 10]]

  def test_balance_cap_keeps_a_draw_that_it_would_empty(self):
    # With so small an alpha the other shares are zero in floating point.
    labels = np.repeat([0, 1, 2], 10)
    partition = partitions.dirichlet(
      labels, 2, 1e-6, seed=0, balance_cap=True, min_samples=0
    )
    assert _sizes(partition).sum() == 30

  def test_balance_cap_evens_the_sizes(self):
    free, capped = (
      _sizes(partitions.dirichlet(LABELS, 20, 0.5, seed=0, balance_cap=balance))
      for balance in (False, True)
    )
    assert capped.std() < 0.7 * free.std()

  def test_refuses(self):
    legal = {'labels': LABELS, 'num_clients': 10, 'alpha': 0.5, 'seed': 0}
    call = functools.partial(partitions.dirichlet, **legal)
    refusals.check_values(
      call,
      {
        'num_clients': [0, 2.0],
        'alpha': [0, -1, 1e-7, 1e7, np.nan, np.inf, 'a'],
        'seed': [-1],
        'min_samples': [-1],
        'remainder': ['keep'],
        'labels': [LABELS / 2, LABELS[:0], LABELS.reshape(-1, 2)],
      },
    )
    rows = [
      (
        {'min_samples': 301},
        ValueError,
        r'^10 clients with at least 301 examples each need 3010 '
        r'examples, found 3000\.$',
      ),
      (
        {'remainder': 'drop', 'min_samples': 300},
        ValueError,
        r"^remainder='drop' must leave .* = 3000 .* found 2\d{3}\.$",
      ),
      (
        {'num_clients': 3001, 'min_samples': 0},
        ValueError,
        r'^num_clients must be in 1\.\.3000, found 3001\.$',
      ),
    ]
    refusals.check(call, rows)
