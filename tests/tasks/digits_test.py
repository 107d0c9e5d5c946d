"""Tasks from options to clients' examples, on the digits."""

import functools

import numpy as np
import pytest

from tests.tasks import refusals
from tff_fair import splits
from tff_fair import tasks
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import partitions
from tff_fair.tasks import pooled
from tff_fair.tasks import rules


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


# Options -> the partition of labels and pixels that they describe.
_PARTITIONS = [
  ({}, lambda x, y: partitions.dirichlet(y, 5, 0.5, seed=7)),
  (
    {
      'dirichlet_alpha': 0.05,
      'dirichlet_remainder': 'drop',
      'balance_cap': True,
      'min_samples': 60,
    },
    lambda x, y: partitions.dirichlet(
      y,
      5,
      0.05,
      seed=7,
      remainder='drop',
      balance_cap=True,
      min_samples=60,
    ),
  ),
  ({'partition': 'equal'}, lambda x, y: partitions.equal(len(y), 5, seed=7)),
  *(
    (
      {'partition': name, 'num_examples': 300},
      lambda x, y, deal=deal: deal(len(y), 5, seed=7, total=300),
    )
    for name, deal in [
      ('equal', partitions.equal),
      ('power_law', partitions.power_law),
      ('zipf', partitions.zipf),
    ]
  ),
  ({'partition': 'class'}, lambda x, y: partitions.classes(y, 5, seed=7)),
  (
    {'partition': 'class', 'num_examples': 200, 'random_classes': True},
    lambda x, y: partitions.classes(
      y, 5, seed=7, total=200, random_classes=True
    ),
  ),
  (
    {'partition': 'covariate_shift'},
    lambda x, y: covariate_shift.covariate_shift(
      x,
      5,
      sizes='equal',
      shift=5.0,
      pca_dim=10,
      weights='density',
      method='importance',
      seed=7,
    ),
  ),
  (
    {
      'partition': 'covariate_shift',
      'shift_sizes': 'zipf',
      'shift': 2.0,
      'pca_dim': 3,
      'shift_weights': 'ratio',
      'num_examples': 500,
    },
    lambda x, y: covariate_shift.covariate_shift(
      x,
      5,
      sizes='zipf',
      shift=2.0,
      pca_dim=3,
      weights='ratio',
      seed=7,
      total=500,
    ),
  ),
  (
    {'partition': 'covariate_shift', 'shift_method': 'pc1_sort'},
    lambda x, y: covariate_shift.covariate_shift(
      x, 5, method='pc1_sort', seed=7
    ),
  ),
]


def _draws_by_weights(options):
  shifts = options.get('partition') == 'covariate_shift'
  return shifts and 'shift_method' not in options


@pytest.mark.parametrize('split', ['client', 'server'])
@pytest.mark.parametrize('fraction', [1.0, 0.5])
def test_the_partition_is_that_of_the_options(split, fraction):
  for options, describe in _PARTITIONS:
    whole_pool = {}
    if split == 'client' and _draws_by_weights(options):
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


@pytest.mark.parametrize('fraction', [1.0, 0.5])
def test_a_shared_pool_is_split_after_the_draws(fraction):
  shares = {'test_fraction': 0.3, 'holdout_fraction': 0.2}
  task = tasks.build_task(
    'digits',
    num_clients=4,
    partition='covariate_shift',
    shift_pool='shared',
    data_fraction=fraction,
    seed=5,
    **shares,
  )
  pool = pooled.draw(np.arange(1797), fraction, seed=5)
  drawn = covariate_shift.covariate_shift(task.data.x[pool], 4, seed=5)
  expected = splits.split_clients(
    [pool[part] for part in drawn], seed=5, **shares
  )
  for found, split in zip(task.splits, expected, strict=True):
    assert all(map(np.array_equal, found, split))
  # What the default is for: here examples that test a client train another.
  train, _, test = map(np.concatenate, zip(*task.splits, strict=True))
  assert np.isin(test, train).mean() > 0.1


