"""The task 'cifar100', on a small file."""

import numpy as np
import pytest
import tensorflow as tf

import tasks
from tasks import sources


def _arrays(**changes):
  rng = np.random.default_rng(0)
  arrays = {}
  for part, size in (('train', 300), ('test', 100)):
    pixels = rng.integers(0, 256, (size, 32, 32, 3))
    arrays[f'x_{part}'] = pixels.astype(np.uint8)
    arrays[f'y_{part}'] = (np.arange(size) % 100).astype(np.uint8)
  return {**arrays, **changes}


@pytest.fixture(name='data_dir')
def _data_dir(tmp_path, monkeypatch):
  """An empty folder, and no way to get a file that is not there."""
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
  monkeypatch.setattr(tf.keras.datasets.cifar100, 'load_data', _offline)
  return tmp_path


def _offline():
  raise Exception('URL fetch failure')


def _sizes(task):
  return [sum(map(len, split)) for split in task.splits]


def test_by_default(data_dir):
  arrays = _arrays()
  np.savez(data_dir / 'cifar100.npz', **arrays)
  task = tasks.build_task('cifar100', data_dir=data_dir)
  found = (task.name, task.num_clients, task.num_classes)
  assert found == ('cifar100', 10, 100)
  x, y = task.data
  assert x.shape == (400, 32, 32, 3)
  np.testing.assert_allclose(x[:300], arrays['x_train'] / 255, rtol=1e-6)
  np.testing.assert_allclose(x[300:], arrays['x_test'] / 255, rtol=1e-6)
  assert y.tolist() == [*arrays['y_train'], *arrays['y_test']]
  assert np.ptp(_sizes(task)) > 1  # Dirichlet, not an equal share each.
  outputs = task.model_fn()(x[:2])
  assert outputs['logits'].shape == (2, 100)
  assert outputs['embedding'].shape == (2, 128)
  assert task.model_fn().count_params() == _num_weights()


def _num_weights():
  """Of the three convolutions with batch norm, of the embedding, the rest."""
  channels = (3, 64, 128, 256)
  blocks = sum(
    9 * ins * outs + outs + 4 * outs
    for ins, outs in zip(channels, channels[1:], strict=False)
  )
  return blocks + (256 + 1) * 128 + (128 + 1) * 100


def test_the_default_alpha_is_a_half(data_dir):
  np.savez(data_dir / 'cifar100.npz', **_arrays())
  default, same, other = (
    _sizes(tasks.build_task('cifar100', data_dir=data_dir, **arguments))
    for arguments in ({}, {'dirichlet_alpha': 0.5}, {'dirichlet_alpha': 0.4})
  )
  assert default == same != other


def test_the_servers_test_set_is_the_test_file(data_dir):
  arrays = _arrays()
  np.savez(data_dir / 'cifar100.npz', **arrays)
  task = tasks.build_task(
    'cifar100', data_dir=data_dir, split='server', validation_fraction=0.0
  )
  assert task.global_test.y.tolist() == arrays['y_test'].tolist()
  assert sum(task.num_train(i) for i in range(10)) == 300


def test_the_labels_of_the_library_have_a_second_axis(data_dir, monkeypatch):
  arrays = _arrays()

  def load_data():
    return tuple(
      (arrays[f'x_{part}'], arrays[f'y_{part}'][:, np.newaxis].astype(np.int64))
      for part in ('train', 'test')
    )

  monkeypatch.setattr(tf.keras.datasets.cifar100, 'load_data', load_data)
  task = tasks.build_task('cifar100', data_dir=data_dir)
  assert task.data.y.tolist() == [*arrays['y_train'], *arrays['y_test']]
  assert task.data.y.dtype == np.int32


def test_missing_file(data_dir):
  with pytest.raises(
    tasks.DataNotFoundError,
    match=(
      r"^The data file 'cifar100\.npz' must .* no such file in "
      rf"'{data_dir}'.*\(URL fetch failure\)\.$"
    ),
  ):
    tasks.build_task('cifar100', data_dir=data_dir)


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    (
      {'y_train': np.append(np.zeros(299, int), 100)},
      r'labels in 0\.\.99 in y_train, found labels from 0 to 100',
    ),
    (
      {'y_test': np.append(np.zeros(99, int), -1)},
      r'labels in 0\.\.99 in y_test, found labels from -1 to 0',
    ),
    (
      {'y_test': np.zeros([100, 2], int)},
      r'100 integer labels in y_test, found int64 of shape \[100, 2\]',
    ),
    (
      {'x_train': np.zeros([300, 28, 28], np.uint8)},
      r'uint8 images of shape \[n, 32, 32, 3\] in x_train, found uint8 of '
      r'shape \[300, 28, 28\]',
    ),
    (
      # As other files of these images lay out their channels.
      {'x_test': np.zeros([100, 3, 32, 32], np.uint8)},
      r'in x_test, found uint8 of shape \[100, 3, 32, 32\]',
    ),
  ],
)
def test_damaged_file(changes, message, data_dir):
  path = data_dir / 'cifar100.npz'
  np.savez(path, **_arrays(**changes))
  with pytest.raises(
    tasks.DataDamagedError,
    match=rf"^The data file '{path}' must hold .*{message}\.$",
  ):
    tasks.build_task('cifar100', data_dir=data_dir)


@pytest.mark.skipif(
  sources.find_file('cifar100.npz', None) is None,
  reason=f'{sources.DATA_DIR_VARIABLE} holds no CIFAR-100',
)
def test_real_file():
  task = tasks.build_task('cifar100', split='server', validation_fraction=0.0)
  assert task.data.x.shape == (60000, 32, 32, 3)
  assert np.bincount(task.data.y).tolist() == [600] * 100
  assert np.bincount(task.global_test.y).tolist() == [100] * 100
  assert sum(_sizes(task)) == 50000
