"""The names of clients and classes, and what kind of values a column has."""

from collections.abc import Iterable, Sequence
import re
import unicodedata

import numpy as np
import pandas as pd

# Each has a row in the client table, in which some methods keep a model, and in
# every file about the clients.
MAX_CLIENTS = 10_000
# More than any data set of classes has. What has more is a number to predict.
MAX_CLASSES = 1000

_KINDS = {
  'boolean': 'flag',
  'integer': 'whole',
  'floating': 'number',
  'mixed-integer-float': 'number',
  'decimal': 'number',
  'string': 'text',
  'empty': 'number',
  **dict.fromkeys(('datetime', 'datetime64', 'date', 'time', 'period'), 'date'),
  **dict.fromkeys(('timedelta', 'timedelta64'), 'duration'),
}
_MAX_SHOWN = 12
# Unicode's categories of control characters, surrogates, and ends of lines.
_CONTROL = ('Cc', 'Cs', 'Zl', 'Zp')
_NUL = '\0'
# They show what stands beside them in another order.
_DIRECTIONS = frozenset(
  '\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'
)
# Few digits, so that floats are equal only where the numbers are.
_SMALL_NUMBER = re.compile(
  r'[+-]?(?=.{1,15}$)[0-9]+(\.[0-9]*)?([eE][0-9]{1,2})?'
)


def kind_of(what: str, column: pd.Series) -> str:
  """Returns 'flag', 'whole', 'number', 'text', 'date' or 'duration'."""
  if isinstance(column.dtype, pd.CategoricalDtype):
    column = column.cat.categories
  found = pd.api.types.infer_dtype(column, skipna=True)
  if found in _KINDS:
    return _KINDS[found]
  types = sorted({type(value).__name__ for value in column.dropna()})
  raise ValueError(
    f'{what} must hold numbers, or texts, of one type, found values of the type'
    f' {" and ".join(types[:3])}.'
  )


def enumerate_clients(
  what: str, column: pd.Series
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Numbers the clients of a column by their names, which are sorted."""
  codes, names = _enumerate(
    what, column, 'names or whole numbers of clients', 'is it a feature?'
  )
  count = len(names)
  if count < 2:
    raise ValueError(
      f'{what} must name at least 2 clients, found only {names[0]!r}.'
    )
  if count > MAX_CLIENTS:
    raise ValueError(
      f'{what} must name at most {MAX_CLIENTS:,} clients, each of which has a'
      f' row in every table, found {count:,} in {len(codes):,} rows: is it a'
      ' column of ids?'
    )
  return codes, names


def enumerate_classes(
  what: str, column: pd.Series
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Numbers the classes of a column by their names, which are sorted."""
  codes, names = _enumerate(
    what,
    column,
    'classes (only classification is supported)',
    'pandas.cut makes classes of numbers.',
  )
  count = len(names)
  if count < 2:
    raise ValueError(
      f'{what} must hold at least 2 classes, found only {names[0]!r}.'
    )
  if count > MAX_CLASSES or 2 * count > len(codes):
    raise ValueError(
      f'{what} must hold at most {MAX_CLASSES:,} classes, of two examples each'
      ' on average (only classification is supported), found'
      f' {count:,} values in {len(codes):,} rows; pandas.cut makes classes of'
      ' numbers.'
    )
  return codes.astype(np.int32), names


def check_printable(what: str, names: Iterable[str]) -> None:
  """Refuses names that files and terminals cannot show as they are.

  Such as those with a line break, a NUL, or a mark that turns the direction.
  """
  for name in names:
    for character in name:
      if (
        unicodedata.category(character) in _CONTROL or character in _DIRECTIONS
      ):
        found = f'the control character {character!a}'
        raise ValueError(
          f'{what} must hold names without control characters, found'
          f' {"a NUL" if character == _NUL else found} in the name {name!a}.'
        )


def near_duplicates(what: str, names: Sequence[str]) -> list[str]:
  """Returns sentences about names that are almost the same.

  They differ in capitals, blanks, invisible characters or the encoding of
  accents only, or are the same number.
  """
  return [
    f'{what} has the names {first!r} and {name!r}, which {how} and count as'
    ' two.'
    for key, how in (
      (_folded, 'differ in capitals or blanks only'),
      (_visible, 'look the same'),
      (_as_number, 'are the same number'),
    )
    for first, name in _pairs(names, key)[:3]
  ]


def listed(values: Sequence[object]) -> str:
  """Values in a sentence; only the first ones if there are many."""
  shown = ', '.join(repr(value) for value in values[:_MAX_SHOWN])
  more = len(values) - _MAX_SHOWN
  return f'{shown} and {more} more' if more > 0 else shown


def _pairs(names, key) -> list[tuple[str, str]]:
  """Each name whose key an earlier one has, and that one."""
  seen: dict[str | float, str] = {}
  firsts = [seen.setdefault(key(name), name) for name in names]
  return [(a, b) for a, b in zip(firsts, names, strict=True) if a != b]


def _folded(name) -> str:
  return ' '.join(name.split()).casefold()


def _visible(name) -> str:
  """Without what is not seen, and with one way to write an accent."""
  name = unicodedata.normalize('NFKC', name)
  return ''.join(c for c in name if unicodedata.category(c) != 'Cf')


def _as_number(name) -> str | float:
  """The number that a text writes; other texts, and large ones, as they are."""
  return float(name) if _SMALL_NUMBER.fullmatch(name) else name


def _enumerate(what, column, required, remedy):
  """Codes, and sorted names; numbers are sorted as numbers."""
  kind = kind_of(what, column)
  if isinstance(column.dtype, pd.CategoricalDtype):
    column = column.astype(column.cat.categories.dtype)
  if kind in ('date', 'duration'):
    raise ValueError(
      f'{what} must hold {required}, found dates or times;'
      " column.dt.strftime('%Y-%m') makes texts of dates."
    )
  if kind == 'number':
    numbers = column.to_numpy(np.float64)
    # Beyond 2^53 not every whole number is a float.
    odd = ~((np.abs(numbers) <= 2**53) & (numbers == np.floor(numbers)))
    if odd.any():
      raise ValueError(
        f'{what} must hold {required}, found the number'
        f' {numbers[odd][0]:g} in row {np.argmax(odd) + 1}; {remedy}'
      )
    column = pd.Series(numbers.astype(np.int64))
  # Not pandas.factorize, for which a text ends at a NUL.
  values = column.tolist()
  found = sorted(set(values))
  names = tuple(map(str, found))
  check_printable(what, names)
  number_of = {value: i for i, value in enumerate(found)}
  return np.array([number_of[value] for value in values], np.int64), names