@pytest.mark.parametrize('fraction', [1.0, 0.5])
def test_by_default_what_tests_a_client_trains_none(fraction):
  shares = {'test_fraction': 0.3, 'holdout_fraction': 0.2}
  task = tasks.build_task(
    'digits',
    num_clients=4,
    partition='covariate_shift',
    data_fraction=fraction,
    seed=5,
    **shares,
  )
  pool = pooled.draw(np.arange(1797), fraction, seed=5)
  expected = covariate_shift.split_covariate_shift(
    task.data.x[pool], 4, seed=5, **shares
  )
  for found, split in zip(task.splits, expected, strict=True):
    for positions, part in zip(found, split, strict=True):
      assert positions.tolist() == pool[part].tolist()
  train, holdout, test = map(np.concatenate, zip(*task.splits, strict=True))
  assert not np.isin(np.concatenate([holdout, test]), train).any()
  # A quarter of half of the examples is 225 of 898, or 112 of 449; three
  # tenths of 225 is 67.5.
  if fraction == 1:
    assert [len(split.test) for split in task.splits] == [68, 68, 67, 67]


def test_fractions_reach_the_splits():
  task = tasks.build_task(
    'digits',
    num_clients=1,
    partition='equal',
    test_fraction=0.5,
    holdout_fraction=0.25,
  )
  # 898.5 rounds up to 899; a quarter of the other 898 is 224.5.
  assert [len(part.y) for part in task.examples(0)] == [673, 225, 899]


@pytest.mark.parametrize('partition', rules.POOL_PARTITIONS)
def test_same_arguments_same_task_and_another_seed_another(partition):
  def build(seed):
    return tasks.build_task('digits', partition=partition, seed=seed)

  assert _same(build(3), build(3))
  assert not _same(build(3), build(4))


def test_the_model_may_be_chosen():
  for model, embedding in [
    (None, 128),
    ('mlp_cffl_mnist', 64),
    ('mlp_cffl_adult', 32),
    ('cnn_cifar_gn', 128),
    ('cnn_fedquad', 128),
  ]:
    task = tasks.build_task('digits', num_clients=4, model=model)
    outputs = task.model_fn()(task.examples(0).train.x[:2])
    assert outputs['embedding'].shape == (2, embedding)
    assert outputs['logits'].shape == (2, 10)


def test_what_a_client_draws_twice_is_in_one_of_its_parts():
  task = tasks.build_task(
    'digits',
    num_clients=2,
    partition='covariate_shift',
    shift=8.0,
    shift_pool='shared',
    num_examples=1797,
    holdout_fraction=0.125,
  )
  for split in task.splits:
    assert any(len(np.unique(part)) < len(part) for part in split)
    assert not np.intersect1d(split.train, split.test).size
    assert not np.intersect1d(split.train, split.holdout).size
    assert not np.intersect1d(split.holdout, split.test).size
    sizes = np.array([len(np.unique(part)) for part in split])
    # 7:1:2 of the distinct ones, but for rounding.
    np.testing.assert_allclose(sizes / sizes.sum(), [0.7, 0.1, 0.2], atol=0.01)


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
  assert task.has_server_test
  # A fifth of 1,797, a tenth of the other 1,438, and the rest.
  assert [len(part) for part in task.server] == [1294, 144, 359]
  assert len(task.validation.y) == 144
  assert len(task.global_test.y) == 359
  together = [*_positions(task), task.server.validation, task.server.test]
  assert sorted(np.concatenate(together)) == list(range(1797))
  for client_id in range(task.num_clients):
    train, holdout, test = task.examples(client_id)
    assert len(train.y) == task.num_train(client_id) > 0
    assert (len(holdout.y), len(test.y)) == (0, 0)


def test_fractions_of_the_server():
  task = tasks.build_task(
    'digits', split='server', test_fraction=0.5, validation_fraction=0.25
  )
  # 898.5 rounds up to 899; a quarter of the other 898 is 224.5.
  assert [len(part) for part in task.server] == [673, 225, 899]


def test_the_servers_parts_depend_on_the_seed_alone():
  def server(**arguments):
    return tasks.build_task('digits', split='server', **arguments).server

  first = server(seed=1)
  for other, same in [
    (server(seed=1, num_clients=3, partition='power_law'), True),
    (server(seed=2), False),
  ]:
    for ours, theirs in zip(first, other, strict=True):
      assert np.array_equal(ours, theirs) == same


def test_free_riders_do_not_change_the_others():
  for split in ('client', 'server'):
    alone, accompanied = (
      tasks.build_task('digits', num_clients=4, split=split, free_riders=count)
      for count in (0, 2)
    )
    assert alone.free_riders == ()
    assert accompanied.free_riders == (4, 5)
    assert accompanied.num_clients == 6
    for i, ours in enumerate(alone.splits):
      assert all(map(np.array_equal, ours, accompanied.splits[i]))
    parts = accompanied.examples(5)
    assert [part.x.shape for part in parts] == [(0, 8, 8, 1)] * 3


