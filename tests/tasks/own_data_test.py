"""Tasks of one's own data: what becomes of them, and mistakes with them."""

import dataclasses
import gzip
import io
import os
import pathlib
import pickle
import re
import runpy
import sys
from unittest import mock
import zipfile

import numpy as np
import pandas as pd
import pytest

from tff_fair import tasks
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.tasks import sources

_ROWS = 40
_EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples/predict.py'


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


def _npy(values):
  file = io.BytesIO()
  np.save(file, values)
  return file.getvalue()


def _header(shape):
  """An npy file without its numbers."""
  file = io.BytesIO()
  facts = {'descr': '<f8', 'fortran_order': False, 'shape': tuple(shape)}
  np.lib.format.write_array_header_1_0(file, facts)
  return file.getvalue()


def _npz(content):
  """An archive whose x is this file."""
  file = io.BytesIO()
  with zipfile.ZipFile(file, 'w') as archive:
    for name in ('x', 'y', 'client'):
      archive.writestr(f'{name}.npy', content)
  return file.getvalue()


def _deviation(column):
  return column.std(ddof=0)


_MANY = 100_000
_NAN, _INF = float('nan'), float('inf')

# Mistake: (file, options, what its sentence says).
_REFUSED = {
  # Columns.
  'a misspelt client column': (
    _table(),
    {'client_column': 'hopital'},
    r"^--client_column must be a column of the file 'own.csv', found 'hopital'"
    r'\. Did you mean hospital\?$',
  ),
  'a client column that is nothing like any': (
    _table(),
    {'client_column': 'xyz'},
    "which has 'hospital', 'age', 'sex', 'outcome', found 'xyz'",
  ),
  'a label column in capitals': (
    _table(),
    {'label_column': 'OUTCOME'},
    '--label_column .* Did you mean outcome',
  ),
  'no client column': (
    _table(),
    {'client_column': None},
    '--client_column must name .* --partition=equal',
  ),
  'no label column': (
    _table(),
    {'label_column': None},
    'with data_file and label_column, found no label_column',
  ),
  'the client column as label': (
    _table(),
    {'label_column': 'hospital'},
    "must be different columns, found 'hospital' twice",
  ),
  'the label among the features': (
    _table(),
    {'feature_columns': 'age,outcome'},
    "must not name the column of the labels, found 'outcome'",
  ),
  'the client among the features': (
    _table(),
    {'feature_columns': 'hospital'},
    'must not name the column of the clients',
  ),
  'an unknown feature': (
    _table(),
    {'feature_columns': 'age,sexx'},
    "--feature_columns must be a column .* found 'sexx'. Did you mean sex",
  ),
  'a feature twice': (
    _table(),
    {'feature_columns': 'age,age'},
    "each column once, found 'age' twice",
  ),
  'an empty list of features': (
    _table(),
    {'feature_columns': ''},
    '--feature_columns must name columns, found none',
  ),
  'no column of features': (
    _table()[['hospital', 'outcome']],
    {},
    'must have a column of features beside the 2 .* found none',
  ),
  # Clients.
  'one client': (
    _table(hospital='Ulm'),
    {},
    "must name at least 2 clients, found only 'Ulm'",
  ),
  '100,000 clients of one row': (
    pd.DataFrame(
      {
        'hospital': [f'p{i}' for i in range(_MANY)],
        'age': np.arange(_MANY) % 90,
        'outcome': np.arange(_MANY) % 2,
      }
    ),
    {},
    'at most 10,000 clients, .* found 100,000 in 100,000 rows: is it a column',
  ),
  'a NUL in a name': (
    ('own.csv', 'hospital,age,outcome\nh1\0x,3,ill\nh1\0y,3,well\n'),
    {},
    'separated by commas, .* found a NUL, which no text has',
  ),
  'clients that are measurements': (
    _table(hospital=np.linspace(0, 1, _ROWS)),
    {},
    'whole numbers of clients, found the number 0.025641 in row 2',
  ),
  'more clients wanted than there are': (
    _table(),
    {'num_clients': 9},
    '^--num_clients must be at most 3, found 9',
  ),
  'a Dirichlet concentration for clients of the file': (
    _table(),
    {'dirichlet_alpha': 0.1},
    "must not be set with partition='client'",
  ),
  'rows dealt to no number of clients': (
    _table(),
    {'client_column': None, 'partition': 'equal'},
    '^--num_clients must be given where examples are dealt',
  ),
  # Labels.
  'one class': (
    _table(outcome='ill'),
    {},
    "must hold at least 2 classes, found only 'ill'",
  ),
  'regression on fractions': (
    _table(outcome=np.linspace(0, 1, _ROWS)),
    {},
    r'only classification is supported\), found the number 0.025.* pandas.cut',
  ),
  'regression on whole numbers': (
    _table(outcome=np.arange(_ROWS)),
    {},
    'only classification .* found 40 values in 40 rows; pandas.cut',
  ),
  # Values.
  'missing values in features': (
    _with('age', 3, None),
    {},
    "must have no missing values, found 1 in 'age' of 40 rows: --missing_valu",
  ),
  'missing labels': (_with('outcome', 3, None), {}, "found 1 in 'outcome' of"),
  'missing clients, to be filled': (
    _with('hospital', 3, None),
    {'missing_values': 'fill'},
    "'hospital' must have no missing .* client or the label, found 1 of 40",
  ),
  'a column without values, to be dropped': (
    _table(note=None),
    {'missing_values': 'drop'},
    "rows without missing values, found none of 40: 40 in 'note'",
  ),
  'dates': (
    _table(day=pd.date_range('2024-01-01', periods=_ROWS).astype(str)),
    {},
    "'day' must hold numbers or categories, found dates or times: make numb",
  ),
  'texts that are all different': (
    _table(name=[f'patient {i}' for i in range(_ROWS)])
    .merge(pd.DataFrame({'k': range(5)}), how='cross')
    .assign(name=lambda t: t['name'] + t['k'].astype(str)),
    {},
    "'name' must have at most 100 categories, found 200 in 200 rows: leave it",
  ),
  'a text among numbers': (
    _with('age', 4, 'forty'),
    {},
    "'age' must .* 39 numbers and 1 other texts, the first 'forty' in row 5",
  ),
  'infinite values': (
    _table(age=[_INF, *range(_ROWS - 1)]),
    {},
    "'age' must hold finite numbers, found 1 others, the first inf in row 1",
  ),
  'numbers beyond float32': (
    _table(age=[1e300, *range(_ROWS - 1)]),
    {},
    r'numbers that fit float32, found 1 others, the first 1e\+300 in row 1',
  ),
  # Files.
  'a file that is not there': (
    None,
    {},
    "nope.csv' must be a file that can be read, found: No such file",
  ),
  'a folder': (pathlib.Path('/tmp'), {}, 'found: Is a directory'),
  'an empty file': (('own.csv', ''), {}, 'must hold examples, found an empty'),
  'a header alone': (
    _table().head(0),
    {},
    "The file 'own.csv' must have rows, found none",
  ),
  'a spreadsheet': (
    ('own.xlsx', 'x'),
    {},
    r'^--data_file must end in .csv or .csv.gz or .parquet, found .*own.xlsx',
  ),
  'a picture called csv': (
    ('own.csv', b'\x89PNG\r\n\x1a\n\xff\xfe' * 30),
    {},
    'separated by commas, .* found bytes that are no text in UTF-8',
  ),
  'a file of another encoding': (
    ('own.csv', 'hospital,age,outcome\nK\xf6ln,3,ill\n'.encode('latin-1')),
    {},
    'found bytes that are no text in UTF-8',
  ),
  'a web page called csv': (
    ('own.csv', '<!doctype html>\n<a>\n<b>, c, d\n'),
    {},
    'found (an unreadable file|lines with more)',
  ),
  'semicolons between values': (
    ('own.csv', 'hospital;age;outcome\nUlm;3;ill\n'),
    {},
    "a single column 'hospital;age;outcome', as if ';' separated",
  ),
  'two columns of one name': (
    ('own.csv', 'hospital,age,age,outcome\nUlm,3,4,ill\n'),
    {},
    "different names of columns, found two columns called 'age'",
  ),
  'lines longer than the header': (
    ('own.csv', 'hospital,age,outcome\nUlm,3,ill,1\nUlm,3,ill,1\n'),
    {},
    'found lines with more values than there are names',
  ),
  'a damaged parquet file': (
    ('own.parquet', b'PAR1' * 9),
    {},
    'pyarrow must be installed|in the format parquet, found an unreadable',
  ),
  'a damaged packed file': (
    ('own.csv.gz', gzip.compress(b'a,b\n' * 99)[:10] + b'\xff' * 20),
    {},
    'separated by commas, .* found an unreadable file',
  ),
  # Arrays.
  'an array beyond memory': (
    ('own.npz', _npz(_header([10**15, 2]))),
    {},
    'found an unreadable file',
  ),
  'npz without y': (
    _arrays(y=None),
    {},
    'x, y, client, found no y but x, clie',
  ),
  'npz without client': (
    _arrays(client=None),
    {},
    'found no client but x, y; --partition=equal --num_clients=10',
  ),
  'x and y of different lengths': (
    _arrays(y=np.zeros(39, int)),
    {},
    r'y must have an entry for each of the 40 examples of x, .* shape \[39\]',
  ),
  'one-hot labels': (
    _arrays(y=np.eye(2)[np.arange(_ROWS) % 2]),
    {},
    r'y must be a vector .* y.argmax\(axis=1\) gives',
  ),
  'texts as inputs': (
    _arrays(x=np.full([_ROWS, 2], 'a')),
    {},
    'x must be an array of numbers, found <U1',
  ),
  'complex inputs': (
    _arrays(x=np.ones([_ROWS, 2], complex)),
    {},
    'x must be an array of numbers, found complex128',
  ),
  'inputs without features': (
    _arrays(x=np.ones(_ROWS)),
    {},
    r'one or more of features, found the shape \[40\]',
  ),
  'NaN in inputs': (
    _arrays(x=np.full([_ROWS, 2], _NAN)),
    {},
    r'finite numbers that fit float32, found 80 others, the first nan at ',
  ),
  'missing labels in npz': (
    _arrays(y=np.where(np.arange(_ROWS) == 2, _NAN, 1.0)),
    {},
    'y must have no missing values, found 1, the first in row 3',
  ),
  'Python objects': (
    _arrays(client=np.array(['a', 'b'] * 20, object)),
    {},
    'found an array of Python objects',
  ),
  'a pickle called npz': (
    ('own.npz', pickle.dumps([1])),
    {},
    'x, y, client, found a file of another format',
  ),
  'an npy file called npz': (
    ('own.npz', _npy(np.ones(3))),
    {},
    'found a file of another format',
  ),
  'a convolutional net for numbers': (
    _arrays(),
    {'model': 'cnn_femnist'},
    r'^--model must be one for numbers, .* shape \[2\], found cnn_femnist',
  ),
}

