"""Handwritten characters, one client for each writer.

TensorFlow Federated's extended MNIST by writer (LEAF, section 3): 62 classes,
28 x 28 pixels, 1.0 for the background. A writer's examples of the train and of
the test file are pooled and then split by the rule of `tasks.splits`. Inputs
are float32 [n, 28, 28, 1].
"""

import functools
import os
import pathlib
import tempfile

from tasks import options as options_lib
from tasks import rules
from tasks import sources
from tasks import splits
from tasks import task

_NUM_CLASSES = 62
_FILE_NAME = 'emnist_all.sqlite'


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task.

  Args:
    options: Options with the defaults filled in; `num_clients` takes the first
      writers in the order of their names.

  Raises:
    DataNotFoundError: If the file is missing and cannot be downloaded.
    DataDamagedError: If the file does not hold what it should.
    ValueError: If there are fewer writers than clients.
  """
  # Take seconds to import.
  from tasks import writers
  from tff_fair import models

  path = sources.find_file(_FILE_NAME, options.data_dir)
  if path is None:
    path = _fetch(options.data_dir)
  data, partition = writers.read(
    path, num_classes=_NUM_CLASSES, num_writers=options.num_clients
  )
  return task.Task(
    name=DATA_SET.name,
    num_classes=_NUM_CLASSES,
    model_fn=functools.partial(
      getattr(models, options.model), data.x.shape[1:], _NUM_CLASSES
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
  # Takes seconds to import.
  import tensorflow_federated as tff

  path.parent.mkdir(parents=True, exist_ok=True)
  # An interrupted download straight into the cache would leave a part of the
  # file there, which TensorFlow Federated would take for the whole.
  with tempfile.TemporaryDirectory(dir=path.parent) as folder:
    tff.simulation.datasets.emnist.load_data(
      only_digits=False, cache_dir=folder
    )
    os.replace(pathlib.Path(folder) / path.name, path)


DATA_SET = rules.DataSet(
  name='femnist',
  build=build,
  files=(_FILE_NAME,),
  partition='writer',
  partitions=('writer',),
  model='cnn_femnist',
  clients='a writer',
)
