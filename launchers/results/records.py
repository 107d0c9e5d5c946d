"""The recorded numbers of the papers' tables: `results/TABLE.csv`.

A row is a number of one table, cell, method, seed, share of the data and number
of rounds. Its columns:

========= ===============================================================
table     as in `launchers.reproduce --table`
cell      a cell of the table
method    a method of the table
data      the data set that was used, which may stand in for the paper's
seed      the value of all seeds; '0-2' for a transcribed mean over 0, 1, 2
scale     share of the data that a client has, in (0, 1]
clients   share of the clients, in (0, 1]; a file without has all of them
rounds    trained rounds
metric    a metric of `table_metrics.METRICS`
value     in the paper's unit, as table.csv has it; empty if undefined
sd        standard deviation over the seeds of a transcribed mean
source    'run', or 'transcribed' of a page whose runs are no longer at hand
version   version and commit of the code that trained the run
processor of the run, as far as it is known; a file without knows none
settings  hash of the settings without the seeds, and of those of references
seconds   median seconds of a round times the rounds
command   the runs; the reference first, if the metric compares
========= ===============================================================
"""

from collections.abc import Iterable, Sequence
import io
import pathlib
import re
from typing import NamedTuple

import filelock
import numpy as np
import pandas as pd

from tff_fair import files
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.show import words
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

RUN, TRANSCRIBED = 'run', 'transcribed'
KEY = (
  *('table', 'cell', 'method', 'data', 'seed', 'scale', 'clients', 'rounds'),
  'metric',
)
_VALUES = (
  *('value', 'sd', 'source', 'version', 'processor', 'settings', 'seconds'),
  'command',
)
COLUMNS = (*KEY, *_VALUES)
# What a file does not say if all of its rows have it.
_USUAL = {'clients': '1.0', 'processor': ''}
_FLOATS = ['scale', 'clients', 'value', 'sd', 'seconds']
# One text for each seed: '00' would be another key than '0'.
_SEED = re.compile('(0|[1-9][0-9]{0,9})(-[1-9][0-9]{0,9})?')
_MOST_SEEDS = 1000
# As Python writes numbers, which takes more as one, such as 1_000.
_NUMBER = '[+-]?[0-9]+([.][0-9]*)?(e[+-]?[0-9]{1,3})?'
_ROUNDS = '0{0,9}[1-9][0-9]{0,8}'
_LOCK = '.lock'


class RecordsError(ValueError):
  """The rows cannot be read or merged; the message is one sentence."""


class Merged(NamedTuple):
  """The numbers of rows that are new, replace a transcribed one, were there."""

  added: int
  replaced: int
  there: int


def read(folder: pathlib.Path) -> pd.DataFrame:
  """Reads and checks all recorded tables; files of other names are not read.

  `scale`, `clients`, `value`, `sd` and `seconds` are float64 (NaN if empty),
  `rounds` int64, the other `COLUMNS` str. Rows are sorted as `add` writes them.

  Raises:
    RecordsError: If a file cannot be read or holds a wrong row.
  """
  paths = {table: _path(folder, table) for table in definitions.TABLES}
  there = [_read_table(p, table) for table, p in paths.items() if p.exists()]
  return pd.concat([_empty(), *there], ignore_index=True)


def read_runs(
  path: pathlib.Path, key: Sequence[str], others: Sequence[str]
) -> pd.DataFrame | None:
  """Reads a file of runs that is of no table, with columns of its own.

  Args:
    path: The file.
    key: The columns that tell its rows apart.
    others: All other columns.

  Returns:
    These columns; None if there is no such file.

  Raises:
    RecordsError: If the file is damaged.
  """
  if not path.exists():
    return None

  def damaged(found):
    return RecordsError(f'{path} must be a csv file, found: {found}.')

  with files.reading(path, damaged):
    runs = pd.read_csv(path, float_precision='round_trip')
  if set(runs) != {*key, *others} or runs.duplicated([*key]).any():
    raise RecordsError(
      f'{path} must have one row for each {", ".join(key)}, with'
      f' {words.join_words(others)}, found otherwise.'
    )
  return runs


