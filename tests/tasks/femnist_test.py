"""The task 'femnist' and its reader, on a small database that a test writes."""

import hashlib
import lzma
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tests.tasks import emnist_file
from tff_fair import tasks
from tff_fair.tasks import sources
from tff_fair.tasks.data_sets import femnist

_GET_FILE = tf.keras.utils.get_file


@pytest.fixture(name='data_dir')
def _data_dir(home, tmp_path):
  del home
  emnist_file.write(tmp_path / 'emnist_all.sqlite')
  return tmp_path


def _contents(task, client_id):
  """Pixels and label of each example of a client."""
  return {
    (x.tobytes(), int(y))
    for part in task.examples(client_id)
    for x, y in zip(*part, strict=True)
  }


def test_a_client_is_a_writer(data_dir):
  task = tasks.build_task('femnist', data_dir=data_dir)
  assert (task.name, task.num_clients, task.num_classes) == ('femnist', 4, 62)
  assert task.data.x.shape == (41, 28, 28, 1)
  expected = {writer: set() for writer in sorted(emnist_file.WRITERS)}
  for _, writer, value, label in emnist_file.all_rows():
    x = np.full([28, 28, 1], value, np.float32)
    expected[writer].add((x.tobytes(), label))
  assert [_contents(task, i) for i in range(4)] == [*expected.values()]
  # The files are pooled and then split: 25, 1, 10 and 5 examples.
  sizes = [[len(part) for part in split] for split in task.splits]
  assert sizes == [[18, 2, 5], [1, 0, 0], [7, 1, 2], [3, 1, 1]]
  assert task.model_fn()(task.examples(0).train.x)['logits'].shape[1] == 62


def test_num_clients_takes_the_first_names(data_dir, monkeypatch):
  whole = tasks.build_task('femnist', data_dir=data_dir)
  # Reads in several batches.
  monkeypatch.setattr('tff_fair.tasks.writers._ROWS_PER_BATCH', 7)
  part = tasks.build_task('femnist', data_dir=data_dir, num_clients=2)
  assert part.num_clients == 2
  assert len(part.data.y) == 26
  for i in range(2):
    assert _contents(part, i) == _contents(whole, i)
  with pytest.raises(ValueError, match=r'^num_clients must .* 4, found 5'):
    tasks.build_task('femnist', data_dir=data_dir, num_clients=5)


def test_seed_changes_the_split_and_nothing_else(data_dir):
  first, other = (
    tasks.build_task('femnist', data_dir=data_dir, seed=seed) for seed in (1, 2)
  )
  assert not np.array_equal(first.splits[0].train, other.splits[0].train)
  for ours, theirs in zip(first.splits, other.splits, strict=True):
    assert sorted(np.concatenate(ours)) == sorted(np.concatenate(theirs))


def test_the_data_agree_with_the_librarys_own_loader(data_dir):
  task = tasks.build_task('femnist', data_dir=data_dir, test_fraction=0.0)
  theirs = tff.simulation.datasets.load_and_parse_sql_client_data(
    str(data_dir / 'emnist_all.sqlite'),
    {
      'pixels': tf.TensorSpec((28, 28), tf.float32),
      'label': tf.TensorSpec((), tf.int32),
    },
    'all_train',
  )
  elements = list(theirs.create_tf_dataset_for_client('f0').as_numpy_iterator())
  assert len(elements) == 20
  assert {
    (element['pixels'].tobytes(), int(element['label'])) for element in elements
  } <= _contents(task, 0)


@pytest.fixture(name='origin')
def _origin(tmp_path, monkeypatch):
  """The published file."""
  emnist_file.write(tmp_path / 'whole.sqlite')
  packed = lzma.compress(
    (tmp_path / 'whole.sqlite').read_bytes(), lzma.FORMAT_ALONE
  )
  (tmp_path / 'origin').write_bytes(packed)
  file = sources.Download(
    (tmp_path / 'origin').as_uri(), hashlib.sha256(packed).hexdigest()
  )
  assert femnist._ARCHIVE.address.startswith('https://')
  monkeypatch.setattr(femnist, '_ARCHIVE', file)
  monkeypatch.setattr(tf.keras.utils, 'get_file', _GET_FILE)
  return tmp_path / 'origin'


def test_downloads_into_the_cache(home, origin):
  assert tasks.build_task('femnist').num_clients == 4
  assert [path.name for path in (home / '.tff').iterdir()] == [
    'emnist_all.sqlite'
  ]
  origin.unlink()
  assert tasks.build_task('femnist').num_clients == 4


def test_an_interrupted_download_leaves_nothing(home, origin, monkeypatch):
  def copy_a_part(source, target):
    target.write(source.read(100))
    raise KeyboardInterrupt

  with monkeypatch.context() as patched:
    patched.setattr(shutil, 'copyfileobj', copy_a_part)
    with pytest.raises(KeyboardInterrupt):
      tasks.build_task('femnist')
  assert not list((home / '.tff').iterdir())
  # TFF's own loader would take this for the whole.
  monkeypatch.setattr(sources, 'download', lambda *_: origin)
  origin.write_bytes(origin.read_bytes()[:-9])
  with pytest.raises(tasks.DataNotFoundError, match='ended before'):
    tasks.build_task('femnist')
  assert not list((home / '.tff').iterdir())


_ROW = ('all_train', 'f0', 0.5, 3)


def test_says_what_is_wrong_with_a_file(home):
  home.mkdir()
  path = home / 'emnist_all.sqlite'
  for rows, metadata, found in [
    ([(*_ROW[:3], 62)], None, r'0\.\.61, found labels from 62 to 62'),
    ([(*_ROW, (8, 8))], None, '28 x 28 float pixels .* another'),
    ([_ROW] * 3, [('f0', 'all_train', 4)], '4 in all, found other counts, 3'),
    ([_ROW] * 3, [('f0', 'all_train', 2)], '2 in all, found other counts, 3'),
    ([_ROW, ('all_train', 'f', 0.5, 3)], [('f0', 'all_train', 2)], 'counts, 2'),
    ([], [], 'found no writer in it'),
    ([], [('f0', 'all_train', 0)], 'found no writer in it'),
  ]:
    path.unlink(missing_ok=True)
    emnist_file.write(path, rows, metadata)
    refusals.check(
      tasks.build_task,
      [({}, tasks.DataDamagedError, rf"^The data file '{path}' .*{found}")],
      name='femnist',
      data_dir=home,
    )
