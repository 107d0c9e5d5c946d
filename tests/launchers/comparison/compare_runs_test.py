"""Comparisons of seconds on the embedded digits."""

import contextlib
import io
import json
import math
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from absl import flags
import numpy as np
import pandas as pd
import psutil
import pytest

from tests.launchers import digits_run
from tests.launchers.execution import here
from tff_fair import runtime
from tff_fair.launchers import compare
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.execution import pool

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).parents[3]
_METHODS = ['fed_avg', 'standalone']
_ARGUMENTS = (
  '--task=digits',
  '--num_clients=4',
  '--data_fraction=0.3',
  '--rounds=2',
  '--seeds=3',
  '--tune=3',
  '--methods=fed_avg',
  '--parallel=2',
  '--output_dir=out',
)
# Of each method three short trials, two in full with three seeds, and scores.
_NUM_RUNS = 2 * (3 + 2 * 3 + 3)
_SCORES = ['client_accuracy_mean', 'client_accuracies', 'curve', 'target']


def _compare(folder, *arguments):
  """Compares in this process, and returns what was printed."""
  flag_values = flags.FlagValues()
  compare.define_flags(flag_values)
  flag_values(['compare', *arguments])
  printed = io.StringIO()
  with (
    pytest.MonkeyPatch.context() as patch,
    contextlib.redirect_stdout(printed),
  ):
    patch.chdir(folder)
    patch.setattr(pool, 'Pool', here.Pool)
    try:
      compare.main(['compare'], flag_values)
    finally:
      runtime.set_execution_context('device', device='cpu')
  return printed.getvalue()


@contextlib.contextmanager
def _started(folder, *arguments):
  """A running comparison, and what it has written to stdout and stderr."""
  with (
    tempfile.TemporaryFile('w+') as printed,
    tempfile.TemporaryFile('w+') as errors,
  ):
    process = subprocess.Popen(
      [sys.executable, '-m', 'tff_fair.launchers.compare', *arguments],
      cwd=folder,
      env={**os.environ, 'PYTHONPATH': str(_ROOT)},
      stdin=subprocess.DEVNULL,
      stdout=printed,
      stderr=errors,
      start_new_session=True,
    )

    def texts():
      for file in (printed, errors):
        file.seek(0)
      return printed.read(), errors.read()

    try:
      yield process, texts
    finally:
      with contextlib.suppress(ProcessLookupError):
        process.kill()
      process.wait()


def _wait(folder, process, num_ended):
  """Waits until so many runs have ended; its processes, and those runs."""
  deadline = time.monotonic() + 300
  while len(ended := _ended(folder)) < num_ended:
    assert process.poll() is None and time.monotonic() < deadline
    time.sleep(0.02)
  return psutil.Process(process.pid).children(recursive=True), ended


def _ended(folder):
  """The outcome of each run that has ended -> the time of its last change."""
  paths = folder.glob('out/runs/*/*/seed_*/compared.json')
  return {path: path.stat().st_mtime_ns for path in paths}


def _assert_gone(processes):
  _, alive = psutil.wait_procs(processes, timeout=30)
  assert len(processes) >= 2 and not alive


def _frame(folder):
  path = folder / 'out/compare.csv'
  return pd.read_csv(path, float_precision='round_trip')


def _facts(folder):
  found = json.loads((folder / 'out/compare.json').read_text())
  del found['checksums']  # Of seconds, too.
  return found


class _Whole(NamedTuple):
  """A comparison: its folder, what it printed, and what it concludes from."""

  folder: pathlib.Path
  printed: str
  frame: pd.DataFrame
  facts: dict[str, Any]


@pytest.fixture(scope='module', name='whole')
def _whole(tmp_path_factory):
  folder = tmp_path_factory.mktemp('whole')
  printed = _compare(folder, *_ARGUMENTS)
  return _Whole(folder, printed, _frame(folder), _facts(folder))