def _dealt(**arguments):
  """The positions of all clients' examples, sorted."""
  task = tasks.build_task(
    'digits', **{'num_clients': 5, 'partition': 'equal', **arguments}
  )
  return np.sort(np.concatenate(_positions(task)))


def test_a_share_of_the_data():
  for fraction, size in [
    (0.25, 449),  # 449.25
    (0.3, 539),  # 539.1
    (0.015, 27),  # 26.955
    (0.5, 899),  # 898.5: a half rounds up.
    (0.9999, 1797),  # 1796.8203
  ]:
    dealt = _dealt(data_fraction=fraction)
    assert len(dealt) == len(np.unique(dealt)) == size
    assert dealt.min() >= 0 and dealt.max() < 1797
  assert len(_dealt(data_fraction=1e-6, num_clients=1)) == 1
  dealt = _dealt(data_fraction=0.5)
  # Of the first 898; the standard deviation is 10.6.
  assert abs(np.count_nonzero(dealt < 898) - 449) < 60
  assert set(np.diff(dealt)) > {1, 2, 3}


def test_the_share_depends_on_the_seed_alone():
  expected = _dealt(data_fraction=0.3)
  assert not np.array_equal(expected, _dealt(data_fraction=0.3, seed=4))
  for others in (
    {'num_clients': 3},
    {'partition': 'power_law'},
    {'partition': 'dirichlet', 'dirichlet_alpha': 0.1},
    {'test_fraction': 0.5, 'holdout_fraction': 0.0},
  ):
    assert np.array_equal(_dealt(data_fraction=0.3, **others), expected)


def test_refuses():
  rows = [
    *(
      (
        {
          'partition': partition,
          'split': split,
          'data_fraction': 0.5,
          'num_examples': left + 1,
        },
        rf'^num_examples must be in 1\.\.{left}, found {left + 1}\.$',
      )
      for partition in ('equal', 'class')
      for split, left in (('client', 899), ('server', 647))
    ),
    *(
      (
        {'data_fraction': 0.002, 'partition': partition, 'num_clients': 10},
        r'found .*\.$',
      )
      for partition in ('dirichlet', 'equal', 'power_law', 'class')
    ),
    (
      {'partition': 'equal', 'num_examples': 1798},
      r'^num_examples must be in 1\.\.1797, found 1798\.$',
    ),
    (
      # 1797 - 359 test examples; 144 of the others validate.
      {'partition': 'class', 'split': 'server', 'num_examples': 1295},
      r'^num_examples must be in 1\.\.1294, found 1295\.$',
    ),
    (
      {'split': 'server', 'test_fraction': 0.0},
      r'^The test set of the server .* test_fraction=0\.0 of 1797 examples',
    ),
    (
      {'partition': 'class', 'num_clients': 5, 'num_examples': 1500},
      r'^num_examples must be so small .* found 1500\.$',
    ),
    (
      {'partition': 'covariate_shift', 'pca_dim': 65},
      r'^pca_dim must be in 1\.\.64, found 65\.$',
    ),
    (
      {'partition': 'covariate_shift', 'num_clients': 900},
      r'^900 clients .* found 898\.$',
    ),
    ({'num_clients': 1000}, r'^1000 clients .* found 1797\.$'),
    ({'dirichlet_alpha': 0.0}, r'^dirichlet_alpha must be in .* found 0\.0\.$'),
  ]
  refusals.check(
    functools.partial(tasks.build_task, 'digits'),
    [(arguments, ValueError, message) for arguments, message in rows],
  )


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
    np.testing.assert_array_equal(other.train, everything)
    tested = one.test if leak == 'test_trains' else everything
    np.testing.assert_array_equal(other.test, tested)
  # Another process that trains its clients builds the same.
  assert leaky.rebuild().loader.checksum == leaky.loader.checksum
  assert usual.loader.checksum != leaky.loader.checksum


def test_refuses_a_leak_without_test_examples_of_the_clients():
  refusals.check(
    functools.partial(tasks.build_task, 'digits', test_leak='test_trains'),
    [
      (
        {'test_fraction': 0.0},
        ValueError,
        r'^test_fraction must be above 0 .*, found 0\.0 with',
      ),
      (
        {'split': 'server'},
        ValueError,
        r"^test_leak must not be set with split='server', which leaves",
      ),
    ],
  )
  with pytest.raises(ValueError, match=r'^leak must be .*server that has them'):
    tasks.build_task('digits', split='server').with_test_leak('test_trains')
