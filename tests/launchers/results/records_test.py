"""The files of recorded numbers: reading, merging, refusing."""

import numpy as np
import pandas as pd
import pytest

from tests.launchers import tiny_table
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)


def _row(**values):
  return {
    'table': 'tiny',
    'cell': 'digits',
    'method': 'cffl',
    'data': 'digits',
    'seed': '0',
    'scale': 1.0,
    'rounds': 20,
    'metric': 'cf',
    'value': 0.1 + 0.2,
    'sd': np.nan,
    'source': 'run',
    'version': '0.1.0+a',
    'settings': 'abc',
    'seconds': 1.5,
    'command': 'python -m launchers.train',
    **values,
  }


def _frame(*rows):
  return pd.DataFrame(rows, columns=list(records.COLUMNS))


def _transcribed(**values):
  return _row(source='transcribed', version='', settings='', **values)


def test_rows_come_back_in_the_order_of_the_table(tmp_path):
  rows = [
    _row(metric='client_accuracy_max', value=90.0, seconds=np.nan),
    _row(seed='10', value=np.nan),
    _row(seed='2'),
    _row(scale=0.5),
    _row(method='fed_avg', seed='3'),
    _row(cell='stand_in', data='mnist'),
  ]
  expected = _frame(*(rows[i] for i in (4, 2, 1, 3, 0, 5)))
  done = records.add(tmp_path, _frame(*rows))
  assert done == (6, 0, 0)
  pd.testing.assert_frame_equal(records.read(tmp_path), expected)
  # The same rows, in whatever order and in how many calls, are the same file.
  other = tmp_path / 'other'
  other.mkdir()
  for row in reversed(rows):
    records.add(other, _frame(row))
  texts = [(p / 'tiny.csv').read_text() for p in (tmp_path, other)]
  assert texts[0] == texts[1]
  assert records.add(tmp_path, _frame(*rows)) == (0, 0, 6)


def test_no_folder_and_other_files_are_no_rows(tmp_path):
  (tmp_path / 'compare_digits.csv').write_text('another thing')
  assert records.read(tmp_path).empty
  assert list(records.read(tmp_path / 'none')) == list(records.COLUMNS)


def test_a_run_replaces_what_was_transcribed(tmp_path):
  records.add(tmp_path, _frame(_transcribed(value=0.3), _transcribed(seed='1')))
  assert records.add(tmp_path, _frame(_row())) == (0, 1, 0)
  assert records.add(tmp_path, _frame(_transcribed(value=0.3))) == (0, 0, 1)
  assert records.read(tmp_path)['source'].tolist() == ['run', 'transcribed']


def test_a_transcribed_mean_goes_when_all_its_seeds_are_there(tmp_path):
  mean = _transcribed(seed='0-1', value=3.0, sd=0.1)
  records.add(tmp_path, _frame(mean, _row()))
  # Of another scale.
  records.add(tmp_path, _frame(_row(seed='1', scale=0.5)))
  assert '0-1' in set(records.read(tmp_path)['seed'])
  assert records.add(tmp_path, _frame(_row(seed='1'))) == (1, 1, 0)
  assert '0-1' not in set(records.read(tmp_path)['seed'])


@pytest.mark.parametrize(
  'change, found',
  [
    ({'value': 0.3}, 'the value 0.30000000000000004 and 0.3 of the versions'),
    ({'settings': 'abd'}, 'the settings abc and abd of the versions'),
    ({'value': np.nan}, 'the value 0.30000000000000004 and nan'),
  ],
)
def test_another_number_of_the_same_run_is_refused(tmp_path, change, found):
  records.add(tmp_path, _frame(_row()))
  before = (tmp_path / 'tiny.csv').read_text()
  with pytest.raises(records.RecordsError, match=found):
    records.add(
      tmp_path, _frame(_row(seed='7'), _row(version='0.1.0+b', **change))
    )
  assert (tmp_path / 'tiny.csv').read_text() == before


# Change of the csv text | the message.
_DAMAGED = [
  (('table,cell', 'cell,table'), 'must have the columns table, cell'),
  (('\ntiny,', '\ncffl_table1,'), 'must be of the table tiny, found cffl_t'),
  ((',digits,cffl', ',mnist,cffl'), 'Line 2 .* The cell must be one of'),
  ((',cffl,', ',cfl,'), 'The method must be a known name, found .cfl'),
  ((',cf,', ',fc,'), 'The metric must be one of .*, found .fc'),
  ((',run,', ',seen,'), 'The source must be one of run, transcribed'),
  ((',20,', ',,'), "must have a number as rounds, found ''"),
  (('0.30000000000000004', 'inf'), "must have a number as value, found 'inf'"),
  ((',0,1.0', ',one,1.0'), "must have a seed, .*, found 'one'"),
  ((',0,1.0', ',0-2,1.0'), "must have a seed, .*, found '0-2'"),
  (('', '"'), 'must be a csv file of results, found: Error tokenizing'),
]


@pytest.mark.parametrize('change, message', _DAMAGED)
def test_a_damaged_file_is_one_sentence(tmp_path, change, message):
  records.add(tmp_path, _frame(_row()))
  path = tmp_path / 'tiny.csv'
  text = path.read_text()
  path.write_text(text.replace(*change, 1) if change[0] else text + change[1])
  with pytest.raises(records.RecordsError, match=message):
    records.read(tmp_path)


def test_a_number_twice_is_refused(tmp_path):
  records.add(tmp_path, _frame(_row()))
  path = tmp_path / 'tiny.csv'
  path.write_text(path.read_text() + path.read_text().splitlines()[1] + '\n')
  with pytest.raises(records.RecordsError, match='each number once, found tab'):
    records.read(tmp_path)