def add(folder: pathlib.Path, rows: pd.DataFrame) -> Merged:
  """Adds rows of runs to the files of their tables.

  A row that is there already, with the same value and settings, stays. A run
  replaces what was transcribed: the row of its seed, and a mean over several
  seeds once all of them are recorded. Files are replaced as a whole, after all
  rows have been found right. Programs that add at the same time wait for each
  other.

  Args:
    folder: The folder of the results, which must exist.
    rows: Rows with the columns and types of `read`; those that are transcribed
      are left out.

  Raises:
    RecordsError: If a file there is wrong, or a number with the same key is
      there with another value or other settings. Nothing is written then.
    OSError: If a file cannot be written.
  """
  # Without it, what another program adds after this one has read is lost.
  with filelock.FileLock(pathlib.Path(folder) / _LOCK):
    texts, done = {}, []
    # What another folder has transcribed is no run.
    runs = rows[rows['source'] == RUN]
    for table, new in runs.groupby('table', sort=False):
      path = _path(folder, table)
      merged, what = _merge(path, _read_table(path, table), new)
      texts[path] = _to_text(_sorted(merged, table))
      done.append(what)
    for path, text in texts.items():
      run_files.write_atomically(path, text)
  return total(done)


def total(done: Iterable[Merged]) -> Merged:
  """Sums the results of several calls of `add`."""
  return Merged(*map(sum, zip(Merged(0, 0, 0), *done, strict=True)))


def seeds_of(seed: str) -> list[int]:
  """The seeds that a row is of: '3' is [3], '0-2' is [0, 1, 2]."""
  first, last = _ends(seed)
  return list(range(first, last + 1))


def _ends(seed) -> tuple[int, int]:
  """The first and the last seed that a row is of."""
  first, _, last = seed.partition('-')
  return int(first), int(last or first)


def _is_seeds(text) -> bool:
  if not _SEED.fullmatch(text):
    return False
  first, last = _ends(text)
  return 0 <= last - first < _MOST_SEEDS


def _path(folder, table) -> pathlib.Path:
  return pathlib.Path(folder) / f'{table}.csv'


def _merge(path, there, new) -> tuple[pd.DataFrame, Merged]:
  runs = there[there['source'] == RUN]
  again = runs.merge(new, on=[*KEY], suffixes=('', '_new'))
  _check_same(path, again)
  fresh = new[~_keys(new).isin(_keys(again))]
  merged = pd.concat([there, fresh], ignore_index=True)
  superseded = _are_superseded(merged)
  added = len(fresh) - _keys(fresh).isin(_keys(there)).sum()
  what = Merged(int(added), int(superseded.sum()), len(again))
  return merged[~superseded], what


def _keys(frame) -> pd.MultiIndex:
  return pd.MultiIndex.from_frame(frame[[*KEY]])


def _are_superseded(frame) -> np.ndarray:
  """Marks what is transcribed of seeds that are all recorded."""
  keys = [*frame[[*KEY]].itertuples(index=False)]
  is_run = frame['source'] == RUN
  runs = {key for key, is_run in zip(keys, is_run, strict=True) if is_run}
  covered = [
    runs.issuperset(key._replace(seed=str(s)) for s in seeds_of(key.seed))
    for key in keys
  ]
  return ~is_run.to_numpy() & np.array(covered, bool)


def _check_same(path, again) -> None:
  """Refuses another number under the same key."""
  for name in ('settings', 'value'):
    old, new = again[name], again[f'{name}_new']
    differ = again[(old != new) & (old.notna() | new.notna())]
    for row in differ.to_dict('records'):
      raise RecordsError(
        f'{path} must hold one number for {_describe(row)}, found the {name}'
        f' {row[name]} and {row[f"{name}_new"]} of the versions'
        f' {_both(row, "version")} and the processors'
        f' {_both(row, "processor")}; remove the old rows to record the new'
        ' ones.'
      )


def _both(row, name) -> str:
  """What is known of an old row and of a new one."""
  return f'{row[name] or "?"} and {row[f"{name}_new"] or "?"}'


def _to_text(frame) -> str:
  """The csv file, without the columns that say nothing."""
  usual = [
    n for n, text in _USUAL.items() if (frame[n].astype(str) == text).all()
  ]
  return frame.drop(columns=usual).to_csv(index=False)


def _empty() -> pd.DataFrame:
  return _typed(pd.DataFrame(columns=[*COLUMNS], dtype=str))


