"""Small files in the formats of MNIST, Fashion-MNIST and CIFAR."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np

# Task -> the shape of an image and the number of classes.
SHAPES = {
  'mnist': ((28, 28), 10),
  'fmnist': ((28, 28), 10),
  'cifar10': ((32, 32, 3), 10),
  'cifar100': ((32, 32, 3), 100),
}
NUM_TRAIN, NUM_TEST = 400, 100
IDX_NAMES = {
  'x_train': 'train-images-idx3-ubyte.gz',
  'y_train': 'train-labels-idx1-ubyte.gz',
  'x_test': 't10k-images-idx3-ubyte.gz',
  'y_test': 't10k-labels-idx1-ubyte.gz',
}


def arrays(name):
  """Random images, and labels in turn."""
  shape, num_classes = SHAPES[name]
  rng = np.random.default_rng(0)
  found = {}
  for part, size in (('train', NUM_TRAIN), ('test', NUM_TEST)):
    found[f'x_{part}'] = rng.integers(0, 256, (size, *shape), np.uint8)
    found[f'y_{part}'] = (np.arange(size) % num_classes).astype(np.uint8)
  return found


def write(folder, name):
  """Writes what the data folder has of a task; returns its path."""
  if name == 'fmnist':
    path = folder / 'fashion-mnist'
    path.mkdir(parents=True)
    for key, file_name in IDX_NAMES.items():
      write_idx(path / file_name, arrays(name)[key])
  else:
    path = folder / f'{name}.npz'
    np.savez(path, **arrays(name))
  return path


def idx_header(shape, element_type=8):
  return struct.pack(f'>HBB{len(shape)}I', 0, element_type, len(shape), *shape)


def write_idx(path, array):
  path.write_bytes(gzip.compress(idx_header(array.shape) + array.tobytes()))


def write_cifar(path, name):
  """Writes the published archive of `cifar10` or `cifar100`."""
  if name == 'cifar10':
    folder, label = 'cifar-10-batches-py', b'labels'
    parts = {f'data_batch_{i + 1}': ('train', i, 5) for i in range(5)}
    parts['test_batch'] = ('test', 0, 1)
  else:
    folder, label = 'cifar-100-python', b'fine_labels'
    parts = {'train': ('train', 0, 1), 'test': ('test', 0, 1)}
  with tarfile.open(path, 'w:gz') as archive:
    for member, (part, index, number) in parts.items():
      x = np.array_split(arrays(name)[f'x_{part}'], number)[index]
      y = np.array_split(arrays(name)[f'y_{part}'], number)[index]
      # All red, then all green, then all blue pixels of each image.
      rows = np.moveaxis(x, 3, 1).reshape(len(x), -1)
      batch = {b'data': rows, label: y.tolist(), b'coarse_labels': [0]}
      content = pickle.dumps(batch)
      info = tarfile.TarInfo(f'{folder}/{member}')
      info.size = len(content)
      archive.addfile(info, io.BytesIO(content))
