"""A small database in the format of TFF's EMNIST by writer."""

import sqlite3

import numpy as np
import tensorflow as tf

# Examples of each writer in the train and in the test file; written in an
# order that is not that of the names.
WRITERS = {'f2': (7, 3), 'f0': (20, 5), 'f1': (1, 0), 'f3': (4, 1)}


def proto(value, label, shape=(28, 28)):
  pixels = np.full(shape, value, np.float32)
  example = tf.train.Example()
  feature = example.features.feature
  feature['pixels'].float_list.value.extend(pixels.ravel())
  feature['label'].int64_list.value.append(label)
  return example.SerializeToString()


def all_rows():
  """Yields (split, writer, pixel value, label); the value names the example."""
  value = 0
  for split, which in [('all_test', 1), ('all_train', 0)]:
    for writer, counts in WRITERS.items():
      for _ in range(counts[which]):
        yield split, writer, value / 1024, value % 62
        value += 1


def write(path, rows=None, metadata=None):
  """Writes a database; by default also with a split that is not to be read."""
  rows = list(all_rows()) if rows is None else rows
  if metadata is None:
    pairs = [(writer, split) for split, writer, *_ in rows]
    metadata = [(*pair, pairs.count(pair)) for pair in dict.fromkeys(pairs)]
  with sqlite3.connect(path) as connection:
    connection.execute(
      'CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT '
      'NULL, serialized_example_proto BLOB NOT NULL)'
    )
    connection.execute(
      'CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT'
      ' NOT NULL, num_examples INTEGER NOT NULL)'
    )
    other = ('digits_only_train', 'f0', proto(0.5, 3))
    connection.executemany(
      'INSERT INTO examples VALUES (?, ?, ?)',
      [other, *((s, w, proto(*example)) for s, w, *example in rows)],
    )
    connection.executemany(
      'INSERT INTO client_metadata VALUES (?, ?, ?)',
      [('f0', 'digits_only_train', 1), *metadata],
    )
  connection.close()