def _read_table(path, table) -> pd.DataFrame:
  """The rows of a table; none if there is no file."""
  if not path.exists():
    return _empty()

  def damaged(found):
    return RecordsError(
      f'{path} must be a csv file of results, found: {found}.'
    )

  with files.reading(path, damaged):
    text = path.read_text(encoding='utf-8')
    if not text.endswith('\n'):
      raise ValueError('a last line without an end, as if the file was cut')
    frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
  expected = [c for c in COLUMNS if c in frame or c not in _USUAL]
  if list(frame) != expected:
    raise RecordsError(
      f'{path} must have the columns {", ".join(COLUMNS)}, found'
      f' {", ".join(frame)}.'
    )
  frame = frame.assign(**{n: t for n, t in _USUAL.items() if n not in frame})
  frame = frame[[*COLUMNS]]
  for column, what, right in _rules(frame, table):
    for line in frame.index[~right]:
      raise RecordsError(
        f'Line {line + 2} of {path} must have {what} as {column}, found'
        f' {frame[column][line]!r}.'
      )
  typed = _typed(frame)
  for line in typed.index[typed.duplicated([*KEY])]:
    raise RecordsError(
      f'Line {line + 2} of {path} must be another number than those above,'
      f' found {_describe(typed.loc[line])} again.'
    )
  return _sorted(typed, table)


def _rules(frame, table):
  """Columns, what their texts must be, and which are."""
  known = definitions.TABLES[table]
  numbers = frame[_FLOATS].apply(
    lambda texts: pd.to_numeric(
      texts.where(texts.str.fullmatch(_NUMBER)), errors='coerce'
    )
  )
  empty = frame[_FLOATS] == ''
  is_range = frame['seed'].str.contains('-')
  has_seeds = frame['seed'].map(_is_seeds).astype(bool)
  choices = {
    'table': [table],
    'cell': known.cells,
    'method': known.methods,
    'metric': known.metrics,
    'source': (RUN, TRANSCRIBED),
  }
  for name, values in choices.items():
    yield name, f'one of {", ".join(values)}', frame[name].isin([*values])
  for name in ('value', 'sd', 'seconds'):
    yield name, 'a number', empty[name] | np.isfinite(numbers[name])
  for name in ('sd', 'seconds'):
    yield name, 'a number, at least 0,', empty[name] | (numbers[name] >= 0)
  limits = [_limits(metric, known) for metric in frame['metric']]
  lowest, highest = np.array(limits).reshape(-1, 2).T
  for low, high in dict.fromkeys(limits):
    of_these = (lowest == low) & (highest == high)
    inside = (numbers['value'] >= low) & (numbers['value'] <= high)
    what = f'a number in [{low:g}, {high:g}]'
    yield 'value', what, ~of_these | empty['value'] | inside
  for name in ('scale', 'clients'):
    share = numbers[name]
    yield name, 'a number above 0 and at most 1', (share > 0) & (share <= 1)
  is_whole = frame['rounds'].str.fullmatch(_ROUNDS)
  yield 'rounds', 'a whole number, at least 1,', is_whole
  yield 'data', 'the name of a data set', frame['data'].str.strip() != ''
  yield (
    'seed',
    'one seed, or of a transcribed mean seeds such as 0-2,',
    has_seeds & ~(is_range & (frame['source'] == RUN)),
  )


def _limits(metric, table) -> tuple[float, float]:
  return table_metrics.METRICS[metric].limits(table.percent)


def _typed(frame) -> pd.DataFrame:
  # Not `pd.to_numeric`, which loses the last digits of a text.
  numbers = {
    name: frame[name].where(frame[name] != '', np.nan).astype(float)
    for name in _FLOATS
  }
  return frame.assign(**numbers).astype({'rounds': int})


def _sorted(frame, table) -> pd.DataFrame:
  """In the table's order, so that the same rows are the same file."""
  known = definitions.TABLES[table]
  names = {
    'cell': list(known.cells),
    'method': list(known.methods),
    'metric': list(table_metrics.METRICS),
  }

  def order(column):
    if column.name in names:
      return column.map(names[column.name].index)
    if column.name in ('scale', 'clients', 'rounds'):
      return -column  # The fullest first.
    if column.name == 'seed':
      return column.map(lambda seed: (seeds_of(seed)[0], seed))
    return column

  columns = [
    *('cell', 'metric', 'data', 'scale', 'clients', 'rounds'),
    *('method', 'seed'),
  ]
  return frame.sort_values(columns, key=order, ignore_index=True)


def _describe(row) -> str:
  return ', '.join(f'{name} {row[name]}' for name in KEY)
