"""Tasks from options to clients' examples, on the digits."""

import functools

import numpy as np
import pytest

from tests import refusals
from tff_fair import splits
from tff_fair import tasks
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import partitions
from tff_fair.tasks import pooled
from tff_fair.tasks import rules

_SHIFT = {'partition': 'covariate_shift'}
# Not the defaults.
_SHARES = {'test_fraction': 0.3, 'holdout_fraction': 0.2}


def _positions(task):
  return [np.concatenate(split) for split in task.splits]


def _same(first, second):
  return np.array_equal(first.data.x, second.data.x) and all(
    np.array_equal(a, b)
    for one, other in zip(first.splits, second.splits, strict=True)
    for a, b in zip(one, other, strict=True)
  )


def test_digits_by_default():
  task = tasks.build_task('digits')
  assert (task.name, task.num_clients, task.num_classes) == ('digits', 20, 10)
  assert task.data.x.shape == (1797, 8, 8, 1)
  assert (task.data.x.min(), task.data.x.max()) == (0.0, 1.0)
  assert np.unique(task.data.y).tolist() == list(range(10))
  positions = _positions(task)
  assert sorted(np.concatenate(positions)) == list(range(1797))
  assert min(map(len, positions)) >= 2
  # A fifth of 1,797, but for the rounding of each client.
  assert abs(len(task.global_test.y) - 359) <= 10
  outputs = task.model_fn()(task.examples(0).train.x[:2])
  assert outputs['logits'].shape == (2, 10)


_DIRICHLET = {'balance_cap': True, 'min_samples': 60}
_CAPPED = {'dirichlet_alpha': 0.05, 'dirichlet_remainder': 'drop', **_DIRICHLET}
_RATIO = {'shift': 2.0, 'pca_dim': 3, 'shift_sizes': 'zipf'}
# Options -> the partition of pixels x and labels y that they describe.
_PARTITIONS = [
  ({}, lambda x, y: partitions.dirichlet(y, 5, 0.5, seed=7)),
  (
    _CAPPED,
    lambda x, y: partitions.dirichlet(
      y, 5, 0.05, seed=7, remainder='drop', **_DIRICHLET
    ),
  ),
  ({'partition': 'equal'}, lambda x, y: partitions.equal(len(y), 5, seed=7)),
  *(
    (
      {'partition': name, 'num_examples': 300},
      lambda x, y, name=name: getattr(partitions, name)(
        len(y), 5, seed=7, total=300
      ),
    )
    for name in ('power_law', 'zipf')
  ),
  ({'partition': 'class'}, lambda x, y: partitions.classes(y, 5, seed=7)),
  (
    {'partition': 'class', 'num_examples': 200, 'random_classes': True},
    lambda x, y: partitions.classes(
      y, 5, seed=7, total=200, random_classes=True
    ),
  ),
  (
    {**_SHIFT, **_RATIO, 'shift_weights': 'ratio', 'num_examples': 500},
    lambda x, y: covariate_shift.covariate_shift(
      x, 5, seed=7, total=500, weights='ratio', shift=2.0, pca_dim=3,
      sizes='zipf',
    ),
  ),
  (
    {**_SHIFT, 'shift_method': 'pc1_sort'},
    lambda x, y: covariate_shift.covariate_shift(
      x, 5, seed=7, method='pc1_sort'
    ),
  ),
]  # fmt: skip


@pytest.mark.parametrize(
  ('split', 'fraction'), [('client', 1), ('server', 0.5)]
)
def test_the_partition_is_that_of_the_options(split, fraction):
  for options, describe in _PARTITIONS:
    whole_pool = {}
    shifts = options.get('partition') == 'covariate_shift'
    if split == 'client' and shifts and 'shift_method' not in options:
      whole_pool = {'shift_pool': 'shared'}
    task = tasks.build_task(
      'digits',
      num_clients=5,
      seed=7,
      split=split,
      data_fraction=fraction,
      **options,
      **whole_pool,
    )
    pool = np.arange(1797) if split == 'client' else task.server.to_deal
    pool = pooled.draw(pool, fraction, seed=7)
    expected = describe(task.data.x[pool], task.data.y[pool])
    for found, part in zip(_positions(task), expected, strict=True):
      assert np.sort(found).tolist() == pool[part].tolist(), options


@pytest.mark.parametrize('shared', [False, True])
def test_what_tests_a_client_trains_none_unless_the_pool_is_shared(shared):
  task = tasks.build_task(
    'digits',
    num_clients=4,
    data_fraction=0.5,
    seed=5,
    **_SHIFT,
    **_SHARES,
    **({'shift_pool': 'shared'} if shared else {}),
  )
  pool = pooled.draw(np.arange(1797), 0.5, seed=5)
  x = task.data.x[pool]
  if shared:
    drawn = covariate_shift.covariate_shift(x, 4, seed=5)
    expected = splits.split_clients(
      [pool[part] for part in drawn], seed=5, **_SHARES
    )
  else:
    drawn = covariate_shift.split_covariate_shift(x, 4, seed=5, **_SHARES)
    expected = [[pool[part] for part in split] for split in drawn]
  for found, split in zip(task.splits, expected, strict=True):
    assert all(map(np.array_equal, found, split))
  train, holdout, test = map(np.concatenate, zip(*task.splits, strict=True))
  assert (np.isin(test, train).mean() > 0.1) == shared
  assert np.isin(np.concatenate([holdout, test]), train).any() == shared


