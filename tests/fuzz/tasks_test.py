"""Partitions and splits: no example is lost, and none is dealt twice."""

import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from tasks import covariate_shift
from tasks import partitions
from tasks import pooled
from tasks import sizes
from tasks import splits
from tasks import streams
from tests.fuzz import strategies
from tests.fuzz.strategies import refused

pytestmark = pytest.mark.full

_SEEDS = st.integers(0, 2**32)
_FRACTIONS = st.floats(0, 1, exclude_max=True)
_LABELS = st.lists(st.sampled_from([0, 1, 2, 7]), min_size=1, max_size=40).map(
  np.array
)


def _check_parts(deal, num_examples, total=None):
  """Returns repeatable sorted parts in which no example is twice."""
  parts = deal()
  for part in parts:
    assert part.dtype == np.int64
    assert np.all(np.diff(part) > 0)
  dealt = np.concatenate(parts)
  assert len(np.unique(dealt)) == len(dealt)
  assert np.all((dealt >= 0) & (dealt < num_examples))
  if total is not None:
    assert len(dealt) == total
  assert all(map(np.array_equal, parts, deal()))
  return parts


def _sizes(parts):
  return np.array([len(part) for part in parts])


@st.composite
def _pools(draw):
  """Numbers of examples, of clients, and of examples to deal."""
  num_clients = draw(st.integers(1, 8))
  total = num_clients + draw(st.integers(0, 40))
  num_examples = total + draw(st.integers(0, 20))
  return num_examples, num_clients, total


