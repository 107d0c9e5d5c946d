"""Partitions and splits: whose an example is, and that nothing is lost."""

import math
import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import stats

from tasks import amounts
from tasks import covariate_shift
from tasks import partitions
from tasks import pooled
from tasks import sizes
from tasks import splits
from tasks import streams
from tasks import task as task_lib
from tests.fuzz import strategies
from tests.fuzz.strategies import fuzzes
from tests.fuzz.strategies import refused

_SEEDS = st.integers(0, 2**32)
_FRACTIONS = st.floats(0, 1, exclude_max=True)


def _check_parts(parts, num_examples, total=None):
  """Sorted parts in which no example is twice."""
  for part in parts:
    assert part.dtype == np.int64
    assert np.all(np.diff(part) > 0)
  dealt = np.concatenate(parts)
  assert len(np.unique(dealt)) == len(dealt)
  assert np.all((dealt >= 0) & (dealt < num_examples))
  if total is not None:
    assert len(dealt) == total


def _sizes(parts):
  return np.array([len(part) for part in parts])


@st.composite
def _pools(draw):
  """Numbers of examples, of clients, and of examples to deal."""
  num_clients = draw(st.integers(1, 8))
  total = num_clients + draw(st.integers(0, 40))
  num_examples = total + draw(st.integers(0, 20))
  return num_examples, num_clients, total


class TestSizes:
  @fuzzes(sizes.largest_remainder)
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

  @fuzzes(sizes.lift)
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

  @pytest.mark.parametrize(
    ('shares', 'total'),
    [
      *((bad, 10) for bad in ([], [[1, 2]], 3, [0, 0], [1, -1], [np.nan, 1])),
      *((bad, 10) for bad in ([np.inf, 1], ['a'], [1j], [None, 1])),
      *(([1, 2], bad) for bad in (1, 2.5, '10', None, np.nan, True)),
    ],
  )
  def test_other_shares(self, shares, total):
    with refused():
      sizes.largest_remainder(shares, total)

  @pytest.mark.parametrize('bad', [([1, 1], 2), ([0], 1), ([3, -1], 2)])
  def test_what_can_not_be_lifted(self, bad):
    with refused():
      sizes.lift(*bad)


_DEALS = [partitions.equal, partitions.power_law, partitions.zipf]


class TestDeals:
  @fuzzes(partitions.equal, partitions.power_law, partitions.zipf)
  @pytest.mark.parametrize('deal', _DEALS, ids=lambda deal: deal.__name__)
  @given(_pools(), _SEEDS, st.booleans())
  def test_every_example_once(self, deal, pool, seed, whole):
    num_examples, num_clients, total = pool
    total = None if whole else total
    parts = deal(num_examples, num_clients, seed=seed, total=total)
    assert len(parts) == num_clients
    _check_parts(parts, num_examples, num_examples if whole else total)
    counts = _sizes(parts)
    assert counts.min() >= 1
    order = counts if deal is partitions.power_law else counts[::-1]
    assert np.all(np.diff(order) >= -1)
    again = deal(num_examples, num_clients, seed=seed, total=total)
    assert all(map(np.array_equal, parts, again))

  @fuzzes(partitions.zipf_sizes)
  @given(_pools(), st.floats(0, 50))
  def test_zipf_sizes(self, pool, exponent):
    total, num_clients, _ = pool
    found = partitions.zipf_sizes(total, num_clients, exponent)
    assert found.sum() == total and found.min() >= 1
    assert np.all(np.diff(found) <= 0)

  @pytest.mark.parametrize('deal', _DEALS, ids=lambda deal: deal.__name__)
  @pytest.mark.parametrize(
    ('name', 'bad'),
    [
      *(('num_examples', bad) for bad in (2, -1, 3.0, '3', None, True)),
      *(('num_clients', bad) for bad in [*strategies.NO_COUNT, 11]),
      *(('seed', bad) for bad in (-1, 1.5, '1', None, True)),
      *(('total', bad) for bad in (2, 11, -1, 5.0, '5', True)),
    ],
  )
  def test_other_numbers(self, deal, name, bad):
    legal = dict(num_examples=10, num_clients=3, seed=0, total=10)
    with refused():
      deal(**{**legal, name: bad})

  @pytest.mark.parametrize('bad', strategies.NEGATIVE)
  def test_other_exponents(self, bad):
    with refused():
      partitions.zipf(10, 3, seed=0, exponent=bad)
    with refused():
      partitions.zipf_sizes(10, 3, bad)


