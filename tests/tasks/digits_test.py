"""Tasks from options to clients' examples, on the digits."""

import functools

import numpy as np
import pytest

import tasks
from tasks import rules
from tests.tasks import refusals


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


def test_digits_are_uneven_by_default_and_even_on_request():
  def spread(task):
    return np.ptp([len(positions) for positions in _positions(task)])

  assert spread(tasks.build_task('digits')) > 50
  assert spread(tasks.build_task('digits', partition='equal')) == 1


def test_digits_alpha_governs_the_classes_of_a_client():
  def num_classes(alpha):
    task = tasks.build_task('digits', dirichlet_alpha=alpha)
    return np.mean([len(np.unique(task.data.y[p])) for p in _positions(task)])

  assert num_classes(0.05) < 5
  assert num_classes(100.0) > 9


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


def test_balance_cap_reaches_the_partition():
  def num_overfull(**arguments):
    task = tasks.build_task('digits', dirichlet_alpha=0.1, **arguments)
    counts = np.array(
      [np.bincount(task.data.y[p], minlength=10) for p in _positions(task)]
    )
    held_before = np.cumsum(counts, axis=1) - counts
    # What clients that already hold 1,797 / 20 examples take all the same.
    return counts[held_before >= 1797 / 20].sum()

  assert num_overfull() > 0
  assert num_overfull(balance_cap=True) == 0


def test_min_samples_reaches_the_partition():
  task = tasks.build_task('digits', dirichlet_alpha=0.05, min_samples=40)
  assert min(map(len, _positions(task))) >= 40


@pytest.mark.parametrize('partition', rules.POOL_PARTITIONS)
def test_same_arguments_same_task_and_another_seed_another(partition):
  def build(seed):
    return tasks.build_task('digits', partition=partition, seed=seed)

  assert _same(build(3), build(3))
  assert not _same(build(3), build(4))


def test_client_data_of_a_task():
  task = tasks.build_task('digits')
  (train,) = task.client_data(7)['train'].as_numpy_iterator()
  expected = task.examples(7).train
  np.testing.assert_array_equal(train['x'], expected.x)
  np.testing.assert_array_equal(train['y'], expected.y)


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


def test_num_examples_are_dealt_in_all():
  for partition in ('equal', 'power_law', 'zipf', 'class'):
    for split in ('client', 'server'):
      task = tasks.build_task(
        'digits',
        num_clients=5,
        partition=partition,
        num_examples=300,
        split=split,
      )
      dealt = np.concatenate(_positions(task))
      assert len(dealt) == len(np.unique(dealt)) == 300


def test_power_law_sizes_of_a_task():
  task = tasks.build_task(
    'digits',
    num_clients=5,
    partition='power_law',
    num_examples=600,
    split='server',
  )
  # A fifth of 71, 335, 600, 865, 1129 of 3,000.
  assert [task.num_train(i) for i in range(5)] == [14, 67, 120, 173, 226]


def test_zipf_sizes_of_a_task():
  task = tasks.build_task(
    'digits', num_clients=3, partition='zipf', split='server', num_examples=110
  )
  assert [task.num_train(i) for i in range(3)] == [60, 30, 20]


def test_the_remainder_of_a_dirichlet_partition_may_be_dropped():
  def num_dealt(**arguments):
    task = tasks.build_task('digits', num_clients=40, **arguments)
    return sum(map(len, _positions(task)))

  assert num_dealt() == num_dealt(dirichlet_remainder='use') == 1797
  # 40 clients lose half an example of each of 10 classes, or there about.
  assert 1797 - 300 < num_dealt(dirichlet_remainder='drop') < 1797 - 100


def test_half_of_the_pool_is_dealt_with_a_covariate_shift():
  for method in ('importance', 'pc1_sort'):
    for sizes, expected in [
      ('equal', [300, 299, 299]),
      ('zipf', [490, 245, 163]),
    ]:
      task = tasks.build_task(
        'digits',
        num_clients=3,
        partition='covariate_shift',
        shift_sizes=sizes,
        shift_method=method,
      )
      assert [len(positions) for positions in _positions(task)] == expected


def test_what_a_client_draws_twice_is_in_one_of_its_parts():
  task = tasks.build_task(
    'digits',
    num_clients=2,
    partition='covariate_shift',
    shift=8.0,
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


def test_the_options_of_the_shift_reach_the_partition():
  def build(**arguments):
    return tasks.build_task(
      'digits', num_clients=3, partition='covariate_shift', **arguments
    )

  chosen = {
    'shift': 5.0,
    'pca_dim': 10,
    'shift_weights': 'density',
    'shift_method': 'importance',
    'shift_sizes': 'equal',
  }
  default = build()
  assert _same(default, build(**chosen))
  for name, value in [
    ('shift', 2.0),
    ('pca_dim', 3),
    ('shift_weights', 'ratio'),
    ('shift_sizes', 'zipf'),
  ]:
    assert not _same(default, build(**{name: value}))
  assert not _same(default, build(shift_method='pc1_sort'))


def test_a_server_shifts_what_it_deals():
  task = tasks.build_task(
    'digits', num_clients=3, partition='covariate_shift', split='server'
  )
  dealt = np.concatenate(_positions(task))
  assert len(dealt) == 1294 // 2
  assert np.isin(dealt, task.server.to_deal).all()


def test_classes_of_a_task():
  task = tasks.build_task(
    'digits', num_clients=5, partition='class', split='server'
  )
  labels = [set(task.examples(i).train.y) for i in range(5)]
  assert labels == [set(range(count)) for count in (1, 3, 5, 7, 10)]
  assert len({task.num_train(i) for i in range(5)}) == 1


def test_classes_of_a_task_may_be_random():
  task = tasks.build_task(
    'digits', num_clients=5, partition='class', random_classes=True
  )
  labels = [set(task.data.y[positions]) for positions in _positions(task)]
  assert list(map(len, labels)) == [1, 3, 5, 7, 10]
  assert labels[1] != {0, 1, 2}


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


@pytest.mark.parametrize('split', ['client', 'server'])
def test_free_riders_do_not_change_the_others(split):
  alone, accompanied = (
    tasks.build_task(
      'digits', num_clients=4, split=split, free_riders=free_riders
    )
    for free_riders in (0, 2)
  )
  assert alone.free_riders == ()
  assert accompanied.free_riders == (4, 5)
  assert accompanied.num_clients == 6
  for client_id in range(4):
    for ours, theirs in zip(
      alone.splits[client_id], accompanied.splits[client_id], strict=True
    ):
      np.testing.assert_array_equal(ours, theirs)
  for client_id in (4, 5):
    assert [len(part.y) for part in accompanied.examples(client_id)] == [0] * 3
    (train,) = accompanied.client_data(client_id)['train'].as_numpy_iterator()
    assert train['x'].shape == (0, 8, 8, 1)


def test_refuses():
  rows = [
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
    ({'dirichlet_alpha': 0.0}, r'^alpha must be in .* found 0\.0\.$'),
  ]
  refusals.check(
    functools.partial(tasks.build_task, 'digits'),
    [(arguments, ValueError, message) for arguments, message in rows],
  )
