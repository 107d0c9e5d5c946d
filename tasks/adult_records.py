"""Reads the census records of UCI Adult (Becker and Kohavi, 1996).

The files `adult.data` and `adult.test` are text: a record is a line of 14
fields and its class, separated by a comma and a space; `?` is a missing value,
and a line that begins with `|` is a comment. In `adult.test` a dot follows the
class.
"""

from collections.abc import Sequence
import csv
import os

import numpy as np
import pandas as pd

from tff_fair.own_data import columns
from tff_fair.own_data import encoded
from tff_fair.own_data import sensitive
from tff_fair.tasks import sources
from tff_fair.tasks import task

# The columns in the order of the file: the documented values of a categorical
# column, None for a number. A missing value is a category.
_COLUMNS = {
  'age': None,
  'workclass': (
    'Private',
    'Self-emp-not-inc',
    'Self-emp-inc',
    'Federal-gov',
    'Local-gov',
    'State-gov',
    'Without-pay',
    'Never-worked',
    '?',
  ),
  'fnlwgt': None,
  'education': (
    'Bachelors',
    'Some-college',
    '11th',
    'HS-grad',
    'Prof-school',
    'Assoc-acdm',
    'Assoc-voc',
    '9th',
    '7th-8th',
    '12th',
    'Masters',
    '1st-4th',
    '10th',
    'Doctorate',
    '5th-6th',
    'Preschool',
  ),
  'education-num': None,
  'marital-status': (
    'Married-civ-spouse',
    'Divorced',
    'Never-married',
    'Separated',
    'Widowed',
    'Married-spouse-absent',
    'Married-AF-spouse',
  ),
  'occupation': (
    'Tech-support',
    'Craft-repair',
    'Other-service',
    'Sales',
    'Exec-managerial',
    'Prof-specialty',
    'Handlers-cleaners',
    'Machine-op-inspct',
    'Adm-clerical',
    'Farming-fishing',
    'Transport-moving',
    'Priv-house-serv',
    'Protective-serv',
    'Armed-Forces',
    '?',
  ),
  'relationship': (
    'Wife',
    'Own-child',
    'Husband',
    'Not-in-family',
    'Other-relative',
    'Unmarried',
  ),
  'race': (
    'White',
    'Asian-Pac-Islander',
    'Amer-Indian-Eskimo',
    'Other',
    'Black',
  ),
  'sex': ('Female', 'Male'),
  'capital-gain': None,
  'capital-loss': None,
  'hours-per-week': None,
  'native-country': (
    'United-States',
    'Cambodia',
    'England',
    'Puerto-Rico',
    'Canada',
    'Germany',
    'Outlying-US(Guam-USVI-etc)',
    'India',
    'Japan',
    'Greece',
    'South',
    'China',
    'Cuba',
    'Iran',
    'Honduras',
    'Philippines',
    'Italy',
    'Poland',
    'Jamaica',
    'Vietnam',
    'Mexico',
    'Portugal',
    'Ireland',
    'France',
    'Dominican-Republic',
    'Laos',
    'Ecuador',
    'Taiwan',
    'Haiti',
    'Columbia',
    'Hungary',
    'Guatemala',
    'Nicaragua',
    'Scotland',
    'Thailand',
    'Yugoslavia',
    'El-Salvador',
    'Trinadad&Tobago',
    'Peru',
    'Hong',
    'Holand-Netherlands',
    '?',
  ),
}
_CATEGORIES = {
  name: values for name, values in _COLUMNS.items() if values is not None
}
_NUMERIC = tuple(name for name, values in _COLUMNS.items() if values is None)
_LABEL = 'class'
CLASSES = ('<=50K', '>50K')
"""The names of the classes."""

NUM_CATEGORICAL_FEATURES = sum(map(len, _CATEGORIES.values()))