_LABELS = st.lists(st.sampled_from([0, 1, 2, 7]), min_size=1, max_size=40).map(
  np.array
)


class TestByClass:
  @fuzzes(partitions.dirichlet)
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
    try:
      parts = deal()
    except ValueError as error:
      # Rounding may leave less over than everybody needs.
      assert remainder == 'drop' and 'must leave at least' in str(error)
      return
    assert len(parts) == num_clients
    total = len(labels) if remainder == 'use' else None
    _check_parts(parts, len(labels), total)
    assert _sizes(parts).min() >= minimum
    assert all(map(np.array_equal, parts, deal()))

  @fuzzes(partitions.classes)
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
      _check_parts(parts, len(labels))
    else:
      assert _sizes(parts)[0] == total // num_clients
    owned = [len(np.unique(labels[part])) for part in parts]
    expected = np.linspace(1, num_classes, num_clients) + 1e-9
    assert owned == np.trunc(expected).tolist()

  @pytest.mark.parametrize('deal', ['dirichlet', 'classes'])
  @pytest.mark.parametrize(
    'bad',
    [
      *({'labels': bad} for bad in ([], [[0, 1]], 3, [0.5], [np.nan], ['a'])),
      *({'num_clients': bad} for bad in [*strategies.NO_COUNT, 50]),
      *({'seed': bad} for bad in (-1, 1.5, '1', None, True)),
    ],
    ids=str,
  )
  def test_other_arguments(self, deal, bad):
    legal = {'labels': [0, 1] * 10, 'num_clients': 2, 'seed': 0}
    if deal == 'dirichlet':
      legal['alpha'] = 0.5
    with refused():
      getattr(partitions, deal)(**{**legal, **bad})

  @pytest.mark.parametrize(
    'bad',
    [
      *({'alpha': a} for a in [*strategies.NOT_POSITIVE, 1e-7, 1e7]),
      {'remainder': 'lose'},
      *({'min_samples': bad} for bad in (-1, 0.5, '1', None, True, 21)),
    ],
    ids=str,
  )
  def test_other_options(self, bad):
    with refused():
      partitions.dirichlet([0] * 20, 1, **{'alpha': 0.5, 'seed': 0, **bad})


class TestSplits:
  @fuzzes(splits.split_sizes)
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

  @fuzzes(splits.split_client, splits.split_clients, splits.Split)
  @given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=3),
    _SEEDS,
    _FRACTIONS,
    _FRACTIONS,
  )
  def test_a_position_is_in_one_part(self, partition, seed, test, holdout):
    partition = [np.array(indices, np.int64) for indices in partition]
    found = splits.split_clients(
      partition, seed=seed, test_fraction=test, holdout_fraction=holdout
    )
    for client_id, (split, indices) in enumerate(
      zip(found, partition, strict=True)
    ):
      np.testing.assert_array_equal(
        np.sort(np.concatenate(split)), np.sort(indices)
      )
      distinct = [set(part) for part in split]
      assert sum(map(len, distinct)) == len(set(indices))
      alone = splits.split_client(
        indices,
        client_id=client_id,
        seed=seed,
        test_fraction=test,
        holdout_fraction=holdout,
      )
      assert all(map(np.array_equal, split, alone))

  @fuzzes(splits.split_server, splits.ServerSplit)
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

    drawn = n if start is None else start
    expected = splits.split_sizes(
      drawn,
      test_fraction=test_fraction if start is None else 0,
      holdout_fraction=fraction,
    )
    if start == n or (start is None and not expected[2]):
      with refused():
        split()
      return
    found = split()
    _check_parts(found, n, n)
    assert len(found.validation) == expected[1]
    if start is not None:
      np.testing.assert_array_equal(found.test, np.arange(start, n))

  @pytest.mark.parametrize(
    ('name', 'bad'),
    [
      *(('test_fraction', bad) for bad in (1, -0.1, np.nan, '0', None, True)),
      *(('seed', bad) for bad in (-1, 1.5, '1', None, True)),
    ],
  )
  def test_other_numbers(self, name, bad):
    with refused():
      splits.split_clients([np.arange(5)], **{'seed': 0, name: bad})
    with refused():
      splits.split_server(5, **{'seed': 0, name: bad})

  @pytest.mark.parametrize('bad', [0, 6, -1, 2.0, '2', True])
  def test_other_starts(self, bad):
    with refused():
      splits.split_server(5, seed=0, test_start=bad)

  @pytest.mark.parametrize('bad', [0, -1, 2.0, '2', None, True])
  def test_other_numbers_of_examples(self, bad):
    with refused():
      splits.split_server(bad, seed=0)

  @fuzzes(pooled.draw)
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

  @fuzzes(streams.generator)
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