def test_every_trial_and_every_seed_has_its_row(whole):
  frame, printed = whole.frame, whole.printed
  assert list(frame) == list(reading.COLUMNS)
  assert list(dict.fromkeys(frame['method'])) == _METHODS
  assert (frame['status'] == 'finished').all()
  for method, rows in frame.groupby('method'):
    stages = rows.groupby('stage')['seed'].agg(list).to_dict()
    assert stages == {
      'screening': [100] * 3,
      'final': [100, 101, 102] * 2,
      'score': [0, 1, 2],
    }, method
    assert rows['rounds'].tolist() == 3 * [1] + 9 * [2]
    finals = rows[rows['stage'] == 'final'].groupby('trial')
    means = finals['holdout_accuracy'].mean()
    best = rows[rows['chosen']]
    assert (rows['chosen'] == (rows['stage'] == 'score')).all()
    assert best['trial'].nunique() == 1
    # They differ by far more than the standard error here.
    assert best['trial'].iloc[0] == means.idxmax(), method
    assert best['learning_rate'].nunique() == 1
  line = '2 methods on digits, clients: 4, rounds: 2, seeds: 3, trials of each'
  assert printed.startswith(f'{line} method: 3; 24 runs, 2 at a time.\n')
  assert 'FedAvg: --client_learning_rate=0.14 (holdout accuracy 0.' in printed
  assert printed.endswith('results: out\n')


def test_only_results_have_scores_on_test_data(whole):
  frame = whole.frame
  assert frame[_SCORES][frame['chosen']].notna().all(axis=None)
  others = frame[~frame['chosen']]
  assert others[[*_SCORES, 'client_accuracy_min']].isna().all(axis=None)
  assert frame['holdout_accuracy'].between(0, 1).all()
  # Test data take no part in the choice.
  assert (frame['holdout_accuracy'] != frame['client_accuracy_mean']).all()


def test_bytes_are_those_of_the_model_to_all_clients_and_back(whole):
  from tff_fair.launchers.runs import training

  rows = whole.frame.groupby('method')[['bytes_down', 'bytes_up']]
  assert (rows.nunique() == 1).all(axis=None)  # Of any seed and trial.
  found = rows.first()
  planner = plan.Planner(
    shared={'task': 'digits', 'num_clients': 4},
    rounds=2,
    tune=0,
    output_dir=whole.folder,
  )
  settings = planner.run('fed_avg', 0, 0).settings
  model = training.build_task(settings).model_fn()
  size = 4 * sum(math.prod(v.shape) for v in model.variables)
  for name in ('bytes_down', 'bytes_up'):
    assert 1 <= found[name]['fed_avg'] / (4 * size) < 1.01, name


def test_facts_and_pages(whole):
  folder, facts = whole.folder, whole.facts
  expected = {
    'rounds': 2,
    'seeds': [0, 1, 2],
    'tune': 3,
    'num_clients': 4,
    'cohort_size': 4,
    'baseline': 'fed_avg',
    'options': {'num_clients': 4, 'data_fraction': 0.3},
    'notes': [],
    'excluded': {},
  }
  assert expected.items() <= facts.items()
  for seed, sizes in enumerate(facts['test_examples']):
    paths = folder.glob(f'out/runs/standalone/*/seed_{seed}/clients.csv')
    assert pd.read_csv(next(paths))['num_test'].tolist() == sizes
  assert 'Standalone' in (folder / 'out/compare.html').read_text()
  assert list((folder / 'out/plots').glob('*.png'))
  # No digit of a machine's.
  assert str(folder) not in (folder / 'out/compare.csv').read_text()


def test_a_result_is_what_its_command_trains(whole, tmp_path):
  """Though the compiled rounds of seed 1 have trained it."""
  frame = whole.frame
  chosen = (frame['method'] == 'fed_avg') & (frame['seed'] == 2)
  (row,) = frame[chosen].to_dict('records')
  python, _, module, *arguments = shlex.split(row['command'])
  assert (python, module) == ('python', 'launchers.train')
  digits_run.main_with(*arguments, f'--output_dir={tmp_path}')
  final = json.loads((tmp_path / 'summary.json').read_text())['final']
  assert final['client_accuracy_mean'] == row['client_accuracy_mean']
  found = digits_run.read(tmp_path, 'clients.csv')['accuracy'].tolist()
  assert found == json.loads(row['client_accuracies'])
  (trained,) = {
    path.parent for path in whole.folder.glob('out/runs/fed_avg/*/seed_2/*.csv')
  }
  assert digits_run.tables(tmp_path) == digits_run.tables(trained)


