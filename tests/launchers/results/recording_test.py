"""Rows of finished runs, from directories with made-up numbers."""

import json
import re
import shlex

import numpy as np
import pytest

from tests.launchers import fake_run
from tests.launchers import tiny_table
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
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
    processor='A CPU, AVX2',
    final={'client_accuracy_max': max(accuracy)},
    median_seconds_per_round=seconds,
  )
  path.write_text(json.dumps(summary))


def _change_summary(run, **values):
  path = run.output_dir / 'summary.json'
  summary = {**json.loads(path.read_text()), **values}
  kept = {name: value for name, value in summary.items() if value is not ...}
  path.write_text(json.dumps(kept))


def _main(tmp_path, *arguments):
  return tiny_table.main(
    '--table=tiny',
    '--cells=digits',
    f'--data_dir={tmp_path}',
    f'--output_dir={tmp_path}/out',
    f'--record={tmp_path}/results',
    '--only_record',
    *arguments,
  )


def _planner(tmp_path):
  return tiny_table.planner(
    num_seeds=2, output_dir=tmp_path / 'out', data_dir=str(tmp_path)
  )


def _recorder(tmp_path, planner):
  rows = planner.rows(['digits'])
  return recording.Recorder(
    tmp_path / 'results', 'tiny', rows, recording.Size()
  )


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
  assert cf['version'] == '0.1.0+abc' and cf['processor'] == 'A CPU, AVX2'
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


def test_only_record_names_what_is_missing_and_trains_nothing(tmp_path):
  planner = _planner(tmp_path)
  _finish(planner.run('digits', 'cffl', 0), [0.2, 0.4, 0.5])
  _finish(planner.run('digits', 'standalone', 0), [0.1, 0.2, 0.6])
  missing = [
    planner.run('digits', *key).output_dir
    for key in (('fed_avg', 0), ('standalone', 1), ('fed_avg', 1), ('cffl', 1))
  ]
  first, *lines = _main(tmp_path, '--seeds=2').splitlines()
  assert first.startswith('recorded: 3 numbers, 0 in place') and '; 0' in first
  assert lines == [f'not finished: {path}' for path in missing]
  assert not any(path.exists() for path in missing)
  assert _main(tmp_path).startswith('recorded: 0 numbers, 0 in place of tr')
  assert '; 3 were there\n' in _main(tmp_path)
  others = _main(tmp_path, '--seeds=2', '--rounds=7')
  assert others.count('not finished') == 6 and '0 numbers' in others


def test_what_others_have_recorded_is_left_out(tmp_path):
  planner = _planner(tmp_path)
  for name, accuracy in (('cffl', [0.2, 0.5]), ('standalone', [0.1, 0.2])):
    _finish(planner.run('digits', name, 0), accuracy)
  _main(tmp_path)
  empty = [f'--output_dir={tmp_path}/new', '--only_missing', '--seeds=2']
  first, *lines = _main(tmp_path, *empty).splitlines()
  assert first.startswith('recorded: 0 numbers') and '; 0 were' in first
  left = [' '.join(line.split('/')[-2:]) for line in lines]
  assert [re.sub('-.*? ', ' ', name) for name in left] == [
    'standalone seed_0',  # The reference of the next one.
    'fed_avg seed_0',
    'standalone seed_1',
    'fed_avg seed_1',
    'cffl seed_1',
  ]
  # Other settings are other numbers.
  others = _main(tmp_path, *empty, '--rounds=7')
  assert others.count('not finished') == 6
  of_two = ['--seeds=1', '--methods=cffl,standalone', '--noonly_record']
  assert _main(tmp_path, *empty, *of_two) == 'All numbers are recorded.\n'
  assert not (tmp_path / 'new').exists()


