"""Reads the idx files in which MNIST and its successors are published.

A data set is a folder of four files, images and labels of a train and of a test
file. A file is a gzip-compressed array: two zero bytes, one for the type of the
elements (8 for unsigned bytes), one for the number of axes, the size of each
axis as a big-endian integer of four bytes, then the elements in C order.
"""

import gzip
import os
import pathlib

import numpy as np

from tff_fair import files
from tff_fair.tasks import sources

_FILE_NAMES = {
  'x_train': 'train-images-idx3-ubyte.gz',
  'y_train': 'train-labels-idx1-ubyte.gz',
  'x_test': 't10k-images-idx3-ubyte.gz',
  'y_test': 't10k-labels-idx1-ubyte.gz',
}
_UNSIGNED_BYTES = b'\x00\x00\x08'


def read_folder(folder: str | os.PathLike) -> dict[str, np.ndarray]:
  """Reads the four files of a data set.

  Returns:
    The arrays `x_train`, `y_train`, `x_test` and `y_test`, as returned by
    `read`.
  """
  folder = pathlib.Path(folder)
  return {key: read(folder / name) for key, name in _FILE_NAMES.items()}


def read(path: str | os.PathLike) -> np.ndarray:
  """Reads one file.

  Returns:
    uint8 of the shape stated in the file, read-only.
  """
  required = 'a gzip-compressed idx array of unsigned bytes'
  with sources.reading(path, required), gzip.open(path) as file:
    content = file.read()
  other = sources.DataDamagedError(path, required, 'a file of another format')
  with files.reading(path, lambda _: other):
    return _parse(content)


def _parse(content: bytes) -> np.ndarray:
  """Returns the array; raises ValueError if `content` does not hold one."""
  if not content.startswith(_UNSIGNED_BYTES):
    raise ValueError
  (num_axes,) = np.frombuffer(content, np.uint8, 1, offset=3)
  shape = np.frombuffer(content, '>u4', num_axes, offset=4)
  elements = np.frombuffer(content, np.uint8, offset=4 + shape.nbytes)
  return elements.reshape(shape.tolist())
