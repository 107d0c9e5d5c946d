"""Task 'femnist': handwritten characters, one client for each writer.

TensorFlow Federated's extended MNIST by writer (LEAF, section 3): 62 classes,
28 x 28 pixels, 1.0 for the background. A writer's examples of the train and of
the test file are pooled and then split by the rule of `tasks.splits`. Inputs
are float32 [n, 28, 28, 1].
"""

import functools
import os
import pathlib
import tempfile

import tensorflow_federated as tff

from tasks import options as options_lib
from tasks import sources
from tasks import splits
from tasks import task
from tasks import writers
from tff_fair import models

_NUM_CLASSES = 62
_FILE_NAME = 'emnist_all.sqlite'


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; by default with all writers there are.

  Args:
    options: The user's choices. The data folder may hold `emnist_all.sqlite`;
      `num_clients` takes the first writers in the order of their names; the
      only partition is 'writer', and `min_samples` has no effect on it; the
      only split is 'client'.

  Returns:
    The task.

  Raises:
    DataNotFoundError: If the file is nowhere and cannot be downloaded.
    DataDamagedError: If the file does not hold what it should.
    ValueError: If another partition, another split or too many clients are
      asked for.
  """
  options.check_own_clients('femnist', 'writer', 'its writers')
  path = sources.find_file(_FILE_NAME, options.data_dir)
  if path is None:
    path = _fetch(options.data_dir)
  data, partition = writers.read(
    path, num_classes=_NUM_CLASSES, num_writers=options.num_clients
  )
  return task.Task(
    name='femnist',
    num_classes=_NUM_CLASSES,
    model_fn=functools.partial(
      getattr(models, options.model or 'cnn_femnist'),
      data.x.shape[1:],
      _NUM_CLASSES,
    ),
    data=data,
    splits=splits.split_clients(
      partition,
      seed=options.seed,
      test_fraction=options.test_fraction,
      holdout_fraction=options.holdout_fraction,
    ),
  )


def _fetch(data_dir: str | os.PathLike | None) -> pathlib.Path:
  """Returns the file in TensorFlow Federated's cache, downloading if needed."""
  cache = pathlib.Path('~/.tff').expanduser()
  path = cache / _FILE_NAME
  if not path.is_file():
    sources.fetch(
      _FILE_NAME,
      functools.partial(_download, path),
      data_dir=data_dir,
      cache_dir=cache,
    )
  return path


def _download(path: pathlib.Path) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  # A download straight into the cache, once interrupted, would leave a part of
  # the file that TensorFlow Federated takes for the whole ever after.
  with tempfile.TemporaryDirectory(dir=path.parent) as folder:
    tff.simulation.datasets.emnist.load_data(
      only_digits=False, cache_dir=folder
    )
    os.replace(pathlib.Path(folder) / path.name, path)
