"""The files of recorded numbers: reading, merging, refusing."""

import contextlib
import os
import threading

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
    'clients': 1.0,
    'rounds': 20,
    'metric': 'cf',
    'value': 0.1 + 0.2,
    'sd': np.nan,
    'source': 'run',
    'version': '0.1.0+a',
    'processor': '',
    'settings': 'abc',
    'seconds': 1.5,
    'command': 'python -m launchers.train',
    **values,
  }


def _frame(*rows):
  return pd.DataFrame(rows, columns=list(records.COLUMNS))


def _write(folder, *rows):
  """A file with rows, some of which may be transcribed."""
  _frame(*rows).to_csv(folder / 'tiny.csv', index=False)


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


def test_shares_of_the_clients_are_written_where_some_have_fewer(tmp_path):
  records.add(tmp_path, _frame(_row()))
  assert 'clients' not in (tmp_path / 'tiny.csv').read_text()
  records.add(tmp_path, _frame(_row(clients=0.25, value=5.0)))
  found = records.read(tmp_path)
  assert found[['clients', 'value']].to_numpy().tolist() == [
    [1, 0.1 + 0.2],
    [0.25, 5],
  ]


def test_processors_are_written_where_some_are_known(tmp_path):
  records.add(tmp_path, _frame(_row()))
  assert 'processor' not in (tmp_path / 'tiny.csv').read_text()
  records.add(tmp_path, _frame(_row(seed='1', processor='A CPU, AVX2')))
  found = records.read(tmp_path)['processor']
  assert found.tolist() == ['', 'A CPU, AVX2']
  other = _row(seed='1', processor='A CPU, AVX-512', value=0.3)
  message = 'and the processors A CPU, AVX2 and A CPU, AVX-512;'
  with pytest.raises(records.RecordsError, match=message):
    records.add(tmp_path, _frame(other))


def test_no_folder_and_other_files_are_no_rows(tmp_path):
  (tmp_path / 'compare_digits.csv').write_text('another thing')
  assert records.read(tmp_path).empty
  assert list(records.read(tmp_path / 'none')) == list(records.COLUMNS)


def test_a_run_replaces_what_was_transcribed(tmp_path):
  mean = _transcribed(seed='4-5', value=3.0, sd=0.1)
  _write(tmp_path, _transcribed(value=0.3), _transcribed(seed='1'), mean)
  assert records.add(tmp_path, _frame(_row(), _row(seed='4'))) == (1, 1, 0)
  found = records.read(tmp_path)[['seed', 'source']].to_records(index=False)
  assert found.tolist() == [
    ('0', 'run'),
    ('1', 'transcribed'),
    ('4', 'run'),
    ('4-5', 'transcribed'),
  ]
  # A mean goes once all its seeds are there, of this scale.
  records.add(tmp_path, _frame(_row(seed='5', scale=0.5)))
  assert '4-5' in set(records.read(tmp_path)['seed'])
  assert records.add(tmp_path, _frame(_row(seed='5'))) == (1, 1, 0)
  assert '4-5' not in set(records.read(tmp_path)['seed'])


