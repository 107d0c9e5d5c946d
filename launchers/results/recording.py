"""Records the finished runs of a table as rows of `records`."""

from collections.abc import Sequence
import dataclasses
import hashlib
import json
import pathlib

import pandas as pd

from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.results import records
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.tables import commands
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs


class Recorder:
  """Records the rows of a table whose runs are finished."""

  def __init__(
    self,
    folder: pathlib.Path,
    table: str,
    rows: Sequence[table_runs.Row],
    scale: float,
  ):
    """Checks the folder, before hours of training.

    Args:
      folder: The folder of the results.
      table: The name of the table.
      rows: Its rows.
      scale: The share of the data that the runs use.

    Raises:
      records.RecordsError: If what is there is wrong.
      launchers.options.settings.SettingsError: If it cannot be written.
    """
    settings_lib.make_writable(folder, flag='record')
    records.read(folder)
    self._folder = folder
    self._table = table
    self._scale = scale
    self._left = [(row, compared) for row in rows for compared in row.runs]

  def record(self) -> records.Merged:
    """Records all numbers whose runs have finished since the last call.

    Returns:
      What `records.add` did.

    Raises:
      records.RecordsError: If another value of the same number is there, or a
        file of a run is damaged.
      OSError: If a file cannot be written.
    """
    finished = [
      (row, compared)
      for row, compared in self._left
      if all(run.is_finished() for run in compared)
    ]
    self._left = [pair for pair in self._left if pair not in finished]
    rows = [
      build(self._table, row, compared, self._scale)
      for row, compared in finished
    ]
    if not rows:
      return records.Merged(0, 0, 0)
    frame = pd.DataFrame(rows, columns=list(records.COLUMNS))
    return records.add(self._folder, frame)


def missing(
  folder: pathlib.Path,
  table: str,
  rows: Sequence[table_runs.Row],
  scale: float,
) -> list[table_runs.Row]:
  """Returns the rows minus the seeds already recorded, on any machine.

  Args:
    folder: The folder of the results.
    table: The name of the table.
    rows: Its rows.
    scale: The share of the data that the runs use.

  Returns:
    The rows of which a seed is not recorded, with these seeds alone.

  Raises:
    records.RecordsError: If what is there is wrong.
  """
  there = records.read(folder)
  there = there[there['source'] == records.RUN]
  names = [*records.KEY, 'settings']
  recorded = set(there[names].itertuples(index=False, name=None))

  def left(row):
    return tuple(
      compared
      for compared in row.runs
      if (
        *_key(table, row, compared, scale).values(),
        settings_hash(compared),
      )
      not in recorded
    )

  reduced = [dataclasses.replace(row, runs=left(row)) for row in rows]
  return [row for row in reduced if row.runs]


def build(
  table: str,
  row: table_runs.Row,
  compared: Sequence[planned_run.PlannedRun],
  scale: float,
) -> dict[str, str | int | float]:
  """A row of `records`.

  Args:
    table: The name of the table.
    row: The row of the table.
    compared: One of `row.runs`, all finished.
    scale: The share of the data that the runs use.

  Returns:
    Column -> value.

  Raises:
    records.RecordsError: If a file of a run is damaged.
  """
  own = compared[0]
  metric = table_metrics.METRICS[row.metric]
  try:
    value = metric.compute(*(run.output_dir for run in compared))
    summary = json.loads((own.output_dir / 'summary.json').read_text())
  except (KeyError, TypeError, ValueError) as error:  # As far as it was read.
    folders = ' and '.join(str(run.output_dir) for run in compared)
    raise records.RecordsError(
      f'{folders} must hold what {row.metric} is computed from, found:'
      f' {" ".join(str(error).split())}.'
    ) from error
  return {
    **_key(table, row, compared, scale),
    'value': float(metric.in_unit(value, definitions.TABLES[table].percent)),
    'sd': float('nan'),
    'source': records.RUN,
    # Runs of older code say neither version nor seconds.
    'version': summary.get('version', ''),
    'settings': settings_hash(compared),
    'seconds': _seconds(summary, own.settings['rounds']),
    'command': commands.AND.join(command(run) for run in reversed(compared)),
  }


def _key(table, row, compared, scale) -> dict[str, str | int | float]:
  """The columns `records.KEY` of a row."""
  own = compared[0]
  return {
    'table': table,
    'cell': row.cell,
    'method': row.method,
    'data': own.settings['task'],
    'seed': str(own.seed),
    'scale': float(scale),
    'rounds': own.settings['rounds'],
    'metric': row.metric,
  }


def _seconds(summary, rounds) -> float:
  median = summary.get('median_seconds_per_round')
  return float('nan') if median is None else round(median * rounds, 1)


def settings_hash(compared: Sequence[planned_run.PlannedRun]) -> str:
  """The hash of all settings that the numbers depend on, without the seeds.

  Args:
    compared: A run and its references.

  Returns:
    The first twelve hexadecimal digits of a SHA-256.
  """
  relevant = [run.without_seeds() for run in compared]
  text = json.dumps(relevant, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:12]


def command(run: planned_run.PlannedRun) -> str:
  """Returns the command of a run, without the folders of data and results.

  Args:
    run: The run.
  """
  arguments = [
    argument
    for argument in run.arguments
    if not argument.startswith('--data_dir=')
  ]
  return commands.train(arguments, run.seed)
