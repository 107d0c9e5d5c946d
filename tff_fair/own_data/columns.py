"""Columns of a table that a user names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tff_fair import checks
from tff_fair.own_data import names as names_lib


def check_known(required: str, name: Any, known: Collection[Any]) -> None:
  """Checks that a table has a column.

  Args:
    required: What a message says first, such as 'label must be a column of the
      table'.
    name: The column.
    known: All columns of the table.

  Raises:
    ValueError: If it is not there.
  """
  if name in known:
    return
  hint = checks.did_you_mean(str(name), map(str, known))
  which = '' if hint else f', which has {names_lib.listed([*known])}'
  raise ValueError(f'{required}{which}, found {name!r}.{hint}')


def check_named(
  argument: str,
  columns: Sequence[Any],
  known: Collection[Any],
  *,
  keys: Mapping[Any, str],
  table: str,
) -> None:
  """Checks an argument that names columns of a table.

  Args:
    argument: The argument, in messages.
    columns: The columns.
    known: All columns of the table.
    keys: Columns that it must not name -> what they are of.
    table: The table, in messages.

  Raises:
    ValueError: If one is missing, is a key, or is named twice.
  """
  for name in columns:
    check_known(f'{argument} must name columns of {table}', name, known)
    if name in keys:
      raise ValueError(
        f'{argument} must not name the column of the {keys[name]}, found'
        f' {name!r}.'
      )
    if list(columns).count(name) > 1:
      raise ValueError(
        f'{argument} must name each column once, found {name!r} twice.'
      )


def without(
  argument: str, features: Sequence[Any], columns: Sequence[Any]
) -> list[Any]:
  """Returns the features that are left without some columns.

  Args:
    argument: The argument that leaves the columns out, in messages.
    features: The features.
    columns: The columns.

  Raises:
    ValueError: If no feature is left.
  """
  left = [name for name in features if name not in columns]
  if not left:
    raise ValueError(
      f'{argument} must leave a column of features, found none beside'
      f' {names_lib.listed(columns)}.'
    )
  return left
