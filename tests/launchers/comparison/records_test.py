"""compare.csv from made runs, with numbers worked by hand."""

import json
import math
import os
import pathlib
import re

import numpy as np
import pandas as pd
import pytest

from tests.launchers import report_run
from tff_fair.launchers import frame as frame_lib
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.comparison import records
from tff_fair.launchers.comparison import tuning
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.options import train_flags

_SCORES = {
  'client_accuracy_mean': 0.5,
  'client_accuracy_worst10': 0.25,
  'client_accuracy_min': 0.125,
  'client_accuracy_variance': 0.0625,
  'client_accuracy_jain': 0.75,
  'client_f1_mean': 0.4375,
  'global_accuracy': 0.625,
}
_OUTCOME = outcomes.Outcome(outcomes.FINISHED, '', 0.5, 1000, 2000, 0.25)
_DIVERGED = outcomes.Outcome(outcomes.DIVERGED, 'the run has diverged.')
_TEST_COLUMNS = (
  *_SCORES,
  'cf',
  'better_off',
  'gain_mean',
  'harmed',
  'target',
  'rounds_to_target',
  'client_accuracies',
  'curve',
)
# Standalone and a method that keeps its order, but for the last client.
_ALONE = [0.2, 0.4, 0.6, 0.8]
_OTHER = [0.3, 0.5, 0.7, 0.7]


def _planner(folder, **shared):
  return plan.Planner(
    shared={'task': 'digits', 'num_clients': 4, **shared},
    rounds=3,
    tune=2,
    output_dir=folder,
  )


def _ended(
  planner,
  method,
  accuracy=None,
  *,
  trial=0,
  seed=0,
  chosen=True,
  curve=(0.2, 0.4, 0.5),
  num_train=(9, 9, 9, 9),
  outcome=_OUTCOME,
):
  """A run; with `accuracy`, also the files that it has written."""
  run = planner.run(method, trial, seed)
  if accuracy is not None:
    report_run.write(
      run.output_dir,
      np.array(accuracy, float),
      num_train=num_train,
      num_test=(100,) * 4,
      algorithm=method,
      **{n: v for n, v in planner.shared.items() if n == 'split'},
    )
    pd.DataFrame(
      {
        'round': range(1, len(curve) + 1),
        'client_accuracy_mean': curve,
        'client_accuracy_worst10': [a and a / 2 for a in curve],
      }
    ).to_csv(run.output_dir / 'metrics.csv', index=False)
    path = run.output_dir / 'summary.json'
    final = {**_SCORES, 'client_accuracy_min': 0.125 + seed}
    summary = {**json.loads(path.read_text()), 'final': final}
    summary['processor'] = 'a processor'
    path.write_text(json.dumps(summary))
  flags = tuning.Trial(planner.trials(method)[trial])
  stage = tuning.SCORE if chosen else tuning.FINAL
  return records.Ended(method, trial, flags, stage, run, outcome)


def _row(frame, method, **key):
  chosen = frame['method'] == method
  for name, value in key.items():
    chosen &= frame[name] == value
  (row,) = frame[chosen].to_dict('records')
  return row


def test_a_damaged_run_is_named_with_the_remedy(tmp_path):
  planner = _planner(tmp_path)
  ended = [_ended(planner, 'fed_avg', [0.5] * 4)]
  folder = ended[0].run.output_dir
  for name in ('summary.json', 'clients.csv', 'client_scores.csv', 'flags.txt'):
    whole = (folder / name).read_bytes()
    half = len(whole) // 2
    lines = b''.join(whole.splitlines(keepends=True)[:-1])
    for damage in (
      lambda path, whole=whole, half=half: path.write_bytes(whole[:half]),
      lambda path, lines=lines: path.write_bytes(lines),
      os.mkfifo,
    )[2 * (name == 'flags.txt') :]:  # Whose end nothing says.
      (folder / name).unlink()
      damage(folder / name)
      with pytest.raises(frame_lib.FrameError) as error:
        records.table(ended, None)
      sentence = str(error.value)
      assert name in sentence and str(folder) in sentence
      assert f'; remove {folder}, and the same command' in sentence
      assert '..' not in sentence and '\n' not in sentence
    (folder / name).unlink()
    (folder / name).write_bytes(whole)
  assert records.table(ended, None)['status'].tolist() == ['finished']


