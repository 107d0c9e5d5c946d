"""New rows of a table as inputs of a model that was trained on such a table."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from tff_fair import checks
from tff_fair.own_data import encoded
from tff_fair.own_data import names

_FLAGS = {'true': 1.0, '1': 1.0, '1.0': 1.0, 'false': 0.0, '0': 0.0, '0.0': 0.0}


def check_columns(
  found: Sequence[str],
  columns: Sequence[encoded.Column],
  *,
  ignored: Collection[str] = (),
  argument: str = 'ignored',
  table: str = 'the table',
) -> None:
  """Checks that a table has the columns of the features, and no unknown ones.

  Args:
    found: The names of its columns.
    columns: The columns of the table that the model was trained on. Those that
      are no features may be missing.
    ignored: Other columns, which are no features either.
    argument: The argument `ignored`, in messages.
    table: The table, in messages.

  Raises:
    ValueError: If a column of features is missing, a column is unknown, or one
      to ignore is not there or is a feature.
  """
  known = [column.name for column in columns]
  features = [c.name for c in columns if c.kind != 'unused']
  for name in ignored:
    if name in features:
      raise ValueError(
        f'{argument} must not name a column of features, found {name!r}.'
      )
    if name not in found:
      hint = checks.did_you_mean(name, found)
      raise ValueError(
        f'{argument} must name columns of {table}, found {name!r}.{hint}'
      )
  lacking = [name for name in features if name not in found]
  unknown = [n for n in found if n not in known and n not in ignored]
  if lacking:
    raise ValueError(
      f'{_upper(table)} must have all columns of features that the model was'
      f' trained on, found none called {names.listed(lacking)}.'
      f'{_among(unknown)}'
    )
  if unknown:
    raise ValueError(
      f'{_upper(table)} must have the columns that the model was trained on and'
      f' no others, found {names.listed(unknown)}: {argument} names columns'
      ' that are no features.'
    )


def encode(
  table: pd.DataFrame,
  columns: Sequence[encoded.Column],
  features: Sequence[encoded.Feature],
) -> tuple[np.ndarray, list[str]]:
  """Makes inputs of the rows of a table, as those of the training were made.

      input = (value - mean) / deviation,  0 if the deviation is 0

  Args:
    table: The rows, with the columns of the features; texts of numbers are
      numbers.
    columns: The columns of the table that the model was trained on.
    features: How its features became inputs, in the order of `columns`.

  Returns:
    float32 [n, d], the inputs; and sentences about values that the training
    did not have: an unknown category is 0 in all features of its column, a
    missing number is the mean.

  Raises:
    ValueError: If a value is of another kind than those of the training, is not
      finite, or is missing where the training knows no value for it.
  """
  table = table.reset_index(drop=True)
  if not len(table):
    raise ValueError('The table must have rows, found none.')
  parts, notes, start = [], [], 0
  for column in columns:
    if column.kind == 'unused':
      continue
    own = features[start : start + column.width]
    start += column.width
    to_inputs = _categories if column.kind == 'category' else _numbers
    part, said = to_inputs(table[column.name], column, own)
    parts.append(part)
    notes += said
  with np.errstate(over='ignore'):
    return np.hstack(parts).astype(np.float32), notes


def _categories(values, column, features):
  """1 in the feature of the value, 0 in the others."""
  what = f'The column {column.name!r}'
  known = [feature.name.removeprefix(f'{column.name}=') for feature in features]
  missing = values.isna()
  texts = values.astype(str).where(~missing, encoded.MISSING_CATEGORY)
  x = np.stack([(texts == name).to_numpy(np.float64) for name in known], axis=1)
  is_new = ~texts.isin(known)
  notes = []
  for which, kind in ((is_new & ~missing, 'unknown'), (is_new & missing, '')):
    count = int(which.sum())
    if not count:
      continue
    if kind:
      found = names.listed(sorted(texts[which].unique()))
      notes.append(
        f'{what} has {_count(count, "row")} of categories that the model was'
        f' not trained on, which count as none of the known ones: {found}.'
      )
    else:
      notes.append(
        f'{what} has {_count(count, "missing value")}, and had none in the'
        ' training: each counts as none of the categories.'
      )
  return x, notes


def _numbers(values, column, features):
  """The number, standardised, and whether it is missing, if that is known."""
  what = f'The column {column.name!r}'
  missing = values.isna().to_numpy()
  numbers, required = _to_numbers(values, column.kind)
  bad = ~np.isfinite(numbers) & ~missing
  if bad.any():
    row = int(np.argmax(bad))
    raise ValueError(
      f'{what} must hold {required}, as in the training, found'
      f' {int(bad.sum()):,} other values, the first {values[row]!r} in row'
      f' {row + 1}.'
    )
  notes = []
  if missing.any() and len(features) == 1:
    if column.kind == 'flag':
      raise ValueError(
        f'{what} must have no missing values, as in the training, found'
        f' {int(missing.sum()):,} of {len(values):,} rows, the first in row'
        f' {int(np.argmax(missing)) + 1}.'
      )
    notes.append(
      f'{what} has {_count(int(missing.sum()), "missing value")}, and had none'
      ' in the training: each counts as the mean of the training.'
    )
  feature = features[0]
  scaled = np.zeros(len(values))
  if feature.deviation:
    scaled = (numbers - feature.mean) / feature.deviation
  large = np.abs(scaled) > np.finfo(np.float32).max
  if large.any():
    row = int(np.argmax(large))
    raise ValueError(
      f'{what} must give finite inputs, found {values[row]!r} in row {row + 1}.'
    )
  x = [np.where(missing, 0.0, scaled)]
  if len(features) == 2:
    x.append(missing.astype(np.float64))
  return np.stack(x, axis=1), notes


def _to_numbers(values, kind):
  """float64, NaN for what is none; and what is required."""
  if kind == 'flag':
    texts = values.astype(str).str.strip().str.lower()
    return texts.map(_FLAGS).to_numpy(np.float64), 'True or False'
  if pd.api.types.is_bool_dtype(values):  # No numbers.
    return np.full(len(values), np.nan), 'finite numbers'
  numbers = pd.to_numeric(values, errors='coerce')
  return numbers.to_numpy(np.float64, na_value=np.nan), 'finite numbers'


def _among(unknown: Sequence[str]) -> str:
  return f' It has the unknown {names.listed(unknown)}.' if unknown else ''


def _count(count: int, what: str) -> str:
  return f'{count:,} {what}{"" if count == 1 else "s"}'


def _upper(text: str) -> str:
  return text[0].upper() + text[1:]