def test_what_is_recorded_under_other_settings_is_left(tmp_path):
  run = _planner(tmp_path).run('digits', 'standalone', 0)
  _finish(run, [0.1, 0.2])
  _main(tmp_path)
  only = ['--only_missing', '--noonly_record', '--methods=standalone']
  assert _main(tmp_path, *only) == 'All numbers are recorded.\n'
  path = tmp_path / 'results' / 'tiny.csv'
  own = recording.settings_hash([run])
  path.write_text(path.read_text().replace(own, 'another'))
  rows = tiny_table.planner(
    tiny_table.TABLE.restricted_to(['standalone']),
    data_dir=str(tmp_path),
    output_dir=tmp_path / 'out',
  ).rows(['digits'])
  left = recording.missing(tmp_path / 'results', 'tiny', rows, recording.Size())
  assert left == rows != []


@pytest.mark.parametrize(
  'name, content',
  [('summary.json', '{'), ('summary.json', '{}'), ('clients.csv', 'x')],
)
def test_a_damaged_run_is_one_sentence(tmp_path, name, content):
  planner = _planner(tmp_path)
  for method in ('standalone', 'cffl'):
    _finish(planner.run('digits', method, 0), [0.2, 0.4, 0.5])
  folder = planner.run('digits', 'cffl', 0).output_dir
  (folder / name).write_text(content)
  with pytest.raises(SystemExit) as error:
    _main(tmp_path)
  message = str(error.value)
  assert message.startswith(f'Error: {folder}') and '\n' not in message
  assert ' must hold what ' in message
  assert records.read(tmp_path / 'results').empty


def test_a_damaged_record_is_found_before_the_training(tmp_path):
  results = tmp_path / 'results'
  results.mkdir()
  (results / 'cffl_table1.csv').write_text('another table\n')
  with pytest.raises(SystemExit, match='cffl_table1.csv must have the columns'):
    _main(tmp_path, '--noonly_record')
  assert not (tmp_path / 'out').exists()


def test_another_number_is_refused_with_a_sentence(tmp_path):
  run = _planner(tmp_path).run('digits', 'cffl', 0)
  _finish(run, [0.2, 0.4, 0.5])
  _main(tmp_path)
  _change_summary(run, version='0.2.0', final={'client_accuracy_max': 0.6})
  message = (
    'the value 50.0 and 60.0 of the versions 0.1.0.abc and 0.2.0 and the'
    ' processors A CPU, AVX2 and A CPU, AVX2; remove'
  )
  with pytest.raises(SystemExit, match=message):
    _main(tmp_path)
  assert records.read(tmp_path / 'results')['value'].tolist() == [50]


def test_the_scale_is_the_share_of_the_data(tmp_path):
  planner = tiny_table.planner(
    dataset='mnist', scale=0.5, output_dir=tmp_path / 'out'
  )
  _finish(planner.run('stand_in', 'cffl', 0), [0.2, 0.4, 0.5])
  rows = planner.rows(['stand_in'])
  size = recording.Size(scale=0.5)
  recording.Recorder(tmp_path, 'tiny', rows, size).record()
  (row,) = records.read(tmp_path).to_dict('records')
  assert row['scale'] == 0.5
  assert '--data_fraction=0.5' in row['command']


def test_a_command_is_of_the_same_settings(tmp_path):
  planner = tiny_table.planner(
    rounds=3, data_dir=str(tmp_path), output_dir=tmp_path / 'out'
  )
  run = planner.run('digits', 'cffl', 0)
  arguments = shlex.split(recording.command(run).partition('train ')[2])
  settings = settings_lib.resolve(
    train_flags.parse(arguments), train_flags.FLAG_NAMES
  )
  differ = {n for n, v in run.settings.items() if settings[n] != v}
  assert differ == {'data_dir', 'output_dir'}


def test_the_hash_is_of_all_settings_but_seeds_and_folders(tmp_path):
  def hashed(seed, folder, **choices):
    planner = tiny_table.planner(
      num_seeds=2, output_dir=tmp_path / folder, **choices
    )
    return recording.settings_hash([planner.run('digits', 'cffl', seed)])

  same = {hashed(0, 'a'), hashed(1, 'a'), hashed(1, 'b', data_dir='c')}
  assert len(same) == 1 and len(same.pop()) == 12
  assert hashed(0, 'a') != hashed(0, 'a', rounds=3)
