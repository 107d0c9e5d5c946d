"""The launcher of tables: bad input, before anything is trained."""

import re

import pytest
import tensorflow as tf

from launchers.tables import definitions
from tests.launchers import tiny_table


@pytest.fixture(autouse=True)
def _around(monkeypatch):
  def fail(*_):
    raise OSError('no network')

  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
  for name in ('mnist', 'fashion_mnist', 'cifar10'):
    monkeypatch.setattr(getattr(tf.keras.datasets, name), 'load_data', fail)
  monkeypatch.setattr('tasks.idx.read', fail, raising=False)
  yield
  # `main` sets its own context; the other tests expect theirs afterwards.
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')


def _assert_fails(tmp_path, message, *arguments):
  with pytest.raises(SystemExit) as error:
    tiny_table.main(
      f'--data_dir={tmp_path}', f'--output_dir={tmp_path}/out', *arguments
    )
  found = str(error.value)
  assert re.match(f'Error: .*{message}', found), (arguments, found)
  assert '\n' not in found
  assert not list(tmp_path.glob('out/*')), arguments


def test_names_that_do_not_exist(tmp_path):
  for arguments, message in (
    ([], '--table must be one of cffl_table1, .*, found none'),
    (['--table=tiny', 'tiny'], "argument must be a flag, found 'tiny'"),
    (
      ['--table=tiny', '--cells=digits,mnist'],
      '--cells must be one or more of digits, stand_in, found .mnist',
    ),
    *(
      (
        [f'--table={table}', *arguments],
        f"--methods must be one or more of {known}, found '{found}'.$",
      )
      for table, arguments, known, found in (
        ('tiny', ['--methods=ditto'], 'standalone, fed_avg, cffl', 'ditto'),
        (
          'tiny',
          ['--methods=cffl,ditto'],
          'standalone, fed_avg, cffl',
          'ditto',
        ),
        # Methods of the table that do not run in the cell.
        (
          'fedquad_table5',
          ['--cells=cifar10_beta0.5_m2.0_m0.5', '--methods=fedquad,ditto'],
          'fedquad_without_ce',
          'fedquad',
        ),
        (
          'fedquad_table1',
          ['--cells=cifar10_centralised', '--methods=ditto'],
          'supervised, supcon, triplet, quadruplet',
          'ditto',
        ),
      )
    ),
  ):
    _assert_fails(tmp_path, message, *arguments)
  with pytest.raises(Exception, match='value should be one of <cffl_table1'):
    tiny_table.main('--table=cffl_table9')


def test_numbers_out_of_range(tmp_path):
  for flag in ('seeds', 'rounds', 'figure_round'):
    message = f'--{flag} must be at least 1, found 0'
    _assert_fails(tmp_path, message, '--table=tiny', f'--{flag}=0')
  for value in ('0', '-1', '1.5', 'nan'):
    _assert_fails(
      tmp_path,
      rf'--scale must be above 0 and at most 1, found {float(value)}\.$',
      '--table=tiny',
      f'--scale={value}',
    )
  # A tenth of the 1,294 that are neither for tests nor for validation; the
  # preset deals 1,000.
  _assert_fails(
    tmp_path,
    r'num_examples must be in 1\.\.129, found 1000\.$',
    '--table=tiny',
    '--scale=0.1',
  )


def test_rounds_of_embeddings_that_will_not_exist(tmp_path):
  for arguments, message in (
    (
      ['--table=tiny', '--figure_round=2'],
      'given with a table that draws embeddings, found 2 with one that does',
    ),
    *(
      (
        ['--table=fedquad_table1', '--figure_round=5', argument],
        '--figure_round must be given with',
      )
      for argument in ('--methods=moon', '--cells=cifar10_centralised')
    ),
    *(
      (
        ['--table=fedquad_table1', f'--figure_round={number}', *others],
        '--figure_round must be a round whose checkpoint is kept'
        rf' \({kept}\), found {number}\.$',
      )
      for number, others, kept in (
        (3, [], '5, 10, 15, 20'),
        (25, [], '5, 10, 15, 20'),
        (5, ['--rounds=3'], '3'),
        (5, ['--rounds=27'], '15, 20, 25, 27'),
      )
    ),
  ):
    _assert_fails(tmp_path, message, *arguments)


def test_missing_data(tmp_path):
  for arguments, message in (
    (
      ['--table=cffl_table1', '--cells=mnist_p5'],
      "The data file 'mnist.npz' must lie in a data folder",
    ),
    (
      ['--table=corefed_table1', '--cells=fmnist'],
      "The data file 'fashion-mnist' .* --dataset=mnist uses other data inst",
    ),
    (
      ['--table=corefed_table1', '--cells=cifar10', '--dataset=mnist'],
      '--dataset=mnist must be given with cells whose data it can replace,'
      ' found only cifar10',
    ),
    (['--table=tiny', '--dataset=mnist'], 'replace, found only digits, mnist'),
  ):
    _assert_fails(tmp_path, message, *arguments)


def test_directories_that_cannot_be_used(tmp_path):
  (tmp_path / 'file').touch()
  _assert_fails(
    tmp_path,
    'must be a directory that can be written, found: Not a directory',
    '--table=tiny',
    f'--output_dir={tmp_path}/file/x',
  )
  other = tmp_path / 'other'
  folder = tiny_table.planner(output_dir=other).run('digits', 'cffl', 0)
  folder.output_dir.mkdir(parents=True)
  (folder.output_dir / 'flags.txt').write_text('--rounds=7\n')
  _assert_fails(
    tmp_path,
    'must be a new directory or hold a run with the same flags',
    '--table=tiny',
    f'--output_dir={other}',
  )