def _varies(features):
  return np.ptp(features) > 1e-3


class TestCovariateShift:
  @fuzzes(covariate_shift.covariate_shift)
  @given(
    _FEATURES,
    st.integers(1, 3),
    st.sampled_from(covariate_shift.SIZES),
    st.sampled_from(covariate_shift.METHODS),
    st.sampled_from(covariate_shift.WEIGHTS),
    st.floats(0.1, 50),
    _SEEDS,
  )
  def test_partition(self, x, num_clients, by, method, weights, shift, seed):
    def deal():
      with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        return covariate_shift.covariate_shift(
          x,
          num_clients,
          sizes=by,
          method=method,
          weights=weights,
          shift=shift,
          pca_dim=2,
          seed=seed,
        )

    if method == 'importance' and not np.ptp(x, axis=0).any():
      with refused():
        deal()
      return
    if not _varies(x):
      return
    parts = deal()
    total = len(x) // 2
    exponent = float(by == 'zipf')
    expected = partitions.zipf_sizes(total, num_clients, exponent)
    np.testing.assert_array_equal(_sizes(parts), expected)
    for part in parts:
      assert np.all(np.diff(part) >= 0)
      assert np.all((part >= 0) & (part < len(x)))
    if method == 'pc1_sort':
      _check_parts(parts, len(x), total)
    assert all(map(np.array_equal, parts, deal()))

  @fuzzes(
    covariate_shift.principal_components,
    covariate_shift.fit_gaussian,
    covariate_shift.client_weights,
    covariate_shift.shift_weights,
    covariate_shift.effective_sample_size,
  )
  @given(
    _FEATURES.filter(_varies),
    st.integers(1, 3),
    st.sampled_from(covariate_shift.WEIGHTS),
    st.floats(0.1, 50),
    _SEEDS,
  )
  def test_weights(self, x, dim, form, shift, seed):
    y = covariate_shift.principal_components(x, dim)
    variances = y.var(axis=0)
    assert np.all(np.diff(variances) <= 1e-9)
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=1e-9)
    assert variances.sum() <= x.var(axis=0).sum() * (1 + 1e-9) + 1e-9
    mean, covariance = covariate_shift.fit_gaussian(y)
    assert np.linalg.eigvalsh(covariance).min() > 0
    p = covariate_shift.client_weights(
      y, 2, shift=shift, weights=form, seed=seed
    )
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p.min() >= 0
    for row in p:
      size = covariate_shift.effective_sample_size(row)
      assert 1 - 1e-9 <= size <= len(x) * (1 + 1e-9)
    delta = np.ones(dim)
    found = covariate_shift.shift_weights(y, mean, covariance, delta, form=form)
    if form == 'density' and np.linalg.cond(covariance) < 1e6:
      density = stats.multivariate_normal(mean + delta, covariance).logpdf(y)
      top = np.exp(density - density.max())
      np.testing.assert_allclose(found, top / top.sum(), atol=1e-6)

  @fuzzes(covariate_shift.gaussian_kl, covariate_shift.approximate_kl)
  @given(
    strategies.arrays([2], st.floats(-0.02, 0.02), np.float64),
    strategies.arrays([2, 2], st.floats(-0.02, 0.02), np.float64),
    strategies.arrays([2, 2], strategies.MODERATE, np.float64),
  )
  def test_divergences(self, d_mean, change, root):
    base = root @ root.T + np.eye(2)
    change = change + change.T
    exact = covariate_shift.gaussian_kl(
      d_mean, base + change, np.zeros(2), base
    )
    assert exact >= -1e-12
    same = covariate_shift.gaussian_kl(d_mean, base, d_mean, base)
    assert same == pytest.approx(0, abs=1e-12)
    found = covariate_shift.approximate_kl(d_mean, change, base, math.inf)
    size = np.abs(np.linalg.solve(base, change)).sum() + np.abs(d_mean).sum()
    assert found == pytest.approx(exact, abs=size**4 + 1e-12)
    few = covariate_shift.approximate_kl(d_mean, change, base, 10)
    assert few - found == pytest.approx(2 * 5 / 40)

  @pytest.mark.parametrize(
    'bad',
    [
      *({'num_clients': bad} for bad in [*strategies.NO_COUNT, 6]),
      *({'shift': bad} for bad in strategies.NOT_POSITIVE),
      *({'pca_dim': bad} for bad in [*strategies.NO_COUNT, 3]),
      *({'total': bad} for bad in (11, -1, 1.5, '5', True)),
      *({'seed': bad} for bad in (-1, 1.5, '1', None, True)),
      *({name: 'other'} for name in ('sizes', 'weights', 'method')),
      *(
        {'features': bad}
        for bad in (
          np.zeros([0, 2]),
          np.zeros([10, 0]),
          np.ones([10, 2]),
          np.full([10, 2], np.nan),
          np.full([10, 2], 'a'),
          3.0,
        )
      ),
    ],
    ids=str,
  )
  def test_other_arguments(self, bad):
    features = np.arange(20.0).reshape(10, 2) ** 2
    legal = dict(features=features, num_clients=2, pca_dim=2, seed=0)
    covariate_shift.covariate_shift(**legal)
    with refused():
      covariate_shift.covariate_shift(**{**legal, **bad})


