import itertools

import numpy as np

from tests.tasks import refusals
from tff_fair.tasks import images
from tff_fair.tasks import sources


def _arrays(image_shape=(28, 28), num_train=6, num_test=4):
  rng = np.random.default_rng(0)
  arrays = {}
  for part, size in [('train', num_train), ('test', num_test)]:
    pixels = rng.integers(0, 256, (size, *image_shape))
    arrays[f'x_{part}'] = pixels.astype(np.uint8)
    arrays[f'y_{part}'] = rng.integers(0, 10, size).astype(np.uint8)
  return arrays


def _no_download():
  raise AssertionError('The file in the folder should have been taken.')


def _load(folder, loader=_no_download, image_shape=(28, 28)):
  return images.load(
    'file.npz',
    loader,
    data_dir=folder,
    image_shape=image_shape,
    num_classes=10,
  )


def test_takes_what_is_downloaded_if_the_file_is_not_there(tmp_path):
  arrays = _arrays((32, 32, 3))
  # Keras's labels of CIFAR-10 have a second axis.
  columns = {k: v[:, np.newaxis] for k, v in arrays.items() if k[0] == 'y'}
  (x, y), _ = _load(
    tmp_path, lambda: {**arrays, **columns}, image_shape=(32, 32, 3)
  )
  assert x.shape == (10, 32, 32, 3)
  assert y.tolist() == [*arrays['y_train'], *arrays['y_test']]


def test_says_what_is_wrong_with_a_file(tmp_path):
  path = tmp_path / 'file.npz'
  uint8, shape = np.uint8, r'\[n, 28, 28\]'
  for key, value, message in [
    ('x_test', None, 'x_train, y_train, x_test, y_test, found .*x_test'),
    ('x_train', np.zeros((6, 8, 8), uint8), f'{shape} in x_train, found uint8'),
    ('x_test', np.zeros((4, 28, 28), np.float32), 'x_test, found float32'),
    ('x_test', np.zeros((0, 28, 28), uint8), r'of shape \[0, 28, 28\]\.$'),
    ('y_train', np.zeros(5, uint8), r'6 integer labels in y_train, .* \[5\]'),
    ('y_test', np.zeros((4, 2), int), r'4 integer labels .* shape \[4, 2\]'),
    ('y_train', np.zeros(6, np.float32), '6 integer labels .* float32 of'),
    ('y_test', [0, 1, 10, 2], r'labels in 0\.\.9 in y_test, .* from 0 to 10'),
    ('y_test', [0, 1, -1, 2], r'labels in 0\.\.9 in y_test, .* from -1 to 2'),
    ('y_test', [0, 1, 2, None], 'npz archive .* a file of another format'),
  ]:
    arrays = {**_arrays(), key: value}
    if value is None:
      del arrays[key]
    np.savez(path, **arrays)
    _check_damaged(path, message)


def _check_damaged(path, message):
  message = rf"^The data file '{path}' .*{message}"
  row = {'folder': path.parent}, sources.DataDamagedError, message
  refusals.check(_load, [row])


def _truncated(content):
  return content[:-500]


def _flipped(content):
  middle = bytes(255 - byte for byte in content[1000:1010])
  return content[:1000] + middle + content[1010:]


def test_refuses_a_damaged_file(tmp_path):
  path = tmp_path / 'file.npz'
  message = 'must hold an npz .*, found .+\\.$'
  for save, damage in itertools.product(
    (np.savez, np.savez_compressed), (_truncated, _flipped)
  ):
    save(path, **_arrays())
    path.write_bytes(damage(path.read_bytes()))
    _check_damaged(path, message)
  for content in (b'', b'<html>not found</html>'):
    path.write_bytes(content)
    _check_damaged(path, message)
  with path.open('wb') as file:
    np.save(file, np.zeros(3))
  _check_damaged(path, message)
