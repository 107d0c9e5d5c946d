"""The launcher of comparisons: bad input, before anything is trained."""

import re

from absl import flags
import numpy as np
import pytest

from tff_fair.launchers import cli
from tff_fair.launchers import compare
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.execution import pool as pool_lib
from tff_fair.launchers.runs import run_files

# Arguments | the message.
_REFUSED = r"""
ditto | every argument must be a flag, found 'ditto'.
--methods=dito | Each of --methods must be a known name, found 'dito'. Did you mean ditto?
--methods= | Each of --methods must be one of all, fair, personal, .*, found ''.
--rounds=0 | flag --rounds=0: 0 is not a positive integer.
--seeds=0 | flag --seeds=0: 0 is not a positive integer.
--tune=1 | --tune must be 0 or at least 2, found 1, which chooses nothing.
--seeds=101 | --seeds must be at most 100 with --tune=8, which chooses by seeds from there, found 101.
--parallel=0 | flag --parallel=0: 0 is not a positive integer.
--budget= | --budget must be a positive time with its unit, such as 2h or 90min, found ''.
--target=nan | --target must be a number in the range \[0.0, 1.0\], found nan.
--target=2 | flag --target=2: 2.0 is not a number in the range \[0.0, 1.0\].
--client_learning_rate=0.1 | --client_learning_rate must be given with --tune=0, found --tune=8, which tries learning rates of its own.
--data_dir=/no/such | --data_dir=/no/such must be a folder that can be read, found: no such folder.
--task=mnits | --task must be a known name, found 'mnits'. Did you mean mnist?
--task=table | --task=table must be given with --data_file and --label_column, found no --data_file.
--pca_dim=3 | --pca_dim must not be given with --partition=dirichlet, which leaves it without effect.
--algorithm=ditto | --algorithm is no flag of this program.
"""  # noqa: E501


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch):
  def fail(*_):
    raise AssertionError('No worker may be started.')

  monkeypatch.setattr(pool_lib, 'Pool', fail)


def _main(*arguments):
  flag_values = flags.FlagValues()
  compare.define_flags(flag_values)
  argv = cli.parse_flags(['compare', *arguments], flag_values)
  compare.main(argv, flag_values)


def _assert_fails(message, *arguments):
  with pytest.raises(SystemExit) as error:
    _main(*arguments)
  found = str(error.value)
  assert re.match(f'Error: .*{message}', found), (arguments, found)
  assert '\n' not in found


def test_bad_input_is_one_sentence(tmp_path):
  output_dir = tmp_path / 'out'
  for row in _REFUSED.strip('\n').splitlines():
    arguments, message = row.split(' | ')
    message = message.replace('?', r'\?').rstrip('.') + r'\.?$'
    _assert_fails(message, f'--output_dir={output_dir}', *arguments.split())
    assert not output_dir.exists(), arguments


def test_own_data_are_read_before_training(tmp_path):
  path = tmp_path / 'own.npz'
  np.savez(path, x=np.zeros([4, 2], np.float32), y=[0, 1, 0], client=[0] * 4)
  _assert_fails(
    'y must have an entry for each of the 4 examples of x',
    '--task=arrays',
    f'--data_file={path}',
    f'--output_dir={tmp_path}/out',
  )


def test_directories_that_cannot_be_used(tmp_path):
  (tmp_path / 'file').touch()
  for name in ('file', 'file/x'):
    _assert_fails(
      'must be a directory that can be written',
      f'--output_dir={tmp_path / name}',
    )
  held = tmp_path / 'held'
  with run_files.claim(held):
    _assert_fails(
      'must be written by one launcher at a time', f'--output_dir={held}'
    )
  other = tmp_path / 'other'
  planner = plan.Planner(
    shared={'task': 'digits'}, rounds=60, tune=8, output_dir=other
  )
  run = planner.run('ditto', 0, 0)
  run.output_dir.mkdir(parents=True)
  (run.output_dir / 'flags.txt').write_text('--rounds=7\n')
  arguments = (f'--output_dir={other}', '--methods=ditto')
  _assert_fails(
    'same flags, found that .*--rounds is 7 there and 60', *arguments
  )
