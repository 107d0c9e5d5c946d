"""Records, such as those of a Hugging Face data set, as tables and arrays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_fair import checks
from tff_fair.own_data import names


def to_table(records: Any, named: Sequence[Any]) -> pd.DataFrame:
  """Makes a table of records, a row for each.

  Args:
    records: A data set with `to_pandas`, or mappings from column to value. If
      its `features` name the classes of a column in `named`, they take the
      place of the numbers.
    named: The columns of clients and labels.

  Raises:
    TypeError: If they are neither.
    ValueError: If there are none.
  """
  if hasattr(records, 'to_pandas'):
    table = records.to_pandas()
    if not isinstance(table, pd.DataFrame):
      raise TypeError(
        'records.to_pandas() must return a pandas DataFrame, found'
        f' {type(table).__name__}.'
      )
  else:
    table = pd.DataFrame(_rows(records))
  return _with_class_names(table, records, named)


def to_arrays(
  records: Any, *, x: Any, named: Sequence[Any]
) -> tuple[np.ndarray, pd.DataFrame]:
  """Makes an array of one column of records, and a table of others.

  Args:
    records: Mappings from column to value, or a data set that iterates over
      such.
    x: The column of the inputs, arrays or images of one shape.
    named: The columns of clients and labels.

  Returns:
    [n, ...], the inputs; and the table of the columns `named`.

  Raises:
    TypeError: If the records are no mappings.
    ValueError: If there are none, a column is missing, or shapes differ.
  """
  rows = _rows(records)
  found = {name: [] for name in (x, *named)}
  for i, row in enumerate(rows):
    for name, values in found.items():
      if name not in row:
        hint = checks.did_you_mean(str(name), map(str, row))
        raise ValueError(
          f'Every record must have the entry {name!r}, found none in record'
          f' {i + 1}, which has {names.listed(list(row))}.{hint}'
        )
      values.append(row[name])
  inputs = [np.asarray(value) for value in found.pop(x)]
  for i, value in enumerate(inputs):
    if value.shape != inputs[0].shape or value.dtype.kind not in 'biuf':
      raise ValueError(
        f'{x!r} must hold arrays of numbers, or images, of one shape, found'
        f' {value.dtype} of the shape {list(value.shape)} in record {i + 1} and'
        f' {inputs[0].dtype} of {list(inputs[0].shape)} in the first.'
      )
  table = pd.DataFrame(found)
  return np.stack(inputs), _with_class_names(table, records, named)


def _rows(records: Any) -> list[Mapping]:
  """The records, which must be mappings."""
  is_one = isinstance(records, (str, bytes, Mapping))
  if is_one or not isinstance(records, Iterable):
    hint = ''
    if isinstance(records, Mapping):
      hint = f': choose one of {names.listed(list(records))}'
    raise TypeError(
      'records must be a list of mappings, or a data set with to_pandas, found'
      f' {type(records).__name__}{hint}.'
    )
  rows = list(records)
  for i, row in enumerate(rows):
    if not isinstance(row, Mapping):
      raise TypeError(
        'records must be mappings from column to value, found'
        f' {type(row).__name__} in record {i + 1}.'
      )
  if not rows:
    raise ValueError('records must have at least one record, found none.')
  return rows


def _with_class_names(table, records, named) -> pd.DataFrame:
  """The names of classes in place of their numbers, where these are known."""
  features = getattr(records, 'features', None)
  for column in named:
    feature = features.get(column) if isinstance(features, Mapping) else None
    known = getattr(feature, 'names', None)
    if not known or column not in table:
      continue
    numbers = table[column]
    # A Hugging Face data set writes -1 for a label that is missing.
    table = table.assign(**{column: numbers.map(dict(enumerate(known)))})
  return table