# What is accepted, with a sentence about it.
_NOTED = {
  'a column of ids': (
    _table(pid=np.arange(_ROWS)),
    {},
    "'pid' has another value in each row, like an id: .* out of --feature_colu",
  ),
  'a constant column': (_table(unit='mg'), {}, "'unit' is constant"),
  'labels with blanks at their ends': (
    _with('outcome', 0, 'well '),
    {},
    "'well' and 'well ', which differ in capitals or blanks only",
  ),
  'clients in different capitals': (
    _with('hospital', 0, 'ulm'),
    {},
    "'Ulm' and 'ulm', which differ in capitals",
  ),
  'a client with one row': (
    _with('hospital', 0, 'Jena'),
    {},
    "1 of 4 clients have fewer than 3 examples, .* such as 'Jena'",
  ),
  'a class with one example': (
    _with('outcome', 0, 'dead'),
    {},
    "Classes with a single example: 'dead'",
  ),
  'rows that are left out': (
    _with('age', 0, '?'),
    {'missing_values': 'drop'},
    "1 of 40 rows have missing values and are left out: 1 in 'age'",
  ),
  'values that are filled': (
    _with('sex', 0, ''),
    {'missing_values': 'fill'},
    "Missing values are filled: 1 in 'sex' of 40 rows",
  ),
  'inputs that are not scaled': (
    _arrays(x=np.full([_ROWS, 2], 1e5)),
    {},
    r'x has values up to 100000 and is used as it is',
  ),
  'pixels': (
    _arrays(x=np.full([_ROWS, 4, 4], 255, np.uint8)),
    {},
    'x holds bytes, which are divided by 255',
  ),
}


