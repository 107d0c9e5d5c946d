"""The task 'femnist' and its reader, on a small database that a test writes."""

import functools
import hashlib
import lzma
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tasks import emnist_file
from tests.tasks import refusals
from tff_fair import tasks
from tff_fair.tasks import sources
from tff_fair.tasks.data_sets import femnist

_GET_FILE = tf.keras.utils.get_file


@pytest.fixture(name='data_dir')
def _data_dir(home, tmp_path):
  del home
  emnist_file.write(tmp_path / 'emnist_all.sqlite')
  return tmp_path


def _positions(task):
  return [np.concatenate(split) for split in task.splits]


def test_a_client_is_a_writer(data_dir):
  task = tasks.build_task('femnist', data_dir=data_dir)
  assert (task.name, task.num_clients, task.num_classes) == ('femnist', 4, 62)
  assert task.data.x.shape == (41, 28, 28, 1)
  expected = {writer: set() for writer in sorted(emnist_file.WRITERS)}
  for _, writer, value, label in emnist_file.all_rows():
    expected[writer].add((value, label))
  for client_id, examples in enumerate(expected.values()):
    found = [
      (float(x[0, 0, 0]), int(y))
      for part in task.examples(client_id)
      for x, y in zip(*part, strict=True)
    ]
    assert len(found) == len(examples)
    assert set(found) == examples


def test_a_writers_files_are_pooled_and_then_split(data_dir):
  task = tasks.build_task('femnist', data_dir=data_dir)
  assert task.model_fn()(task.examples(0).train.x)['logits'].shape[1] == 62
  sizes = [[len(part) for part in split] for split in task.splits]
  # Of 25, 1, 10 and 5 examples.
  assert sizes == [[18, 2, 5], [1, 0, 0], [7, 1, 2], [3, 1, 1]]


def test_num_clients_takes_the_first_names(data_dir, monkeypatch):
  whole = tasks.build_task('femnist', data_dir=data_dir)
  # Reads in several batches.
  monkeypatch.setattr('tff_fair.tasks.writers._ROWS_PER_BATCH', 7)
  part = tasks.build_task('femnist', data_dir=data_dir, num_clients=2)
  assert part.num_clients == 2
  assert len(part.data.y) == 26
  for client_id in range(2):
    for ours, theirs in zip(
      part.examples(client_id), whole.examples(client_id), strict=True
    ):
      np.testing.assert_array_equal(ours.x, theirs.x)
      np.testing.assert_array_equal(ours.y, theirs.y)


def test_seed_changes_the_split_and_nothing_else(data_dir):
  first, same, other = (
    tasks.build_task('femnist', data_dir=data_dir, seed=seed)
    for seed in (1, 1, 2)
  )
  assert np.array_equal(first.splits[0].train, same.splits[0].train)
  assert not np.array_equal(first.splits[0].train, other.splits[0].train)
  for ours, theirs in zip(_positions(first), _positions(other), strict=True):
    assert sorted(ours) == sorted(theirs)


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
  dataset = theirs.create_tf_dataset_for_client('f0')
  ours = {
    (x.tobytes(), int(y))
    for part in task.examples(0)
    for x, y in zip(*part, strict=True)
  }
  elements = list(dataset.as_numpy_iterator())
  assert len(elements) == 20
  for element in elements:
    assert (element['pixels'].tobytes(), int(element['label'])) in ours


def test_refuses_more_clients_than_writers(data_dir):
  with pytest.raises(ValueError, match=r'^num_clients must .* 4, found 5'):
    tasks.build_task('femnist', data_dir=data_dir, num_clients=5)


def test_takes_the_file_in_the_cache(home):
  (home / '.tff').mkdir(parents=True)
  emnist_file.write(home / '.tff' / 'emnist_all.sqlite')
  assert tasks.build_task('femnist').num_clients == 4


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
  return tmp_path / 'origin'


def test_downloads_into_the_cache(home, origin, monkeypatch):
  monkeypatch.setattr(tf.keras.utils, 'get_file', _GET_FILE)
  assert tasks.build_task('femnist').num_clients == 4
  assert [path.name for path in (home / '.tff').iterdir()] == [
    'emnist_all.sqlite'
  ]
  origin.unlink()
  assert tasks.build_task('femnist').num_clients == 4


def test_an_interrupted_download_leaves_nothing(home, origin, monkeypatch):
  monkeypatch.setattr(tf.keras.utils, 'get_file', _GET_FILE)

  def copy_a_part(source, target):
    target.write(source.read(100))
    raise KeyboardInterrupt

  monkeypatch.setattr(shutil, 'copyfileobj', copy_a_part)
  with pytest.raises(KeyboardInterrupt):
    tasks.build_task('femnist')
  monkeypatch.undo()
  monkeypatch.setenv('HOME', str(home))
  assert not list((home / '.tff').iterdir())
  # TFF's own loader would take this for the whole.
  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(sources, 'download', lambda *_: origin)
    origin.write_bytes(origin.read_bytes()[:-9])
    with pytest.raises(tasks.DataNotFoundError, match='ended before'):
      tasks.build_task('femnist')
  assert not list((home / '.tff').iterdir())


def test_missing_file(home):
  message = rf"^The data file .* '{home}/\.tff', and .* \(no such host\)\.$"
  with pytest.raises(tasks.DataNotFoundError, match=message):
    tasks.build_task('femnist')


_ROW = ('all_train', 'f0', 0.5, 3)


def test_says_what_is_wrong_with_a_file(home):
  path = home / 'emnist_all.sqlite'
  home.mkdir()
  counted, none = 'client_metadata counts them, ', 'found no writer in it'
  for rows, metadata, message in [
    ([(*_ROW[:3], 62)], None, r'0\.\.61, found labels from 62 to 62'),
    ([(*_ROW, (8, 8))], None, 'examples of 28 x 28 float pixels .* another'),
    ([_ROW] * 3, [('f0', 'all_train', 4)], f'{counted}4 .* 3 in'),
    ([_ROW] * 3, [('f0', 'all_train', 2)], f'{counted}2 .* 3 in'),
    (
      [_ROW, ('all_train', 'f', 0.5, 3)],
      [('f0', 'all_train', 2)],
      f'{counted}2 in all, found other counts, 2 in',
    ),
    ([], [], none),
    ([], [('f0', 'all_train', 0)], none),
  ]:
    path.unlink(missing_ok=True)
    emnist_file.write(path, rows, metadata)
    _check_damaged(path, message)


def _check_damaged(path, message):
  refusals.check(
    functools.partial(tasks.build_task, 'femnist'),
    [
      (
        {'data_dir': path.parent},
        tasks.DataDamagedError,
        rf"^The data file '{path}' .*{message}",
      )
    ],
  )


def test_refuses_a_damaged_file(data_dir):
  path = data_dir / 'emnist_all.sqlite'
  # The last page is missing.
  truncated = path.read_bytes()[:-4096]
  for content in (truncated, b'', b'<html>not found</html>' * 500):
    path.write_bytes(content)
    _check_damaged(path, 'must hold .*, found an unreadable file')
