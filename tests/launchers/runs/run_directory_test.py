"""The files of a run: checkpoints, and the rows that belong to them."""

import asyncio
import collections
import json
import math

import numpy as np
import pandas as pd
import pytest
import tensorflow_federated as tff

from tests.launchers import nasty_names
from tff_fair import checkpoints
from tff_fair.launchers.runs import run_directory
from tff_fair.launchers.runs import run_files

_TABLES = ('metrics.csv', 'reports.csv', 'client_scores.csv')
# What may happen to a table between two starts.
_DAMAGES = {
  'half a row': lambda content: content + b'1',
  'cut': lambda content: content[: len(content) // 2],
  'doubled': lambda content: content + content,
  'garbled': lambda content: b'\xff\0' + content[::-1],
  'empty': lambda content: b'',
  'deleted': lambda content: None,
}


def _open(path, every=1, keep=3, names=(), **settings):
  return run_directory.RunDirectory(
    path,
    checkpoint_every=every,
    checkpoints_to_keep=keep,
    settings=settings,
    names=names,
  )


def _started(path, **options):
  directory = _open(path, **options)
  directory.resume(_state(0))
  return directory


def _state(value):
  return collections.OrderedDict(
    round=np.int32(value), table=[np.full([2, 3], value, np.float32)]
  )


def _assert_state(found, value):
  assert list(found) == ['round', 'table']
  assert found['round'] == value
  np.testing.assert_array_equal(found['table'][0], np.full([2, 3], value))


class TestCheckpoints:
  def test_newest_is_loaded_and_old_ones_go(self, tmp_path):
    directory = _open(tmp_path, keep=2)
    state, start = directory.resume(_state(0))
    assert start == 0
    _assert_state(state, 0)
    for version in (5, 10, 15):
      directory.save_checkpoint(_state(version), version)
    (tmp_path / 'checkpoints/round_20.safetensors.tmp').touch()
    state, start = directory.resume(_state(0))
    assert start == 15
    _assert_state(state, 15)
    left = {p.name for p in (tmp_path / 'checkpoints').iterdir()}
    assert left == {'round_10.safetensors', 'round_15.safetensors'}

  @pytest.mark.parametrize(
    'rounds, kept',
    [
      ((5, 10, 12), (5, 10, 12)),
      # Interrupted after the rounds 12 and 13, and over after 22.
      ((5, 10, 12, 13), (5, 10, 13)),
      ((5, 10, 12, 13, 15), (5, 10, 15)),
      ((5, 10, 12, 13, 15, 20), (10, 15, 20)),
      ((5, 10, 12, 13, 15, 20, 22), (15, 20, 22)),
    ],
  )
  def test_that_of_an_interrupted_run_displaces_none(
    self, tmp_path, rounds, kept
  ):
    directory = _started(tmp_path, every=5, keep=3)
    for number in rounds:
      directory.save_checkpoint(_state(number), number)
    left = {p.name for p in (tmp_path / 'checkpoints').iterdir()}
    assert left == {f'round_{number}.safetensors' for number in kept}

  def test_a_damaged_one_is_set_aside_for_the_one_before(self, tmp_path):
    directory = _started(tmp_path)
    for version in (5, 10):
      directory.save_checkpoint(_state(version), version)
    for name in ('damaged_', 'damaged_2_'):
      data = tmp_path / 'checkpoints/round_10.safetensors'
      data.write_bytes(data.read_bytes()[:-1])
      with pytest.warns(
        UserWarning, match='round_10.* is damaged: .* the previous .* is tried'
      ):
        state, start = directory.resume(_state(0))
      assert start == 5
      _assert_state(state, 5)
      assert data.with_name(f'{name}{data.name}').is_file()
      directory.save_checkpoint(_state(10), 10)  # Its name is free again.

  def test_without_any_left_the_run_starts_over(self, tmp_path):
    _started(tmp_path).save_checkpoint(_state(5), 5)
    (tmp_path / 'checkpoints/round_5.safetensors').write_bytes(b'')
    with (
      pytest.warns(UserWarning, match='is damaged'),
      pytest.warns(UserWarning, match='starting over'),
    ):
      _, start = _open(tmp_path).resume(_state(0))
    assert start == 0

  def test_a_state_of_another_run_is_refused(self, tmp_path):
    _started(tmp_path).save_checkpoint(_state(5), 5)
    table = [np.zeros([9, 3], np.float32)]
    for settings, state, message in (
      ({'seed': '1'}, _state(0), 'seed is not set there and 1 here'),
      ({}, {'round': np.int32(0), 'table': table}, r'of shape \(9, 3\) and'),
      ({}, {**_state(0), 'round': np.int64(0)}, 'type int64, found .* int32'),
    ):
      directory = _open(tmp_path, **settings)
      with pytest.raises(checkpoints.OtherStateError, match=message):
        directory.resume(collections.OrderedDict(state))


class TestStateOfARound:
  def test_reading_it_changes_nothing(self, tmp_path):
    directory = _open(tmp_path, keep=9)
    # More than TFF keeps by default.
    for version in range(1, 9):
      directory.save_checkpoint(_state(version), version)
    for version in (2, 5, 8):
      found = run_directory.load_state(tmp_path, _state(0), version, {})
      _assert_state(found, version)
    assert len(list((tmp_path / 'checkpoints').iterdir())) == 8


class TestTables:
  def _write(self, directory, rounds):
    for number in rounds:
      directory.write_round(number, {'loss': np.float32(number)})
      reports = {'client_id': [7, 3], 'alpha': [0.7, number / 10]}
      directory.write_reports(number, pd.DataFrame(reports))
      scores = {'client_id': range(2), 'accuracy': [0.5, np.nan]}
      directory.write_client_scores(number, scores)

  def test_rows(self, tmp_path):
    directory = _started(tmp_path)
    self._write(directory, [1, 2])
    metrics = directory.read_metrics()
    assert metrics.to_dict('list') == {'round': [1, 2], 'loss': [1.0, 2.0]}
    reports = pd.read_csv(tmp_path / 'reports.csv')
    assert reports['round'].tolist() == [1, 1, 2, 2]
    assert reports['client_id'].tolist() == [3, 7, 3, 7]
    assert reports['alpha'].tolist() == [0.1, 0.7, 0.2, 0.7]
    scores = pd.read_csv(tmp_path / 'client_scores.csv')
    assert scores['round'].tolist() == [1, 1, 2, 2]
    assert scores['client_id'].tolist() == [0, 1, 0, 1]
    assert scores['accuracy'].dropna().tolist() == [0.5, 0.5]

  def test_names_are_beside_the_ids(self, tmp_path):
    names = nasty_names.NAMES
    number = len(names)
    directory = _started(tmp_path, names=names)
    last_first = pd.DataFrame({'client_id': range(number)[::-1]})
    directory.write_reports(1, last_first.assign(alpha=0.5))
    directory.write_client_scores(1, {'client_id': range(number), 'f1': 0.5})
    directory.write_clients({'client_id': range(number), 'loss': np.nan})
    for name in ('reports.csv', 'client_scores.csv', 'clients.csv'):
      found = run_files.read_whole(tmp_path / name, ['client_id'])
      *before, last = found.columns
      assert before[-2:] == ['client_id', 'client']
      assert found['client_id'].tolist() == list(range(number))
      assert found['client'].tolist() == list(names)
      assert found[last].dtype == float
    # A row that is being written is left out, also within a name.
    path = tmp_path / 'reports.csv'
    whole = path.read_text()
    for end in (1, len('ward 2",0.5'), len('Hospital\nward 2",0.5')):
      row = f'{whole.partition("ward 2")[0].splitlines()[1]}\nward 2",0.5'
      path.write_text(whole + row[:-end])
      found = run_files.read_whole(path, ['client_id'], growing=True)
      assert found['client'].tolist() == list(names)

  def test_names_that_no_file_can_hold_do_not_end_a_run(self, tmp_path):
    directory = _started(tmp_path, names=['a\ud800', 'b\0'])
    directory.write_clients({'client_id': range(2)})
    found = run_files.read_whole(tmp_path / 'clients.csv', ['client_id'])
    assert found['client'].tolist() == ['a?', 'b?']

  def test_last_reports(self, tmp_path):
    directory = _started(tmp_path)
    self._write(directory, [1, 2])
    alone = pd.DataFrame({'client_id': [5], 'alpha': [0.5]})
    directory.write_reports(3, alone)
    found = directory.read_last_reports()
    assert found['alpha'].to_dict() == {3: 0.2, 7: 0.7, 5: 0.5}
    assert found['round'].to_dict() == {3: 2, 7: 2, 5: 3}

  @pytest.mark.parametrize('damage', _DAMAGES)
  def test_after_a_resume_rows_are_those_of_the_checkpoint(
    self, tmp_path, damage
  ):
    directory = _started(tmp_path)
    self._write(directory, range(1, 11))
    directory.save_checkpoint(_state(10), 10)
    self._write(directory, [11, 12])
    whole = {name: (tmp_path / name).read_bytes() for name in _TABLES}
    for name in _TABLES:
      content = _DAMAGES[damage](whole[name])
      if content is None:
        (tmp_path / name).unlink()
      else:
        (tmp_path / name).write_bytes(content)
    directory = _open(tmp_path)
    _, start = directory.resume(_state(0))
    assert start == 10
    assert directory.read_metrics()['round'].tolist() == list(range(1, 11))
    self._write(directory, [11, 12])
    for name in _TABLES:
      assert (tmp_path / name).read_bytes() == whole[name], name

  def test_resume_from_the_start_drops_everything(self, tmp_path):
    directory = _started(tmp_path)
    self._write(directory, [1])
    directory = _started(tmp_path)
    assert directory.read_metrics().empty
    assert not (tmp_path / 'reports.csv').exists()
    assert not (tmp_path / 'client_scores.csv').exists()

  def test_metrics_are_as_tff_writes_them(self, tmp_path):
    rows = [
      {'num': np.int64(3), 'a,b': np.float32(0.1), 'is': np.bool_(True)},
      {'num': 4, 'a,b': math.nan, 'is': False},
      # The first one with scores.
      {'num': 5, 'z': 1e-9, 'a,b': 0.5, 'is': False, 'c': None},
      {'num': 6, 'a,b': -math.inf, 'is': True},
    ]
    directory = _started(tmp_path)
    manager = tff.program.CSVFileReleaseManager(
      tmp_path / 'tff.csv', key_fieldname='round'
    )
    for number, row in enumerate(rows, 1):
      directory.write_round(number, row)
      asyncio.run(manager.release(row, number))
      found = (tmp_path / 'metrics.csv').read_bytes()
      assert found == (tmp_path / 'tff.csv').read_bytes()

  def test_a_file_that_is_gone_is_no_new_one(self, tmp_path):
    directory = _started(tmp_path)
    directory.write_round(1, {'loss': 1.0})
    (tmp_path / 'metrics.csv').unlink()
    with pytest.raises(FileNotFoundError, match='metrics.csv'):
      directory.write_round(2, {'loss': 1.0})


def test_summary_writes_nan_as_null(tmp_path):
  _open(tmp_path).write_summary({'a': math.nan, 'b': {'c': 1.5, 'd': math.inf}})
  found = json.loads((tmp_path / 'summary.json').read_text())
  assert found == {'a': None, 'b': {'c': 1.5, 'd': None}}


def test_mean_accuracies_are_those_of_the_rounds(tmp_path):
  directory = _started(tmp_path, names=['a', 'b'])
  values = np.random.default_rng(0).random([4, 2])
  values[2, 1] = np.nan
  for number, accuracy in enumerate(values, 1):
    directory.write_client_scores(
      number, {'client_id': range(2), 'accuracy': accuracy}
    )
  for first, last in ((4, 4), (2, 4), (1, 2)):
    np.testing.assert_array_equal(
      directory.read_mean_accuracies(range(first, last + 1)),
      values[first - 1 : last].mean(axis=0),
    )