def test_the_same_command_trains_nothing_again_and_more_methods_only_these(
  whole,
):
  folder = whole.folder
  before = _ended(folder)
  assert len(before) == _NUM_RUNS
  names = ('compare.csv', 'compare.json', 'compare.html')
  contents = [(folder / 'out' / name).read_bytes() for name in names]
  again = _compare(folder, *_ARGUMENTS)
  assert _ended(folder) == before
  for name, content in zip(names, contents, strict=True):
    assert (folder / 'out' / name).read_bytes() == content, name
  # What was chosen is said again, in the order of the methods.
  assert sorted(again.splitlines()) == sorted(whole.printed.splitlines())
  _compare(folder, *_ARGUMENTS, '--methods=fed_prox', '--seeds=1')
  after = _ended(folder)
  assert {path: after[path] for path in before} == before
  assert len(after) == _NUM_RUNS + 3 + 2 * 3 + 1
  frame = _frame(folder)
  assert set(frame['method']) == {*_METHODS, 'fed_prox'}
  assert set(frame['seed'][frame['chosen']]) == {0}


def test_methods_are_added_to_compare_csv_without_its_runs(whole, tmp_path):
  folder = tmp_path / 'out'
  folder.mkdir()
  # The fixture's own files may be of more methods by now.
  paths = folder / 'compare.csv', folder / 'compare.json'
  reading.write(whole.frame, whole.facts, *paths)
  before = paths[0].read_text().splitlines()
  printed = _compare(tmp_path, *_ARGUMENTS, '--methods=fed_prox')
  names = 'FedAvg, Standalone'
  assert f'From compare.csv, as there are no runs of them: {names}.' in printed
  assert [path.name for path in (folder / 'runs').iterdir()] == ['fed_prox']
  lines = paths[0].read_text().splitlines()
  assert [line for line in lines if 'algorithm=fed_prox' not in line] == before
  frame = _frame(tmp_path)
  of_method = frame[frame['chosen']].set_index('seed').groupby('method')
  found = of_method.get_group('fed_prox')
  mean = found['client_accuracy_mean']
  baseline, alone = (
    of_method.get_group(name)['client_accuracy_mean'] for name in _METHODS
  )
  np.testing.assert_allclose(found['target'], 0.95 * baseline)
  np.testing.assert_allclose(found['gain_mean'], mean - alone, atol=1e-12)
  assert 'FedProx' in (folder / 'compare.html').read_text()


def _interrupt(process, texts, workers):
  """Presses Ctrl-C, after which two lines say so and no worker is left."""
  # As a terminal does it: to all that are not in groups of their own.
  os.killpg(process.pid, signal.SIGINT)
  assert process.wait(100) == 1
  _, errors = texts()
  _assert_gone(workers)
  assert errors == (
    'stopping after the current rounds\n'
    'Error: interrupted; run the same command again to resume.\n'
  )


