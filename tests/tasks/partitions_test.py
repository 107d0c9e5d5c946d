"""Partitions: sizes worked by hand, and what holds for all arguments.

`tests/fuzz/tasks_test.py` has what holds for `dirichlet` and `classes`.
"""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from tests import properties
from tests import refusals
from tff_fair.tasks import partitions

LABELS = np.random.default_rng(7).integers(0, 10, 3000)


def _sizes(partition):
  return [len(indices) for indices in partition]


def _class_counts(labels, partition):
  num_classes = labels.max() + 1
  return np.array(
    [np.bincount(labels[part], minlength=num_classes) for part in partition]
  )


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
  assert (
    _sizes(deal(num_examples, num_clients, seed=0, total=total)) == expected
  )


@properties.SETTINGS
@given(
  st.sampled_from(['equal', 'power_law', 'zipf']),
  st.integers(1, 60),
  st.integers(1, 8),
  st.integers(1, 60),
  st.integers(0, 2**32),
)
def test_deals_are_disjoint_sorted_repeatable_and_whole(
  name, num_examples, num_clients, total, seed
):
  def deal():
    return getattr(partitions, name)(
      num_examples, num_clients, seed=seed, total=min(total, num_examples)
    )

  if num_clients > min(total, num_examples):
    with pytest.raises(ValueError, match=r'clients .* need .* found'):
      deal()
    return
  parts = deal()
  dealt = np.concatenate(parts)
  assert len(np.unique(dealt)) == len(dealt) == min(total, num_examples)
  assert dealt.min() >= 0 and dealt.max() < num_examples
  assert len(parts) == num_clients and min(_sizes(parts)) >= 1
  for part, again in zip(parts, deal(), strict=True):
    assert part.dtype == np.int64 and (np.diff(part) > 0).all()
    np.testing.assert_array_equal(part, again)


@pytest.mark.parametrize(
  'deal', [partitions.equal, partitions.power_law, partitions.zipf]
)
def test_deals_are_random(deal):
  first, other = (deal(100, 4, seed=seed, total=40) for seed in (1, 2))
  assert not all(map(np.array_equal, first, other))
  # Forty of 100 at random do not all lie in one half.
  largest = max(first, key=len)
  assert largest.max() > 50 > largest.min()


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

  def test_without_a_total_no_class_runs_out(self):
    # Client k of K=2 has 1 or 2 classes: with n examples each, class 0 gives
    # n + ceil(n/2) <= 10 for n <= 6.
    labels = np.repeat([0, 1], 10)
    partition = partitions.classes(labels, 2, seed=0)
    assert _class_counts(labels, partition).tolist() == [[6, 0], [3, 3]]

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
    owned = _class_counts(self.labels, partition) > 0
    assert owned.sum(axis=1).tolist() == list(range(1, 11))
    # Clients 3 to 6 own the lowest classes with a chance below 1 % each.
    lowest = np.tri(10, dtype=bool)
    assert not (owned == lowest)[3:7].all(axis=1).any()
    # Each client has its own draw: their sets of classes are not nested.
    assert (owned[:-1] & ~owned[1:]).any()

  def test_refuses(self):
    message = r'as many examples as there are classes, 10, found {}\.$'
    rows = [
      ({'num_clients': 5, 'total': 49}, ValueError, message.format(9)),
      ({'num_clients': 2**40}, ValueError, message.format(0)),
    ]
    refusals.check(partitions.classes, rows, labels=LABELS, seed=0)


class TestDirichlet:
  def test_examples_of_a_class_are_shuffled(self):
    labels = np.zeros(1000, np.int64)
    partition = partitions.dirichlet(labels, 2, 1e6, seed=0)
    assert partition[0].max() > 900

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

  def test_small_clients_are_left_out_of_the_first_draw(self):
    labels = np.repeat(np.arange(3), 50)
    whole = partitions.dirichlet(labels, 9, 0.3, seed=4, min_samples=0)
    for least in (10, 20):
      partition = partitions.dirichlet(
        labels, 9, 0.3, seed=4, min_samples=least, small_clients='leave_out'
      )
      large = [part for part in whole if len(part) >= least]
      assert 1 < len(large) < 9
      for part, expected in zip(partition, large, strict=True):
        np.testing.assert_array_equal(part, expected)
    with pytest.raises(ValueError, match='small_clients=.* must leave .* 151'):
      partitions.dirichlet(
        labels, 9, 0.3, seed=4, min_samples=151, small_clients='leave_out'
      )

  def test_drop_gives_the_integer_part_of_each_share(self):
    used, dropped = (
      partitions.dirichlet(
        LABELS, 20, 0.5, seed=5, min_samples=0, remainder=remainder
      )
      for remainder in ('use', 'drop')
    )
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

  def test_refuses(self):
    rows = [
      ({'min_samples': 301}, ValueError, r'^10 clients .* need 3010 examples'),
      ({'remainder': 'drop', 'min_samples': 300}, ValueError, "^remainder='dr"),
      ({'num_clients': 3001, 'min_samples': 0}, ValueError, '^num_clients'),
    ]
    legal = {'num_clients': 10, 'alpha': 0.5, 'seed': 0}
    refusals.check(partitions.dirichlet, rows, labels=LABELS, **legal)
