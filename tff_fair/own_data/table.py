"""A table of pandas as inputs, labels and owners."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from tff_fair import checks
from tff_fair.own_data import columns
from tff_fair.own_data import encoded
from tff_fair.own_data import guesses
from tff_fair.own_data import names
from tff_fair.own_data import sensitive as sensitive_lib

# One feature each; a column with more is most often a name or an id.
_MAX_CATEGORIES = 100
# Below it, numbers that are all different are no sign of an id.
_MIN_IDS = 20
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_MISSING_SIGN = '?'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arguments:
  """Names for the arguments of `encode` and for the table, in messages.

  Attributes:
    client: The argument `client`.
    label: The argument `label`.
    features: The argument `features`.
    drop: The argument `drop` with a column, for `str.format`.
    missing_values: The argument `missing_values` with a value, for
      `str.format`.
    sensitive: The argument `sensitive`.
    drop_sensitive: The argument `drop_sensitive`.
    positive_label: The argument `positive_label`.
    table: The table.
    missing_texts: Column -> texts of a file that count as missing values.
  """

  client: str = 'client'
  label: str = 'label'
  features: str = 'features'
  drop: str = "drop=['{}']"
  missing_values: str = "missing_values='{}'"
  sensitive: str = 'sensitive'
  drop_sensitive: str = 'drop_sensitive'
  positive_label: str = 'positive_label'
  table: str = 'the table'
  missing_texts: Mapping[Any, Sequence[str]] = dataclasses.field(
    default_factory=dict
  )


def encode(
  table: pd.DataFrame,
  *,
  client: Any,
  label: Any,
  features: Sequence[Any] | None = None,
  drop: Sequence[Any] = (),
  missing_values: str = 'refuse',
  sensitive: Sequence[Any] = (),
  drop_sensitive: bool = False,
  positive_label: str | None = None,
  called: Arguments | None = None,
) -> encoded.Encoded:
  """Makes numbers of a table with a row for each example.

  A column of texts, or of pandas's categories, becomes a feature of 0 and 1 for
  each of its values; numbers stay as they are, for `Encoded.to_inputs` to
  standardise; booleans become 0 and 1, and count as numbers where some are
  missing. Sensitive columns say the groups of people, and are features like
  others unless they are dropped.
  """
  called = called or Arguments()
  if not isinstance(table, pd.DataFrame):
    raise TypeError(
      f'The table must be a pandas DataFrame, found {type(table).__name__}.'
    )
  checks.check_choice(
    called.missing_values.partition('=')[0],
    missing_values,
    encoded.MISSING_VALUES,
  )
  given = features is not None
  features = _check_columns(table, client, label, features, called)
  keys = {} if client is None else {client: 'clients'}
  keys[label] = 'labels'
  features = _without_dropped(table, features, drop, keys, given, called)
  columns.check_named(
    called.sensitive,
    sensitive,
    list(table.columns),
    keys={label: 'labels'},
    table=called.table,
  )
  if drop_sensitive:
    features = _without_sensitive(features, sensitive, given, called)
  unused = [str(name) for name in table.columns if name not in features]
  table = table[[*dict.fromkeys([*keys, *features, *sensitive])]]
  table = table.reset_index(drop=True)
  names.check_printable(f'The columns of {called.table}', map(str, table))
  if not len(table):
    raise ValueError(f'{_upper(called.table)} must have rows, found none.')
  table, notes = _without_missing(table, keys, missing_values, called)
  owners, client_names = None, ()
  if client is not None:
    what = f'The column {client!r} of the clients'
    owners, client_names = names.enumerate_clients(what, table[client])
    notes += names.near_duplicates(what, client_names)
    notes += _small_clients(np.bincount(owners), client_names)
  what = f'The column {label!r} of the labels'
  y, class_names = names.enumerate_classes(what, table[label])
  notes += names.near_duplicates(what, class_names)
  notes += guesses.of_labels(what, class_names)
  notes += _rare_classes(np.bincount(y), class_names)
  parts = [_Feature.of(name, table[name], called) for name in features]
  notes += [note for part in parts for note in part.notes]
  for name in features:
    what = f'The column {name!r}'
    notes += guesses.of_copies(what, table[name], y, called.features)
  groups = [sensitive_lib.find_groups(n, table[n]) for n in sensitive]
  positive = None
  if groups:
    positive, note = sensitive_lib.choose_positive(
      called.positive_label, positive_label, class_names
    )
    notes.append(note)
  return encoded.Encoded(
    x=np.hstack([part.values for part in parts]),
    y=y,
    owners=owners,
    client_names=client_names,
    class_names=class_names,
    feature_names=tuple(name for part in parts for name in part.names),
    is_number=np.concatenate([part.is_number for part in parts]),
    notes=tuple(notes),
    columns=(
      *(part.column for part in parts),
      *(encoded.Column(name, 'unused', 0) for name in unused),
    ),
    sensitive=tuple(groups),
    positive_class=positive,
  )


@dataclasses.dataclass(frozen=True)
class _Feature:
  """An encoded column: float64 [n, d], d names, and which are numbers."""

  column: encoded.Column
  values: np.ndarray
  names: Sequence[str]
  is_number: Sequence[bool]
  notes: Sequence[str]

  @classmethod
  def of(cls, name, column, called) -> '_Feature':
    what = f'The column {name!r}'
    kind = names.kind_of(what, column)
    is_date = kind == 'text' and guesses.holds_dates(column)
    if kind in ('date', 'duration') or is_date:
      raise ValueError(
        f'{what} must hold numbers or categories, found dates or times: make'
        ' numbers of them, such as days since the first one, or leave the'
        f' column out: {called.drop.format(name)}.'
      )
    notes = _notes_of(what, kind, column, called)
    if kind == 'text' or isinstance(column.dtype, pd.CategoricalDtype):
      return cls._of_texts(name, column, notes, called)
    return cls._of_numbers(name, column, kind, notes)

  @classmethod
  def _of_texts(cls, name, column, notes, called):
    what = f'The column {name!r}'
    count = column.nunique()
    _check_no_numbers(what, column)
    if count > _MAX_CATEGORIES:
      raise ValueError(
        f'{what} must have at most {_MAX_CATEGORIES} categories, found'
        f' {count:,} in {len(column):,} rows: group its values, or'
        f' leave it out: {called.drop.format(name)}.'
      )
    notes += names.near_duplicates(
      what, sorted(map(str, column.dropna().unique()))
    )
    one_hot = pd.get_dummies(
      column.astype(str).where(column.notna()),
      prefix=str(name),
      prefix_sep='=',
      dummy_na=bool(column.isna().any()),
      dtype=np.float64,
    )
    return cls(
      encoded.Column(str(name), 'category', one_hot.shape[1]),
      one_hot.to_numpy(),
      list(one_hot.columns),
      [False] * one_hot.shape[1],
      notes,
    )

  @classmethod
  def _of_numbers(cls, name, column, kind, notes):
    values = column.to_numpy(np.float64, na_value=np.nan)
    _check_size(f'The column {name!r}', values)
    missing = np.isnan(values)
    kind = 'flag' if kind == 'flag' else 'number'
    if not missing.any():
      column = encoded.Column(str(name), kind, 1)
      return cls(
        column, values[:, np.newaxis], [str(name)], [kind != 'flag'], notes
      )
    # A flag, too: the mean that fills a gap is known of standardised features.
    return cls(
      encoded.Column(str(name), kind, 2),
      np.stack([values, missing.astype(np.float64)], axis=1),
      [str(name), f'{name}=missing'],
      [True, False],
      notes,
    )


def _check_columns(table, client, label, features, called) -> list[Any]:
  """Returns the columns of the features."""
  known = list(table.columns)
  repeated = table.columns[table.columns.duplicated()]
  if len(repeated):
    raise ValueError(
      f'{_upper(called.table)} must have a different name for each column,'
      f' found several called {repeated[0]!r}.'
    )
  if client is not None:
    _check_known(called.client, client, known, called)
  _check_known(called.label, label, known, called)
  if client == label:
    raise ValueError(
      f'{called.client} and {called.label} must be different columns, found'
      f' {label!r} twice.'
    )
  keys = [key for key in (client, label) if key is not None]
  if features is None:
    features = [name for name in known if name not in keys]
    if not features:
      raise ValueError(
        f'{_upper(called.table)} must have a column of features beside the'
        f' {len(keys)} of clients and labels, found none.'
      )
    return features
  features = [features] if isinstance(features, str) else list(features)
  if not features:
    raise ValueError(f'{called.features} must name columns, found none.')
  for name in features:
    _check_known(called.features, name, known, called)
    if features.count(name) > 1:
      raise ValueError(
        f'{called.features} must name each column once, found {name!r} twice.'
      )
    if name in keys:
      kind = 'labels' if name == label else 'clients'
      raise ValueError(
        f'{called.features} must not name the column of the {kind}, found'
        f' {name!r}.'
      )
  return features


def _without_dropped(table, features, drop, keys, given, called) -> list[Any]:
  """The features that are left; `given` if the user names them."""
  argument = called.drop.partition('=')[0]
  drop = [drop] if isinstance(drop, str) else list(drop)
  if drop and given:
    raise ValueError(
      f'{argument} must not be given with {called.features}, which names all'
      f' features, found {names.listed(drop)}.'
    )
  known = list(table.columns)
  columns.check_named(argument, drop, known, keys=keys, table=called.table)
  return columns.without(argument, features, drop)


def _without_sensitive(features, sensitive, given, called) -> list[Any]:
  """The features that are not sensitive; `given` if the user names them."""
  named = [name for name in features if name in sensitive]
  if given and named:
    raise ValueError(
      f'{called.features} must not name a sensitive column with'
      f' {called.drop_sensitive}, found {named[0]!r}.'
    )
  return columns.without(called.drop_sensitive, features, named)


def _check_known(argument, name, known, called) -> None:
  required = f'{argument} must be a column of {called.table}'
  columns.check_known(required, name, known)


def _without_missing(table, keys, missing_values, called):
  """The table, under `drop` without incomplete rows, and notes."""
  counts = table.isna().sum()
  counts = counts[counts > 0]
  if counts.empty:
    return table, []
  found = [
    f'{count:,} in {name!r}{_written(called.missing_texts.get(name, ()))}'
    for name, count in counts.items()
  ]
  text = ', '.join(found[:8]) + (', ...' if len(found) > 8 else '')
  drop = f'{called.missing_values.format("drop")} leaves these rows out'
  if missing_values == 'refuse':
    raise ValueError(
      f'{_upper(called.table)} must have no missing values, found {text} of'
      f' {len(table):,} rows: {drop}, and'
      f' {called.missing_values.format("fill")} gives them a category, or a'
      ' feature, of their own.'
    )
  if missing_values == 'fill':
    for key in keys:
      if key in counts:
        raise ValueError(
          f'The column {key!r} must have no missing values, since it says the'
          f' client or the label, found {counts[key]:,} of {len(table):,} rows:'
          f' {drop}.'
        )
    return table, [f'Missing values are filled: {text} of {len(table):,} rows.']
  whole = table.dropna().reset_index(drop=True)
  if whole.empty:
    raise ValueError(
      f'{_upper(called.table)} must have rows without missing values, found'
      f' none of {len(table):,}: {text}.'
    )
  note = (
    f'{len(table) - len(whole):,} of {len(table):,} rows have missing values'
    f' and are left out: {text}.'
  )
  return whole, [note]


def _written(texts) -> str:
  """Says which texts stand for missing values in a file."""
  return f' (the text {names.listed(texts)})' if texts else ''


def _small_clients(sizes, client_names) -> Iterator[str]:
  small = np.flatnonzero(sizes < 3)
  if small.size:
    yield (
      f'{small.size} of {len(sizes)} clients have fewer than 3 examples, too'
      ' few for a training, a holdout and a test part each, such as'
      f' {client_names[small[0]]!r}.'
    )


def _rare_classes(sizes, class_names) -> Iterator[str]:
  rare = [class_names[i] for i in np.flatnonzero(sizes < 2)]
  if rare:
    yield f'Classes with a single example: {names.listed(rare)}.'


def _notes_of(what, kind, column, called) -> list[str]:
  """Sentences for the user about a column of features."""
  count, total = column.nunique(), len(column)
  notes = []
  if count <= 1:
    notes.append(f'{what} is constant and carries no information.')
  if count == total >= _MIN_IDS and kind in ('whole', 'text'):
    notes.append(
      f'{what} has another value in each row, like an id: if it is one, leave'
      f' it out: {called.drop.format(column.name)}.'
    )
  if kind == 'text' and not isinstance(column.dtype, pd.CategoricalDtype):
    notes += guesses.of_texts(what, column)
  if kind == 'text':
    signs = int((column == _MISSING_SIGN).sum())
    if signs:
      notes.append(
        f'{what} has {_MISSING_SIGN!r} in {signs:,} of {total:,} rows, which'
        ' counts as a category; if it stands for a missing value, replace it by'
        ' None.'
      )
  return notes


def _check_no_numbers(what, column) -> None:
  """Refuses a column that would be numbers but for some of its texts."""
  known = column.dropna()
  bad = pd.to_numeric(known.astype(str), errors='coerce').isna()
  if 0 < bad.sum() < 0.5 * len(known):
    row = bad.idxmax()
    raise ValueError(
      f'{what} must hold numbers or categories, found {int((~bad).sum()):,}'
      f' numbers and {int(bad.sum()):,} other texts, the first {known[row]!r}'
      f' in row {row + 1}.'
    )


def _check_size(what, values) -> None:
  for wrong, words in (
    (np.isinf(values), 'finite numbers'),
    (np.abs(values) > _MAX_FLOAT32, 'numbers that fit float32'),
  ):
    if wrong.any():
      first = int(np.argmax(wrong))
      raise ValueError(
        f'{what} must hold {words}, found {int(wrong.sum()):,} others, the'
        f' first {values[first]:g} in row {first + 1}.'
      )


def _upper(text: str) -> str:
  return text[0].upper() + text[1:]
