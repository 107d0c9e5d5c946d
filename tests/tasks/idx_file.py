"""Small files in the format of Fashion-MNIST."""

import gzip
import struct

import numpy as np

FILE_NAMES = {
  'x_train': 'train-images-idx3-ubyte.gz',
  'y_train': 'train-labels-idx1-ubyte.gz',
  'x_test': 't10k-images-idx3-ubyte.gz',
  'y_test': 't10k-labels-idx1-ubyte.gz',
}


def header(shape, element_type=8):
  return struct.pack(f'>HBB{len(shape)}I', 0, element_type, len(shape), *shape)


def write(path, content):
  with gzip.open(path, 'wb') as file:
    file.write(content)


def write_folder(folder, arrays):
  """Writes the four files of a data set into a new folder."""
  folder.mkdir(parents=True)
  for key, name in FILE_NAMES.items():
    array = np.asarray(arrays[key], np.uint8)
    write(folder / name, header(array.shape) + array.tobytes())
