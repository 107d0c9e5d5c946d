"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, on small files."""

import functools

import numpy as np
import pytest

from tests.tasks import image_files
from tff_fair import tasks
from tff_fair.tasks import sources

# Task -> numbers of clients and of features of the default model, and alpha.
_DEFAULTS = {
  'mnist': (264, 128, 0.2),
  'fmnist': (100, 200, 0.5),
  'cifar10': (196, 128, 0.4),
  'cifar100': (10, 128, 0.5),
}


@pytest.fixture(name='data_dir')
def _data_dir(home, tmp_path):
  del home
  return tmp_path


def _positions(task):
  return [np.concatenate(split) for split in task.splits]


@pytest.mark.parametrize('name', _DEFAULTS)
def test_by_default(name, data_dir):
  shape, num_classes = image_files.SHAPES[name]
  num_clients, num_features, alpha = _DEFAULTS[name]
  arrays = image_files.arrays(name)
  image_files.write(data_dir, name)
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


def test_the_servers_test_set_is_the_test_file(data_dir):
  image_files.write(data_dir, 'mnist')
  build = functools.partial(
    tasks.build_task,
    'mnist',
    data_dir=data_dir,
    num_clients=5,
    partition='equal',
  )
  task = build(split='server')
  np.testing.assert_array_equal(task.server.test, np.arange(400, 500))
  dealt = np.concatenate(_positions(task))
  assert len(task.validation.y) == 40
  assert sorted([*dealt, *task.server.validation]) == list(range(400))
  # A share of the data leaves the test file whole.
  task = build(split='server', data_fraction=0.25, validation_fraction=0.0)
  np.testing.assert_array_equal(task.server.test, np.arange(400, 500))
  assert np.concatenate(_positions(task)).max() < 400
  assert [task.num_train(i) for i in range(5)] == [20] * 5
  assert task.validation.x.shape == (0, 28, 28, 1)
  # Of 500, as the files are pooled: 25 a client, of whose 20 others 2 validate.
  pooled = build(data_fraction=0.25)
  assert [[len(p) for p in split] for split in pooled.splits] == [
    [18, 2, 5]
  ] * 5


# Task -> the numbers of examples of the smallest and of the largest class.
_COUNTS = {
  'mnist': (6313, 7877),
  'fmnist': (7000, 7000),
  'cifar10': (6000, 6000),
  'cifar100': (600, 600),
}


@pytest.mark.full
@pytest.mark.parametrize('name', _COUNTS)
def test_real_files(name):
  if sources.find_file(tasks.get_data_set(name).files[0], None) is None:
    pytest.skip(f'{sources.DATA_DIR_VARIABLE} holds no {name}')
  shape, num_classes = image_files.SHAPES[name]
  task = tasks.build_task(name, min_samples=10, balance_cap=True)
  size = 60000 if name.startswith('cifar') else 70000
  assert task.data.x.shape == (size, *shape, 1)[: 1 + 3]
  assert (task.data.x.min(), task.data.x.max()) == (0.0, 1.0)
  found = np.bincount(task.data.y)
  assert len(found) == num_classes
  assert (found.min(), found.max()) == _COUNTS[name]
  assert sorted(np.concatenate(_positions(task))) == list(range(size))
  assert min(map(len, _positions(task))) >= 10
