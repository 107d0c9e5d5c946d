"""The recorded numbers of the papers' tables: `results/TABLE.csv`.

A row is a number of one table, cell, method, seed, share of the data and number
of rounds. Its columns:

======== ================================================================
table    as in `launchers.reproduce --table`
cell     a cell of the table
method   a method of the table
data     the data set that was used, which may stand in for the paper's
seed     the value of all seeds; '0-2' for a transcribed mean over 0, 1, 2
scale    share of the data, in (0, 1]
rounds   trained rounds
metric   a metric of `table_metrics.METRICS`
value    in the paper's unit, as table.csv has it; empty if undefined
sd       standard deviation over the seeds of a transcribed mean
source   'run', or 'transcribed' of a page whose runs are no longer at hand
version  version and commit of the code that trained the run
settings hash of the settings without the seeds, and of those of references
seconds  median seconds of a round times the rounds
command  the runs; the reference first, if the metric compares
======== ================================================================
"""

from collections.abc import Iterable, Mapping
import contextlib
import pathlib
import re
from typing import NamedTuple

import filelock
import numpy as np
import pandas as pd

from tff_fair import checks
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics

RUN, TRANSCRIBED = 'run', 'transcribed'
KEY = (
  'table',
  'cell',
  'method',
  'data',
  'seed',
  'scale',
  'rounds',
  'metric',
)
COLUMNS = (
  *KEY,
  'value',
  'sd',
  'source',
  'version',
  'settings',
  'seconds',
  'command',
)
_FLOATS = ('scale', 'value', 'sd', 'seconds')
_SEED = re.compile(r'(0|[1-9]\d*)(-[1-9]\d*)?')
_LOCK = '.lock'
# What rows of the same number have in common, whatever their seeds.
_GROUP = [name for name in KEY if name != 'seed']


class RecordsError(ValueError):
  """The rows cannot be read or merged; the message is one sentence."""


class Merged(NamedTuple):
  """The numbers of rows that `add` changed.

  Attributes:
    added: Number of rows that are new.
    replaced: Number of transcribed rows that runs have replaced.
    there: Number of rows that were there already.
  """

  added: int
  replaced: int
  there: int


def empty() -> pd.DataFrame:
  """A frame without rows, with the columns and types of `read`."""
  return _typed(pd.DataFrame(columns=list(COLUMNS), dtype=str))


def read(folder: pathlib.Path) -> pd.DataFrame:
  """Reads and checks all recorded tables.

  Args:
    folder: The folder of the results; files of other names are not read.

  Returns:
    The rows in the order of `COLUMNS`, sorted as `add` writes them: `scale`,
    `value`, `sd` and `seconds` are float64 (NaN if empty), `rounds` int64, the
    others str.

  Raises:
    RecordsError: If a file cannot be read or holds a wrong row.
  """
  folder = pathlib.Path(folder)
  frames = [
    _read_table(folder / f'{name}.csv', name)
    for name in definitions.TABLES
    if (folder / f'{name}.csv').exists()
  ]
  return pd.concat([empty(), *frames], ignore_index=True) if frames else empty()


def add(folder: pathlib.Path, rows: pd.DataFrame) -> Merged:
  """Adds rows to the files of their tables.

  A row that is there already, with the same value and settings, stays. A run
  replaces what was transcribed: the row of its seed, and a mean over several
  seeds once all of them are recorded. Files are replaced as a whole, after all
  rows have been found right. Programs that add at the same time wait for each
  other.

  Args:
    folder: The folder of the results, which must exist.
    rows: New rows with the columns and types of `read`.

  Returns:
    What was done.

  Raises:
    RecordsError: If a file there is wrong, or a number with the same key is
      there with another value or other settings. Nothing is written then.
    OSError: If a file cannot be written.
  """
  # Without it, what another program adds after this one has read is lost.
  with filelock.FileLock(pathlib.Path(folder) / _LOCK):
    return _add(folder, rows)


def total(done: Iterable[Merged]) -> Merged:
  """Sums the results of several calls of `add`.

  Args:
    done: The result of each call.
  """
  return Merged(*map(sum, zip(Merged(0, 0, 0), *done, strict=True)))


def _add(folder, rows) -> Merged:
  done = []
  texts = {}
  for name, new in rows.groupby('table', sort=False):
    path = pathlib.Path(folder) / f'{name}.csv'
    there = _read_table(path, name) if path.exists() else empty()
    merged, what = _merge(path, there, new)
    done.append(what)
    texts[path] = _sorted(merged, name).to_csv(index=False)
  for path, text in texts.items():
    run_files.write_atomically(path, text)
  return total(done)


def seeds_of(seed: str) -> list[int]:
  """The seeds that a row is of: '3' is [3], '0-2' is [0, 1, 2].

  Args:
    seed: The column `seed`.
  """
  first, _, last = seed.partition('-')
  return list(range(int(first), int(last or first) + 1))


