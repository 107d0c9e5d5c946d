"""The groups of people that columns of a table say, such as `sex` or `race`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_fair.own_data import encoded
from tff_fair.own_data import names as names_lib

# More distinct numbers are measurements, not groups.
_MAX_NUMBERS = 20
# More texts are most often names or ids.
_MAX_GROUPS = 100
# The group of those for whom the table does not say; only under `fill`.
_MISSING = '(missing)'


def split_names(text: str | None) -> list[str]:
  """Splits names that commas separate; None gives none."""
  return [name.strip() for name in (text or '').split(',') if name.strip()]


def find_groups(name: Any, column: pd.Series) -> encoded.Groups:
  """Finds the groups of people in a column.

  Args:
    name: The name of the column.
    column: A value for each example; those that are missing are a group.

  Returns:
    The groups, in the order of their names; numbers are ordered as numbers.

  Raises:
    ValueError: If the column holds dates, many distinct numbers or texts, a
      single group, or a group of one example.
  """
  what = f'The sensitive column {name!r}'
  kind = names_lib.kind_of(what, column)
  known = column.dropna()
  distinct = sorted(known.unique().tolist())
  if kind in ('date', 'duration'):
    raise ValueError(f'{what} must hold groups, found dates or times.')
  if kind in ('whole', 'number') and len(distinct) > _MAX_NUMBERS:
    raise ValueError(
      f'{what} must hold groups, found {len(distinct):,} distinct numbers, as'
      ' if it were continuous: pandas.cut makes groups of numbers.'
    )
  if len(distinct) > _MAX_GROUPS:
    raise ValueError(
      f'{what} must hold at most {_MAX_GROUPS} groups, found'
      f' {len(distinct):,} in {len(column):,} rows: is it a column of ids?'
    )
  group_names = [_as_text(value) for value in distinct]
  code_of = {value: i for i, value in enumerate(distinct)}
  codes = np.full(len(column), len(distinct), np.int64)
  codes[column.notna().to_numpy()] = [code_of[v] for v in known.tolist()]
  if len(known) < len(column):
    group_names.append(_MISSING)
  return make_groups(name, group_names, codes)


def make_groups(
  name: Any, group_names: Sequence[str], codes: np.ndarray
) -> encoded.Groups:
  """Checks and returns groups whose members are known.

  Args:
    name: The name of the column.
    group_names: The name of each group; one without members is left out.
    codes: int64 [n], the group of each example.

  Raises:
    ValueError: If there is a single group, or a group of one example.
  """
  what = f'The sensitive column {name!r}'
  sizes = np.bincount(codes, minlength=len(group_names))
  there = np.flatnonzero(sizes)
  kept = [group_names[i] for i in there]
  if len(kept) < 2:
    raise ValueError(
      f'{what} must hold at least 2 groups, found only {kept[0]!r}.'
    )
  alone = [group_names[i] for i in np.flatnonzero(sizes == 1)]
  if alone:
    raise ValueError(
      f'{what} must have 2 examples or more of each group, found one of'
      f' {names_lib.listed(alone)}: join small groups, or leave the row out.'
    )
  names_lib.check_printable(what, kept)
  return encoded.Groups(
    str(name), tuple(kept), np.searchsorted(there, codes).astype(np.int64)
  )


def choose_positive(
  argument: str, label: str | None, class_names: Sequence[str]
) -> tuple[int | None, str]:
  """Chooses the class that counts as positive, by default the last by name.

  Args:
    argument: The argument of the label, in messages.
    label: The name of the positive class; None for the default.
    class_names: The names of the classes, in their order.

  Returns:
    The class, None if there are more than two; and a sentence that says so.

  Raises:
    ValueError: If there is no such class, or a label is given with more than
      two classes.
  """
  count = len(class_names)
  if count > 2:
    if label is not None:
      raise ValueError(
        f'{argument} must be given with 2 classes only, found {label!r} with'
        f' {count}.'
      )
    return None, (
      f'The groups of people are compared in accuracy alone: there are {count}'
      ' classes, and rates of positive predictions need 2.'
    )
  if label is None:
    return 1, (
      'The rates of the groups of people take the class'
      f' {class_names[1]!r} as the positive one, the last by name:'
      f' {argument} chooses another.'
    )
  if label not in class_names:
    raise ValueError(
      f'{argument} must be one of the classes {names_lib.listed(class_names)},'
      f' found {label!r}.'
    )
  return list(class_names).index(label), (
    f'The rates of the groups of people take the class {label!r} as the'
    ' positive one.'
  )


def _as_text(value: Any) -> str:
  """The name of a group; a whole number as such, whatever its type."""
  if isinstance(value, float) and value.is_integer():
    return str(int(value))
  return str(value)
