"""The launcher of tables, end to end on tables of the embedded digits."""

import dataclasses
import json
import pathlib
import re
import signal

import numpy as np
import pandas as pd
import pytest

from tests.launchers import digits_run
from tests.launchers import tiny_table
from tests.launchers.execution import here
from tff_fair.launchers.execution import pool
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published

pytestmark = pytest.mark.full

_METHODS = {
  'standalone': 'standalone',
  'fed_avg': 'fed_avg',
  'cffl': 'cffl-upload_rate=0.5',
}


def _main(*arguments):
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
    patch.setattr(published, 'read', lambda: tiny_table.NUMBERS)
    patch.setattr(pool, 'Pool', here.Pool)
    return tiny_table.main('--parallel=1', *arguments)


@pytest.fixture(scope='module', name='arguments')
def _arguments(tmp_path_factory):
  path = tmp_path_factory.mktemp('tiny')
  return ['--table=tiny', '--rounds=2', '--seeds=2', f'--output_dir={path}']


@pytest.fixture(scope='module', name='finished')
def _finished(arguments):
  """The directory of the finished table, and what was printed."""
  printed = _main(*arguments)
  return pathlib.Path(arguments[-1].split('=')[1]), printed


@pytest.fixture(name='output_dir')
def _output_dir(finished):
  return finished[0]


def _run(output_dir, method, seed):
  """The directory of a run; the number of rounds is a part of its name."""
  (path,) = (
    path
    for path in (output_dir / 'runs' / 'cffl_digits').iterdir()
    if path.name.replace('-rounds=2', '') == _METHODS[method]
  )
  return path / f'seed_{seed}'


def _accuracies(output_dir, method, seed):
  run = _run(output_dir, method, seed)
  return digits_run.read(run, 'clients.csv')['accuracy'].to_numpy()


def _row(output_dir, **key):
  """A row of table.csv, all text."""
  frame = pd.read_csv(output_dir / 'table.csv', dtype=str)
  chosen = frame[np.all([frame[k] == v for k, v in key.items()], axis=0)]
  (row,) = chosen.fillna('').to_dict('records')
  return row


def _assert_numbers(row, values):
  found = [float(value) for value in row['values'].split(';')]
  assert found == pytest.approx(values, rel=1e-5)
  assert float(row['ours']) == pytest.approx(np.mean(values), rel=1e-5)
  assert float(row['sd']) == pytest.approx(np.std(values, ddof=1), rel=1e-4)


class TestTable:
  def test_a_line_for_each_run_then_the_table(self, finished):
    output_dir, printed = finished
    lines, table = printed.split('# tiny\n')
    assert [line.split(': ')[0] for line in lines.splitlines()] == [
      f'{number}/6 cffl_digits/{name}/seed_{seed}'
      for number, (seed, name) in enumerate(
        (
          (seed, name)
          for name in (
            'standalone-rounds=2',
            'fed_avg-rounds=2',
            'cffl-rounds=2-upload_rate=0.5',
          )
          for seed in (0, 1)
        ),
        start=1,
      )
    ]
    assert 'CF coefficient' in table
    frame = pd.read_csv(output_dir / 'table.csv')
    assert set(frame['table']) == {'tiny'}
    # The CF coefficient of two methods and the accuracy of three, two cells.
    assert len(frame) == 2 * (2 + 3)
    assert not frame.duplicated(['cell', 'method', 'metric']).any()
    assert digits_run.plots(output_dir) == {
      f'tiny_{cell}_{picture}.png'
      for cell in ('digits', 'stand_in')
      for picture in ('scatter', 'cffl_client_accuracy', 'cffl_reputation')
    }

  def test_cf_coefficient(self, output_dir):
    row = _row(output_dir, cell='digits', method='cffl', metric='cf')
    values = [
      100 * np.corrcoef(
        _accuracies(output_dir, 'standalone', seed),
        _accuracies(output_dir, 'cffl', seed),
      )[0, 1]
      for seed in (0, 1)
    ]  # fmt: skip
    _assert_numbers(row, values)
    assert (row['paper'], row['paper_sd']) == ('99', '0.5')
    difference = pytest.approx(np.mean(values) - 99, rel=1e-4)
    assert float(row['difference']) == difference
    found = [row[name] for name in ('rounds', 'paper_rounds', 'seeds')]
    assert found == ['2', '20', '2']
    # With one model for all clients there is none.
    row = _row(output_dir, cell='digits', method='fed_avg', metric='cf')
    assert row['ours'] == 'undefined'
    assert row['values'] == 'undefined;undefined'
    assert (row['undefined'], row['paper']) == ('2', '3')
    assert row['difference'] == ''
    row = _row(output_dir, cell='stand_in', method='cffl', metric='cf')
    assert row['marks'] == 'data: digits, not mnist; rounds: 2, not 20'

  def test_a_run_is_the_command_in_its_row(self, output_dir, tmp_path):
    # The last run: the state of the runs before it must not matter.
    row = _row(output_dir, cell='digits', method='cffl', metric='cf')
    command = row['commands'].split(' && ')[-1]
    text = command.split('tff-fair train ')[1].split('; done')[0]
    *arguments, last = text.replace('$seed', '1').split()
    reproduced = pathlib.Path(last.removeprefix('--output_dir='))
    assert reproduced == _run(output_dir, 'cffl', 1)
    digits_run.main_with(*arguments, f'--output_dir={tmp_path}')
    assert digits_run.tables(tmp_path) == digits_run.tables(reproduced)

  def test_finished_runs_are_skipped(self, output_dir, arguments):
    table = (output_dir / 'table.csv').read_bytes()
    flags_file = _run(output_dir, 'cffl', 0) / 'flags.txt'
    before = flags_file.stat().st_mtime_ns
    printed = _main(*arguments, '--seeds=1', '--cells=stand_in')
    assert 'stand_in' in printed and '\n| digits' not in printed
    printed = _main(*arguments)
    assert printed.startswith('# tiny\n')
    assert (output_dir / 'table.csv').read_bytes() == table
    assert flags_file.stat().st_mtime_ns == before