class TestStopped:
  """These follow each other in one directory."""

  @pytest.fixture(scope='class', name='folder')
  def _folder(self, tmp_path_factory):
    return tmp_path_factory.mktemp('stopped')

  def test_ctrl_c_is_one_sentence(self, folder):
    with _started(folder, *_ARGUMENTS) as (process, texts):
      workers, _ = _wait(folder, process, 2)
      _interrupt(process, texts, workers)
    assert not (folder / 'out/compare.csv').exists()
    assert len(_ended(folder)) < _NUM_RUNS - 2

  def test_ctrl_c_while_workers_start_is_one_sentence(self, folder):
    with _started(folder, *_ARGUMENTS) as (process, texts):
      program = psutil.Process(process.pid)
      while len(workers := program.children(recursive=True)) < 3:
        assert process.poll() is None
        time.sleep(0.01)
      _interrupt(process, texts, workers)

  def test_no_process_outlives_a_killed_program(self, folder):
    before = _ended(folder)
    with _started(folder, *_ARGUMENTS) as (process, _):
      workers, _ = _wait(folder, process, len(before) + 1)
      process.kill()
      process.wait()
      _assert_gone(workers)
    assert not (folder / 'out/compare.csv').exists()

  def test_the_result_is_that_of_a_comparison_that_was_not_stopped(
    self, folder, whole
  ):
    before = _ended(folder)
    assert 2 < len(before) < _NUM_RUNS
    with _started(folder, *_ARGUMENTS) as (process, texts):
      code = process.wait(500)
      printed, errors = texts()
    assert code == 0 and 'Traceback' not in errors, errors
    assert _lines(printed) == _lines(whole.printed)
    after = _ended(folder)
    assert {path: after[path] for path in before} == before
    found, expected = (
      frame.drop(columns='seconds_per_round')
      for frame in (_frame(folder), whole.frame)
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert _facts(folder) == whole.facts


def _lines(printed):
  """The lines without the time that more seeds would take."""
  return sorted(re.sub(r' take \S+ \S+,', '', printed).splitlines())


@pytest.fixture(name='table')
def _table(tmp_path):
  """Compares in this process, on a table of three hospitals."""
  rows = np.arange(60)
  pd.DataFrame(
    {
      'hospital': np.array(['Ulm', 'Bonn', 'Berlin'])[rows % 3],
      'age': 20 + (7 * rows) % 30,
      'outcome': np.where((7 * rows) % 30 > 15, 'ill', 'well'),
    }
  ).to_csv(tmp_path / 'own.csv', index=False)

  def compare_with(*arguments):
    return _compare(
      tmp_path,
      *('--task=table', '--data_file=own.csv', '--rounds=1'),
      *('--client_column=hospital', '--label_column=outcome', '--seeds=1'),
      *('--methods=fed_rdn', '--holdout_fraction=0', '--parallel=1'),
      *('--output_dir=out', *arguments),
    )

  return compare_with


def test_a_method_that_cannot_run_is_listed_and_the_others_go_on(
  table, tmp_path
):
  with pytest.raises(
    SystemExit, match='^Error: not started within 0 s: 3 runs of 3 methods; '
  ):
    table('--tune=0', '--budget=1ms')
  assert not (tmp_path / 'out/runs').exists()
  printed = table('--tune=0', '--budget=1h')
  reason = _facts(tmp_path)['excluded']['fed_rdn']
  assert 'images' in reason and '\n' not in reason
  assert f'FedRDN is left out: {reason}' in printed
  frame = _frame(tmp_path)
  assert frame['method'].tolist() == ['fed_avg', 'standalone']
  # Without tuning nothing is held out to choose by, and nothing is chosen.
  assert frame['holdout_accuracy'].isna().all()
  assert frame['client_accuracy_mean'].notna().all()
  assert _facts(tmp_path)['client_names'] == ['Berlin', 'Bonn', 'Ulm']
  assert _facts(tmp_path)['notes'] == []
  # More seeds, for which there is no time: what is there is kept and said.
  table('--tune=0', '--seeds=2', '--budget=1ms')
  note = 'not started within 0 s: 4 runs of 3 methods; run the same command'
  assert _facts(tmp_path)['notes'][0].startswith(note)
  assert note in (tmp_path / 'out/compare.html').read_text()
  assert len(_frame(tmp_path)) == 2


def test_tuning_without_a_holdout_is_refused_before_training(table, tmp_path):
  with pytest.raises(
    SystemExit,
    match='^Error: --holdout_fraction must be above 0 with --tune=2, which'
    r' chooses by that part, found no such examples\.$',
  ):
    table('--tune=2')
  assert not (tmp_path / 'out/runs').exists()
