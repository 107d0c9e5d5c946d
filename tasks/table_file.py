"""Reads a table from a csv or parquet file."""

from collections.abc import Collection
import gzip
import os
import re

import numpy as np
import pandas as pd

from tff_fair.tasks import sources

_SEPARATORS = (';', '\t', '|')
# What stands for a missing value: what pandas takes for one, and `?`.
_MISSING = (
  *('', '#N/A', '#N/A N/A', '#NA', '-1.#IND', '-1.#QNAN', '-NaN', '-nan'),
  *('1.#IND', '1.#QNAN', '<NA>', 'N/A', 'NA', 'NULL', 'NaN', 'None', 'n/a'),
  *('nan', 'null', '?'),
)
# A whole number as Python writes it, or as pandas writes a float.
_WHOLE = re.compile(r'(0|-?[1-9][0-9]{0,99})(\.0*)?')
_CHUNK = 2**20


def read(
  path: str | os.PathLike, keys: Collection[str] = (), *, as_texts: bool = False
) -> pd.DataFrame:
  """Reads a table.

  Args:
    path: The file. A csv file has the names of the columns in its first line;
      empty fields, `?`, `NA` and the like are missing values.
    keys: Columns of names, as far as there are such: what differs in a csv file
      differs in the table. They hold whole numbers only where these are written
      without zeros in front and without exponents.
    as_texts: Whether all values of a csv file stay the texts that they are,
      also where they stand for a missing value; see `with_gaps`.

  Returns:
    The table.
  """
  if os.fspath(path).lower().endswith('.parquet'):
    return _read_parquet(path)
  required = 'a table of values separated by commas, with a line of names first'
  with sources.reading(path, required):
    names = pd.read_csv(
      path, header=None, nrows=1, dtype=str, skipinitialspace=True
    ).iloc[0]
    table = pd.read_csv(
      path,
      skipinitialspace=True,
      na_values=_MISSING,
      keep_default_na=False,
      na_filter=not as_texts,
      low_memory=False,
      dtype=str if as_texts else dict.fromkeys(keys, str),
    )
    has_nul = _has_nul(path)
  if has_nul:  # Where a text ends for pandas.
    raise sources.DataDamagedError(path, required, 'a NUL, which no text has')
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
  if as_texts:
    return table
  parsed = {
    name: _parse_names(table[name]) if name in keys else _parse(table[name])
    for name in table
  }
  return pd.DataFrame(parsed)


def with_gaps(path: str | os.PathLike, texts: pd.DataFrame) -> pd.DataFrame:
  """Returns a table with missing values in place of what stands for one.

  Args:
    path: The file.
    texts: What `read` returns for it with `as_texts`.
  """
  if os.fspath(path).lower().endswith('.parquet'):
    return texts
  return texts.mask(texts.isin(_MISSING))


def check_spellings(
  path: str | os.PathLike, table: pd.DataFrame, names: Collection[str]
) -> None:
  """Checks that columns of groups do not write one number in two ways.

  Args:
    path: The file.
    table: What `read` returns for it.
    names: The columns; those that hold no numbers are not looked at.

  Raises:
    ValueError: If a csv file has, for example, `01` and `1` in such a column.
  """
  numbers = [
    name
    for name in table
    if name in names and pd.api.types.is_numeric_dtype(table[name])
  ]
  if not numbers or os.fspath(path).lower().endswith('.parquet'):
    return
  places = [table.columns.get_loc(name) for name in numbers]
  texts = pd.read_csv(path, usecols=places, skipinitialspace=True, dtype=str)
  texts.columns = numbers
  for name in numbers:
    written = texts[name].str.strip().groupby(table[name]).unique()
    twice = next((found for found in written if len(found) > 1), None)
    if twice is not None:
      raise ValueError(
        f'The column {name!r} must write each group in one way, found'
        f' {twice[0]!r} and {twice[1]!r}, which are one number.'
      )


def missing_texts(
  path: str | os.PathLike, table: pd.DataFrame
) -> dict[str, list[str]]:
  """Finds what is written in a csv file where a table has missing values.

  Args:
    path: The file.
    table: What `read` returns for it.

  Returns:
    Column -> its distinct texts such as 'None', which somebody may have meant
    as they stand; without columns that have none but empty fields.
  """
  places = [i for i, name in enumerate(table) if table[name].isna().any()]
  if not places or os.fspath(path).lower().endswith('.parquet'):
    return {}
  texts = pd.read_csv(
    path, usecols=places, skipinitialspace=True, dtype=str, na_filter=False
  )
  texts.columns = table.columns[places]
  found = {
    name: texts[name][table[name].isna().to_numpy()].dropna().unique()
    for name in texts
  }
  found = {name: [text for text in f if text] for name, f in found.items()}
  return {name: values for name, values in found.items() if values}


def _read_parquet(path: str | os.PathLike) -> pd.DataFrame:
  try:
    with sources.reading(path, 'a table in the format parquet'):
      return pd.read_parquet(path).reset_index(drop=True)
  except ImportError:  # pyarrow 26 does not go with NumPy 1.
    raise ValueError(
      'pyarrow must be installed to read parquet files, found none that can be'
      " imported: pip install 'pyarrow<26', or save the table as csv."
    ) from None


def _has_nul(path) -> bool:
  is_packed = os.fspath(path).lower().endswith('.gz')
  with (gzip.open if is_packed else open)(path, 'rb') as file:
    return any(b'\0' in chunk for chunk in iter(lambda: file.read(_CHUNK), b''))


def _parse(column: pd.Series) -> pd.Series:
  """The column; as numbers if all are some, but too large for whole ones."""
  if pd.api.types.infer_dtype(column, skipna=True) != 'string':
    return column
  try:
    numbers = column.astype(np.float64)
  except ValueError:
    return column
  # Python's float takes 1_000.
  return column if column.str.contains('_').any() else numbers


def _parse_names(column: pd.Series) -> pd.Series:
  """The column as texts, or as numbers where these are as many as the texts.

  Whole numbers are names, and fractions make a sentence about measurements.
  """
  texts = set(column.dropna())
  number_of = {text: _whole(text) for text in texts}
  if None in number_of.values():
    number_of = _fractions(texts)
  if len(set(number_of.values())) != len(texts):
    return column
  values = [number_of.get(text, np.nan) for text in column]
  # Python's numbers, since beside missing values NumPy's lose digits.
  return pd.Series(values, column.index, object)


def _whole(text: str) -> int | None:
  found = _WHOLE.fullmatch(text.strip())
  return int(found[1]) if found else None


def _fractions(texts: Collection[str]) -> dict[str, float]:
  """The numbers of texts; nothing unless all are some, and not all whole."""
  numbers = pd.to_numeric(pd.Series([*texts], dtype=object), errors='coerce')
  numbers = numbers.to_numpy(np.float64)
  is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
  if np.isnan(numbers).any() or is_whole.all():
    return {}
  return dict(zip(texts, numbers.tolist(), strict=True))


def _check_separator(path, required, name: str) -> None:
  for separator in _SEPARATORS:
    if separator in name:
      found = f'a single column {name[:80]!r}, as if {separator!r} separated'
      raise sources.DataDamagedError(path, required, found)