def test_fractions_reach_the_splits():
  # 898.5 rounds up to 899; a quarter of the other 898 is 224.5.
  task = tasks.build_task(
    'digits',
    num_clients=1,
    partition='equal',
    test_fraction=0.5,
    holdout_fraction=0.25,
  )
  assert [len(part.y) for part in task.examples(0)] == [673, 225, 899]
  task = tasks.build_task(
    'digits', split='server', test_fraction=0.5, validation_fraction=0.25
  )
  assert [len(part) for part in task.server] == [673, 225, 899]


@pytest.mark.parametrize('partition', rules.POOL_PARTITIONS)
def test_same_arguments_same_task_and_another_seed_another(partition):
  build = functools.partial(tasks.build_task, 'digits', partition=partition)
  assert _same(build(seed=3), build(seed=3))
  assert not _same(build(seed=3), build(seed=4))


def test_a_server_may_deal_an_example_twice_but_keeps_its_own():
  task = tasks.build_task(
    'digits',
    num_clients=5,
    partition='class',
    num_examples=1200,
    split='server',
  )
  dealt = np.concatenate(_positions(task))
  assert len(np.unique(dealt)) < len(dealt) == 1200
  kept = np.concatenate([task.server.validation, task.server.test])
  assert not np.intersect1d(dealt, kept).size


def test_the_server_keeps_a_random_part_without_a_test_file():
  task = tasks.build_task('digits', split='server')
  # A fifth of 1,797, a tenth of the other 1,438, and the rest.
  assert [len(part) for part in task.server] == [1294, 144, 359]
  together = [*_positions(task), task.server.validation, task.server.test]
  assert sorted(np.concatenate(together)) == list(range(1797))
  assert not any(len(s.holdout) + len(s.test) for s in task.splits)


def test_a_share_of_the_data():
  for fraction, size in [
    (0.25, 449),  # 449.25
    (0.015, 27),  # 26.955
    (0.5, 899),  # 898.5: a half rounds up.
    (0.9999, 1797),  # 1796.8203
    (1e-6, 1),
  ]:
    drawn = pooled.draw(np.arange(1797), fraction, seed=0)
    assert len(np.unique(drawn)) == len(drawn) == size
    assert drawn.min() >= 0 and drawn.max() < 1797
  half, other = (pooled.draw(np.arange(1797), 0.5, seed=i) for i in (0, 1))
  assert not np.array_equal(half, other)
  # Of the first 898; the standard deviation is 10.6.
  assert abs(np.count_nonzero(half < 898) - 449) < 60


def test_refuses():
  half = {'data_fraction': 0.5, 'num_examples': 900}
  server = {'split': 'server', 'test_fraction': 0.0}
  again = {'partition': 'class', 'num_clients': 5, 'num_examples': 1500}
  rows = [
    ({'partition': 'equal', **half}, r'^num_examples must be in 1\.\.899,'),
    (
      # 1797 - 359 test examples, of which 144 validate; half of the rest.
      {'partition': 'class', 'split': 'server', **half},
      r'^num_examples must be in 1\.\.647,',
    ),
    (server, 'test_fraction=0.0 of 1797 examples'),
    (again, r'^num_examples must be so small .* found 1500\.$'),
    ({**_SHIFT, 'pca_dim': 65}, r'^pca_dim must be in 1\.\.64, found 65'),
    ({'num_clients': 1000}, r'^1000 clients .* found 1797'),
    ({'dirichlet_alpha': 0.0}, r'^dirichlet_alpha must be in .* found 0\.0'),
    ({'test_leak': 'test_trains', 'test_fraction': 0.0}, '^test_fraction must'),
    ({'test_leak': 'test_trains', 'split': 'server'}, '^test_leak must not'),
  ]
  refusals.check(
    functools.partial(tasks.build_task, 'digits'),
    [(arguments, ValueError, message) for arguments, message in rows],
  )
  with pytest.raises(ValueError, match=r'^leak must be .*server that has them'):
    tasks.build_task('digits', split='server').with_test_leak('test_trains')


@pytest.mark.parametrize('leak', tasks.TEST_LEAKS)
def test_a_leak_is_paired_with_the_task_without_it(leak):
  build = functools.partial(
    tasks.build_task, 'digits', num_clients=5, seed=3, holdout_fraction=0.0
  )
  usual, leaky = build(), build(test_leak=leak, free_riders=1)
  assert usual.notes == ()
  (note,) = leaky.notes
  assert note.startswith('LEAK, a control run') and leak in note
  assert leaky.num_clients == 6
  for one, other in zip(usual.splits, leaky.splits, strict=False):
    everything = np.sort(np.concatenate(one))
    trained, held_out, tested = {
      'test_trains': (everything, [], one.test),
      'train_tests': (everything, [], everything),
      'test_validates': (one.train, one.test, one.test),
    }[leak]
    np.testing.assert_array_equal(other.train, trained)
    np.testing.assert_array_equal(other.holdout, held_out)
    np.testing.assert_array_equal(other.test, tested)
  # Another process that trains its clients builds the same.
  assert leaky.rebuild().loader.checksum == leaky.loader.checksum
  assert usual.loader.checksum != leaky.loader.checksum
