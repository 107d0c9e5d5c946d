"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, on small files."""

import functools
import pathlib
import re
import shutil

import numpy as np
import pytest

from tests.tasks import cifar_file
from tests.tasks import idx_file
from tff_fair import tasks
from tff_fair.tasks import sources

# Task -> the shape of an image, the number of classes, of clients, and of
# features of the default model, and the default alpha.
_FACTS = {
  'mnist': ((28, 28), 10, 264, 128, 0.2),
  'fmnist': ((28, 28), 10, 100, 200, 0.5),
  'cifar10': ((32, 32, 3), 10, 196, 128, 0.4),
  'cifar100': ((32, 32, 3), 100, 10, 128, 0.5),
}
_NUM_TRAIN = 400


def _arrays(name):
  shape, num_classes, *_ = _FACTS[name]
  rng = np.random.default_rng(0)
  arrays = {}
  for part, size in (('train', _NUM_TRAIN), ('test', 100)):
    arrays[f'x_{part}'] = rng.integers(0, 256, (size, *shape), np.uint8)
    arrays[f'y_{part}'] = (np.arange(size) % num_classes).astype(np.uint8)
  return arrays


def _write(folder, name, arrays):
  if name == 'fmnist':
    path = folder / 'fashion-mnist'
    idx_file.write_folder(path, arrays)
  else:
    path = folder / f'{name}.npz'
    np.savez(path, **arrays)
  return path


@pytest.fixture(name='data_dir')
def _data_dir(home, tmp_path):
  del home
  return tmp_path


def _positions(task):
  return [np.concatenate(split) for split in task.splits]


@pytest.mark.parametrize('name', _FACTS)
def test_by_default(name, data_dir):
  shape, num_classes, num_clients, num_features, alpha = _FACTS[name]
  arrays = _arrays(name)
  _write(data_dir, name, arrays)
  task = tasks.build_task(name, data_dir=str(data_dir), min_samples=1)
  assert (task.name, task.num_clients) == (name, num_clients)
  assert task.num_classes == num_classes
  assert tasks.get_data_set(name).dirichlet_alpha == alpha
  x, y = task.data
  assert x.shape == (500, *shape, 1)[: 1 + 3]
  pixels = np.concatenate([arrays['x_train'], arrays['x_test']])
  np.testing.assert_allclose(x.reshape(pixels.shape), pixels / 255, rtol=1e-6)
  assert y.tolist() == [*arrays['y_train'], *arrays['y_test']]
  assert sorted(np.concatenate(_positions(task))) == list(range(500))
  outputs = task.model_fn()(x[:2])
  assert outputs['logits'].shape == (2, num_classes)
  assert outputs['embedding'].shape == (2, num_features)
  assert task.model_fn() is not task.model_fn()


def test_the_servers_test_set_is_the_test_file(data_dir):
  arrays = _arrays('mnist')
  _write(data_dir, 'mnist', arrays)
  task = tasks.build_task(
    'mnist', data_dir=data_dir, num_clients=5, partition='equal', split='server'
  )
  np.testing.assert_array_equal(task.server.test, np.arange(400, 500))
  assert task.global_test.y.tolist() == arrays['y_test'].tolist()
  assert len(task.validation.y) == 40
  dealt = np.concatenate(_positions(task))
  assert sorted([*dealt, *task.server.validation]) == list(range(400))


def test_a_share_of_the_data_leaves_the_test_file_whole(data_dir):
  _write(data_dir, 'mnist', _arrays('mnist'))
  build = functools.partial(
    tasks.build_task,
    'mnist',
    data_dir=data_dir,
    num_clients=5,
    partition='equal',
    data_fraction=0.25,
  )
  task = build(split='server', validation_fraction=0.0)
  np.testing.assert_array_equal(task.server.test, np.arange(400, 500))
  assert np.concatenate(_positions(task)).max() < 400
  assert [task.num_train(i) for i in range(5)] == [20] * 5
  assert task.validation.x.shape == (0, 28, 28, 1)
  # Of 500, as the files are pooled: 25 a client, of whose 20 others 2 validate.
  sizes = [[len(part) for part in split] for split in build().splits]
  assert sizes == [[18, 2, 5]] * 5


@pytest.mark.parametrize('name', _FACTS)
def test_a_missing_and_a_damaged_file(name, data_dir):
  file_name = tasks.get_data_set(name).files[0]
  message = rf"'{file_name}' must .* in '{data_dir}'.*\(no such host\)\.$"
  with pytest.raises(tasks.DataNotFoundError, match=message):
    tasks.build_task(name, data_dir=data_dir)
  path = _write(data_dir, name, _arrays(name))
  if path.is_file():
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(tasks.DataDamagedError, match=f"^The data file '{path}"):
      tasks.build_task(name, data_dir=data_dir)


