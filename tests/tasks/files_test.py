"""Files of data sets that are missing, damaged or downloaded."""

import pathlib
import re
import shutil

import numpy as np
import pytest

from tests import refusals
from tests.tasks import adult_file
from tests.tasks import ehr_file
from tests.tasks import emnist_file
from tests.tasks import image_files
from tff_fair import tasks
from tff_fair.tasks import images
from tff_fair.tasks import sources

# Task -> where the files of its download lie in Keras's cache, by the names
# that Keras uses.
_CACHED = {
  'mnist': ['mnist.npz'],
  'fmnist': [f'fashion-mnist/{n}' for n in image_files.IDX_NAMES.values()],
  'cifar10': ['cifar-10-batches-py.tar.gz'],
  'cifar100': ['cifar-100-python.tar.gz'],
  'adult': ['adult.data', 'adult.test'],
}


@pytest.fixture(name='data_dir')
def _data_dir(home, tmp_path):
  del home
  with adult_file.numbers_of_records():
    yield tmp_path


def _write(folder, name):
  """Writes the files of a task; returns their paths."""
  if name == 'adult':
    adult_file.write(
      folder, adult_file.lines(20, 30), adult_file.lines(10, 20, 50)
    )
    return [folder / 'adult.data', folder / 'adult.test']
  if name == 'femnist':
    path = folder / 'emnist_all.sqlite'
    emnist_file.write(path)
    return [path]
  if name == 'ehr':
    return ehr_file.write(folder, ['AK', 'AL'])
  path = image_files.write(folder, name)
  names = image_files.IDX_NAMES.values()
  return [path / file for file in names] if path.is_dir() else [path]


def _flipped(content):
  middle = len(content) // 2
  flipped = bytes(255 - byte for byte in content[middle : middle + 10])
  return content[:middle] + flipped + content[middle + 10 :]


@pytest.mark.parametrize('name', [*_CACHED, 'femnist', 'ehr'])
def test_a_missing_and_a_damaged_file(name, data_dir):
  if name != 'ehr':  # It generates its records.
    missing = tasks.get_data_set(name).files[0]
    message = rf"'{missing}' must .* in '{data_dir}'.*\(no such host\)\.$"
    with pytest.raises(tasks.DataNotFoundError, match=message):
      tasks.build_task(name, data_dir=data_dir)
  for path in _write(data_dir, name):
    whole = path.read_bytes()
    damaged = [b'', b'<html>not found</html>' * 500]
    if name != 'ehr':  # Tables without a checksum.
      damaged.append(whole[: len(whole) // 2])
      if name != 'femnist':
        damaged.append(_flipped(whole))
      if name == 'adult':  # Cut between two records.
        damaged.append(b'\n'.join(whole.split(b'\n')[:-4]))
    for content in damaged:
      path.write_bytes(content)
      refusals.check(
        tasks.build_task,
        [({}, tasks.DataDamagedError, f"^The data file '{path}' must hold .*")],
        name=name,
        data_dir=data_dir,
      )
    path.write_bytes(whole)


@pytest.mark.parametrize('name', _CACHED)
def test_downloads_what_is_not_there(name, data_dir, monkeypatch):
  here = _write(data_dir, name)
  expected = tasks.build_task(name, data_dir=data_dir, partition='equal')
  origin = data_dir / 'origin'
  origin.mkdir()
  for path in here:
    shutil.move(path, origin / path.name)
  shutil.rmtree(data_dir / 'fashion-mnist', ignore_errors=True)
  if name.startswith('cifar'):
    image_files.write_cifar(origin / _CACHED[name][0], name)
  asked, sums = [], set()

  def download(file, path):
    assert file.address.startswith('https://')
    assert re.fullmatch('[0-9a-f]{64}', file.sha256)
    asked.append(str(path).removeprefix('~/.keras/datasets/'))
    sums.add(file.sha256)
    cached = pathlib.Path(path).expanduser()
    cached.parent.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.copy(origin / cached.name, cached))

  monkeypatch.setattr(sources, 'download', download)
  found = tasks.build_task(name, data_dir=data_dir, partition='equal')
  np.testing.assert_array_equal(found.data.x, expected.data.x)
  assert found.loader.checksum == expected.loader.checksum
  assert asked == _CACHED[name] and len(sums) == len(asked)


def test_arrays_that_are_no_images(tmp_path):
  path, uint8 = tmp_path / 'file.npz', np.uint8
  legal = image_files.arrays('mnist')
  for key, value, found in [
    ('x_test', None, 'x_train, y_train, x_test, y_test'),
    ('x_train', np.zeros((6, 8, 8), uint8), r'\[n, 28, 28\] in x_train'),
    ('x_test', np.zeros((4, 28, 28), np.float32), 'x_test, found float32'),
    ('x_test', np.zeros((0, 28, 28), uint8), r'\[0, 28, 28\]'),
    ('y_train', np.zeros(5, uint8), r'400 integer labels in y_train'),
    ('y_test', np.zeros((100, 2), int), r'shape \[100, 2\]'),
    ('y_train', np.zeros(400, np.float32), 'float32'),
    ('y_test', np.full(100, 10), r'labels in 0\.\.9 in y_test'),
    ('y_test', np.full(100, -1), 'from -1'),
    ('y_test', np.array([None] * 100), 'array of Python objects'),
  ]:
    arrays = {**legal, key: value}
    if value is None:
      del arrays[key]
    np.savez(path, **arrays)
    refusals.check(
      images.load,
      [({}, tasks.DataDamagedError, rf"^The data file '{path}' .*{found}")],
      file_name=path.name,
      download=None,
      data_dir=tmp_path,
      image_shape=(28, 28),
      num_classes=10,
    )


def test_the_labels_of_keras_have_a_second_axis(tmp_path):
  arrays = image_files.arrays('cifar10')
  columns = {k: v[:, np.newaxis] for k, v in arrays.items() if k[0] == 'y'}
  (_, y), _ = images.load(
    'file.npz',
    lambda: {**arrays, **columns},
    data_dir=tmp_path,
    image_shape=(32, 32, 3),
    num_classes=10,
  )
  assert y.tolist() == [*arrays['y_train'], *arrays['y_test']]
