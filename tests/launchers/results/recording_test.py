"""Rows of finished runs, from directories with made-up numbers."""

import json

import numpy as np
import pytest

from tests.launchers import fake_run
from tests.launchers import tiny_table
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.results import recording
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)


def _finish(run, accuracy, seconds=0.5):
  """Makes the directory of a run."""
  fake_run.write(run.output_dir, accuracy)
  (run.output_dir / settings_lib.FLAGS_FILE).write_text(run.flags_text)
  path = run.output_dir / 'summary.json'
  summary = json.loads(path.read_text()) if path.exists() else {}
  summary.update(
    version='0.1.0+abc',
    final={'client_accuracy_max': max(accuracy)},
    median_seconds_per_round=seconds,
  )
  path.write_text(json.dumps(summary))


def _planner(tmp_path):
  return tiny_table.planner(
    num_seeds=2, output_dir=tmp_path / 'out', data_dir=str(tmp_path)
  )


def _recorder(tmp_path, planner):
  rows = planner.rows(['digits'])
  return recording.Recorder(tmp_path / 'results', 'tiny', rows, 1.0)


def test_finished_runs_are_recorded_once(tmp_path):
  planner = _planner(tmp_path)
  recorder = _recorder(tmp_path, planner)
  assert recorder.record() == (0, 0, 0)
  _finish(planner.run('digits', 'cffl', 1), [0.2, 0.4, 0.5])
  # The CF coefficient needs the reference, too.
  assert recorder.record() == (1, 0, 0)
  alone = planner.run('digits', 'cffl', 1, 'standalone')
  _finish(alone, [0.1, 0.2, 0.6], seconds=None)
  assert recorder.record() == (2, 0, 0)
  assert recorder.record() == (0, 0, 0)
  assert _recorder(tmp_path, planner).record() == (0, 0, 3)
  frame = records.read(tmp_path / 'results')
  cf, of_alone, best = frame.to_dict('records')
  assert (cf['metric'], cf['method'], cf['seed']) == ('cf', 'cffl', '1')
  correlation = np.corrcoef([0.1, 0.2, 0.6], [0.2, 0.4, 0.5])[0, 1]
  assert cf['value'] == pytest.approx(100 * correlation)
  assert cf['version'] == '0.1.0+abc'
  assert cf['seconds'] == 10  # 20 rounds.
  first, second = cf['command'].split(' && ')
  seeds = '--model_seed=1 --client_seed=1 --data_seed=1'
  start = 'train --preset=cffl_digits --algorithm='
  assert first.endswith(f'{start}standalone {seeds}')
  assert second.endswith(f'{start}cffl --upload_rate=0.5 {seeds}')
  assert best['value'] == 50 and best['command'] == second
  assert np.isnan(of_alone['seconds'])
  # Of what the number depends on.
  assert len({cf['settings'], of_alone['settings'], best['settings']}) == 3


def test_the_hash_is_of_all_settings_but_seeds_and_folders(tmp_path):
  def hashed(seed, folder, **choices):
    planner = tiny_table.planner(
      num_seeds=2, output_dir=tmp_path / folder, **choices
    )
    return recording.settings_hash([planner.run('digits', 'cffl', seed)])

  same = {hashed(0, 'a'), hashed(1, 'a'), hashed(1, 'b', data_dir='c')}
  assert len(same) == 1 and len(same.pop()) == 12
  assert hashed(0, 'a') != hashed(0, 'a', rounds=3)