def test_a_mistake_is_one_sentence(tmp_path):
  wrong = {}
  for mistake, (content, options, pattern) in _REFUSED.items():
    with pytest.raises((ValueError, sources.DataNotFoundError)) as caught:
      tasks.check_task(**_task(tmp_path, content, **options))
    sentence = str(caught.value)
    if not re.search(pattern, sentence) or not re.match(r'.*[.?]$', sentence):
      wrong[mistake] = sentence
  assert not wrong


@pytest.mark.parametrize('mistake', _NOTED)
def test_what_may_be_a_mistake_is_noted(mistake, tmp_path):
  content, options, pattern = _NOTED[mistake]
  notes = tasks.build_task(**_task(tmp_path, content, **options)).notes
  assert any(re.search(pattern, note) for note in notes), notes


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
    mean, deviation = table['age'][training].agg(['mean', _deviation])
    names = ('sex=f', 'sex=m', 'smoker')
    assert built.features == (
      ('age', pytest.approx(mean), pytest.approx(deviation)),
      *((name, 0, 1) for name in names),
    )
    np.testing.assert_array_equal(built.data.y, table['outcome'] == 'well')

  def test_whole_numbers_are_sorted_as_numbers(self, tmp_path):
    rows = np.arange(_ROWS)
    table = _table(hospital=9 + rows % 3, outcome=np.where(rows % 2, 7.0, 10.0))
    built = tasks.build_task(**_task(tmp_path, table))
    assert built.client_names == ('9', '10', '11')
    assert built.class_names == ('7', '10')

  def test_filled_values_are_the_mean_and_a_feature(self, tmp_path):
    table = _with('age', 3, None)
    options = {'missing_values': 'fill', 'test_fraction': 0.0}
    built = tasks.build_task(**_task(tmp_path, table, **options))
    np.testing.assert_allclose(built.data.x[3, :2], [0, 1], atol=1e-6)
    assert not np.delete(built.data.x[:, 1], 3).any()

  @pytest.mark.parametrize('part', ['train', 'holdout', 'test'])
  def test_a_filled_boolean_is_the_mean_of_the_known_ones(self, part, tmp_path):
    smoker = pd.Series(np.arange(_ROWS) % 4 == 0, dtype=object)
    whole = tasks.build_task(
      **_task(tmp_path, _table(smoker=smoker), holdout_fraction=0.2)
    )
    gaps = np.concatenate([getattr(s, part)[:1] for s in whole.splits])
    assert len(gaps) == 3
    smoker[gaps] = None
    options = {'missing_values': 'fill', 'holdout_fraction': 0.2}
    built = tasks.build_task(
      **_task(tmp_path, _table(smoker=smoker), **options)
    )
    # The deal is the same, and so is what is known.
    parts = zip(built.splits, whole.splits, strict=True)
    assert all(map(np.array_equal, a, b) for a, b in parts)
    training = np.concatenate(
      [p for s in built.splits for p in (s.train, s.holdout)]
    )
    known = smoker[np.setdiff1d(training, gaps)].astype(float)
    filled = smoker.astype(float).fillna(known.mean())
    deviation = filled[training].std(ddof=0)
    np.testing.assert_allclose(
      built.data.x[:, -2],
      (filled - known.mean()) / deviation,
      rtol=1e-5,
      atol=1e-6,
    )
    np.testing.assert_array_equal(
      np.flatnonzero(built.data.x[:, -1]), np.sort(gaps)
    )
    assert built.features[-2:] == (
      ('smoker', pytest.approx(known.mean()), pytest.approx(deviation)),
      ('smoker=missing', 0, 1),
    )
    assert np.isfinite(built.data.x).all()

  def test_a_boolean_with_gaps_is_refused_or_dropped(self, tmp_path):
    smoker = pd.Series(np.arange(_ROWS) % 4 == 0, dtype=object)
    smoker[[5, 9]] = None
    arguments = _task(tmp_path, _table(smoker=smoker))
    with pytest.raises(ValueError, match="found 2 in 'smoker' of 40 rows"):
      tasks.build_task(**arguments)
    built = tasks.build_task(**arguments, missing_values='drop')
    expected = smoker.drop([5, 9]).astype(float)
    np.testing.assert_array_equal(built.data.x[:, -1], expected)

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

  def test_the_example_encodes_new_rows_likewise(self, tmp_path):
    table = _with('age', 3, None).astype({'age': float})
    rows = np.arange(_ROWS)
    table = table.assign(
      sex=table['sex'].where(rows != 5),
      smoker=rows % 2 == 0,
      drinker=pd.Series(rows % 3 == 0, dtype=object).mask(rows % 5 == 0),
      one=1,
    )
    built = tasks.build_task(**_task(tmp_path, table, missing_values='fill'))
    encode = runpy.run_path(str(_EXAMPLE))['encode']
    features = [feature._asdict() for feature in built.features]
    np.testing.assert_allclose(
      encode(table, features), built.data.x, rtol=1e-5, atol=1e-6
    )

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


