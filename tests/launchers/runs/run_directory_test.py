import collections
import gc
import json
import math

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from launchers.runs import run_directory


def _open(path, keep=3):
  return run_directory.RunDirectory(path, checkpoints_to_keep=keep)


def _started(path):
  directory = _open(path)
  directory.start_after(0)
  return directory


def _state(value):
  return collections.OrderedDict(
    round=np.int32(value), table=[np.full([2, 3], value, np.float32)]
  )


def _assert_state(found, value):
  assert list(found) == ['round', 'table']
  assert found['round'] == value
  np.testing.assert_array_equal(found['table'][0], np.full([2, 3], value))


def _variables():
  """The ids of all variables that are not freed, of whichever test."""
  return {id(o) for o in gc.get_objects() if isinstance(o, tf.Variable)}


class TestCheckpoints:
  def test_newest_is_loaded_and_old_ones_go(self, tmp_path):
    directory = _open(tmp_path, keep=2)
    state, start = directory.load_checkpoint(_state(0))
    assert start == 0
    _assert_state(state, 0)
    for version in (5, 10, 15):
      directory.save_checkpoint(_state(version), version)
    state, start = directory.load_checkpoint(_state(0))
    assert start == 15
    _assert_state(state, 15)
    left = {p.name for p in (tmp_path / 'checkpoints').iterdir()}
    assert left == {'round_10', 'round_15'}

  def test_saving_leaves_no_copy_behind(self, tmp_path):
    gc.collect()
    before = _variables()
    gc.disable()  # It must not depend on when that happens to run.
    try:
      _open(tmp_path).save_checkpoint(_state(5), 5)
      assert _variables() <= before
    finally:
      gc.enable()

  @pytest.mark.parametrize('damage', ['truncate', 'flip', 'remove'])
  def test_a_damaged_one_is_set_aside_for_the_one_before(
    self, tmp_path, damage
  ):
    directory = _open(tmp_path)
    for version in (5, 10):
      directory.save_checkpoint(_state(version), version)
    data = next((tmp_path / 'checkpoints/round_10/variables').glob('*data*'))
    content = data.read_bytes()
    if damage == 'remove':
      data.unlink()
    elif damage == 'truncate':
      data.write_bytes(content[: len(content) // 2])
    else:
      data.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.warns(UserWarning, match='round 10 cannot be read .*is tried'):
      state, start = directory.load_checkpoint(_state(0))
    assert start == 5
    _assert_state(state, 5)
    assert (tmp_path / 'checkpoints/damaged_round_10').is_dir()
    directory.save_checkpoint(_state(10), 10)  # Its name is free again.

  def test_a_state_of_another_shape_is_damaged(self, tmp_path):
    directory = _open(tmp_path)
    directory.save_checkpoint(_state(5), 5)
    other = collections.OrderedDict(
      round=np.int32(0), table=[np.zeros([9, 3], np.float32)]
    )
    with (
      pytest.warns(UserWarning, match=r'must have shape \(9, 3\), found'),
      pytest.warns(UserWarning, match='starting over'),
    ):
      state, start = directory.load_checkpoint(other)
    assert start == 0 and state is other


class TestStateOfARound:
  def test_reading_it_changes_nothing(self, tmp_path):
    directory = _open(tmp_path, keep=9)
    # More than TFF keeps by default.
    for version in range(1, 9):
      directory.save_checkpoint(_state(version), version)
    for version in (2, 5, 8):
      found = run_directory.load_state(tmp_path, _state(0), version)
      _assert_state(found, version)
    _, start = directory.load_checkpoint(_state(0))
    assert start == 8
    assert len(list((tmp_path / 'checkpoints').iterdir())) == 8

  def test_that_is_not_there(self, tmp_path):
    for number, found in ((0, '.*'), (2, 'those of the rounds 5, 15')):
      path = tmp_path / str(number)
      directory = _open(path)
      for version in (5, 15)[:number]:
        directory.save_checkpoint(_state(version), version)
      expected = rf'{path} must hold a checkpoint of round 10, found {found}'
      with pytest.raises(FileNotFoundError, match=rf'^{expected}\.$'):
        run_directory.load_state(path, _state(0), 10)


class TestTables:
  def _write(self, directory, rounds):
    for number in rounds:
      directory.write_round(number, {'loss': np.float32(number)}, 0.1)
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

  def test_last_reports(self, tmp_path):
    directory = _started(tmp_path)
    self._write(directory, [1, 2])
    alone = pd.DataFrame({'client_id': [5], 'alpha': [0.5]})
    directory.write_reports(3, alone)
    found = directory.read_last_reports()
    assert found['alpha'].to_dict() == {3: 0.2, 7: 0.7, 5: 0.5}
    assert found['round'].to_dict() == {3: 2, 7: 2, 5: 3}

  def test_resume_drops_later_and_half_written_rows(self, tmp_path):
    directory = _started(tmp_path)
    self._write(directory, range(1, 13))
    names = ('metrics.csv', 'reports.csv', 'client_scores.csv')
    whole = {name: (tmp_path / name).read_text() for name in names}
    for name in names:
      with open(tmp_path / name, 'a') as file:
        file.write('1')  # Of a row of round 13, say.
    directory = _open(tmp_path)
    directory.start_after(10)
    assert directory.read_metrics()['round'].tolist() == list(range(1, 11))
    self._write(directory, [11, 12])
    for name in names:
      assert (tmp_path / name).read_text() == whole[name], name

  def test_resume_from_the_start_drops_everything(self, tmp_path):
    directory = _started(tmp_path)
    self._write(directory, [1])
    directory = _started(tmp_path)
    assert directory.read_metrics().empty
    assert not (tmp_path / 'reports.csv').exists()
    assert not (tmp_path / 'client_scores.csv').exists()


def test_summary_writes_nan_as_null(tmp_path):
  _open(tmp_path).write_summary({'a': math.nan, 'b': {'c': 1.5, 'd': math.inf}})
  found = json.loads((tmp_path / 'summary.json').read_text())
  assert found == {'a': None, 'b': {'c': 1.5, 'd': None}}