def test_a_result_against_standalone_of_the_same_seed(tmp_path):
  planner = _planner(tmp_path)
  frame = records.table(
    [
      _ended(planner, 'fed_avg', [0.5] * 4),
      _ended(planner, 'standalone', _ALONE),
      _ended(planner, 'ditto', _OTHER, trial=1),
      _ended(planner, 'ditto', _OTHER, trial=1, seed=1),
    ],
    None,
  )
  assert list(frame) == list(reading.COLUMNS)
  _assert_is_read_as_written(frame, tmp_path)
  row = _row(frame, 'ditto', seed=0)
  # About the means .5 and .55: the deviations are -.3 -.1 .1 .3 and -.25 -.05
  # .15 .15, so the correlation is .14 / sqrt(.2 * .11).
  assert row['cf'] == pytest.approx(100 * 0.14 / math.sqrt(0.2 * 0.11))
  assert row['better_off'] == 0.75
  # Gains of .1 three times, and -.1: of 100 examples, 70 against 80.
  assert row['gain_mean'] == pytest.approx(0.05)
  assert row['gain_sd'] == pytest.approx(math.sqrt(3) / 20)
  assert row['gain_min'] == pytest.approx(-0.1)
  assert (row['harmed'], row['harmed_share']) == (0, 0)
  assert json.loads(row['client_accuracies']) == _OTHER
  # 95 % of FedAvg's .5.
  assert (row['target'], row['rounds_to_target']) == (0.475, 3)
  for name, value in _SCORES.items():
    assert row[name] == value
  assert (row['trial'], row['chosen'], row['status']) == (1, True, 'finished')
  assert (row['learning_rate'], row['rounds']) == (0.14, 3)
  assert row['parameters'] == 'personal_learning_rate=0.05 proximal_weight=0.1'
  assert row['holdout_accuracy'] == 0.5
  assert (row['bytes_down'], row['bytes_up']) == (1000, 2000)
  assert row['seconds_per_round'] == 0.25
  assert row['processor'] == 'a processor'
  assert json.loads(row['curve']) == {
    'rounds': [1, 2, 3],
    'mean': [0.2, 0.4, 0.5],
    'worst10': [0.1, 0.2, 0.25],
  }
  # Another seed has no Standalone and no FedAvg.
  row = _row(frame, 'ditto', seed=1)
  for name in ('cf', 'better_off', 'target', 'rounds_to_target'):
    assert math.isnan(row[name]), name
  assert row['client_accuracy_min'] == 1.125
  # Standalone is not compared with itself, and has no global model.
  row = _row(frame, 'standalone')
  for name in ('cf', 'better_off', 'global_accuracy'):
    assert math.isnan(row[name]), name
  assert row['rounds_to_target'] == 3
  # One accuracy for all is no order of the clients.
  row = _row(frame, 'fed_avg')
  assert math.isnan(row['cf']) and row['better_off'] == 0.5
  assert row['parameters'] == '' and row['global_accuracy'] == 0.625


def test_accuracies_after_fine_tuning(tmp_path):
  planner = _planner(tmp_path)
  ended = [_ended(planner, 'fed_avg', [0.5] * 4, num_train=(9, 0, 9, 9))]
  path = ended[0].run.output_dir / 'clients.csv'
  assert math.isnan(records.table(ended, None)['fine_tuned_accuracies'][0])
  tuned = [0.25, 0.5, 0.75, 1.0]
  pd.read_csv(path).assign(fine_tuned_accuracy=tuned).to_csv(path, index=False)
  found = records.table(ended, None)['fine_tuned_accuracies'][0]
  # Who trains nothing does not count.
  assert json.loads(found) == [0.25, None, 0.75, 1.0]


def _assert_is_read_as_written(frame, folder):
  frame.to_csv(folder / 'compare.csv', index=False)
  (folder / 'compare.json').write_text('{"seeds": [0, 1]}')
  found, facts = reading.read(folder / 'compare.csv', folder / 'compare.json')
  assert facts == {'seeds': [0, 1]}
  packed = ['client_accuracies', 'curve']
  pd.testing.assert_frame_equal(
    found.drop(columns=packed),
    frame.drop(columns=packed),
    check_dtype=False,
    check_exact=True,
  )
  for name in packed:
    for was, here in zip(frame[name], found[name], strict=True):
      np.testing.assert_equal(here, json.loads(was))


