"""Handwritten characters, one client for each writer.

TensorFlow Federated's extended MNIST by writer (LEAF, section 3): 62 classes,
28 x 28 pixels, 1.0 for the background. A writer's examples of the train and of
the test file are pooled and then split by the rule of `tff_fair.splits`. Inputs
are float32 [n, 28, 28, 1].
"""

import functools
import lzma
import os
import pathlib
import shutil
import tempfile

from tff_fair import splits
from tff_fair.tasks import model_builders
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task

_NUM_CLASSES = 62
_FILE_NAME = 'emnist_all.sqlite'
# TFF publishes no checksum. This one was measured by others, whose file has the
# 3,400 writers and 671,585 + 77,483 examples of TFF's documentation.
_ARCHIVE = sources.Download(
  'https://storage.googleapis.com/tff-datasets-public/emnist_all.sqlite.lzma',
  'c3aaf91b4cf4e69d53d81627ad119eccdc878ff906f68e66063ff10f67faad48',
)


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task."""
  # Takes seconds to import.
  from tff_fair.tasks import writers

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
      model_builders.get(options.model), data.x.shape[1:], _NUM_CLASSES
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
  # TFF's own loader checks no checksum, and takes what an interrupted download
  # leaves in the cache for the whole.
  with tempfile.TemporaryDirectory(
    prefix='.download-', dir=path.parent
  ) as folder:
    packed = sources.download(_ARCHIVE, pathlib.Path(folder) / 'packed.lzma')
    unpacked = pathlib.Path(folder) / path.name
    with lzma.open(packed) as source, open(unpacked, 'wb') as target:
      shutil.copyfileobj(source, target)
    os.replace(unpacked, path)


DATA_SET = rules.DataSet(
  name='femnist',
  build=build,
  files=(_FILE_NAME,),
  partition='writer',
  partitions=('writer',),
  model='cnn_femnist',
  clients='a writer',
)
