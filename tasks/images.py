"""Reads data sets of images, a train and a test file.

A data set is the arrays `x_train`, `y_train`, `x_test` and `y_test` of unsigned
bytes, as an `.npz` archive (like Keras's `mnist.npz`) or as a folder of idx
files (like Keras's `fashion-mnist`). Both formats have checksums of their own,
so a file that was cut or changed by accident is refused, whoever has made it.
"""

from collections.abc import Callable
import os
from typing import Any

import numpy as np

from tff_fair.tasks import array_file
from tff_fair.tasks import idx
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import pooled
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task

_KEYS = ('x_train', 'y_train', 'x_test', 'y_test')
_Arrays = dict[str, np.ndarray]


def data_set(
  name: str,
  *,
  file_name: str,
  download: Callable[[], _Arrays],
  image_shape: tuple[int, ...],
  num_classes: int,
  **defaults: Any,
) -> rules.DataSet:
  """Describes a data set of images.

  Args:
    name: Name of the task.
    file_name: Name of the archive, or of the folder of idx files, in the data
      folder.
    download: Gives the arrays if there is no such file, from Keras's cache or
      from the net.
    image_shape: Shape of one image in the file, without a batch axis.
    num_classes: Number of classes.
    **defaults: The defaults, attributes of `DataSet`.

  Returns:
    The facts, whose `build` returns the task.
  """

  def build(options: options_lib.TaskOptions) -> task.Task:
    data, test_start = load(
      file_name,
      download,
      data_dir=options.data_dir,
      image_shape=image_shape,
      num_classes=num_classes,
    )
    return pooled.build(
      name,
      data=data,
      num_classes=num_classes,
      options=options,
      test_start=test_start,
    )

  return rules.DataSet(
    name=name,
    build=build,
    files=(file_name,),
    has_test_file=True,
    **defaults,
  )


def load(
  file_name: str,
  download: Callable[[], _Arrays],
  *,
  data_dir: str | os.PathLike | None,
  image_shape: tuple[int, ...],
  num_classes: int,
) -> tuple[task.Examples, int]:
  """Loads a data set from the data folder, or downloads it.

  Returns:
    The examples of the train file, then those of the test file, with pixels in
    [0, 1], and the position at which those of the test file begin; images
    without a channel axis get one.
  """
  path = sources.find_file(file_name, data_dir)
  if path is not None:
    arrays = idx.read_folder(path) if path.is_dir() else read_archive(path)
  else:
    arrays = sources.fetch(
      file_name,
      download,
      data_dir=data_dir,
      cache_dir=sources.KERAS_CACHE,
    )
  for part in ('train', 'test'):
    _check_part(arrays, part, path or file_name, image_shape, num_classes)
  return _pool(arrays, image_shape), len(arrays['x_train'])


def read_archive(path: str | os.PathLike) -> _Arrays:
  """Reads an `.npz` archive.

  Returns:
    The arrays `x_train`, `y_train`, `x_test` and `y_test`.
  """
  return array_file.read_arrays(path, _KEYS)


def _check_part(
  arrays: _Arrays,
  part: str,
  path: str | os.PathLike,
  image_shape: tuple[int, ...],
  num_classes: int,
) -> None:
  """Checks the images and labels of the train or of the test file."""
  x, y = arrays[f'x_{part}'], arrays[f'y_{part}']
  if x.dtype != np.uint8 or x.shape[1:] != image_shape or not len(x):
    shape = ', '.join(map(str, ('n', *image_shape)))
    raise sources.DataDamagedError(
      path,
      f'uint8 images of shape [{shape}] in x_{part}',
      f'{x.dtype} of shape {list(x.shape)}',
    )
  # Keras gives the labels of CIFAR-10 a second axis of size 1, and so do files
  # that were made from what it gives.
  if y.dtype.kind not in 'iu' or y.shape not in ((len(x),), (len(x), 1)):
    raise sources.DataDamagedError(
      path,
      f'{len(x)} integer labels in y_{part}',
      f'{y.dtype} of shape {list(y.shape)}',
    )
  if y.min() < 0 or y.max() >= num_classes:
    raise sources.DataDamagedError(
      path,
      f'labels in 0..{num_classes - 1} in y_{part}',
      f'labels from {y.min()} to {y.max()}',
    )


def _pool(arrays: _Arrays, image_shape: tuple[int, ...]) -> task.Examples:
  num_train = len(arrays['x_train'])
  x = np.empty((num_train + len(arrays['x_test']), *image_shape), np.float32)
  # In place, because in float32 a data set is four times as large as its file.
  np.divide(arrays['x_train'], 255, out=x[:num_train], dtype=np.float32)
  np.divide(arrays['x_test'], 255, out=x[num_train:], dtype=np.float32)
  y = np.concatenate([arrays['y_train'].ravel(), arrays['y_test'].ravel()])
  if len(image_shape) == 2:
    x = x[..., np.newaxis]
  return task.Examples(x, y.astype(np.int32))
