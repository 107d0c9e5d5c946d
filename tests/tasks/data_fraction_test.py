"""A share of the data, which is drawn before they are dealt to clients."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tasks
from tasks import partitions
from tasks import sources
from tests.tasks import refusals


def _positions(task):
  """The positions of each client's examples, sorted."""
  return [np.sort(np.concatenate(split)) for split in task.splits]


def _dealt(task):
  """The positions of all clients' examples, sorted."""
  return np.sort(np.concatenate(_positions(task)))


def _build(**arguments):
  return tasks.build_task(
    'digits', **{'num_clients': 5, 'partition': 'equal', **arguments}
  )


@pytest.fixture(name='mnist')
def _mnist(tmp_path, monkeypatch):
  """Builds 'mnist' of 300 examples in the train and 100 in the test file."""
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
  monkeypatch.setattr(tf.keras.datasets.mnist, 'load_data', _unwanted)
  rng = np.random.default_rng(0)
  arrays = {}
  for part, size in (('train', 300), ('test', 100)):
    arrays[f'x_{part}'] = rng.integers(0, 256, [size, 28, 28], np.uint8)
    arrays[f'y_{part}'] = np.arange(size) % 10
  np.savez(tmp_path / 'mnist.npz', **arrays)

  def build(**arguments):
    defaults = {'num_clients': 5, 'partition': 'equal', 'data_dir': tmp_path}
    return tasks.build_task('mnist', **{**defaults, **arguments})

  return build


def _unwanted():
  raise AssertionError('The file in the folder should have been taken.')


def test_that_share_of_the_1797_digits_is_dealt():
  for fraction, size in [
    (0.25, 449),  # 449.25
    (0.3, 539),  # 539.1
    (0.015, 27),  # 26.955
    (0.5, 899),  # 898.5: a half rounds up.
    (0.9999, 1797),  # 1796.8203
  ]:
    dealt = _dealt(_build(data_fraction=fraction))
    assert len(dealt) == len(np.unique(dealt)) == size
    assert dealt.min() >= 0 and dealt.max() < 1797
  assert len(_dealt(_build(data_fraction=1e-6, num_clients=1))) == 1


def test_the_share_is_random():
  dealt = _dealt(_build(data_fraction=0.5))
  # Of the first 898; the standard deviation is 10.6.
  assert abs(np.count_nonzero(dealt < 898) - 449) < 60
  assert set(np.diff(dealt)) > {1, 2, 3}


def test_the_share_depends_on_the_seed_alone():
  expected = _dealt(_build(data_fraction=0.3))
  assert not np.array_equal(expected, _dealt(_build(data_fraction=0.3, seed=4)))
  for others in (
    {'num_clients': 3},
    {'partition': 'power_law'},
    {'partition': 'dirichlet', 'dirichlet_alpha': 0.1},
    {'test_fraction': 0.5, 'holdout_fraction': 0.0},
  ):
    assert np.array_equal(_dealt(_build(data_fraction=0.3, **others)), expected)


def test_the_partition_is_of_what_was_drawn():
  task = _build(
    data_fraction=0.3, partition='dirichlet', dirichlet_alpha=0.2, seed=7
  )
  drawn = _dealt(task)
  expected = partitions.dirichlet(task.data.y[drawn], 5, 0.2, seed=7)
  for found, part in zip(_positions(task), expected, strict=True):
    assert found.tolist() == sorted(drawn[part])


def test_all_of_the_data_are_dealt_as_if_there_were_no_such_option():
  for split in ('client', 'server'):
    task = _build(
      data_fraction=1.0,
      partition='dirichlet',
      dirichlet_alpha=0.2,
      split=split,
      seed=7,
    )
    there = np.arange(1797) if split == 'client' else task.server.to_deal
    expected = partitions.dirichlet(task.data.y[there], 5, 0.2, seed=7)
    for found, part in zip(_positions(task), expected, strict=True):
      assert found.tolist() == sorted(there[part])


def test_a_test_file_stays_whole_at_the_server(mnist):
  whole = mnist(split='server', validation_fraction=0.0)
  task = mnist(split='server', validation_fraction=0.0, data_fraction=0.25)
  np.testing.assert_array_equal(task.server.test, np.arange(300, 400))
  np.testing.assert_array_equal(task.global_test.x, whole.global_test.x)
  assert len(_dealt(task)) == 75
  assert _dealt(task).max() < 300
  assert [task.num_train(i) for i in range(5)] == [15] * 5


def test_without_a_test_file_the_servers_test_set_stays_as_it_is():
  whole = _build(split='server')
  task = _build(split='server', data_fraction=0.5)
  np.testing.assert_array_equal(task.server.test, whole.server.test)
  # Half of 1,797 - 359 test - 144 validation examples.
  assert len(_dealt(task)) == 647
  kept = np.concatenate([task.server.validation, task.server.test])
  assert not np.intersect1d(_dealt(task), kept).size


def test_clients_keep_test_examples_out_of_their_share(mnist):
  task = mnist(data_fraction=0.25)
  # Of 400, as the files are pooled: 20 a client, of whose 16 others 2 validate.
  assert [[len(part) for part in split] for split in task.splits] == (
    [[14, 2, 4]] * 5
  )
  assert _dealt(task).max() >= 300


def test_without_validation_examples_clients_get_the_whole_train_file(mnist):
  task = mnist(split='server', validation_fraction=0.0)
  assert task.validation.x.shape == (0, 28, 28, 1)
  assert task.validation.y.shape == (0,)
  assert _dealt(task).tolist() == list(range(300))
  assert len(task.global_test.y) == 100


def test_a_number_of_examples_is_dealt_out_of_the_share():
  task = _build(data_fraction=0.5, num_examples=899)
  np.testing.assert_array_equal(_dealt(task), _dealt(_build(data_fraction=0.5)))
  fewer = _dealt(_build(data_fraction=0.5, num_examples=100))
  assert len(fewer) == 100
  assert set(fewer) < set(_dealt(task))


def test_refuses():
  rows = [
    *(
      (
        {'partition': partition, 'split': split, 'num_examples': left + 1},
        ValueError,
        rf'^num_examples must be in 1\.\.{left}, found {left + 1}\.$',
      )
      for partition in ('equal', 'class')
      for split, left in (('client', 899), ('server', 647))
    ),
    *(
      (
        {'data_fraction': 0.002, 'partition': partition, 'num_clients': 10},
        ValueError,
        r'found .*\.$',
      )
      for partition in ('dirichlet', 'equal', 'power_law', 'class')
    ),
  ]
  refusals.check(functools.partial(_build, data_fraction=0.5), rows)