class TestNames:
  @pytest.mark.parametrize('column', ['hospital', 'outcome'])
  @pytest.mark.parametrize(('texts', 'names'), _NAMES)
  @pytest.mark.parametrize('ending', ['csv', 'csv.gz'])
  def test_what_differs_in_a_file_stays_apart(
    self, texts, names, column, ending, tmp_path
  ):
    text = _csv_of(texts, column).encode()
    content = text if ending == 'csv' else gzip.compress(text)
    built = tasks.build_task(
      **_task(tmp_path, (f'own.{ending}', content), missing_values='drop')
    )
    found = built.client_names if column == 'hospital' else built.class_names
    assert list(found) == (names or sorted(filter(None, texts), key=int))

  def test_numbers_and_texts_of_a_parquet_file(self, tmp_path):
    pytest.importorskip('pyarrow')
    rows = np.arange(_ROWS)
    table = _table(
      hospital=np.array(['007', '7'])[rows % 2], outcome=10 - rows % 3
    )
    table.to_parquet(tmp_path / 'own.parquet')
    built = tasks.build_task(**_task(tmp_path, tmp_path / 'own.parquet'))
    assert built.client_names == ('007', '7')
    assert built.class_names == ('8', '9', '10')

  def test_two_texts_of_one_number_are_noted(self, tmp_path):
    content = ('own.csv', _csv_of(['007', '7', '8'], 'hospital'))
    notes = tasks.build_task(**_task(tmp_path, content)).notes
    expected = "the names '007' and '7', which are the same number and count as"
    assert [expected in note for note in notes].count(True) == 1

  def test_fractions_are_no_names(self, tmp_path):
    content = ('own.csv', _csv_of(['0.5', '1', '02'], 'hospital'))
    with pytest.raises(ValueError, match='found the number 0.5 in row 1'):
      tasks.build_task(**_task(tmp_path, content))


class TestArrays:
  def test_images_get_a_channel_and_names_their_numbers(self, tmp_path):
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

  def test_examples_may_be_dealt(self, tmp_path):
    built = tasks.build_task(
      **_task(
        tmp_path, _arrays(client=None), partition='dirichlet', num_clients=2
      )
    )
    assert built.num_clients == 2 and not built.client_names


def test_a_changed_file_is_read_again_and_has_another_fingerprint(tmp_path):
  arguments = _task(tmp_path, _table())
  before = tasks.fingerprint(arguments['data_file'])
  assert tasks.build_task(**arguments).num_clients == 3
  path = _write(tmp_path, _with('hospital', 0, 'Jena'))
  os.utime(path, (1, 1))
  assert tasks.build_task(**arguments).num_clients == 4
  assert tasks.fingerprint(arguments['data_file']) != before


def test_options_of_own_data_are_refused_elsewhere():
  names = {field.name for field in dataclasses.fields(tasks.TaskOptions)}
  for name in ('data_file', 'client_column', 'label_column', 'feature_columns'):
    assert name in names
    with pytest.raises(ValueError, match=f"{name} must not .* task='digits'"):
      tasks.build_task('digits', **{name: 'x'})