_SMALL = {'model': 'mlp_cffl_mnist', 'num_clients': 3}
_PICTURES = definitions.Table(
  title='a table with plots of embeddings',
  cells={
    'digits': definitions.Cell(preset='fedquad_digits', data='digits'),
  },
  methods={
    'fed_avg': {'algorithm': 'fed_avg', **_SMALL},
    'fedquad': {'algorithm': 'fedquad', **_SMALL},
    'without_ce': {'algorithm': 'fedquad', 'use_ce': False, **_SMALL},
  },
  printed_as={'without_ce': 'fedquad'},
  metrics=('global_accuracy',),
  figures={'embeddings': ('fed_avg', 'fedquad')},
  percent=True,
)
_PUBLISHED = {
  ('pictures', 'digits', 'fedquad', 'global_accuracy'): published.Number(
    70.0, float('nan')
  ),
}


def test_part_of_the_data(tmp_path):
  """A table at a share of the data, of some methods, with embeddings."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(definitions.TABLES, 'pictures', _PICTURES)
    patch.setattr(published, 'read', lambda: _PUBLISHED)
    patch.setattr(pool, 'Pool', here.Pool)
    tiny_table.main(
      *('--table=pictures', '--parallel=1', '--scale=0.25', '--rounds=1'),
      *('--methods=without_ce,fedquad', '--cells=digits'),
      f'--output_dir={tmp_path}',
    )
  frame = pd.read_csv(tmp_path / 'table.csv', dtype=str).fillna('')
  # In the order of the table.
  assert frame['method'].tolist() == ['fedquad', 'without_ce']
  expected = 'share of the data: 0.25, not 1; rounds: 1, not 10'
  assert frame['marks'].tolist() == [expected] * 2
  assert frame['commands'].str.contains('--data_fraction=0.25 ').all()
  # A method may be printed as another.
  assert frame['paper'].tolist() == ['70', '70']
  # The accuracy is that of the global model.
  found = frame.set_index('method')['ours'].astype(float)
  for run in tmp_path.glob('runs/*/*/seed_0'):
    # A quarter of the 1,438 that are not tests.
    assert digits_run.read(run, 'clients.csv')['num_train'].sum() == 360
    method = 'without_ce' if 'use_ce' in str(run) else 'fedquad'
    final = json.loads((run / 'summary.json').read_text())['final']
    expected = pytest.approx(100 * final['global_accuracy'], rel=1e-5)
    assert found[method] == expected
  assert digits_run.plots(tmp_path) == {'pictures_digits_embeddings.png'}


def test_replacement_data(tmp_path, monkeypatch):
  monkeypatch.setattr(pool, 'Pool', here.Pool)
  rng = np.random.default_rng(0)
  arrays = {}
  for part, size in (('train', 1200), ('test', 200)):
    arrays[f'x_{part}'] = rng.integers(0, 256, [size, 28, 28], np.uint8)
    arrays[f'y_{part}'] = np.arange(size) % 10
  np.savez(tmp_path / 'mnist.npz', **arrays)
  tiny_table.main(
    '--table=corefed_table3',
    '--cells=tradeoff_a',
    '--dataset=mnist',
    '--rounds=1',
    f'--data_dir={tmp_path}',
    f'--output_dir={tmp_path}',
  )
  (summary,) = tmp_path.glob('runs/corefed_tradeoff_a/*/seed_0/summary.json')
  final = json.loads(summary.read_text())['final']
  rows = pd.read_csv(tmp_path / 'table.csv').set_index('metric')
  assert (rows['data'] == 'mnist').all()
  assert rows['marks'].str.startswith('data: mnist, not fmnist; ').all()
  degrees = np.degrees(final['parameters_d_cosine'])
  expected = {**final, 'parameters_d_cosine_degrees': degrees}
  for metric, row in rows.iterrows():
    assert row['ours'] == pytest.approx(expected[metric], rel=1e-5)
  # The paper prints fractions, and an angle between parameters without a unit.
  assert rows['paper'].dropna().to_dict() == {
    'client_accuracy_mean': 0.861,
    'parameters_d_cosine_degrees': 0.12704,
    'parameters_d_cosine': 0.12704,
    'parameters_d_manhattan': 52.88,
  }


def test_a_run_that_diverges_ends_no_other_and_is_not_recorded(
  tmp_path, monkeypatch, capsys
):
  wild = {'client_learning_rate': 1e30, 'max_update_norm': 0.0}
  methods = {**tiny_table.TABLE.methods}
  methods['fed_avg'] = {**methods['fed_avg'], **wild}
  table = dataclasses.replace(tiny_table.TABLE, methods=methods)
  monkeypatch.setattr(tiny_table, 'TABLE', table)
  arguments = (
    *('--table=tiny', '--cells=digits', '--rounds=5'),
    *(f'--output_dir={tmp_path}/out', f'--record={tmp_path}/results'),
  )
  for _ in range(2):
    with pytest.raises(SystemExit) as error:
      _main(*arguments)
    assert re.fullmatch(
      r'Error: 1 of \d runs diverged, and all others are trained:'
      r' cffl_digits/fed_avg-\S*/seed_0: the run has diverged: .*\.',
      error.value.code,
    )
    recorded = _recorded(tmp_path / 'results')
    assert {*recorded['method']} == {'standalone', 'cffl'}
    assert np.isfinite(recorded['value']).all()
    assert len(recorded) == 3
    assert not (tmp_path / 'out/table.csv').exists()
  assert 'recorded: 0 numbers' in _main(*arguments, '--methods=standalone,cffl')
  assert (tmp_path / 'out/table.csv').exists()


def _recorded(folder):
  """The recorded rows, without what differs from machine to machine."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
    return records.read(folder).drop(columns='seconds')


