"""The launcher of tables, end to end on a table of the embedded digits."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from launchers import train
from launchers.options import train_flags
from launchers.tables import definitions
from launchers.tables import published
from launchers.tables import table_runs
from tests import forked
from tests.launchers import tiny_table

_ROOT = pathlib.Path(__file__).parents[2]
_METHODS = {
  'standalone': 'standalone',
  'fed_avg': 'fed_avg',
  'cffl': 'cffl-upload_rate=0.5',
}


def _main(*arguments):
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
    patch.setattr(published, 'read', lambda: tiny_table.NUMBERS)
    tiny_table.main(*arguments)


@pytest.fixture(scope='module', name='arguments')
def _arguments(tmp_path_factory):
  path = tmp_path_factory.mktemp('tiny')
  return ['--table=tiny', '--rounds=2', '--seeds=2', f'--output_dir={path}']


@pytest.fixture(scope='module', name='output_dir')
def _output_dir(arguments):
  """The directory of the finished table."""
  _main(*arguments)
  return pathlib.Path(arguments[-1].split('=')[1])


def _run(output_dir, method, seed):
  """The directory of a run, which begins the rounds of all methods."""
  folder = output_dir / 'runs' / 'cffl_digits'
  (path,) = (
    path
    for path in folder.iterdir()
    if path.name.replace('-rounds=2', '') == _METHODS[method]
  )
  return path / f'seed_{seed}'


def _accuracies(output_dir, method, seed):
  clients = pd.read_csv(_run(output_dir, method, seed) / 'clients.csv')
  return clients['accuracy'].to_numpy()


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
  def test_one_row_a_number(self, output_dir):
    frame = pd.read_csv(output_dir / 'table.csv')
    assert set(frame['table']) == {'tiny'}
    # The CF coefficient of two methods and the accuracy of three, two cells.
    assert len(frame) == 2 * (2 + 3)
    assert not frame.duplicated(['cell', 'method', 'metric']).any()

  @pytest.mark.parametrize('method', _METHODS)
  def test_maximum_accuracy(self, output_dir, method):
    row = _row(
      output_dir, cell='digits', method=method, metric='client_accuracy_max'
    )
    values = [100 * _accuracies(output_dir, method, s).max() for s in (0, 1)]
    _assert_numbers(row, values)
    assert row['paper'] == row['difference'] == ''

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

  def test_one_model_for_all_has_no_cf_coefficient(self, output_dir):
    row = _row(output_dir, cell='digits', method='fed_avg', metric='cf')
    assert row['ours'] == 'undefined'
    assert row['values'] == 'undefined;undefined'
    assert (row['undefined'], row['paper']) == ('2', '3')
    assert row['difference'] == ''

  def test_what_differs_from_the_paper(self, output_dir):
    row = _row(output_dir, cell='stand_in', method='cffl', metric='cf')
    assert row['marks'] == 'data: digits, not mnist; rounds: 2, not 20'

  def test_markdown(self, output_dir):
    lines = [
      ' '.join(line.split())
      for line in (output_dir / 'table.md').read_text().splitlines()
    ]
    ours = _row(output_dir, cell='digits', method='cffl', metric='cf')
    mean, sd = float(ours['ours']), float(ours['sd'])
    shown = f'{mean:.2f} ± {sd:.2f} † / 99.00 ± 0.50'
    assert f'| digits | undefined † / 3.00 | {shown} |' in lines
    assert any(line.startswith('| stand_in | cffl | cf |') for line in lines)

  def test_figures(self, output_dir):
    assert {path.name for path in (output_dir / 'plots').iterdir()} == {
      f'tiny_{cell}_{picture}.png'
      for cell in ('digits', 'stand_in')
      for picture in ('scatter', 'cffl_client_accuracy', 'cffl_reputation')
    }


def test_a_run_is_the_command_that_stands_beside_it(output_dir, tmp_path):
  # Of the last run: what the runs before it left behind must not matter.
  row = _row(output_dir, cell='digits', method='cffl', metric='cf')
  command = row['commands'].split(' && ')[-1]
  text = command.split('launchers.train ')[1].split('; done')[0]
  arguments = text.replace('$seed', '1').split()
  *arguments, last = arguments
  reproduced = pathlib.Path(last.removeprefix('--output_dir='))
  assert reproduced == _run(output_dir, 'cffl', 1)
  train.main(
    ['train'], train_flags.parse([*arguments, f'--output_dir={tmp_path}'])
  )
  for name in ('metrics.csv', 'clients.csv', 'reports.csv'):
    expected = (reproduced / name).read_bytes()
    assert (tmp_path / name).read_bytes() == expected, name


def test_finished_runs_are_skipped(output_dir, arguments, capsys):
  table = (output_dir / 'table.csv').read_bytes()
  flags_file = _run(output_dir, 'cffl', 0) / 'flags.txt'
  before = flags_file.stat().st_mtime_ns
  _main(*arguments)
  said = capsys.readouterr().out
  assert 'seed_0: ' not in said
  assert 'python -m launchers.train' in said  # Of every row.
  assert said.startswith('# tiny\n') and 'CF coefficient' in said
  assert (output_dir / 'table.csv').read_bytes() == table
  assert flags_file.stat().st_mtime_ns == before


def test_cells_and_seeds_that_are_wanted(output_dir, arguments, capsys):
  del output_dir  # Its runs are there.
  _main(*arguments, '--seeds=1', '--cells=stand_in')
  said = capsys.readouterr().out
  assert 'stand_in' in said and '\n| digits' not in said
  _main(*arguments)  # As it was, for the other tests.


def test_a_line_for_each_run_and_no_more(tmp_path, capsys):
  _main(
    '--table=tiny', '--rounds=1', '--cells=digits', f'--output_dir={tmp_path}'
  )
  captured = capsys.readouterr()
  lines = captured.out.split('# tiny')[0].splitlines()
  names = [line.split(': ')[0] for line in lines]
  assert names == [
    '1/3 cffl_digits/standalone-rounds=1/seed_0',
    '2/3 cffl_digits/fedavg-rounds=1/seed_0',
    '3/3 cffl_digits/cffl-rounds=1-upload_rate=0.5/seed_0',
  ]


_SMALL = {'model': 'mlp_cffl_mnist', 'num_clients': 3, 'checkpoint_every': 1}
_PICTURES = definitions.Table(
  title='a table with pictures of embeddings',
  cells={
    'digits': definitions.Cell(preset='fedquad_digits', data='digits'),
    'one': definitions.Cell(
      preset='fedquad_digits', data='digits', methods=('without_ce',)
    ),
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


def _draw(*arguments):
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(definitions.TABLES, 'pictures', _PICTURES)
    patch.setattr(published, 'read', lambda: _PUBLISHED)
    tiny_table.main('--table=pictures', *arguments)


class TestPartOfTheData:
  """A table at a share of the data, of some methods, with embeddings."""

  @pytest.fixture(scope='class', name='scaled')
  def _scaled(self, tmp_path_factory):
    path = tmp_path_factory.mktemp('pictures')
    arguments = [
      '--scale=0.25', '--rounds=2', '--cells=digits', f'--output_dir={path}',
    ]  # fmt: skip
    _draw(*arguments)
    return path, arguments

  def test_runs_have_their_share_in_their_names(self, scaled):
    path, _ = scaled
    folders = [run.name for run in (path / 'runs/fedquad_digits').iterdir()]
    small = 'model=mlp_cffl_mnist-num_clients=3-rounds=2'
    assert sorted(folders) == [
      f'fedavg-checkpoint_every=1-data_fraction=0.25-{small}',
      f'fedquad-checkpoint_every=1-data_fraction=0.25-{small}',
      f'fedquad-checkpoint_every=1-data_fraction=0.25-{small}-use_ce=False',
    ]
    for clients in path.glob('runs/*/*/seed_0/clients.csv'):
      # A quarter of the 1,438 that are not tests.
      assert pd.read_csv(clients)['num_train'].sum() == 360

  def test_rows_say_so(self, scaled):
    path, _ = scaled
    frame = pd.read_csv(path / 'table.csv', dtype=str)
    assert frame['method'].tolist() == ['fed_avg', 'fedquad', 'without_ce']
    expected = 'share of the data: 0.25, not 1; rounds: 2, not 10'
    assert frame['marks'].tolist() == [expected] * 3
    assert expected in (path / 'table.md').read_text()
    assert frame['commands'].str.contains('--data_fraction=0.25 ').all()

  def test_a_method_may_be_printed_as_another(self, scaled):
    path, _ = scaled
    frame = pd.read_csv(path / 'table.csv').set_index('method')
    assert frame['paper'].fillna(0).to_dict() == {
      'fed_avg': 0, 'fedquad': 70, 'without_ce': 70,
    }  # fmt: skip

  def test_accuracy_is_that_of_the_global_model(self, scaled):
    path, _ = scaled
    found = pd.read_csv(path / 'table.csv').set_index('method')['ours']
    for summary in path.glob('runs/*/*/seed_0/summary.json'):
      method = summary.parents[1].name.split('-')[0]
      if 'use_ce' in str(summary):
        method = 'without_ce'
      final = json.loads(summary.read_text())['final']
      expected = pytest.approx(100 * final['global_accuracy'], rel=1e-5)
      assert found[method] == expected

  @pytest.mark.parametrize('figure_round', [None, 1])
  def test_embeddings_are_drawn(self, scaled, figure_round):
    path, arguments = scaled
    picture = path / 'plots/pictures_digits_embeddings.png'
    shutil.rmtree(path / 'plots')
    more = [f'--figure_round={figure_round}'] if figure_round else []
    _draw(*arguments, *more)
    assert list((path / 'plots').iterdir()) == [picture]

  def test_methods_that_are_wanted(self, scaled, capsys):
    path, arguments = scaled
    shutil.rmtree(path / 'plots')
    _draw(*arguments, '--methods=without_ce,fedquad')
    said = capsys.readouterr().out
    assert 'seed_0: ' not in said  # The runs are there.
    frame = pd.read_csv(path / 'table.csv')
    # In the order of the table.
    assert frame['method'].tolist() == ['fedquad', 'without_ce']
    assert len(list((path / 'plots').iterdir())) == 1
    _draw(*arguments)  # As it was, for the other tests.

  def test_a_checkpoint_that_is_gone_is_one_sentence(
    self, scaled, tmp_path, capsys
  ):
    path, arguments = scaled
    shutil.copytree(path / 'runs', tmp_path / 'runs')
    (gone,) = tmp_path.glob('runs/*/fedavg-*/seed_0/checkpoints/round_1')
    shutil.rmtree(gone)
    arguments = [*arguments[:-1], f'--output_dir={tmp_path}']
    with pytest.raises(
      SystemExit, match=r'^Error: .*seed_0 must hold a checkpoint of round 1, f'
    ) as error:
      _draw(*arguments, '--figure_round=1')
    assert '\n' not in str(error.value)
    # The numbers are there all the same.
    assert len(pd.read_csv(tmp_path / 'table.csv')) == 3
    _draw(*arguments, '--figure_round=2')


def test_data_that_stand_in(tmp_path):
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
  for metric, row in rows.iterrows():
    assert row['ours'] == pytest.approx(final[metric], rel=1e-5)
  # The paper prints fractions, and two distances in a space of its own.
  assert rows['paper'].dropna().to_dict() == {
    'client_accuracy_mean': 0.861,
    'parameters_d_cosine': 0.12704,
    'parameters_d_manhattan': 52.88,
    'embedding_d_cosine': 0.12704,
    'embedding_d_manhattan': 52.88,
  }


_DIGITS = ('--table=tiny', '--cells=digits', '--output_dir=out')


@pytest.fixture(scope='module', name='whole_table')
def _whole_table(tmp_path_factory):
  """The directory of a table that was not stopped."""
  path = tmp_path_factory.mktemp('whole')
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(path)
    _main(*_DIGITS)
  return path / 'out'


@pytest.mark.full
@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_table_goes_on_to_the_same_result(
  tmp_path, number, whole_table
):
  killed = forked.start('tests.launchers.tiny_table', *_DIGITS, cwd=tmp_path)
  output_dir = tmp_path / 'out'
  second = output_dir / 'runs/cffl_digits/fed_avg/seed_0/metrics.csv'
  deadline = time.monotonic() + 200
  while not second.exists() or second.read_text().count('\n') < 5:
    assert killed.returncode is None and time.monotonic() < deadline
    time.sleep(0.01)
  killed.send_signal(number)
  assert killed.wait(60) != 0
  assert not (output_dir / 'table.csv').exists()
  if number == signal.SIGTERM:
    assert 'Error: stopped after round' in killed.stderr
    assert 'Traceback' not in killed.stderr
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(tmp_path)
    _main(*_DIGITS)
  for name in ('table.csv', 'table.md'):
    found, expected = (
      (path / name).read_bytes() for path in (output_dir, whole_table)
    )
    assert found == expected


def test_help_does_not_import_tensorflow():
  script = 'import sys, launchers.reproduce; print("tensorflow" in sys.modules)'
  command = [sys.executable, '-c', script]
  assert subprocess.check_output(command, cwd=_ROOT, text=True) == 'False\n'


class TestBadInput:
  """One clear sentence and a failure, before anything is trained."""

  def _fails(self, message, *arguments):
    with pytest.raises(SystemExit, match=message) as error:
      _main(*arguments)
    assert '\n' not in str(error.value)

  def test_no_table(self):
    self._fails('Error: --table must be one of cffl_table1, .*, found none')

  def test_unknown_table(self):
    with pytest.raises(Exception, match='value should be one of <cffl_table1'):
      _main('--table=cffl_table9')

  def test_unknown_cell(self):
    self._fails(
      'Error: --cells must be one or more of digits, stand_in, found .mnist',
      '--table=tiny',
      '--cells=digits,mnist',
    )

  @pytest.mark.parametrize('flag', ['seeds', 'rounds', 'figure_round'])
  def test_numbers_below_1(self, flag):
    message = f'Error: --{flag} must be at least 1, found 0'
    self._fails(message, '--table=tiny', f'--{flag}=0')

  @pytest.mark.parametrize('value', ['0', '-1', '1.5', 'nan'])
  def test_share_of_the_data_out_of_range(self, value):
    self._fails(
      rf'Error: --scale must be above 0 and at most 1, found {float(value)}\.$',
      '--table=tiny',
      f'--scale={value}',
    )

  def test_more_examples_than_the_share_has(self, tmp_path):
    # A tenth of the 1,294 that are neither for tests nor for validation; the
    # preset deals 1,000.
    self._fails(
      r'Error: num_examples must be in 1\.\.129, found 1000\.$',
      '--table=tiny',
      '--scale=0.1',
      f'--output_dir={tmp_path}',
    )
    assert not list(tmp_path.iterdir())

  @pytest.mark.parametrize(
    ('table', 'arguments', 'known'),
    [
      ('tiny', ['--methods=ditto'], 'standalone, fed_avg, cffl'),
      ('tiny', ['--methods=cffl,ditto'], 'standalone, fed_avg, cffl'),
      (
        'fedquad_table5',
        ['--cells=cifar10_beta0.5_m2.0_m0.5', '--methods=fedquad,ditto'],
        'fedquad_without_ce',
      ),
      (
        'fedquad_table1',
        ['--cells=cifar10_centralised', '--methods=ditto'],
        'supervised, supcon, triplet, quadruplet',
      ),
    ],
  )
  def test_unknown_method(self, table, arguments, known):
    found = 'fedquad' if table == 'fedquad_table5' else 'ditto'
    self._fails(
      f"^Error: --methods must be one or more of {known}, found '{found}'.$",
      f'--table={table}',
      *arguments,
    )

  def test_figure_round_of_a_table_without_embeddings(self):
    self._fails(
      'Error: --figure_round must be given with a table that draws embeddings,'
      ' found 2 with one that does not.',
      '--table=tiny',
      '--figure_round=2',
    )

  @pytest.mark.parametrize(
    'arguments', [['--methods=moon'], ['--cells=cifar10_centralised']]
  )
  def test_figure_round_where_no_embeddings_are_drawn(
    self, arguments, tmp_path, monkeypatch
  ):
    def fail():
      raise OSError('no network')

    monkeypatch.setattr(tf.keras.datasets.cifar10, 'load_data', fail)
    self._fails(
      'Error: --figure_round must be given with',
      '--table=fedquad_table1',
      '--figure_round=5',
      f'--data_dir={tmp_path}',
      f'--output_dir={tmp_path}',
      *arguments,
    )

  @pytest.mark.parametrize(
    ('arguments', 'kept'),
    [
      (['--figure_round=3'], '5, 10, 15, 20'),
      (['--figure_round=25'], '5, 10, 15, 20'),
      (['--figure_round=5', '--rounds=3'], '3'),
      (['--figure_round=5', '--rounds=27'], '15, 20, 25, 27'),
    ],
  )
  def test_figure_round_without_a_checkpoint(self, arguments, kept, tmp_path):
    number = arguments[0].split('=')[1]
    self._fails(
      'Error: --figure_round must be a round whose checkpoint is kept'
      rf' \({kept}\), found {number}\.$',
      '--table=fedquad_table1',
      f'--output_dir={tmp_path}/out',
      *arguments,
    )
    assert not list(tmp_path.iterdir())

  def test_argument_that_is_no_flag(self):
    self._fails("must be a flag, found 'tiny'", '--table=tiny', 'tiny')

  def test_directory_that_cannot_be_written(self, tmp_path):
    (tmp_path / 'file').touch()
    self._fails(
      'must be a directory that can be written, found: Not a directory',
      '--table=tiny',
      f'--output_dir={tmp_path}/file/x',
    )

  def test_missing_data(self, tmp_path, monkeypatch):
    def fail():
      raise OSError('no network')

    monkeypatch.setattr(tf.keras.datasets.mnist, 'load_data', fail)
    self._fails(
      "Error: The data file 'mnist.npz' must lie in a data folder",
      '--table=cffl_table1',
      '--cells=mnist_p5',
      f'--data_dir={tmp_path}',
      f'--output_dir={tmp_path}/out',
    )
    assert not list((tmp_path / 'out').iterdir())

  def test_missing_data_that_others_stand_in_for(self, tmp_path, monkeypatch):
    def fail():
      raise OSError('no network')

    monkeypatch.setattr(tf.keras.datasets.fashion_mnist, 'load_data', fail)
    self._fails(
      "Error: The data file 'fashion-mnist' .* --dataset=mnist takes other data"
      ' in its place',
      '--table=corefed_table1',
      '--cells=fmnist',
      f'--data_dir={tmp_path}',
      f'--output_dir={tmp_path}/out',
    )

  @pytest.mark.parametrize(
    ('arguments', 'found'),
    [
      (['--table=corefed_table1', '--cells=cifar10'], 'cifar10'),
      (['--table=tiny'], 'digits'),
    ],
  )
  def test_data_that_stand_in_for_nothing(self, arguments, found):
    self._fails(
      'Error: --dataset=mnist must be given with cells whose data it can stand'
      f' in for, found only {found}.',
      *arguments,
      '--dataset=mnist',
    )

  def test_directory_of_other_runs(self, tmp_path):
    planner = table_runs.Planner(
      tiny_table.TABLE,
      num_seeds=1,
      rounds=None,
      scale=1.0,
      dataset=None,
      data_dir=None,
      output_dir=tmp_path,
    )
    folder = planner.run('digits', 'cffl', 0).output_dir
    folder.mkdir(parents=True)
    (folder / 'flags.txt').write_text('--rounds=7\n')
    self._fails(
      'must be a new directory or hold a run with the same flags',
      '--table=tiny',
      f'--output_dir={tmp_path}',
    )


@pytest.fixture(autouse=True)
def _default_runtime_again():
  """`main` sets its own context; the other tests expect theirs afterwards."""
  yield
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')