def test_the_target_and_the_first_evaluation_that_has_it(tmp_path):
  runs = [
    _ended(_planner(tmp_path), 'fed_avg', _OTHER, curve=(None, 0.4, 0.3, 0.4))
  ]
  for target, expected, rounds in (
    (0.4, 0.4, 2),
    (0.41, 0.41, None),
    (0.0, 0.0, 2),
    (None, 0.95 * 0.55, None),
  ):
    row = _row(records.table(runs, target), 'fed_avg')
    assert row['target'] == pytest.approx(expected)
    found = row['rounds_to_target']
    assert math.isnan(found) if rounds is None else found == rounds, target
  assert json.loads(row['curve'])['rounds'] == [2, 3, 4]


def test_clients_without_data_or_tests_are_left_out(tmp_path):
  planner = _planner(tmp_path)
  accuracy = [0.2, None, 0.6, 0.9]
  frame = records.table(
    [
      _ended(planner, 'fed_avg', [0.1, 0.4, 0.8, 0.9], num_train=[9, 9, 9, 0]),
      _ended(planner, 'standalone', accuracy),
    ],
    None,
  )
  row = _row(frame, 'fed_avg')
  assert json.loads(row['client_accuracies']) == [0.1, 0.4, 0.8, None]
  # Two clients are left: one is worse off, one is better.
  assert row['better_off'] == 0.5
  assert row['cf'] == pytest.approx(100)
  assert row['target'] == pytest.approx(0.95 * (0.1 + 0.4 + 0.8) / 3)
  found = json.loads(_row(frame, 'standalone')['client_accuracies'])
  assert found == accuracy


def test_attackers_are_left_out(tmp_path):
  planner = _planner(tmp_path)
  runs = [
    _ended(planner, 'fed_avg', [0.1, 0.9, 0.2, 0.3]),
    _ended(planner, 'standalone', [0.4, 0.1, 0.5, 0.6]),
  ]
  for ended in runs:
    path = ended.run.output_dir / 'clients.csv'
    clients = pd.read_csv(path).assign(attacker=[0, 1, 0, 0])
    clients.to_csv(path, index=False)
  row = _row(records.table(runs, None), 'fed_avg')
  assert json.loads(row['client_accuracies']) == [0.1, None, 0.2, 0.3]
  assert row['cf'] == pytest.approx(100)
  assert row['better_off'] == 0


def test_with_a_server_a_client_without_data_has_the_accuracy_of_its_model(
  tmp_path,
):
  planner = _planner(tmp_path, split='server')
  ended = _ended(planner, 'fed_avg', _OTHER, num_train=[9, 9, 9, 0])
  row = _row(records.table([ended], None), 'fed_avg')
  assert json.loads(row['client_accuracies']) == _OTHER


def test_trials_that_were_not_chosen_have_no_scores_on_test_data(tmp_path):
  planner = _planner(tmp_path)
  runs = [
    _ended(planner, 'fed_avg', _OTHER, chosen=False),
    _ended(planner, 'fed_avg', trial=1, outcome=_DIVERGED, chosen=False),
    # The chosen trial of another seed.
    _ended(planner, 'fed_avg', seed=1, outcome=_DIVERGED),
  ]
  frame = records.table(runs, 0.5)
  assert frame[list(_TEST_COLUMNS)].isna().all(axis=None)
  assert frame['status'].tolist() == ['finished', 'diverged', 'diverged']
  assert frame['holdout_accuracy'].tolist()[0] == 0.5
  assert frame['holdout_accuracy'][1:].isna().all()
  assert frame['learning_rate'].tolist() == [0.01, 0.14, 0.01]


def test_the_command_is_the_run_without_what_changes_no_number(tmp_path):
  planner = _planner(tmp_path, client_threads=1, data_dir='a b')
  ended = _ended(planner, 'ditto', _OTHER, trial=1, seed=3)
  (command,) = records.table([ended], 0.5)['command']
  assert command.startswith('python -m launchers.train --algorithm=ditto ')
  flags = dict(re.findall(r'--(\w+)=(\w[^ \']*)', command))
  for name in (
    'client_threads',
    'export',
    'checkpoint_every',
    'output_dir',
    'data_dir',
  ):
    assert name not in flags, name
  expected = {'rounds': '3', 'personal_learning_rate': '0.05', 'task': 'digits'}
  expected |= dict.fromkeys(('model_seed', 'client_seed', 'data_seed'), '3')
  assert expected.items() <= flags.items()
  assert set(flags) <= set(train_flags.FLAG_NAMES)
  assert str(pathlib.Path(tmp_path)) not in command
