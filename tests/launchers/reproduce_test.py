"""The launcher of tables: bad input, before anything is trained."""

import re

import pytest
import tensorflow as tf

from tests.launchers import tiny_table
from tests.launchers.execution import here
from tff_fair.launchers.execution import pool
from tff_fair.launchers.tables import definitions


@pytest.fixture(autouse=True)
def _around(monkeypatch):
  def fail(*_, **__):
    raise OSError('no network')

  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
  monkeypatch.setattr(pool, 'Pool', here.Pool)
  monkeypatch.setattr(tf.keras.utils, 'get_file', fail)
  monkeypatch.setattr('tff_fair.tasks.idx.read', fail, raising=False)


# Arguments | the message.
_REFUSED = r"""
 | --table must be one of fedaboost_text, .*, found none
--table=tiny tiny | argument must be a flag, found 'tiny'
--table=tiny --cells=digits,mnist | Each of --cells must be one of digits, stand_in, found .mnist
--table=tiny --methods=ditto | Each of --methods must be one of standalone, fed_avg, cffl, found 'ditto'.$
--table=tiny --methods=cffl,ditto | Each of --methods must be one of standalone, fed_avg, cffl, found 'ditto'.$
--table=fedquad_table5 --cells=cifar10_beta0.5_m2.0_m0.5 --methods=fedquad,ditto | Each of --methods must be one of fedquad_without_ce, found 'fedquad'.$
--table=fedquad_table1 --cells=cifar10_centralised --methods=ditto | Each of --methods must be one of supervised, supcon, triplet, quadruplet, found 'ditto'.$
--table=tiny --data_dir=/no/such | --data_dir=/no/such must be a folder that can be read, found: no such
--table=tiny --seeds=0 | flag --seeds=0: 0 is not a positive integer
--table=tiny --rounds=0 | flag --rounds=0: 0 is not a positive integer
--table=tiny --parallel=0 | flag --parallel=0: 0 is not a positive integer
--table=tiny --budget=2 | --budget must be a positive time with its unit, such as 2h or 90min, found '2'
--table=tiny --only_record | --only_record must be given with --record, found it alone.$
--table=tiny --only_missing | --only_missing must be given with --record, found it alone.$
--table=tiny --record=/proc/results | --record=/proc/results must be a directory that can be written
--table=tiny --scale=0 | --scale must be above 0 and at most 1, found 0\.0\.$
--table=tiny --scale=-1 | --scale must be above 0 and at most 1, found -1\.0\.$
--table=tiny --scale=1.5 | --scale must be above 0 and at most 1, found 1\.5\.$
--table=tiny --scale=nan | --scale must be above 0 and at most 1, found nan\.$
--table=tiny --scale_clients=0 | --scale_clients must be above 0 and at most 1, found 0\.0\.$
--table=tiny --scale_clients=0.2 | --scale_clients must leave two clients or more of each cell, found 0\.2 of 5 in digits\.$
--table=fedakd_table4 --scale_clients=0.5 | --scale_clients must be 1 for the cell ehr, whose clients are those of the data, found 0\.5\.$
--table=tiny --scale=0.1 | num_examples must be in 1\.\.129, found 1000\.$
--table=cffl_table1 --cells=mnist_p5 | The data file 'mnist.npz' must lie in a data folder
--table=corefed_table1 --cells=fmnist | The data file 'fashion-mnist' .* --dataset=mnist uses other data inst
--table=corefed_table1 --cells=cifar10 --dataset=mnist | --dataset=mnist must be given with cells whose data it can replace, found only cifar10
--table=tiny --dataset=mnist | replace, found only digits, mnist
"""  # noqa: E501


def _assert_fails(tmp_path, message, *arguments):
  with pytest.raises(SystemExit) as error:
    tiny_table.main(
      f'--data_dir={tmp_path}', f'--output_dir={tmp_path}/out', *arguments
    )
  found = str(error.value)
  assert re.match(f'Error: .*{message}', found), (arguments, found)
  assert '\n' not in found
  assert not list(tmp_path.glob('out/*')), arguments


def test_bad_input_is_one_sentence(tmp_path):
  for row in _REFUSED.strip('\n').splitlines():
    arguments, message = row.split(' | ')
    _assert_fails(tmp_path, message, *arguments.split())


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