def read(path: str | os.PathLike) -> task.Examples:
  """Reads the records of one file."""
  table = _read_table(path)
  features = [
    *(_one_hot(path, name, table[name]) for name in _CATEGORIES),
    *(_number(path, name, table[name]) for name in _NUMERIC),
  ]
  labels = _codes(path, _LABEL, table[_LABEL].str.rstrip('.'), CLASSES)
  return task.Examples(np.hstack(features), labels.astype(np.int32))


def check_sensitive(names: Sequence[str]) -> None:
  """Checks that sensitive columns are columns of categories.

  Args:
    names: The columns.

  Raises:
    ValueError: If one is none.
  """
  columns.check_named(
    '--sensitive_columns',
    names,
    [*_COLUMNS, _LABEL],
    keys={_LABEL: 'labels'},
    table='adult',
  )
  for name in names:
    if name in _NUMERIC:
      raise ValueError(
        f'The sensitive column {name!r} must hold groups, found a continuous'
        f' number; adult has the groups {", ".join(_CATEGORIES)}.'
      )


def find_groups(x: np.ndarray, name: str) -> encoded.Groups:
  """Finds the groups of people in a categorical column of inputs.

  Args:
    x: float32 [n, 108], as `read` gives them.
    name: The column.

  Raises:
    ValueError: If there is a single group, or a group of one record.
  """
  codes = x[:, _features_of(name)].argmax(axis=1)
  return sensitive.make_groups(name, _CATEGORIES[name], codes)


def feature_positions(names: Sequence[str]) -> np.ndarray:
  """Returns the positions of the features of categorical columns, int64 [m]."""
  positions = np.arange(NUM_CATEGORICAL_FEATURES)
  parts = [positions[_features_of(name)] for name in names]
  return np.concatenate([positions[:0], *parts])


def _features_of(name: str) -> slice:
  """The place of a column among the features."""
  before = list(_CATEGORIES)[: list(_CATEGORIES).index(name)]
  start = sum(len(_CATEGORIES[other]) for other in before)
  return slice(start, start + len(_CATEGORIES[name]))


def _read_table(path: str | os.PathLike) -> pd.DataFrame:
  names = [*_COLUMNS, _LABEL]
  required = f'records of {len(names)} fields'
  with sources.reading(path, required):
    table = pd.read_csv(
      path,
      header=None,
      dtype=str,
      na_filter=False,
      skipinitialspace=True,
      comment='|',
      quoting=csv.QUOTE_NONE,
    )
  if table.shape[1] != len(names):
    found = f'records of {table.shape[1]}'
    raise sources.DataDamagedError(path, required, found)
  table.columns = names
  # pandas pads short lines; a complete line has no empty field.
  empty = np.flatnonzero((table == '').any(axis=1))
  if empty.size:
    found = f'an empty or missing field in record {empty[0] + 1}'
    raise sources.DataDamagedError(path, required, found)
  return table


def _one_hot(
  path: str | os.PathLike, name: str, column: pd.Series
) -> np.ndarray:
  categories = _CATEGORIES[name]
  codes = _codes(path, name, column, categories)
  return np.eye(len(categories), dtype=np.float32)[codes]


def _codes(
  path: str | os.PathLike, name: str, column: pd.Series, values: tuple[str, ...]
) -> np.ndarray:
  """Returns int64 [n], the place of each entry in `values`."""
  codes = pd.Index(values).get_indexer(column)
  if codes.min() < 0:
    raise sources.DataDamagedError(
      path,
      f'documented values in the column {name!r}',
      repr(column[codes < 0].iloc[0]),
    )
  return codes


def _number(
  path: str | os.PathLike, name: str, column: pd.Series
) -> np.ndarray:
  """Returns float32 [n, 1]."""
  numbers = pd.to_numeric(column, errors='coerce').to_numpy(np.float64)
  bad = ~(np.abs(numbers) <= np.finfo(np.float32).max)
  if bad.any():
    raise sources.DataDamagedError(
      path, f'numbers in the column {name!r}', repr(column[bad].iloc[0])
    )
  return numbers.astype(np.float32)[:, np.newaxis]
