import numpy as np
import pytest

from tasks import partitions

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
  @pytest.mark.parametrize(
    ('num_examples', 'num_clients', 'expected'),
    [(10, 3, [4, 3, 3]), (12, 4, [3, 3, 3, 3]), (2, 2, [1, 1]), (5, 1, [5])],
  )
  def test_sizes(self, num_examples, num_clients, expected):
    partition = partitions.equal(num_examples, num_clients, seed=0)
    assert _sizes(partition).tolist() == expected
    _check_disjoint_and_sorted(partition, num_examples)

  def test_is_random_and_repeatable(self):
    partition = partitions.equal(100, 4, seed=1)
    assert _same(partition, partitions.equal(100, 4, seed=1))
    assert not _same(partition, partitions.equal(100, 4, seed=2))
    assert partition[0].tolist() != list(range(25))

  @pytest.mark.parametrize(
    ('arguments', 'seed', 'error', 'message'),
    [
      ((3, 4), 0, ValueError, r'^4 clients .* need 4 examples, found 3\.$'),
      ((3, 0), 0, ValueError, r'^num_clients must be at least 1, found 0'),
      ((3, 1.5), 0, TypeError, r'^num_clients must be an integer, found 1'),
      ((3, True), 0, TypeError, r'must be an integer, found True\.$'),
      ((3, 2), -1, ValueError, r'^seed must be at least 0, found -1\.$'),
    ],
  )
  def test_refuses(self, arguments, seed, error, message):
    with pytest.raises(error, match=message):
      partitions.equal(*arguments, seed=seed)


class TestDirichlet:
  @pytest.mark.parametrize('alpha', [1e-6, 0.05, 0.5, 10, 1e6])
  @pytest.mark.parametrize('num_clients', [1, 2, 20, 200])
  @pytest.mark.parametrize('balance_cap', [False, True])
  def test_gives_every_example_to_one_client(
    self, alpha, num_clients, balance_cap
  ):
    partition = partitions.dirichlet(
      LABELS, num_clients, alpha, seed=0, balance_cap=balance_cap
    )
    assert len(partition) == num_clients
    _check_disjoint_and_sorted(partition, len(LABELS))
    assert _sizes(partition).sum() == len(LABELS)
    assert _sizes(partition).min() >= 2

  def test_is_repeatable_and_depends_on_the_seed(self):
    partition = partitions.dirichlet(LABELS, 20, 0.5, seed=3)
    assert _same(partition, partitions.dirichlet(LABELS, 20, 0.5, seed=3))
    assert not _same(partition, partitions.dirichlet(LABELS, 20, 0.5, seed=4))

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

  @pytest.mark.parametrize('min_samples', [0, 2, 10, 150])
  def test_min_samples(self, min_samples):
    partition = partitions.dirichlet(
      LABELS, 20, 0.05, seed=0, min_samples=min_samples
    )
    assert _sizes(partition).min() >= min_samples
    assert _sizes(partition).sum() == len(LABELS)

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

  @pytest.mark.parametrize(
    ('changes', 'error', 'message'),
    [
      ({'num_clients': 0}, ValueError, r'^num_clients must be at least 1'),
      ({'num_clients': 2.0}, TypeError, r'^num_clients must be an integer'),
      ({'alpha': 0}, ValueError, r'^alpha must be in \[1e-06, .* found 0'),
      ({'alpha': -1}, ValueError, r'^alpha must be in .* found -1\.$'),
      ({'alpha': 1e7}, ValueError, r'^alpha must be in .* found 1000'),
      ({'alpha': np.nan}, ValueError, r'^alpha must be finite, found nan'),
      ({'alpha': np.inf}, ValueError, r'^alpha must be finite, found inf'),
      ({'alpha': 'a'}, TypeError, r"^alpha must be a real number.*'a'\.$"),
      ({'seed': -1}, ValueError, r'^seed must be at least 0, found -1\.$'),
      ({'min_samples': -1}, ValueError, r'^min_samples must be at least 0'),
      (
        {'min_samples': 301},
        ValueError,
        r'^10 clients with at least 301 examples each need 3010 '
        r'examples, found 3000\.$',
      ),
      (
        {'remainder': 'keep'},
        ValueError,
        r"^remainder must be one of 'use', 'drop', found 'keep'\.$",
      ),
      (
        {'remainder': 'drop', 'min_samples': 300},
        ValueError,
        r"^remainder='drop' must leave .* = 3000 .* found 2\d{3}\.$",
      ),
      (
        {'labels': LABELS / 2},
        TypeError,
        r'^labels must be integers, found dtype float64\.$',
      ),
      (
        {'labels': LABELS[:0]},
        ValueError,
        r'^labels must be a vector .* found shape \(0,\)\.$',
      ),
      (
        {'labels': LABELS.reshape(-1, 2)},
        ValueError,
        r'^labels must be a vector .* found shape \(1500, 2\)\.$',
      ),
    ],
  )
  def test_refuses(self, changes, error, message):
    arguments = {'labels': LABELS, 'num_clients': 10, 'alpha': 0.5, 'seed': 0}
    with pytest.raises(error, match=message):
      partitions.dirichlet(**{**arguments, **changes})
