"""Columns of a table that are no features, such as ids."""

from collections.abc import Sequence
from typing import Any

from tff_fair import checks
from tff_fair.own_data import names as names_lib


def without(
  features: Sequence[Any],
  dropped: Sequence[Any],
  *,
  known: Sequence[Any],
  keys: Sequence[Any],
  are_named: bool,
  argument: str,
  features_argument: str,
  table: str,
) -> list[Any]:
  """Returns the features that are left without some columns.

  Args:
    features: The columns of the features.
    dropped: The columns that are none.
    known: All columns of the table.
    keys: The columns of clients and labels.
    are_named: Whether the user has named the features.
    argument: The argument `dropped`, in messages.
    features_argument: The argument `features`, likewise.
    table: The table, likewise.

  Raises:
    ValueError: If one is not there, is named twice or is a key; if no feature
      is left; or if the user has named the features.
  """
  if dropped and are_named:
    raise ValueError(
      f'{argument} must not be given with {features_argument}, which names all'
      f' features, found {names_lib.listed(dropped)}.'
    )
  for name in dropped:
    if name not in known:
      hint = checks.did_you_mean(str(name), map(str, known))
      which = '' if hint else f', which has {names_lib.listed(known)}'
      raise ValueError(
        f'{argument} must name columns of {table}{which}, found {name!r}.{hint}'
      )
    if name in keys:
      kind = 'labels' if name == keys[-1] else 'clients'
      raise ValueError(
        f'{argument} must not name the column of the {kind}, found {name!r}.'
      )
    if list(dropped).count(name) > 1:
      raise ValueError(
        f'{argument} must name each column once, found {name!r} twice.'
      )
  left = [name for name in features if name not in dropped]
  if not left:
    raise ValueError(
      f'{argument} must leave a column of features, found none beside'
      f' {names_lib.listed(dropped)}.'
    )
  return left