def test_a_folder_with_a_missing_a_damaged_or_another_file(data_dir):
  folder = _write(data_dir, 'fmnist', _arrays('fmnist'))
  for name in idx_file.FILE_NAMES.values():
    path = folder / name
    whole = path.read_bytes()
    for content, message in [
      (None, r'.*unreadable file \(.*No such'),
      (whole[:-20], 'a gzip-compressed idx array'),
    ]:
      path.unlink(missing_ok=True)
      if content is not None:
        path.write_bytes(content)
      with pytest.raises(
        tasks.DataDamagedError,
        match=rf"^The data file '{path}' must hold {message}",
      ):
        tasks.build_task('fmnist', data_dir=data_dir)
    path.write_bytes(whole)
  idx_file.write(folder / idx_file.FILE_NAMES['y_train'], idx_file.header((0,)))
  with pytest.raises(
    tasks.DataDamagedError,
    match=rf"^The data file '{folder}' must hold 400 integer labels in y_train",
  ):
    tasks.build_task('fmnist', data_dir=data_dir)


@pytest.mark.parametrize('name', _FACTS)
def test_downloads_what_is_not_there(name, data_dir, monkeypatch):
  arrays, origin = _arrays(name), data_dir / 'origin'
  here = _write(data_dir, name, arrays)
  expected = tasks.build_task(name, data_dir=data_dir, min_samples=1)
  shutil.move(here, origin)
  if name.startswith('cifar'):
    cifar_file.write(origin, name, arrays)
  cached = []

  def download(file, path):
    assert file.address.startswith('https://')
    assert re.fullmatch('[0-9a-f]{64}', file.sha256)
    cached.append(pathlib.Path(path).expanduser())
    content = origin / cached[-1].name if origin.is_dir() else origin
    cached[-1].parent.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.copy(content, cached[-1]))

  monkeypatch.setattr(sources, 'download', download)
  found = tasks.build_task(name, data_dir=data_dir, min_samples=1)
  np.testing.assert_array_equal(found.data.x, expected.data.x)
  np.testing.assert_array_equal(found.data.y, expected.data.y)
  # Each file has a checksum of its own.
  assert len({*cached}) == len(cached) == (4 if name == 'fmnist' else 1)


def test_keras_finds_the_downloads_too(data_dir, monkeypatch):
  """The cache has the names that Keras uses."""
  asked = []
  monkeypatch.setattr(
    sources, 'download', lambda _, path: asked.append(path) or path
  )
  for name in _FACTS:
    with pytest.raises(tasks.DataNotFoundError):
      tasks.build_task(name, data_dir=data_dir)
  assert [str(path).removeprefix('~/.keras/datasets/') for path in asked] == [
    'mnist.npz',
    'fashion-mnist/train-images-idx3-ubyte.gz',
    'fashion-mnist/train-labels-idx1-ubyte.gz',
    'fashion-mnist/t10k-images-idx3-ubyte.gz',
    'fashion-mnist/t10k-labels-idx1-ubyte.gz',
    'cifar-10-batches-py.tar.gz',
    'cifar-100-python.tar.gz',
  ]


def _needs(name):
  found = sources.find_file(tasks.get_data_set(name).files[0], None)
  return pytest.mark.skipif(
    found is None, reason=f'{sources.DATA_DIR_VARIABLE} holds no {name}'
  )


@pytest.mark.full
@pytest.mark.parametrize(
  ('name', 'counts'),
  [
    pytest.param('mnist', (6313, 7877), marks=_needs('mnist')),
    pytest.param('fmnist', (7000, 7000), marks=_needs('fmnist')),
    pytest.param('cifar10', (6000, 6000), marks=_needs('cifar10')),
    pytest.param('cifar100', (600, 600), marks=_needs('cifar100')),
  ],
)
def test_real_files(name, counts):
  shape, num_classes, num_clients, *_ = _FACTS[name]
  task = tasks.build_task(name, min_samples=10, balance_cap=True)
  size = 60000 if name.startswith('cifar') else 70000
  assert task.data.x.shape == (size, *shape, 1)[: 1 + 3]
  assert (task.data.x.min(), task.data.x.max()) == (0.0, 1.0)
  found = np.bincount(task.data.y)
  assert len(found) == num_classes
  assert (found.min(), found.max()) == counts
  assert task.num_clients == num_clients
  assert sorted(np.concatenate(_positions(task))) == list(range(size))
  assert min(map(len, _positions(task))) >= 10