def _task(labels, parts):
  data = task_lib.Examples(
    np.zeros([len(labels), 1], np.float32), np.array(labels, np.int32)
  )
  nothing = np.empty(0, np.int64)
  return task_lib.Task(
    name='fuzz',
    num_classes=8,
    model_fn=lambda: None,
    data=data,
    splits=tuple(splits.Split(part, nothing, nothing) for part in parts),
  )


@fuzzes(amounts.stated_amounts, task_lib.Task)
@given(_LABELS, st.integers(1, 4), st.integers(0, 3), _SEEDS)
def test_stated_amounts(labels, num_clients, num_riders, seed):
  num_clients = min(num_clients, len(labels))
  parts = partitions.equal(len(labels), num_clients, seed=seed)
  task = _task(labels, parts).with_free_riders(num_riders)
  assert task.num_clients == num_clients + num_riders
  counts = [task.num_train(i) for i in range(task.num_clients)]
  assert counts == [*_sizes(parts), *[0] * num_riders]
  found = amounts.stated_amounts(task, 'size')
  assert found[:num_clients] == counts[:num_clients]
  mean = len(labels) / num_clients
  assert found[num_clients:] == [math.floor(mean + 0.5)] * num_riders
  found = amounts.stated_amounts(task, 'class')
  owned = [len(np.unique(labels[part])) for part in parts]
  assert found[:num_clients] == owned
  assert all(min(owned) <= a <= max(owned) for a in found)
  for i, part in enumerate(parts):
    np.testing.assert_array_equal(task.examples(i).train.y, labels[part])


@pytest.mark.parametrize('bad', [-1, 2, 0.5, '0', None])
def test_no_other_client(bad):
  task = _task([0, 1], [np.array([0]), np.array([1])])
  for call in (task.num_train, task.examples, task.client_data):
    with refused():
      call(bad)
  with refused():
    amounts.stated_amounts(task, 'weight')