def _merge(path, there, new) -> tuple[pd.DataFrame, Merged]:
  by_key = {_key(row): row for row in there.to_dict('records')}
  added = replaced = same = 0
  for row in new.to_dict('records'):
    key = _key(row)
    old = by_key.get(key)
    if old is None:
      added += 1
    elif old['source'] == TRANSCRIBED and row['source'] == RUN:
      replaced += 1
    else:
      # What is transcribed of a run is rounded, and says no settings.
      if old['source'] == row['source']:
        _check_same(path, old, row)
      same += 1
      continue
    by_key[key] = row
  merged = _typed(pd.DataFrame(by_key.values(), columns=list(COLUMNS)))
  means = _superseded(merged)
  return merged[~means], Merged(added, replaced + int(means.sum()), same)


def _superseded(frame) -> pd.Series:
  """Marks transcribed means of seeds that are all recorded."""
  runs = frame[frame['source'] == RUN]
  recorded = set(zip(*(runs[n] for n in (*_GROUP, 'seed')), strict=True))
  return pd.Series(
    [
      row['source'] == TRANSCRIBED
      and all(
        (*(row[n] for n in _GROUP), str(seed)) in recorded
        for seed in seeds_of(row['seed'])
      )
      for row in frame.to_dict('records')
    ],
    index=frame.index,
    dtype=bool,
  )


def _check_same(path, old, new) -> None:
  """Refuses another number under the same key."""
  for name in ('settings', 'value'):
    undefined = old[name] != old[name] and new[name] != new[name]
    if undefined or old[name] == new[name]:
      continue
    versions = f'{old["version"] or "?"} and {new["version"] or "?"}'
    raise RecordsError(
      f'{path} must hold one number for {_describe(new)}, found the {name}'
      f' {old[name]} and {new[name]} of the versions {versions}; remove the old'
      ' rows to record the new ones.'
    )


def _read_table(path, name) -> pd.DataFrame:
  try:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
  except (OSError, ValueError) as error:
    reason = ' '.join(str(error).split()).rstrip('.')
    raise RecordsError(
      f'{path} must be a csv file of results, found: {reason}.'
    ) from error
  if list(frame) != list(COLUMNS):
    raise RecordsError(
      f'{path} must have the columns {", ".join(COLUMNS)}, found'
      f' {", ".join(frame)}.'
    )
  for number, row in enumerate(frame.to_dict('records'), 2):
    _check_row(f'Line {number} of {path}', name, row)
  typed = _typed(frame)
  twice = typed.duplicated(list(KEY))
  if twice.any():
    first = twice.idxmax()
    raise RecordsError(
      f'Line {first + 2} of {path} must be another number than those above,'
      f' found {_describe(typed.loc[first])} again.'
    )
  return _sorted(typed, name)


def _check_row(where: str, table: str, row: Mapping[str, str]) -> None:
  known = definitions.TABLES[table]
  if row['table'] != table:
    raise RecordsError(
      f'{where} must be of the table {table}, found {row["table"]}.'
    )
  for name, values in (
    ('cell', known.cells),
    ('method', known.methods),
    ('metric', table_metrics.METRICS),
    ('source', (RUN, TRANSCRIBED)),
  ):
    if row[name] not in values:
      message = checks.unknown_name(f'The {name}', row[name], list(values))
      raise RecordsError(f'{where} is wrong: {message}')
  for name in ('value', 'sd', 'seconds'):
    if row[name] and not np.isfinite(_number(row[name])):
      raise RecordsError(
        f'{where} must have a number as {name}, found {row[name]!r}.'
      )
  if not 0 < _number(row['scale']) <= 1:
    raise RecordsError(
      f'{where} must have a number above 0 and at most 1 as scale, found'
      f' {row["scale"]!r}.'
    )
  if not (row['rounds'].isdecimal() and int(row['rounds'])):
    raise RecordsError(
      f'{where} must have a whole number, at least 1, as rounds, found'
      f' {row["rounds"]!r}.'
    )
  _check_seed(where, row)


def _check_seed(where, row) -> None:
  """One text for each seed: '00' would be another key than '0'."""
  seeds = seeds_of(row['seed']) if _SEED.fullmatch(row['seed']) else []
  if not seeds or ('-' in row['seed'] and row['source'] == RUN):
    raise RecordsError(
      f'{where} must have a seed, or of a transcribed mean seeds such as 0-2,'
      f' found {row["seed"]!r}.'
    )


def _number(text: str) -> float:
  """The number; NaN if it is none."""
  with contextlib.suppress(ValueError):
    return float(text)
  return np.nan


def _typed(frame) -> pd.DataFrame:
  # Not `pd.to_numeric`, which loses the last digits of a text.
  numbers = {
    name: frame[name].where(frame[name] != '', np.nan).astype(float)
    for name in _FLOATS
  }
  texts = frame.astype({n: str for n in COLUMNS if n not in _FLOATS})
  return texts.assign(**numbers).astype({'rounds': int})[list(COLUMNS)]


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
    if column.name in ('scale', 'rounds'):
      return -column  # The fullest first.
    if column.name == 'seed':
      return column.map(lambda seed: (seeds_of(seed)[0], seed))
    return column

  columns = ['cell', 'metric', 'data', 'scale', 'rounds', 'method', 'seed']
  return frame.sort_values(columns, key=order, ignore_index=True)


def _key(row) -> tuple:
  return tuple(row[name] for name in KEY)


def _describe(row) -> str:
  return ', '.join(f'{name} {row[name]}' for name in KEY)
