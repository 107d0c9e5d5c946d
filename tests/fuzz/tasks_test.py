"""Partitions: no example is lost, and none is dealt twice."""

import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from tests.fuzz import strategies
from tests.fuzz.strategies import refused
from tff_fair import splits
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import partitions

pytestmark = pytest.mark.full

_SEEDS = st.integers(0, 2**32)
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


class TestPartitions:
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
        'weights': st.sampled_from(covariate_shift.WEIGHTS),
        'shift': st.floats(0.1, 50),
        'test_fraction': st.floats(0, 0.9),
        'holdout_fraction': st.floats(0, 0.9),
        'seed': _SEEDS,
      }
    ),
  )
  def test_what_tests_a_client_trains_none(self, x, num_clients, options):
    if np.ptp(x) <= 1e-3:
      return
    with warnings.catch_warnings():
      warnings.simplefilter('ignore', UserWarning)
      parts = covariate_shift.split_covariate_shift(
        x, num_clients, pca_dim=2, **options
      )
    train, holdout, test = map(np.concatenate, zip(*parts, strict=True))
    assert not np.intersect1d(train, test).size
    assert not np.intersect1d(train, holdout).size
    assert not np.intersect1d(holdout, test).size
    sizes_of = getattr(partitions, f'{options["sizes"]}_sizes')
    fractions = {k: v for k, v in options.items() if k.endswith('_fraction')}
    for split, n in zip(parts, sizes_of(len(x) // 2, num_clients), strict=True):
      assert tuple(map(len, split)) == splits.split_sizes(int(n), **fractions)
