"""Reads the archives in which CIFAR-10 and CIFAR-100 are published.

An archive is a compressed tar file of pickled dictionaries of `data`, uint8
[n, 3072], a row per image with all of its red, then green, then blue pixels,
and of lists of labels. A pickle can run code: read archives of known checksum
only.
"""

from collections.abc import Sequence
import pickle
import tarfile

import numpy as np

from tff_fair.tasks import sources


def download(
  file: sources.Download,
  folder: str,
  *,
  train: Sequence[str],
  test: str,
  labels: bytes,
) -> dict[str, np.ndarray]:
  """Reads a published archive, from Keras's cache or from the net.

  Args:
    file: The archive.
    folder: The folder in it, by which Keras names the archive, too.
    train: The members of the folder that make up the train file.
    test: The member that is the test file.
    labels: The key of the labels.

  Returns:
    The arrays `x_train`, `y_train`, `x_test` and `y_test`; images are uint8
    [n, 32, 32, 3].
  """
  path = sources.download(file, f'{sources.KERAS_CACHE}/{folder}.tar.gz')
  arrays = {}
  with tarfile.open(path) as archive:
    for part, members in (('train', train), ('test', [test])):
      batches = [_batch(archive, f'{folder}/{member}') for member in members]
      arrays[f'x_{part}'] = np.concatenate([_images(b) for b in batches])
      arrays[f'y_{part}'] = np.concatenate([b[labels] for b in batches])
  return arrays


def _batch(archive, member):
  return pickle.load(archive.extractfile(member), encoding='bytes')


def _images(batch):
  return batch[b'data'].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
