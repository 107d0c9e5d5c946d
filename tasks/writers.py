"""Reads TensorFlow Federated's database of handwriting by writer.

The SQLite file has a table `examples` (`split_name`, `client_id`,
`serialized_example_proto`) and a table `client_metadata` (`client_id`,
`split_name`, `num_examples`). The library would scan the first table once a
client, thousands of times; here one scan reads all clients.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import sqlite3

import numpy as np
import tensorflow as tf

from tff_fair.tasks import sources
from tff_fair.tasks import task

_SPLIT_NAMES = ('all_train', 'all_test')
_FEATURES = {
  'pixels': tf.io.FixedLenFeature((28, 28), tf.float32),
  'label': tf.io.FixedLenFeature((), tf.int64),
}
_ROWS_PER_BATCH = 8192


def read(
  path: os.PathLike, *, num_classes: int, num_writers: int | None = None
) -> tuple[task.Examples, list[np.ndarray]]:
  """Reads the examples of all writers, or of the first ones.

  Args:
    path: The database.
    num_classes: Number of classes.
    num_writers: Number of writers, in the order of their names; None for all.

  Returns:
    The examples with x of shape [n, 28, 28, 1], in the order of the file, and
    for each writer the sorted int64 positions of its examples.
  """
  required = 'a database of the examples of each writer'
  try:
    with contextlib.closing(_connect(path)) as connection:
      counts = _count_examples(connection)
      names = _first_names(sorted(counts), num_writers)
      if not names:
        raise sources.DataDamagedError(path, required, 'no writer in it')
      counts = np.array([counts[name] for name in names], np.int64)
      data, owners = _read_examples(connection, names, counts.sum())
  except sqlite3.Error as error:
    raise sources.DataDamagedError(
      path, required, f'an unreadable file ({error})'
    ) from None
  except tf.errors.InvalidArgumentError:
    raise sources.DataDamagedError(
      path,
      'examples of 28 x 28 float pixels and one integer label',
      'another kind of example',
    ) from None
  _check(path, data, owners, counts, num_classes)
  order = np.argsort(owners, kind='stable')
  return data, np.split(order, np.cumsum(counts)[:-1])


def _connect(path: os.PathLike) -> sqlite3.Connection:
  uri = pathlib.Path(path).resolve().as_uri()
  return sqlite3.connect(f'{uri}?mode=ro', uri=True)


def _count_examples(connection: sqlite3.Connection) -> dict[str, int]:
  rows = connection.execute(
    'SELECT client_id, SUM(num_examples) FROM client_metadata '
    'WHERE split_name IN (?, ?) GROUP BY client_id '
    'HAVING SUM(num_examples) > 0',
    _SPLIT_NAMES,
  )
  return dict(rows)


def _first_names(names: list[str], num_writers: int | None) -> list[str]:
  if num_writers is not None and num_writers > len(names):
    raise ValueError(
      f'num_clients must be at most the number of writers, {len(names)}, '
      f'found {num_writers}.'
    )
  return names[:num_writers]


def _read_examples(
  connection: sqlite3.Connection, names: list[str], num_examples: int
) -> tuple[task.Examples, np.ndarray]:
  """Returns the examples and, for each, the index of its writer.

  Stops one example after the expected number: then the file is damaged.
  """
  x = np.empty((num_examples, 28, 28, 1), np.float32)
  y = np.empty(num_examples, np.int32)
  owners = []
  for batch_owners, protos in _batches(connection, names):
    start, end = len(owners), len(owners) + len(protos)
    owners += batch_owners
    if end > num_examples:
      break
    parsed = tf.io.parse_example(protos, _FEATURES)
    x[start:end, ..., 0] = parsed['pixels'].numpy()
    y[start:end] = parsed['label'].numpy()
  return task.Examples(x, y), np.array(owners, np.int64)


def _batches(
  connection: sqlite3.Connection, names: list[str]
) -> Iterator[tuple[list[int], list[bytes]]]:
  """Yields the writers and the serialized examples, in batches."""
  index = {name: i for i, name in enumerate(names)}
  unknown = len(names)
  cursor = connection.execute(
    'SELECT client_id, serialized_example_proto FROM examples '
    'WHERE split_name IN (?, ?) AND client_id <= ?',
    (*_SPLIT_NAMES, names[-1]),
  )
  while rows := cursor.fetchmany(_ROWS_PER_BATCH):
    yield (
      [index.get(name, unknown) for name, _ in rows],
      [proto for _, proto in rows],
    )


def _check(
  path: os.PathLike,
  data: task.Examples,
  owners: np.ndarray,
  counts: np.ndarray,
  num_classes: int,
) -> None:
  """Checks the writers' numbers of examples and the labels."""
  found = np.bincount(owners, minlength=len(counts))
  if not np.array_equal(found, counts):
    raise sources.DataDamagedError(
      path,
      "each writer's examples as its table client_metadata counts them, "
      f'{counts.sum()} in all',
      f'other counts, {found.sum()} in all',
    )
  if data.y.min() < 0 or data.y.max() >= num_classes:
    raise sources.DataDamagedError(
      path,
      f'labels in 0..{num_classes - 1}',
      f'labels from {data.y.min()} to {data.y.max()}',
    )
