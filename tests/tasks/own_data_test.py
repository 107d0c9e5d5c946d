"""Tasks of one's own data: what becomes of them, and mistakes with them."""

import gzip
import io
import os
import pathlib
import pickle
import re
import sys
from unittest import mock

import numpy as np
import pandas as pd
from pandas._libs import parsers
import pytest

from tff_fair import tasks
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.own_data import new_rows
from tff_fair.tasks import sources
from tff_fair.tasks import table_file

_ROWS = 40


def _table(**columns):
  """A table of three hospitals, with some columns replaced or added."""
  rows = np.arange(_ROWS)
  return pd.DataFrame(
    {
      'hospital': np.array(['Ulm', 'Bonn', 'Berlin'])[rows % 3],
      'age': 20 + (7 * rows) % 30,
      'sex': np.array(['f', 'm'])[(rows // 2) % 2],
      'outcome': np.array(['well', 'ill'])[(rows // 5) % 2],
      **columns,
    }
  )


def _with(column, row, value):
  table = _table()
  values = table[column].astype(object)
  values[row] = value
  return table.assign(**{column: values})


def _arrays(**arrays):
  rows = np.arange(_ROWS)
  found = {
    'x': np.stack([rows, rows % 4], axis=1).astype(np.float32),
    'y': rows % 2,
    'client': rows % 3,
    **arrays,
  }
  return {name: values for name, values in found.items() if values is not None}


def _write(folder, content):
  """A file of a table (csv), arrays (npz), text or bytes."""
  if content is None:
    return folder / 'nope.csv'
  if isinstance(content, pd.DataFrame):
    path = folder / 'own.csv'
    content.to_csv(path, index=False)
  elif isinstance(content, dict):
    path = folder / 'own.npz'
    np.savez(path, **content)
  elif isinstance(content, pathlib.Path):
    path = content
  else:
    name, text = content
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
  return path


def _task(folder, content, **options):
  """The arguments of `tasks.check_task`, good ones but for the options."""
  path = _write(folder, content)
  if isinstance(content, dict) or path.suffix == '.npz':
    return {'name': 'arrays', 'data_file': str(path), **options}
  columns = {'client_column': 'hospital', 'label_column': 'outcome'}
  return {'name': 'table', 'data_file': str(path), **columns, **options}


_NAN, _INF = float('nan'), float('inf')
_ROW = np.arange(_ROWS)
_HEADER = 'hospital,age,outcome\n'


# File, options, and what the sentence names: a flag, a column, a fact.
_REFUSED = [
  # Columns.
  (_table(), {'client_column': 'hopital'}, 'Did you mean hospital?'),
  (_table(), {'label_column': 'OUTCOME'}, '--label_column'),
  (_table(), {'client_column': None}, '--partition=equal'),
  (_table(), {'label_column': None}, 'label_column'),
  (_table(), {'label_column': 'hospital'}, "'hospital' twice"),
  (_table(), {'feature_columns': 'age,outcome'}, "'outcome'"),
  (_table(), {'feature_columns': 'hospital'}, 'column of the clients'),
  (_table(), {'feature_columns': 'age,sexx'}, '--feature_columns'),
  (_table(), {'feature_columns': 'age,age'}, "'age' twice"),
  (_table(), {'feature_columns': ''}, '--feature_columns'),
  (_table()[['hospital', 'outcome']], {}, 'column of features'),
  # Columns that are no features.
  (_table(), {'drop_columns': 'agge'}, "Did you mean age?"),
  (_table(), {'drop_columns': 'zzz'}, '--drop_columns must name columns of'),
  (_table(), {'drop_columns': 'outcome'}, 'column of the labels'),
  (_table(), {'drop_columns': 'age,hospital'}, 'column of the clients'),
  (_table(), {'drop_columns': 'age,age'}, "'age' twice"),
  (_table(), {'drop_columns': 'age, sex'}, 'must leave a column of features'),
  (_table(), {'drop_columns': ' ,'}, 'drop_columns must name columns'),
  (_table(), {'drop_columns': 'sex', 'feature_columns': 'age'},
   'must not be given with --feature_columns'),
  # Groups of people.
  (_table(), {'sensitive_columns': 'sexx'}, 'Did you mean sex?'),
  (_table(), {'sensitive_columns': 'sex,outcome'}, 'column of the labels'),
  (_table(), {'sensitive_columns': 'sex,sex'}, "'sex' twice"),
  (_table(), {'sensitive_columns': ' , '}, 'must name columns'),
  (_table(ward='A'), {'sensitive_columns': 'ward'}, "found only 'A'"),
  (_table(), {'sensitive_columns': 'age'}, '30 distinct numbers'),
  (_table(born=[f'p{i}' for i in _ROW]).pipe(lambda t: pd.concat([t] * 3))
   .assign(born=[f'p{i}' for i in range(3 * _ROWS)]),
   {'sensitive_columns': 'born', 'drop_sensitive': True}, 'at most 100 groups'),
  (_with('sex', 3, 'd'), {'sensitive_columns': 'sex'}, "found one of 'd'"),
  (_table(day=pd.date_range('2024-01-01', periods=_ROWS).astype(str)),
   {'sensitive_columns': 'day'}, "'day'"),
  (_with('sex', 3, None), {'sensitive_columns': 'sex', 'drop_sensitive': True},
   "1 in 'sex' of 40 rows"),
  (_table(), {'sensitive_columns': 'sex', 'drop_sensitive': True,
              'feature_columns': 'age,sex'}, '--drop_sensitive'),
  (_table().drop(columns='age'), {'sensitive_columns': 'sex',
                                  'drop_sensitive': True}, 'must leave a col'),
  (_table(), {'sensitive_columns': 'sex', 'positive_label': 'dead'},
   "one of the classes 'ill', 'well', found 'dead'"),
  (_with('outcome', slice(0, 5), 'dead'),
   {'sensitive_columns': 'sex', 'positive_label': 'ill'}, 'with 3'),
  (_table(), {'drop_sensitive': True}, 'found True without them'),
  (_table(), {'positive_label': 'ill'}, "found 'ill' without them"),
  (_table(), {'sensitive_columns': 'sex', 'split': 'server'},
   'sensitive_columns'),
  (_table(ward=['01', '1', '2', '3'] * 10), {'sensitive_columns': 'sex,ward'},
   "'ward' must write each group in one way, found '01' and '1'"),
  # Clients.
  (_table(hospital='Ulm'), {}, "'Ulm'"),
  (_table(hospital=_ROW / 8), {}, '0.125 in row 2'),
  (_table(), {'num_clients': 9}, '--num_clients must be at most 3, found 9'),
  (_table(), {'dirichlet_alpha': 0.1}, 'dirichlet_alpha'),
  (_table(), {'client_column': None, 'partition': 'equal'}, '--num_clients'),
  # Labels.
  (_table(outcome='ill'), {}, "'ill'"),
  (_table(outcome=_ROW / 8), {}, 'pandas.cut'),
  (_table(outcome=_ROW), {}, '40 values in 40 rows'),
  # Values.
  (_with('age', 3, None), {}, "1 in 'age' of 40 rows: --missing_values"),
  (_with('hospital', 3, None), {'missing_values': 'fill'}, "'hospital'"),
  (_table(note=None), {'missing_values': 'drop'}, "40 in 'note'"),
  (_table(day=pd.date_range('2024-01-01', periods=_ROWS)), {}, "'day'"),
  (pd.concat([_table()] * 5).assign(pid=[f'p{i}' for i in range(200)]), {},
   "'pid'"),
  (_with('age', 4, 'forty'), {}, "'forty' in row 5"),
  (_with('age', 0, float('inf')), {}, 'inf in row 1'),
  (_with('age', 0, 1e300), {}, '1e+300 in row 1'),
  # Files.
  (None, {}, 'No such file'),
  (pathlib.Path('/tmp'), {}, 'Is a directory'),
  (('own.csv', ''), {}, 'empty file'),
  (_table().head(0), {}, 'must have rows'),
  (('own.xlsx', 'x'), {}, '--data_file must end in'),
  (('own.csv', b'\x89PNG\r\n\x1a\n\xff\xfe' * 30), {}, 'UTF-8'),
  (('own.csv', f'{_HEADER}a\0x,3,ill\na\0y,3,well\n'), {}, 'NUL'),
  (('own.csv', f'{_HEADER}"a\nb",3,ill\nb,3,well\n'), {}, "name 'a\\nb'"),
  (_with('outcome', 0, 'i\x1b[1m'), {}, "character '\\x1b' in the name 'i"),
  (_with('hospital', 0, 'x\u202ey'), {}, "'hospital' of the clients must hold"),
  (_table(**{'a\tb': 1}), {}, "in the name 'a\\tb'"),
  (_with('sex', slice(0, 3), '\x7f'), {'sensitive_columns': 'sex'}, "'\\x7f'"),
  (_table(at=['12:30', '1:05 pm'] * 20), {}, "'at' must hold numbers or cat"),
  (_table(at=['3 Jan 2020', 'May 2021'] * 20), {}, 'found dates or times'),
  (_with('outcome', 3, 'None'), {}, "1 in 'outcome' (the text 'None') of 40"),
  (('own.csv', 'hospital,outcome, outcome\nUlm,a,a\n'), {}, "called 'outcome'"),
  (('own.csv', 'hospital;age\nUlm;3\n'), {}, "as if ';'"),
  (('own.csv', 'hospital,age,age,outcome\nUlm,3,4,a\n'), {}, "called 'age'"),
  (('own.csv', f'{_HEADER}Ulm,3,a,1\nUlm,3,a,1\n'), {}, 'more values than'),
  (('own.csv', f'{_HEADER}0.5,3,a\n1,3,b\n'), {}, 'number 0.5 in row 1'),
  (('own.parquet', b'PAR1' * 9), {}, 'parquet'),
  (('own.csv.gz', gzip.compress(_HEADER.encode() * 99)[:20]), {}, 'unreadable'),
  # Arrays.
  (('own.npz', pickle.dumps([1])), {}, 'x, y, client'),
  (_arrays(y=None), {}, 'found no y but x, client'),
  (_arrays(client=None), {}, '--partition=equal'),
  (_arrays(y=np.zeros(39, int)), {}, '[39]'),
  (_arrays(y=np.eye(2)[_ROW % 2]), {}, 'argmax(axis=1'),
  (_arrays(x=np.full([_ROWS, 2], 'a')), {}, '<U1'),
  (_arrays(x=np.ones(_ROWS)), {}, '[40]'),
  (_arrays(x=np.full([_ROWS, 2], np.nan)), {}, '80 others'),
  (_arrays(y=np.where(_ROW == 2, np.nan, 1.0)), {}, 'first in row 3'),
  (_arrays(client=np.array(['a', 'b'] * 20, object)), {}, 'Python objects'),
  (_arrays(), {'model': 'cnn_femnist'}, '--model'),
]  # fmt: skip

# What is accepted, with a sentence that names this.
_NOTED = [
  (_table(pid=_ROW), {}, "'pid' has another value in each row, like an id"),
  (_table(unit='mg'), {}, "'unit' is constant"),
  (_with('outcome', 0, 'well '), {}, "'well' and 'well ', which differ"),
  (_with('hospital', 0, 'ulm'), {}, "'Ulm' and 'ulm', which differ"),
  (_with('hospital', 0, 'Jena'), {}, "such as 'Jena'"),
  (_with('outcome', 0, 'dead'), {}, "single example: 'dead'"),
  (
    _with('age', 0, '?'),
    {'missing_values': 'drop'},
    '1 of 40 rows have missing values',
  ),
  (
    _table(),
    {'sensitive_columns': 'sex'},
    "class 'well' as the positive one, ",
  ),
  (
    _with('outcome', slice(0, 5), 'dead'),
    {'sensitive_columns': 'sex'},
    'in accuracy alone: there are 3 classes',
  ),
  (_with('sex', 0, ''), {'missing_values': 'fill'}, "filled: 1 in 'sex' of 40"),
  (
    ('own.csv', f'{_HEADER}007,3,a\n7,4,b\n8,3,a\n7,9,b\n'),
    {},
    "'007' and '7'",
  ),
  # What is read otherwise than somebody may have meant.
  *(
    (_table(size=[*map(str, texts)] * 20), {}, f"'size' has texts that {words}")
    for texts, words in (
      (('1,5', '2,25'), "look like numbers with a comma, such as '1,5'"),
      (('1,000', '2,500'), 'look like numbers with a comma'),
      (
        ('1.000.000', '2.000.000'),
        'look like numbers with marks for thousands',
      ),
      (('7%', '12.5 %'), 'look like percentages'),
      (('$7', '$8'), 'look like prices'),
      (('<5', '> 7'), 'look like bounds'),
      (('5 mg', '7.5mg'), 'look like numbers with a unit'),
    )
  ),
  (
    _table(f=['True', '1'] * 20),
    {},
    "'f' mixes 'True' with numbers such as '1'",
  ),
  (_table(copy=_table()['outcome']), {}, "'copy' says the class of each row"),
  (_table(copy=(_ROW // 5) % 2), {}, "'copy' says the class of each row"),
  (
    pd.concat([_table(outcome=_ROW % 25)] * 3),
    {},
    "'outcome' of the labels holds 25 whole numbers, from 0 to 24, which",
  ),
  (
    _with('outcome', slice(3, 6), 'None'),
    {'missing_values': 'drop'},
    "left out: 3 in 'outcome' (the text 'None').",
  ),
  (
    _with('hospital', slice(3, 6), 'NA'),
    {'missing_values': 'drop'},
    "left out: 3 in 'hospital' (the text 'NA').",
  ),
  (_with('hospital', 0, 'Ulm\u200b'), {}, 'which look the same'),
  (_with('hospital', 0, '\uff35lm'), {}, 'which look the same'),
  (_arrays(x=np.full([_ROWS, 2], 1e5)), {}, 'x has values up to 100000'),
  (_arrays(x=np.full([_ROWS, 4, 4], 255, np.uint8)), {}, 'divided by 255'),
]


def test_a_mistake_is_one_sentence_that_names_it(tmp_path):
  wrong = {}
  for content, options, name in _REFUSED:
    with pytest.raises((ValueError, sources.DataNotFoundError)) as caught:
      tasks.check_task(**_task(tmp_path, content, **options))
    sentence = str(caught.value)
    if name not in sentence or not re.fullmatch('.*[.?]', sentence):
      wrong[name] = sentence
  assert not wrong


def test_what_may_be_a_mistake_is_noted(tmp_path):
  for content, options, text in _NOTED:
    notes = tasks.build_task(**_task(tmp_path, content, **options)).notes
    assert [text in note for note in notes].count(True) == 1, notes


def _damaged_archives():
  """An archive with a bit of a header, a method or a shape changed."""
  buffer = io.BytesIO()
  np.savez(buffer, **_arrays())
  whole = buffer.getvalue()
  yield whole.replace(b"'descr': '<f4'", b"'descr': ('<f4")
  yield whole.replace(b"'shape': (40, 2), }" + b' ' * 18,
                      b"'shape': (%d, 2), }" % 10**18 + b' ')  # fmt: skip
  for part, places in ((b'PK\3\4', (6, 8)), (b'PK\1\2', (8, 10))):
    for place in places:
      at = whole.index(part) + place
      # Encrypted, and of an unknown method.
      yield whole[:at] + bytes([whole[at] | 97]) + whole[at + 1 :]
  yield whole[: len(whole) // 2]
  yield from (whole[:i] + b'\xff' + whole[i + 1 :] for i in range(0, 300, 7))


def test_damage_is_a_sentence_that_names_the_file(tmp_path):
  packed = gzip.compress(_table().to_csv(index=False).encode())
  contents = [('own.npz', archive) for archive in _damaged_archives()]
  contents += [
    ('own.csv.gz', packed[:i] + bytes([packed[i] ^ 16]) + packed[i + 1 :])
    for i in range(0, len(packed), 9)
  ]
  refused = 0
  for content in contents:
    try:
      tasks.check_task(**_task(tmp_path, content))
    except ValueError as error:
      refused += 1
      sentence = str(error)
      assert re.fullmatch('.*[.]', sentence), sentence
      assert isinstance(error, sources.DataDamagedError), sentence
      assert str(tmp_path / content[0]) in sentence
  assert refused > 0.7 * len(contents)


def test_a_pipe_is_not_waited_for(tmp_path):
  os.mkfifo(tmp_path / 'own.csv')
  with pytest.raises(sources.DataNotFoundError, match='found: Not a regular'):
    tasks.check_task(**_task(tmp_path, tmp_path / 'own.csv'))


def test_parquet_without_pyarrow_is_one_sentence(tmp_path):
  content = ('own.parquet', b'PAR1')
  with (
    mock.patch.dict(sys.modules, {'pyarrow': None, 'fastparquet': None}),
    pytest.raises(ValueError, match='^pyarrow must be installed .* as csv.$'),
  ):
    tasks.check_task(**_task(tmp_path, content))


def test_the_launcher_says_it_before_tensorflow(tmp_path):
  path = _write(tmp_path, _table())
  arguments = ['--task=table', f'--data_file={path}']
  for more, message in [
    ([], '^--task=table must be given with --data_file and --label_column'),
    (['--label_column=outcom', '--client_column=sex'], 'Did you mean outcome'),
    (
      ['--label_column=sex', '--client_column=age', '--partition=equal'],
      '^--client_column must not be given with --partition=equal',
    ),
  ]:
    flag_values = train_flags.parse([*arguments, *more])
    with pytest.raises(settings_lib.SettingsError, match=message):
      settings_lib.check_own_data(
        settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)
      )


class TestTable:
  def test_inputs_labels_and_names(self, tmp_path):
    table = _table(smoker=np.arange(_ROWS) % 2 == 0)
    built = tasks.build_task(**_task(tmp_path, table))
    assert built.client_names == ('Berlin', 'Bonn', 'Ulm')
    assert built.class_names == ('ill', 'well')
    assert built.num_clients == 3 and built.num_classes == 2
    assert not built.notes
    for i, name in enumerate(built.client_names):
      own = np.flatnonzero(table['hospital'] == name)
      np.testing.assert_array_equal(
        np.sort(np.concatenate(built.splits[i])), own
      )
    training = np.sort(
      np.concatenate([p for s in built.splits for p in (s.train, s.holdout)])
    )
    age = table['age'].to_numpy(float)
    age = (age - age[training].mean()) / age[training].std()
    expected = np.stack(
      [age, table['sex'] == 'f', table['sex'] == 'm', table['smoker']], axis=1
    )
    np.testing.assert_allclose(built.data.x, expected, rtol=1e-5, atol=1e-6)
    known = table['age'][training]
    mean, deviation = known.mean(), known.std(ddof=0)
    names = ('sex=f', 'sex=m', 'smoker')
    assert built.features == (
      ('age', pytest.approx(mean), pytest.approx(deviation)),
      *((name, 0, 1) for name in names),
    )
    np.testing.assert_array_equal(built.data.y, table['outcome'] == 'well')

  def test_groups_of_people(self, tmp_path):
    table = _table(stage=_ROW % 3, smoker=np.where(_ROW < 2, '', _ROW % 2 == 0))
    options = {
      'sensitive_columns': 'sex, stage,smoker',
      'missing_values': 'fill',
      'positive_label': 'ill',
      'num_clients': 2,
    }
    for is_dropped, number in ((False, 6), (True, 1)):
      built = tasks.build_task(
        **_task(tmp_path, table, drop_sensitive=is_dropped, **options)
      )
      assert built.data.x.shape[1] == number
      assert built.positive_class == 0
      # Without the third hospital.
      rows = table[table['hospital'] != 'Ulm']
      for groups, column, names in zip(
        built.sensitive,
        ('sex', 'stage', 'smoker'),
        (('f', 'm'), ('0', '1', '2'), ('False', 'True', '(missing)')),
        strict=True,
      ):
        assert groups.column == column and groups.names == names
        found = np.array([*groups.names])[groups.codes]
        expected = rows[column].astype(str).replace('', '(missing)')
        assert found.tolist() == expected.tolist()

  def test_groups_do_not_change_the_inputs(self, tmp_path):
    plain, grouped = (
      tasks.build_task(**_task(tmp_path, _table(), **options))
      for options in ({}, {'sensitive_columns': 'sex'})
    )
    np.testing.assert_array_equal(plain.data.x, grouped.data.x)
    assert plain.sensitive == () and plain.positive_class is None
    assert grouped.positive_class == 1

  def test_one_large_number_leaves_a_column_of_numbers(self, tmp_path):
    table = _with('age', 3, '99999999999999999999')
    built = tasks.build_task(**_task(tmp_path, table))
    assert [feature.name for feature in built.features][0] == 'age'
    assert np.argmax(built.data.x[:, 0]) == 3

  def test_texts_like_names_of_ranks_are_no_numbers(self, tmp_path):
    table = _table(rank=['1st', '2nd', '3rd', '1a'] * 10)
    assert not tasks.build_task(**_task(tmp_path, table)).notes

  def test_inputs_beyond_float32_name_their_column(self, tmp_path):
    arguments = _task(tmp_path, _table())
    (row, *_) = tasks.build_task(**arguments).splits[0].test
    # The deviation of the others is 5e-31.
    size = (np.arange(_ROWS) % 2) * 1e-30
    size[row] = 1e30
    arguments = _task(tmp_path, _table(size=size))
    message = f"^The column 'size' must give finite .* inf for row {row + 1}: l"
    with pytest.raises(ValueError, match=message):
      tasks.build_task(**arguments)

  def test_new_rows_become_inputs_likewise(self, tmp_path):
    table = _with('age', 3, None).astype({'age': float})
    rows = np.arange(_ROWS)
    table = table.assign(
      sex=table['sex'].where(rows != 5),
      smoker=rows % 2 == 0,
      drinker=pd.Series(rows % 3 == 0, dtype=object).mask(rows % 5 == 0),
      one=1,
    )
    arguments = _task(tmp_path, table, missing_values='fill')
    built = tasks.build_task(**arguments)
    path = arguments['data_file']
    texts = table_file.read(path, as_texts=True)
    assert not texts.isna().any(axis=None)
    for rows in (table, table_file.with_gaps(path, texts)):
      x, notes = new_rows.encode(rows, built.columns, built.features)
      assert not notes
      np.testing.assert_allclose(x, built.data.x, rtol=1e-5, atol=1e-6)

  def test_what_is_missing_is_what_pandas_takes_for_it(self, tmp_path):
    expected = {*parsers.STR_NA_VALUES, '?'}
    texts = sorted({*expected, '-', 'none', 'na', '0', ' '})
    path = tmp_path / 'own.csv'
    pd.DataFrame({'a': texts, 'b': 'x'}).to_csv(path, index=False)
    read = table_file.read(path)
    written = table_file.read(path, as_texts=True)
    gaps = table_file.with_gaps(path, written)
    # Blanks in front of a text are left out.
    expected = [text.strip() in expected for text in texts]
    for table in (read, gaps):
      assert table['a'].isna().tolist() == expected
    assert written['a'].tolist() == [text.strip() for text in texts]

  def test_dropped_columns_are_no_features_and_may_have_gaps(self, tmp_path):
    table = _with('sex', 3, None).assign(pid=[f'p{i}' for i in range(_ROWS)])
    arguments = _task(tmp_path, table, drop_columns='pid, sex')
    built = tasks.build_task(**arguments)
    alone = tasks.build_task(**_task(tmp_path, _table(), feature_columns='age'))
    assert built.notes == ()
    np.testing.assert_array_equal(built.data.x, alone.data.x)
    kinds = {column.name: column.kind for column in built.columns}
    assert kinds['age'] == 'number'
    assert kinds['pid'] == kinds['sex'] == kinds['hospital'] == 'unused'

  def test_the_first_clients_alone(self, tmp_path):
    built = tasks.build_task(**_task(tmp_path, _table(), num_clients=2))
    assert built.client_names == ('Berlin', 'Bonn')
    assert len(built.data.y) == sum(_table()['hospital'] != 'Ulm')
    assert 'Of 3 clients the first 2' in built.notes[-1]

  def test_a_server_takes_tests_and_free_riders_have_names(self, tmp_path):
    built = tasks.build_task(
      **_task(tmp_path, _table(), split='server', free_riders=1)
    )
    assert len(built.global_test.y) == 8
    dealt = np.sort(np.concatenate([s.train for s in built.splits]))
    np.testing.assert_array_equal(dealt, built.server.to_deal)
    assert built.client_names == ('Berlin', 'Bonn', 'Ulm', 'free rider 1')

  def test_a_parquet_file_is_the_same_table(self, tmp_path):
    pytest.importorskip('pyarrow')
    table = _table(smoker=np.arange(_ROWS) % 2 == 0)
    from_csv = tasks.build_task(**_task(tmp_path, table))
    table.to_parquet(tmp_path / 'own.parquet')
    built = tasks.build_task(**_task(tmp_path, tmp_path / 'own.parquet'))
    np.testing.assert_array_equal(built.data.x, from_csv.data.x)
    assert built.loader.checksum == from_csv.loader.checksum

  def test_rows_may_be_dealt_in_place_of_clients(self, tmp_path):
    table = _table().drop(columns='hospital')
    built = tasks.build_task(
      **_task(
        tmp_path, table, client_column=None, partition='equal', num_clients=4
      )
    )
    assert built.client_names == () and built.num_clients == 4
    assert built.class_names == ('ill', 'well')

  def test_another_process_builds_it_from_another_folder(
    self, tmp_path, monkeypatch
  ):
    _write(tmp_path, _table())
    monkeypatch.chdir(tmp_path)
    columns = {'client_column': 'hospital', 'label_column': 'outcome'}
    built = tasks.build_task('table', data_file='own.csv', **columns)
    sent = pickle.dumps(built.loader)
    monkeypatch.chdir('/')
    x = next(iter(pickle.loads(sent)(1)['train']))['x']
    np.testing.assert_array_equal(x, built.examples(1).train.x)


# Names as a csv file has them, and as they are sorted; 'drop' leaves out gaps.
_NAMES = [
  (['007', '7', '08', '8'], ['007', '08', '7', '8']),
  (['1e2', '100'], ['100', '1e2']),
  (['12', '0999'], ['0999', '12']),
  (['01234', '1234', '99'], ['01234', '1234', '99']),
  (['10', '9', '-1', '0'], ['-1', '0', '9', '10']),
  (['-0', '0'], ['-0', '0']),
  (['+7', '7'], ['+7', '7']),
  # pandas writes whole numbers so beside missing ones.
  (['10.0', '9.0'], ['9', '10']),
  (['1.0', '1'], ['1', '1.0']),
  (['9007199254740993', '9007199254740992', ''], None),
  (['100000000000000000000', '99999999999999999999'], None),
  (['TRUE', 'False', 'true'], ['False', 'TRUE', 'true']),
  (['x', '', '?', 'NA', '7'], ['7', 'x']),
]


def _csv_of(texts, column):
  """Two rows of each text in one of the key columns of a csv file."""
  other = {'hospital': 'outcome', 'outcome': 'hospital'}[column]
  lines = [f'{text},{i % 3},{"ab"[i % 2]}' for i in (0, 1) for text in texts]
  return '\n'.join([f'{column},age,{other}', *lines, ''])


def test_what_differs_in_a_file_stays_apart(tmp_path):
  for number, (texts, names) in enumerate(_NAMES):
    column = ('hospital', 'outcome')[number % 2]
    content = _csv_of(texts, column).encode()
    file = ('own.csv', content)
    if number % 3:
      file = ('own.csv.gz', gzip.compress(content))
    built = tasks.build_task(**_task(tmp_path, file, missing_values='drop'))
    found = built.client_names if column == 'hospital' else built.class_names
    assert list(found) == (names or sorted(filter(None, texts), key=int))


def test_images_get_a_channel_and_names_their_numbers(tmp_path):
  images = np.arange(_ROWS * 16, dtype=np.uint8).reshape(_ROWS, 4, 4)
  names = np.array(['b', 'a', 'c'])[np.arange(_ROWS) % 3]
  built = tasks.build_task(
    **_task(
      tmp_path,
      _arrays(x=images, client=names, y=np.array([-1, 1] * 20)),
      model='cnn_fedakd',
    )
  )
  np.testing.assert_allclose(built.data.x[..., 0], images / 255, rtol=1e-6)
  assert built.client_names == ('a', 'b', 'c')
  assert built.class_names == ('-1', '1')
  assert 1 in np.concatenate(built.splits[0])


def test_a_changed_file_is_read_again_and_has_another_fingerprint(tmp_path):
  arguments = _task(tmp_path, _table())
  before = tasks.fingerprint(arguments['data_file'])
  assert tasks.build_task(**arguments).num_clients == 3
  path = _write(tmp_path, _with('hospital', 0, 'Jena'))
  os.utime(path, (1, 1))
  assert tasks.build_task(**arguments).num_clients == 4
  assert tasks.fingerprint(arguments['data_file']) != before
