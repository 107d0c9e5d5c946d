"""The benchmark: what it counts and writes, not how long anything takes."""

import pathlib
import subprocess
import sys

from absl import flags
import numpy as np
import pandas as pd
import pytest

from launchers import benchmark
from launchers.timing import round_times
from launchers.timing import startup
from launchers.timing import workloads
from tests import forked
from tff_fair import runtime

_ROOT = pathlib.Path(__file__).parents[2]
_COLUMNS = [
  'work', 'contender', 'reference', 'median_seconds', 'min_seconds',
  'max_seconds', 'ratio', 'rounds',
]  # fmt: skip


def _main(*arguments):
  flag_values = flags.FlagValues()
  benchmark.define_flags(flag_values)
  benchmark.main(flag_values(['benchmark', *arguments]), flag_values)


def _fails(message, *arguments):
  with pytest.raises(SystemExit) as error:
    _main(*arguments)
  # Python prints a text to stderr, and ends with code 1.
  assert error.value.code == message


@pytest.fixture(autouse=True)
def _default_runtime_again():
  """A benchmark sets its own context; the other tests expect theirs."""
  yield
  runtime.set_execution_context('device', device='cpu')


@pytest.fixture(name='works')
def _works(monkeypatch):
  """The module of the works, with little data."""
  examples = workloads._examples
  monkeypatch.setattr(
    workloads,
    '_examples',
    lambda num_clients, num_examples, shape: examples(2, 20, shape),
  )
  monkeypatch.setattr(workloads, '_TABLE_COLUMNS', 7)
  monkeypatch.setattr(workloads, '_REUSE_COHORT', 2)
  return workloads


def test_contenders_take_turns():
  log = []
  contenders = {'a': lambda: log.append('a'), 'b': lambda: log.append('b')}
  seconds = round_times.time_rounds('work', contenders, 3)
  assert log == ['a', 'b', 'a', 'b', 'a', 'b']
  assert list(seconds) == ['a', 'b']
  assert all(len(times) == 3 for times in seconds.values())


def test_summary_leaves_out_the_first_two_rounds():
  table = round_times.summarize(
    {
      'A': {'stock': [90, 80, 6, 2, 4], 'device': [70, 60, 3, 1, 0.5]},
      'table': {'stock': [9, 9, 8], 'device': [9, 9, 16]},
    }
  )
  assert list(table) == _COLUMNS
  assert table.to_numpy().tolist() == [
    ['A', 'stock', 'stock', 4, 2, 6, 1, 5],
    ['A', 'device', 'stock', 1, 0.5, 3, 4, 5],
    ['table', 'stock', 'stock', 8, 8, 8, 1, 3],
    ['table', 'device', 'stock', 16, 16, 16, 0.5, 3],
  ]
  *_, last = round_times.to_text(table).splitlines()
  assert last.split() == [
    'table', 'device', 'stock', '16.0000', '16.0000', '16.0000', '0.50', '3',
  ]  # fmt: skip


def test_starts_are_divided_into_phases():
  phases = startup._durations(10.0, {'import': 10.5, 'round': 12.0})
  assert phases == {'import': 0.5, 'round': 1.5, 'total': 2.0}


def test_medians_of_starts(monkeypatch):
  starts = {'stock': iter([5.0, 9.0, 6.0]), 'device': iter([3.0, 1.0, 2.0])}
  turns = []

  def time_start(name, options):
    turns.append((name, options))
    return {'import': 0.5, 'total': next(starts[name])}

  monkeypatch.setattr(startup, '_time_start', time_start)
  options = {'device': 'cpu'}
  table = startup.time_starts(['stock', 'device'], options)
  assert turns == [('stock', options), ('device', options)] * 3
  assert list(table) == ['contender', 'phase', 'seconds']
  assert table.to_numpy().tolist() == [
    ['stock', 'import', 0.5],
    ['stock', 'total', 6.0],
    ['device', 'import', 0.5],
    ['device', 'total', 2.0],
  ]
  shown = [line.split() for line in startup.to_text(table).splitlines()]
  assert shown == [
    ['stock', 'device'],
    ['import', '0.50', '0.50'],
    ['total', '6.00', '2.00'],
  ]


