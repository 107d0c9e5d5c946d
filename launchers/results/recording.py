"""Records the finished runs of a table as rows of `records`."""

from collections.abc import Sequence
import hashlib
import json
import pathlib
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers import frame
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.results import records
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs

# Method -> flags that it got after runs of it were recorded, with the value
# that these runs had.
_LATER_FLAGS = {
  'dssgd': {'start': 'download', 'ties': 'index'},
  'round_robin_fed_avg': {'start': 'download'},
}


class Size(NamedTuple):
  """The size of runs: their shares of the data and of the clients, in (0, 1].

  Of fewer clients each has as many examples, so that `scale` is 1.
  """

  scale: float = 1.0
  clients: float = 1.0


class Recorder:
  """Records the rows of a table whose runs are finished."""

  def __init__(
    self,
    folder: pathlib.Path,
    table: str,
    rows: Sequence[table_runs.Row],
    size: Size,
  ):
    """Checks the folder of the results, before hours of training.

    Raises:
      records.RecordsError: If what is there is wrong.
      launchers.options.settings.SettingsError: If it cannot be written.
    """
    settings_lib.make_writable(folder, flag='record')
    records.read(folder)
    self._folder = folder
    self._table = table
    self._size = size
    self._left = [(row, compared) for row in rows for compared in row.runs]

  def record(self) -> records.Merged:
    """Records all numbers whose runs have finished since the last call.

    Raises:
      records.RecordsError: If another value of the same number is there, or a
        file of a run is damaged.
      OSError: If a file cannot be written.
    """
    finished = [
      pair for pair in self._left if all(run.is_finished() for run in pair[1])
    ]
    self._left = [pair for pair in self._left if pair not in finished]
    finished.sort(key=lambda pair: str(pair[1][0].output_dir))
    rows = [_build(self._table, *pair, self._size) for pair in finished]
    if not rows:
      return records.Merged(0, 0, 0)
    return records.add(self._folder, pd.DataFrame(rows)[[*records.COLUMNS]])


def missing(
  folder: pathlib.Path,
  table: str,
  rows: Sequence[table_runs.Row],
  size: Size,
) -> list[table_runs.Row]:
  """Returns the rows of which a seed is not recorded, with these seeds alone.

  Raises:
    records.RecordsError: If what is there is wrong.
  """
  there = records.read(folder)
  there = there[there['source'] == records.RUN]
  names = [*records.KEY, 'settings']
  recorded = set(there[names].itertuples(index=False, name=None))

  def is_left(row, compared):
    key = _key(table, row, compared, size)
    return (*key.values(), settings_hash(compared)) not in recorded

  reduced = [
    row._replace(runs=tuple(c for c in row.runs if is_left(row, c)))
    for row in rows
  ]
  return [row for row in reduced if row.runs]


def settings_hash(compared: Sequence[planned_run.PlannedRun]) -> str:
  """Hashes the settings of a run and its references, without the seeds.

  Flags that a method got after runs of it were recorded are left out where they
  have the value that these runs had.
  """
  relevant = [_without_later_flags(run.without_seeds()) for run in compared]
  text = json.dumps(relevant, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:12]


def command(run: planned_run.PlannedRun) -> str:
  """Returns the command of a run, without the folders of data and results."""
  arguments = [a for a in run.arguments if not a.startswith('--data_dir=')]
  return table_runs.train_command(arguments, run.seed)


def _without_later_flags(settings) -> dict[str, str]:
  later = _LATER_FLAGS.get(settings['algorithm'], {})
  return {n: v for n, v in settings.items() if later.get(n) != v}


def _build(table, row, compared, size) -> dict[str, str | int | float]:
  """A row of `records`, of finished runs."""
  own, metric = compared[0], table_metrics.METRICS[row.metric]
  directories = [run.output_dir for run in compared]
  percent = definitions.TABLES[table].percent
  try:
    value = metric.compute(directories, percent)
    run = frame.read_run(own.output_dir)
  except (KeyError, TypeError, ValueError) as error:  # As far as it was read.
    raise records.RecordsError(
      f'{" and ".join(map(str, directories))} must hold what {row.metric} is'
      f' computed from, found: {" ".join(str(error).split())}.'
    ) from error
  seconds = run.end['seconds_per_round'] * own.settings['rounds']
  return {
    **_key(table, row, compared, size),
    'value': value,
    'sd': float('nan'),
    'source': records.RUN,
    'version': run.version,
    'processor': run.processor,
    'settings': settings_hash(compared),
    'seconds': round(seconds, 1),
    'command': table_runs.AND.join(command(run) for run in reversed(compared)),
  }


def _key(table, row, compared, size) -> dict[str, str | int | float]:
  """The columns `records.KEY` of a row."""
  own = compared[0]
  return {
    'table': table,
    'cell': row.cell,
    'method': row.method,
    'data': own.settings['task'],
    'seed': str(own.seed),
    'scale': float(size.scale),
    'clients': float(size.clients),
    'rounds': own.settings['rounds'],
    'metric': row.metric,
  }
