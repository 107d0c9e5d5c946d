"""Reads a table from a csv or parquet file."""

import csv
import os

import pandas as pd

from tff_fair.tasks import sources

_SEPARATORS = (';', '\t', '|')
# What stands for a missing value besides what pandas takes for one.
_MISSING = ['?']


def read(path: str | os.PathLike) -> pd.DataFrame:
  """Reads a table.

  Args:
    path: The file. A csv file has the names of the columns in its first line;
      empty fields, `?`, `NA` and the like are missing values.

  Returns:
    The table.

  Raises:
    DataDamagedError: If the file is no table, or a name stands for two columns.
    ValueError: If parquet files cannot be read.
  """
  if os.fspath(path).lower().endswith('.parquet'):
    return _read_parquet(path)
  required = 'a table of values separated by commas, with a line of names first'
  try:
    names = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0]
    table = pd.read_csv(
      path, skipinitialspace=True, na_values=_MISSING, low_memory=False
    )
  except UnicodeDecodeError as error:
    found = f'bytes that are no text in UTF-8 ({error.reason})'
    raise sources.DataDamagedError(path, required, found) from None
  except (ValueError, OSError, EOFError, csv.Error) as error:
    found = f'an unreadable file ({error})'
    raise sources.DataDamagedError(path, required, found) from None
  # pandas calls a second column 'a' 'a.1'.
  repeated = names[names.duplicated() & names.notna()]
  if len(repeated):
    found = f'two columns called {repeated.iloc[0]!r}'
    raise sources.DataDamagedError(path, 'different names of columns', found)
  if not isinstance(table.index, pd.RangeIndex):
    found = 'lines with more values than there are names'
    raise sources.DataDamagedError(path, required, found)
  if table.shape[1] == 1:
    _check_separator(path, required, str(table.columns[0]))
  return table


def _read_parquet(path: str | os.PathLike) -> pd.DataFrame:
  try:
    return pd.read_parquet(path).reset_index(drop=True)
  except ImportError:  # pyarrow 26 does not go with NumPy 1.
    raise ValueError(
      'pyarrow must be installed to read parquet files, found none that can be'
      " imported: pip install 'pyarrow<26', or save the table as csv."
    ) from None
  # pyarrow's errors are subclasses of these.
  except (ValueError, OSError) as error:
    raise sources.DataDamagedError(
      path, 'a table in the format parquet', f'an unreadable file ({error})'
    ) from None


def _check_separator(path, required, name: str) -> None:
  for separator in _SEPARATORS:
    if separator in name:
      found = f'a single column {name[:80]!r}, as if {separator!r} separated'
      raise sources.DataDamagedError(path, required, found)