@pytest.mark.parametrize('work', benchmark.WORKS)
def test_every_work_has_a_function(work, works):
  assert callable(getattr(works, benchmark.WORKS[work]))


@pytest.mark.parametrize(
  ('work', 'names'),
  [
    ('A', ['native', 'stock', 'device']),
    ('B', ['native', 'stock', 'device']),
    ('table', ['stock', 'device']),
    ('fedaboost', ['fed_avg', 'fedaboost']),
    ('cffl', ['fed_avg', 'cffl', 'cffl_sparse']),
    ('corefed_cnn', ['fed_avg', 'corefed']),
    ('corefed_mlp', ['fed_avg', 'corefed']),
    ('fedquad', ['fed_avg', 'fedquad', 'triplet_fl', 'supcon_fl', 'moon']),
    ('fedakd', ['fed_avg', 'fedakd', 'fedakd_all_data', 'cgsv']),
    ('quadruplets', ['fedavg_1024_images', 'quadruplets_50000_labels']),
    ('population', ['of_100', 'of_10000']),
  ],
)
def test_every_work_runs_its_contenders(work, names, works):
  setup = works.build_setup(['native', 'stock', 'device'], {'device': 'cpu'})
  contenders = getattr(works, benchmark.WORKS[work])(setup)
  assert list(contenders) == names
  for run_round in contenders.values():
    run_round()
    run_round()


@pytest.mark.parametrize(
  ('work', 'asked'),
  [
    ('fedquad', '4 clients of 256 examples of shape [32, 32, 3]'),
    ('quadruplets', '1 clients of 1024 examples of shape [32, 32, 3]'),
  ],
)
def test_the_data_of_fedquad_s_works(work, asked, monkeypatch):
  def refuse(num_clients, num_examples, shape):
    raise LookupError(
      f'{num_clients} clients of {num_examples} examples of shape {shape}'
    )

  monkeypatch.setattr(workloads, '_examples', refuse)
  setup = workloads.build_setup(['device'], {'device': 'cpu'})
  with pytest.raises(LookupError) as caught:
    getattr(workloads, benchmark.WORKS[work])(setup)
  assert str(caught.value) == asked


def test_the_drawing_is_of_50_000_labels_and_new_each_time(works):
  setup = works.build_setup(['device'], {'device': 'cpu'})
  _, draw = works.quadruplets(setup).values()
  drawn = []
  for _ in range(2):
    draw()
    _, quadruplets = draw._state
    drawn.append(quadruplets.positive)
  assert drawn[0].shape == drawn[1].shape == (50000,)
  # Among 500 of a class the same one is hardly ever drawn again.
  assert (drawn[0] != drawn[1]).mean() > 0.99
  # The labels, as the benchmark draws them.
  labels = np.random.default_rng(0).integers(100, size=50000, dtype=np.int32)
  assert (labels[drawn[0]] == labels).all()
  assert quadruplets.mask_2.all()


def test_the_table_counts_how_often_each_client_took_part(works):
  setup = works.build_setup(['stock', 'device'], {})
  contenders = works.client_table(setup)
  tables = {}
  for name, run_round in contenders.items():
    for _ in range(3):
      run_round()
    tables[name] = run_round._state
  assert tables['device'].shape == (100, 7)
  assert tables['device'].sum() == 3 * 20 * 7
  assert (tables['device'] == tables['stock']).all()


def test_writes_and_prints_the_table(works, tmp_path, capsys):
  _main(
    '--works=population,fedaboost', '--rounds=4', f'--output_dir={tmp_path}'
  )
  assert [path.name for path in tmp_path.iterdir()] == ['benchmark.csv']
  table = pd.read_csv(tmp_path / 'benchmark.csv')
  assert list(table) == _COLUMNS
  assert table['contender'].tolist() == [
    'of_100', 'of_10000', 'fed_avg', 'fedaboost',
  ]  # fmt: skip
  assert table['rounds'].tolist() == [4] * 4
  assert table['ratio'][[0, 2]].tolist() == [1, 1]
  assert (table['min_seconds'] > 0).all()
  said = capsys.readouterr()
  assert 'rounds 3 to 4' in said.out and 'of_10000' in said.out
  assert not said.err  # No progress: this is no terminal.


