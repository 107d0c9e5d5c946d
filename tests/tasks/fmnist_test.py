"""The task 'fmnist', on small files and, where they are, on the real ones."""

import numpy as np
import pytest
import tensorflow as tf

import tasks
from tasks import sources
from tests.tasks import idx_file


def _arrays():
  rng = np.random.default_rng(0)
  return {
    'x_train': rng.integers(0, 256, (600, 28, 28)),
    'y_train': rng.integers(0, 10, 600),
    'x_test': rng.integers(0, 256, (100, 28, 28)),
    'y_test': rng.integers(0, 10, 100),
  }


@pytest.fixture(name='data_dir')
def _data_dir(tmp_path, monkeypatch):
  """An empty folder, and no way to get files that are not there."""
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
  monkeypatch.setattr(tf.keras.datasets.fashion_mnist, 'load_data', _offline)
  return tmp_path


def _offline():
  raise Exception('URL fetch failure')


def test_by_default(data_dir):
  arrays = _arrays()
  idx_file.write_folder(data_dir / 'fashion-mnist', arrays)
  task = tasks.build_task('fmnist', data_dir=data_dir)
  assert (task.name, task.num_clients, task.num_classes) == ('fmnist', 100, 10)
  x, y = task.data
  assert x.shape == (700, 28, 28, 1)
  np.testing.assert_allclose(
    x[:600, ..., 0], arrays['x_train'] / 255, rtol=1e-6
  )
  np.testing.assert_allclose(x[600:, ..., 0], arrays['x_test'] / 255, rtol=1e-6)
  assert y.tolist() == [*arrays['y_train'], *arrays['y_test']]
  outputs = task.model_fn()(x[:2])
  assert outputs['logits'].shape == (2, 10)
  assert outputs['embedding'].shape == (2, 200)


def test_the_servers_test_set_is_the_test_file(data_dir):
  arrays = _arrays()
  idx_file.write_folder(data_dir / 'fashion-mnist', arrays)
  task = tasks.build_task(
    'fmnist', data_dir=data_dir, num_clients=5, split='server'
  )
  assert task.global_test.y.tolist() == arrays['y_test'].tolist()
  assert len(task.validation.y) == 60


def test_the_data_agree_with_the_librarys_own_loader(tmp_path, monkeypatch):
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
  monkeypatch.setenv('HOME', str(tmp_path))
  cache = tmp_path / '.keras' / 'datasets'
  idx_file.write_folder(cache / 'fashion-mnist', _arrays())
  ours = tasks.build_task('fmnist', data_dir=cache)
  theirs = tasks.build_task('fmnist')
  np.testing.assert_array_equal(ours.data.x, theirs.data.x)
  np.testing.assert_array_equal(ours.data.y, theirs.data.y)


def test_missing_folder(data_dir):
  with pytest.raises(
    tasks.DataNotFoundError,
    match=(
      r"^The data file 'fashion-mnist' must .* no such file in "
      rf"'{data_dir}'.*\(URL fetch failure\)\.$"
    ),
  ):
    tasks.build_task('fmnist', data_dir=data_dir)


@pytest.mark.parametrize('name', idx_file.FILE_NAMES.values())
def test_missing_file(name, data_dir):
  idx_file.write_folder(data_dir / 'fashion-mnist', _arrays())
  path = data_dir / 'fashion-mnist' / name
  path.unlink()
  with pytest.raises(
    tasks.DataDamagedError,
    match=rf"^The data file '{path}' must hold .*unreadable file \(.*No such",
  ):
    tasks.build_task('fmnist', data_dir=data_dir)


@pytest.mark.parametrize('name', idx_file.FILE_NAMES.values())
def test_damaged_file(name, data_dir):
  idx_file.write_folder(data_dir / 'fashion-mnist', _arrays())
  path = data_dir / 'fashion-mnist' / name
  path.write_bytes(path.read_bytes()[:-20])
  with pytest.raises(
    tasks.DataDamagedError,
    match=rf"^The data file '{path}' must hold a gzip-compressed idx array",
  ):
    tasks.build_task('fmnist', data_dir=data_dir)


def test_files_that_do_not_belong_together(data_dir):
  arrays = {**_arrays(), 'y_train': np.zeros(5)}
  idx_file.write_folder(data_dir / 'fashion-mnist', arrays)
  with pytest.raises(
    tasks.DataDamagedError,
    match=(
      rf"^The data file '{data_dir / 'fashion-mnist'}' must hold 600 integer "
      r'labels in y_train, found uint8 of shape \[5\]\.$'
    ),
  ):
    tasks.build_task('fmnist', data_dir=data_dir)


@pytest.mark.skipif(
  sources.find_file('fashion-mnist', None) is None,
  reason=f'{sources.DATA_DIR_VARIABLE} holds no Fashion-MNIST',
)
def test_real_files():
  task = tasks.build_task('fmnist', balance_cap=True, min_samples=10)
  assert task.data.x.shape == (70000, 28, 28, 1)
  assert np.bincount(task.data.y).tolist() == [7000] * 10
  sizes = [sum(map(len, split)) for split in task.splits]
  assert sum(sizes) == 70000
  assert min(sizes) >= 10
