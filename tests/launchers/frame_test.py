"""Run directories as one table."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from tests.launchers import report_run
from tff_fair.launchers import frame
from tff_fair.launchers import summary


def _value(table, measure, **keys):
  chosen = table['measure'] == measure
  for name in ('round', 'client'):
    if name in keys:
      chosen &= table[name] == keys[name]
    else:
      chosen &= table[name].isna()
  return table['value'][chosen].item()


def test_every_number_of_the_files_is_a_row(tmp_path):
  folder = report_run.write(
    tmp_path / 'x', (0.3, 0.6, 0.9), num_train=(10, 20, 0), dropped=2
  )
  table = frame.load([folder])
  assert tuple(table) == frame.COLUMNS
  assert not table.duplicated(['run', 'round', 'client', 'measure']).any()
  assert set(table['run']) == {'FedAvg'}
  # Each client's accuracy grows by a third a round; F1 is half of it.
  assert _value(table, 'accuracy', round=2, client=1) == pytest.approx(0.4)
  assert _value(table, 'report_alpha', round=2, client=1) == pytest.approx(1.2)
  assert _value(table, 'f1', client=1) == pytest.approx(0.3)
  assert _value(table, 'num_train', client=2) == 0
  assert _value(table, 'client_accuracy_mean', round=2) == pytest.approx(0.3)
  assert _value(table, 'client_accuracy_mean') == pytest.approx(0.45)
  assert _value(table, 'dropped_num_rejected_clients') == 6
  assert _value(table, 'client_f1_variance_window_high') == 0.0146
  assert _value(table, 'seconds_per_round') == 0.25


def test_free_riders_are_not_among_the_honest(tmp_path):
  # The free rider has the lowest accuracy, and one client no test data.
  folder = report_run.write(
    tmp_path / 'x', (0.3, np.nan, 0.9, 0.0), num_train=(10, 20, 30, 0)
  )
  run = frame.read_run(folder)
  assert run.honest.index.tolist() == [0, 1, 2]
  assert run.scores('accuracy').tolist() == [0.3, 0.9]
  assert run.curve('client_accuracy_min').tolist() == pytest.approx(
    [0.1, 0.2, 0.3]
  )
  # 0.25 and 0.75 of the way from 0.3 to 0.9.
  ends = [run.curve(f'client_accuracy_{end}')[3] for end in ('low', 'high')]
  assert ends == pytest.approx([0.45, 0.75])


def test_attackers_are_not_among_the_honest(tmp_path):
  # The attacker would be the worst client, and would turn the order around.
  folders = [
    report_run.write(tmp_path / name, accuracy, num_train=(10, 20, 30, 40))
    for name, accuracy in (
      ('run', (0.5, 0.1, 0.7, 0.9)),
      ('alone', (0.2, 0.8, 0.4, 0.6)),
    )
  ]
  for folder in folders:
    clients = pd.read_csv(folder / 'clients.csv')
    clients.assign(attacker=[0, 1, 0, 0]).to_csv(
      folder / 'clients.csv', index=False
    )
  run, alone = map(frame.read_run, folders)
  assert run.honest.index.tolist() == [0, 2, 3]
  assert run.curve('client_accuracy_min')[3] == pytest.approx(0.5)
  found = summary.against_alone(alone, run)
  assert found['cf'] == pytest.approx(100)
  assert found['gain_mean'] == pytest.approx(0.3)


def test_runs_of_one_method_are_labelled_by_directory(tmp_path):
  folders = [
    report_run.write(tmp_path / 'x' / 'seed_0'),
    report_run.write(tmp_path / 'x' / 'seed_1'),
    report_run.write(tmp_path / 'y', algorithm='cffl'),
  ]
  expected = ['FedAvg (x/seed_0)', 'FedAvg (x/seed_1)', 'CFFL']
  assert [run.label for run in frame.read_runs(folders)] == expected
  assert frame.load(folders)['run'].unique().tolist() == expected


class TestUnfinishedRun:
  def test_ends_with_its_last_evaluation(self, tmp_path):
    folder = report_run.write(
      tmp_path / 'x', num_train=(10, 20, 0), finished=False, rounds=2, dropped=1
    )
    for name in ('metrics.csv', 'client_scores.csv', 'reports.csv'):
      with open(folder / name, 'a') as file:
        file.write('3,0')  # The third round is being written.
    run = frame.read_run(folder)
    assert not run.finished and not run.stopped_early
    assert (run.last_round, run.evaluated) == (2, 2)
    # Two thirds of 0.5 and 0.7, without the free rider.
    assert run.end['client_accuracy_mean'] == pytest.approx(0.4)
    assert run.scores('accuracy') == pytest.approx([1 / 3, 1.4 / 3])
    assert run.dropped == {'num_rejected_clients': 2}
    assert 'seconds_per_round' not in run.end

  def test_before_the_first_evaluation_has_no_scores(self, tmp_path):
    folder = report_run.write(
      tmp_path / 'x', finished=False, rounds=1, eval_every=2
    )
    run = frame.read_run(folder)
    assert run.evaluated is None and not run.scores('accuracy').size
    assert run.clients['num_train'].tolist() == [10, 20, 200]

  def test_half_written_files_are_no_error(self, tmp_path):
    source = report_run.write(tmp_path / 'whole', finished=False, rounds=2)
    folder = tmp_path / 'run'
    for name, expected in (
      ('metrics.csv', [None, None, 1]),
      ('reports.csv', [None, None, 1, 2, 3, 4, 5]),
      # Of the last evaluation.
      ('client_scores.csv', [0, 0, 1, 2, 3, 1, 2]),
    ):
      lines = (source / name).read_bytes().splitlines(True)
      for number, count in enumerate(expected):
        shutil.copytree(source, folder, dirs_exist_ok=True)
        (folder / name).write_bytes(b''.join(lines[:number]) + b'1,')
        if count is None:
          with pytest.raises(frame.FrameError, match=name):
            frame.read_run(folder)
          continue
        run = frame.read_run(folder)
        found = {
          'metrics.csv': run.curve('num_rejected_clients'),
          'reports.csv': run.reports,
          'client_scores.csv': run.scores('accuracy'),
        }
        assert len(found[name]) == count, (name, number)


def test_what_is_not_defined_is_nan(tmp_path):
  folder = report_run.write(tmp_path / 'x')
  path = folder / 'summary.json'
  summary = json.loads(path.read_text())
  path.write_text(json.dumps({**summary, 'final': {'global_f1': None}}))
  assert np.isnan(frame.read_run(folder).end['global_f1'])


@pytest.mark.parametrize(
  ('name', 'text', 'message'),
  [
    ('flags.txt', '--task=digits\n', 'must be as a training run writes it'),
    ('metrics.csv', 'round\n"1', 'must be a csv file'),
    ('metrics.csv', 'round\n', 'must have the columns round and a row'),
    ('metrics.csv', 'round\n1\n""\n', '.* whole numbers as round, found'),
    ('metrics.csv', 'round\n1\n1\n', 'must have one row for each round, and'),
    ('reports.csv', 'round,client_id\n1,0.5\n', '.* numbers as round, client'),
    ('reports.csv', 'round,client_id\n1,inf\n', '.* numbers as round, client'),
    ('reports.csv', 'round\n1\n', 'must have the columns round, client_id'),
    ('client_scores.csv', '\udcff\udcfe', 'must be a csv'),
    (
      'client_scores.csv',
      'round,client_id,accuracy\n1,0,0.5\n1,0,0.5\n',
      'must have one row for each round and client_id, and whole',
    ),
    ('clients.csv', 'client_id\n1\n', 'must have the columns client_id, num'),
    ('summary.json', '{"final": {', 'must be as a training run writes it'),
    ('summary.json', '{"final": {}}', 'must be as a training run writes it'),
    ('summary.json', '[]', 'must be as a training run writes it'),
  ],
)
def test_a_damaged_file_is_named(tmp_path, name, text, message):
  folder = report_run.write(tmp_path / 'x')
  (folder / name).write_bytes(text.encode(errors='surrogateescape'))
  with pytest.raises(frame.FrameError, match=f'^{name} {message}'):
    frame.read_run(folder)


def test_a_finished_run_has_all_rounds_and_clients(tmp_path):
  folder = report_run.write(tmp_path / 'x')
  path = folder / 'summary.json'
  path.write_text(json.dumps({**json.loads(path.read_text()), 'rounds': 3}))
  frame.read_run(folder)
  for name in ('metrics.csv', 'client_scores.csv', 'clients.csv'):
    whole = (folder / name).read_text()
    lines = whole.splitlines(keepends=True)
    for content in (''.join(lines[:-1]), whole[:-1]):
      (folder / name).write_text(content)
      with pytest.raises(frame.FrameError, match=rf'{name}.*as if .* was cut'):
        frame.read_run(folder)
    (folder / name).write_text(whole)


def test_other_directories_are_refused(tmp_path):
  run = report_run.write(tmp_path / 'x')
  empty = tmp_path / 'empty'
  empty.mkdir()
  for directories, message in (
    ([tmp_path / 'y'], 'found no such directory'),
    ([empty], 'flags.txt must be as a training run writes it'),
    ([run, run / '..' / 'x'], 'must be given once'),
  ):
    with pytest.raises(frame.FrameError, match=message):
      frame.read_runs(directories)