def test_the_report_tells_what_the_times_are_of(works, tmp_path, capsys):
  _main('--works=quadruplets', '--rounds=3', f'--output_dir={tmp_path}')
  *_, last = capsys.readouterr().out.splitlines()
  # 50,000 / 1,024
  assert last == (
    'quadruplets: the epoch is of 1,024 images; one of 50,000, as many as there'
    ' are labels, takes 48.8 times as long.'
  )
  table = pd.read_csv(tmp_path / 'benchmark.csv')
  assert table['contender'].tolist() == [
    'fedavg_1024_images', 'quadruplets_50000_labels',
  ]  # fmt: skip
  assert (table['reference'] == 'fedavg_1024_images').all()


def test_starts_alone_are_written_to_a_file_of_their_own(
  monkeypatch, tmp_path, capsys
):
  monkeypatch.setattr(
    startup, '_time_start', lambda *_: {'import': 1.0, 'total': 2.0}
  )
  _main('--works=start', f'--output_dir={tmp_path}')
  assert [path.name for path in tmp_path.iterdir()] == ['start.csv']
  table = pd.read_csv(tmp_path / 'start.csv')
  assert table['contender'].unique().tolist() == ['stock', 'device']
  assert 'total' in capsys.readouterr().out


@pytest.mark.full
@pytest.mark.parametrize('contender', ['stock', 'device'])
def test_a_start_has_all_phases(contender):
  phases = startup._time_start(contender, {})
  assert list(phases) == [
    'start Python', 'import TensorFlow', 'import TFF', 'import tff_fair',
    'build process', 'first round', 'total',
  ]  # fmt: skip
  assert all(seconds > 0 for seconds in phases.values())


def test_help_does_not_import_tensorflow():
  script = (
    'import sys, launchers.benchmark;'
    'print({"tensorflow", "pandas"} & set(sys.modules))'
  )
  command = [sys.executable, '-c', script]
  said = subprocess.check_output(command, cwd=_ROOT, text=True)
  assert said == 'set()\n'


class TestBadInput:
  """One clear sentence and a failure, before anything is timed."""

  def test_unknown_work(self):
    _fails(
      'Error: --works must be one or more of A, B, table, fedaboost, cffl,'
      ' corefed_cnn, corefed_mlp, fedquad, fedakd, quadruplets, population,'
      " start, found 'C'.",
      '--works=A,C',
    )

  @pytest.mark.parametrize('found', ['device', ''])
  def test_unknown_reference(self, found):
    _fails(
      'Error: --against must be one or more of stock, native, remote, found'
      f' {found!r}.',
      f'--against={found}',
    )

  def test_a_start_on_workers_that_run_already(self):
    _fails(
      'Error: --works=start must not be given with --against=remote, whose'
      ' workers run already.',
      '--works=start',
      '--against=remote',
    )

  def test_too_few_rounds(self):
    _fails('Error: --rounds must be at least 3, found 2.', '--rounds=2')

  def test_argument_that_is_no_flag(self):
    _fails("Error: every argument must be a flag, found 'A'.", 'A')

  def test_directory_that_cannot_be_written(self, tmp_path):
    (tmp_path / 'file').write_text('')
    _fails(
      f'Error: --output_dir={tmp_path}/file/run must be a directory that can'
      ' be written, found: Not a directory.',
      f'--output_dir={tmp_path}/file/run',
    )

  def test_device_that_is_not_there(self, tmp_path):
    with pytest.raises(SystemExit, match='^Error: --device must be .*gpu:99'):
      _main('--works=A', '--device=gpu:99', f'--output_dir={tmp_path}')

  def test_start_that_fails(self, tmp_path, monkeypatch):
    # It fails after the imports, which need not be new.
    monkeypatch.setattr(
      subprocess, 'run', lambda command, **_: forked.run(*command[2:])
    )
    with pytest.raises(SystemExit, match='^Error: A start of device must end'):
      _main(
        '--works=start',
        '--against=native',
        '--device=gpu:99',
        f'--output_dir={tmp_path}',
      )

  def test_refused_on_the_command_line(self):
    result = subprocess.run(
      [sys.executable, '-m', 'launchers.benchmark', '--rounds=0'],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      check=False,
    )
    assert result.returncode == 1
    assert result.stderr == 'Error: --rounds must be at least 3, found 0.\n'