def test_rows_of_another_folder_are_added_once(tmp_path):
  """Another clone has the same transcribed rows, and runs of its own."""
  _write(tmp_path, _transcribed(seed='4-5'), _row())
  other = _frame(_transcribed(seed='4-5'), _row(), _row(seed='1'))
  assert records.add(tmp_path, other) == (1, 0, 1)
  assert list(records.read(tmp_path)['seed']) == ['0', '1', '4-5']


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
  (('\ntiny,', '\ncffl_table1,'), 'one of tiny as table, found .cffl_table1'),
  (
    (',digits,cffl', ',mnist,cffl'),
    'Line 2 .* one of .* as cell, found .mnist',
  ),
  ((',cffl,', ',cfl,'), 'must have one of .* as method, found .cfl'),
  ((',cf,', ',global_f1,'), 'one of cf, client_accuracy_max as metric'),
  ((',run,', ',seen,'), 'one of run, transcribed as source, found .seen'),
  ((',20,', ',,'), "a whole number, at least 1, as rounds, found ''"),
  ((',20,', ',0,'), "a whole number, at least 1, as rounds, found '0'"),
  ((',0,1.0', ',0,1.5'), "above 0 and at most 1 as scale, found '1.5'"),
  ((',0,1.0', ',0,0'), "above 0 and at most 1 as scale, found '0'"),
  ((',1.5,', ',fast,'), "must have a number as seconds, found 'fast'"),
  (('0.30000000000000004', 'inf'), "must have a number as value, found 'inf'"),
  ((',0,1.0', ',00,1.0'), "seeds such as 0-2, as seed, found '00'"),
  ((',0,1.0', ',2-1,1.0'), "seeds such as 0-2, as seed, found '2-1'"),
  ((',0,1.0', ',0-2,1.0'), "seeds such as 0-2, as seed, found '0-2'"),
  ((',0,1.0', ',0-1000,1.0'), "seeds such as 0-2, as seed, found '0-1000'"),
  ((',0,1.0', ',99999999999,1.0'), "seed, found '99999999999'"),
  ((',0,1.0', ',1\u0663,1.0'), "seed, found '1\u0663'"),
  ((',20,', f',{9 * "99"},'), "at least 1, as rounds, found '999"),
  ((',20,', ',\uff19,'), "at least 1, as rounds, found '\uff19'"),
  (('0.30000000000000004', '986'), r"in \[-100, 100\] as value, found '986'"),
  (('0.30000000000000004', '1e308'), r"\] as value, found '1e308'"),
  (('0.30000000000000004', '1_0'), "must have a number as value, found '1_0'"),
  (('0.30000000000000004', '\uff19'), "a number as value, found '\uff19'"),
  ((',1.5,', ',-1.5,'), "number, at least 0, as seconds, found '-1.5'"),
  ((',,run', ',-1,run'), "number, at least 0, as sd, found '-1'"),
  ((',digits,0', ',,0'), "the name of a data set as data, found ''"),
  (('train\n', 'train'), 'found: a last line without an end, as if'),
  (('train\n', 'tra'), 'found: a last line without an end, as if'),
  (('tiny', 'ti\0ny'), 'Line 2 of .*, found'),
  (('', '"\n'), 'must be a csv file of results, found: Error tokenizing'),
]


@pytest.mark.parametrize('change, message', _DAMAGED)
def test_a_damaged_file_is_one_sentence(tmp_path, change, message):
  _write(tmp_path, _row())
  path = tmp_path / 'tiny.csv'
  text = path.read_text()
  path.write_text(text.replace(*change, 1) if change[0] else text + change[1])
  with pytest.raises(records.RecordsError, match=message):
    records.read(tmp_path)


@pytest.mark.parametrize('scale', ['1.0', '1', '1e0'])
def test_a_number_twice_is_refused(tmp_path, scale):
  records.add(tmp_path, _frame(_row()))
  path = tmp_path / 'tiny.csv'
  again = path.read_text().splitlines()[1].replace(',1.0,', f',{scale},')
  path.write_text(f'{path.read_text()}{again}\n')
  message = 'Line 3 of .* must be another number .*, found table tiny, .* again'
  with pytest.raises(records.RecordsError, match=message):
    records.read(tmp_path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
  def fail(*_):
    raise OSError('killed')

  records.add(tmp_path, _frame(_row()))
  before = records.read(tmp_path)
  with monkeypatch.context() as patch, pytest.raises(OSError, match='killed'):
    patch.setattr(os, 'replace', fail)
    records.add(tmp_path, _frame(_row(seed='1')))
  pd.testing.assert_frame_equal(records.read(tmp_path), before)
  assert records.add(tmp_path, _frame(_row(seed='1'))) == (1, 0, 0)


def test_programs_that_add_at_the_same_time_lose_nothing(tmp_path, monkeypatch):
  both_have_read = threading.Barrier(2)
  merge = records._merge

  def slow(*arguments):
    # Broken if the other one waits, as it must.
    with contextlib.suppress(threading.BrokenBarrierError):
      both_have_read.wait(timeout=0.2)
    return merge(*arguments)

  monkeypatch.setattr(records, '_merge', slow)
  threads = [
    threading.Thread(
      target=records.add, args=(tmp_path, _frame(_row(seed=seed)))
    )
    for seed in '01'
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert records.read(tmp_path)['seed'].tolist() == ['0', '1']