class TestPartitions:
  @given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=6).filter(any),
    st.integers(0, 1000),
  )
  def test_largest_remainder(self, shares, more):
    total = len(shares) + more
    found = sizes.largest_remainder(shares, total)
    assert found.sum() == total and found.min() >= 1
    exact = np.array(shares) / max(shares)
    exact = exact / exact.sum() * total
    if exact.min() >= 1:
      assert np.abs(found - exact).max() < 1 + 1e-6

  @given(
    st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, 5)
  )
  def test_lift(self, old, minimum):
    old = np.array(old)
    minimum = min(minimum, old.sum() // len(old))
    found = sizes.lift(old, minimum)
    assert found.sum() == old.sum() and found.min() >= minimum
    assert np.all(found[old <= minimum] == minimum)
    np.testing.assert_array_equal(sizes.lift(found, minimum), found)

  @given(_pools(), _SEEDS, st.booleans())
  def test_every_example_once(self, pool, seed, whole):
    num_examples, num_clients, total = pool
    for deal in (partitions.equal, partitions.power_law, partitions.zipf):
      chosen = None if whole else total
      parts = _check_parts(
        lambda d=deal, t=chosen: d(
          num_examples, num_clients, seed=seed, total=t
        ),
        num_examples,
        chosen or num_examples,
      )
      assert len(parts) == num_clients
      counts = _sizes(parts)
      assert counts.min() >= 1
      order = counts if deal is partitions.power_law else counts[::-1]
      assert np.all(np.diff(order) >= -1)
    for sizes_of in (partitions.equal_sizes, partitions.zipf_sizes):
      found = sizes_of(total, num_clients)
      assert found.sum() == total and found.min() >= 1
      assert np.all(np.diff(found) <= 0)

  @given(
    _LABELS,
    st.integers(1, 8),
    st.one_of(st.floats(1e-6, 10), st.sampled_from([1e-6, 1e6])),
    _SEEDS,
    st.sampled_from(partitions.REMAINDERS),
    st.booleans(),
    st.integers(0, 3),
  )
  def test_dirichlet(
    self, labels, num_clients, alpha, seed, remainder, cap, minimum
  ):
    def deal():
      return partitions.dirichlet(
        labels,
        num_clients,
        alpha,
        seed=seed,
        remainder=remainder,
        balance_cap=cap,
        min_samples=minimum,
      )

    if num_clients * max(minimum, 1) > len(labels):
      with refused():
        deal()
      return
    total = len(labels) if remainder == 'use' else None
    try:
      parts = _check_parts(deal, len(labels), total)
    except ValueError as error:
      # Rounding may leave fewer examples than the clients need.
      assert remainder == 'drop' and 'must leave at least' in str(error)
      return
    assert len(parts) == num_clients
    assert _sizes(parts).min() >= minimum

  @given(_LABELS, st.integers(1, 6), _SEEDS, st.booleans(), st.booleans())
  def test_classes(self, labels, num_clients, seed, whole, at_random):
    total = len(labels) if whole else None

    def deal():
      return partitions.classes(
        labels, num_clients, seed=seed, total=total, random_classes=at_random
      )

    num_classes = len(np.unique(labels))
    try:
      parts = deal()
    except ValueError as error:
      assert 'must get at least as many examples as' in str(error)
      assert num_classes > len(labels) // num_clients or total is None
      return
    assert len(set(_sizes(parts))) == 1
    if total is None:
      _check_parts(deal, len(labels))
    else:
      assert _sizes(parts)[0] == total // num_clients
    owned = [len(np.unique(labels[part])) for part in parts]
    expected = np.linspace(1, num_classes, num_clients) + 1e-9
    assert owned == np.trunc(expected).tolist()


class TestSplits:
  @given(st.integers(0, 200), _FRACTIONS, _FRACTIONS)
  def test_sizes(self, n, test_fraction, holdout_fraction):
    train, holdout, test = splits.split_sizes(
      n, test_fraction=test_fraction, holdout_fraction=holdout_fraction
    )
    assert train + holdout + test == n
    assert min(train, holdout, test) >= 0
    assert train >= min(n, 1)
    assert abs(test - test_fraction * n) <= 1
    if holdout_fraction == 0:
      assert holdout == 0
    elif train > 1:
      assert holdout >= 1

  @given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=3),
    _SEEDS,
    _FRACTIONS,
    _FRACTIONS,
  )
  def test_a_position_is_in_one_part(self, partition, seed, test, holdout):
    partition = [np.array(indices, np.int64) for indices in partition]
    options = dict(seed=seed, test_fraction=test, holdout_fraction=holdout)
    found = splits.split_clients(partition, **options)
    for i, (split, indices) in enumerate(zip(found, partition, strict=True)):
      np.testing.assert_array_equal(
        np.sort(np.concatenate(split)), np.sort(indices)
      )
      distinct = [set(part) for part in split]
      assert sum(map(len, distinct)) == len(set(indices))
      alone = splits.split_client(indices, client_id=i, **options)
      assert all(map(np.array_equal, split, alone))

  @given(st.data(), st.integers(1, 60), _SEEDS, _FRACTIONS, _FRACTIONS)
  def test_of_the_server(self, data, n, seed, test_fraction, fraction):
    start = data.draw(st.one_of(st.none(), st.integers(1, n)))

    def split():
      return splits.split_server(
        n,
        seed=seed,
        test_start=start,
        test_fraction=test_fraction,
        validation_fraction=fraction,
      )

    expected = splits.split_sizes(
      n if start is None else start,
      test_fraction=test_fraction if start is None else 0,
      holdout_fraction=fraction,
    )
    if start == n or (start is None and not expected[2]):
      with refused():
        split()
      return
    _, validation, test = _check_parts(split, n, n)
    assert len(validation) == expected[1]
    if start is not None:
      np.testing.assert_array_equal(test, np.arange(start, n))

  @given(
    st.lists(st.integers(0, 99), unique=True, min_size=1, max_size=20),
    st.floats(0, 1, exclude_min=True),
    _SEEDS,
  )
  def test_draw(self, positions, fraction, seed):
    positions = np.sort(np.array(positions, np.int64))
    found = pooled.draw(positions, fraction, seed=seed)
    assert np.isin(found, positions).all()
    assert np.all(np.diff(found) > 0)
    assert abs(len(found) - fraction * len(positions)) <= 1
    if fraction == 1:
      np.testing.assert_array_equal(found, positions)

  @given(_SEEDS, st.integers(0, 9), st.integers(0, 9))
  def test_streams(self, seed, first, second):
    draws = [
      streams.generator(seed, *stream).integers(2**62)
      for stream in ((first,), (second,), (first, second))
    ]
    assert (draws[0] == draws[1]) == (first == second)
    assert draws[2] != draws[0]


_FEATURES = st.integers(6, 20).flatmap(
  lambda n: strategies.arrays([n, 3], strategies.MODERATE, np.float64)
)


class TestCovariateShift:
  @given(
    _FEATURES,
    st.integers(1, 3),
    st.fixed_dictionaries(
      {
        'sizes': st.sampled_from(covariate_shift.SIZES),
        'method': st.sampled_from(covariate_shift.METHODS),
        'weights': st.sampled_from(covariate_shift.WEIGHTS),
        'shift': st.floats(0.1, 50),
        'seed': _SEEDS,
      }
    ),
  )
  def test_partition(self, x, num_clients, options):
    def deal():
      with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        return covariate_shift.covariate_shift(
          x, num_clients, pca_dim=2, **options
        )

    sorts = options['method'] == 'pc1_sort'
    if not sorts and not np.ptp(x, axis=0).any():
      with refused():
        deal()
      return
    if np.ptp(x) <= 1e-3:
      return
    parts = deal()
    total = len(x) // 2
    sizes_of = getattr(partitions, f'{options["sizes"]}_sizes')
    np.testing.assert_array_equal(_sizes(parts), sizes_of(total, num_clients))
    for part in parts:
      assert np.all(np.diff(part) >= 0)
      assert np.all((part >= 0) & (part < len(x)))
    if sorts:
      _check_parts(deal, len(x), total)
    assert all(map(np.array_equal, parts, deal()))