def test_a_killed_table_resumes_to_the_same_result(tmp_path, monkeypatch):
  arguments = (
    *('--table=tiny', '--cells=digits', '--methods=standalone,fed_avg'),
    *('--rounds=8', '--output_dir=out', '--record=results'),
  )
  whole, stopped = tmp_path / 'whole', tmp_path / 'stopped'
  for path in (whole, stopped):
    path.mkdir()
  monkeypatch.chdir(whole)
  assert 'recorded: 3 numbers, ' in _main(*arguments)
  recorded = _recorded(whole / 'results')
  digits_run.interrupt(
    'tests.launchers.tiny_table',
    (*arguments, '--parallel=1'),
    stopped,
    stopped / 'out/runs/cffl_digits/fed_avg-rounds=8/seed_0/metrics.csv',
    4,
    signal.SIGKILL,
  )
  assert not (stopped / 'out/table.csv').exists()
  # What was done before is not lost.
  before = _recorded(stopped / 'results')
  assert before['method'].tolist() == ['standalone']
  monkeypatch.chdir(stopped)
  assert 'recorded: 2 numbers, ' in _main(*arguments)
  pd.testing.assert_frame_equal(_recorded(stopped / 'results'), recorded)
  # The runs of others are the same numbers.
  monkeypatch.chdir(whole)
  merged = _main(*arguments, f'--record={stopped}/results')
  assert 'recorded: 0 numbers, 0 in place of transcribed ones; 3 were' in merged
  for name in ('table.csv', 'table.md'):
    found, expected = (
      (path / 'out' / name).read_bytes() for path in (stopped, whole)
    )
    assert found == expected
