"""The files of one run: metrics, client scores, checkpoints, summary.

A checkpoint is all that a run needs to resume: the state of the process, and
the rows that the run has written so far. So whatever happened to the csv files
in between, they have exactly the rows up to the checkpoint after a resume.
"""

import asyncio
from collections.abc import Mapping, Sequence
import contextlib
import csv
import functools
import io
import json
import pathlib
from typing import Any
import warnings

import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checkpoints
from tff_fair import group_fairness
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import groups as groups_lib
from tff_fair.launchers.runs import run_files

_ALL = group_fairness.ALL
_CHECKPOINT_PREFIX = 'round_'
_BEST = 'best'
# Files that every round appends rows to; the first column is the round.
_TABLES = ('metrics.csv', 'reports.csv', 'client_scores.csv')


class RunDirectory:
  """Writes the files of a run, and reads them to resume it."""

  def __init__(
    self,
    path: pathlib.Path,
    *,
    checkpoint_every: int,
    checkpoints_to_keep: int,
    settings: Mapping[str, str],
    names: Sequence[str] = (),
  ):
    """Opens the directory, which must exist.

    A checkpoint of other settings is refused. That of an interrupted run gives
    way to the next, and takes no other's place. Files have the names of
    clients, if they have names, beside their ids.
    """
    self.path = path
    self._names = [client_names.encodable(name) for name in names]
    self._states = _states(
      path,
      keep_total=checkpoints_to_keep,
      keep_every=checkpoint_every,
      settings=settings,
    )
    self._best = functools.partial(
      _states, path, _BEST, keep_total=1, settings=settings
    )
    self._columns = []  # Of metrics.csv.

  def resume(self, structure: Any) -> tuple[Any, int]:
    """Loads the newest readable state, and the rows up to its round.

    A damaged checkpoint is renamed, with a warning, and the previous one is
    tried. Without any, `structure`, the initial state, is of round 0.

    Raises:
      checkpoints.OtherStateError: If a checkpoint belongs to another run.
      OSError: If a file cannot be read or written.
    """
    self._states.remove_unfinished()
    state, tables, start = structure, dict.fromkeys(_TABLES, b''), 0
    versions = asyncio.run(self._states.get_versions()) or []
    for version in reversed(versions):
      try:
        state, tables = _load(self._states, version, structure)
        start = version
        break
      except checkpoints.DamagedStateError as error:
        self._set_aside(version, error)
        if version == versions[0]:
          warnings.warn('No checkpoint is left: starting over.', stacklevel=2)
    for name, content in tables.items():
      if content:
        run_files.write_atomically(self.path / name, content.decode())
      else:
        (self.path / name).unlink(missing_ok=True)
    path = self.path / 'metrics.csv'
    if not path.exists():
      run_files.write_atomically(path, _as_csv(['round'], []))
    with path.open(encoding='utf-8', newline='') as file:
      self._columns = next(csv.reader(file))
    return state, start

  def save_checkpoint(self, state: Any, round_number: int) -> None:
    """Saves the state after `round_number` rounds, unless it exists."""
    paths = {name: self.path / name for name in _TABLES}
    tables = {
      name: path.read_bytes() if path.exists() else b''
      for name, path in paths.items()
    }
    with contextlib.suppress(tff.program.ProgramStateExistsError):
      asyncio.run(
        self._states.save({'process': state, 'tables': tables}, round_number)
      )

  def save_best(self, state: Any, round_number: int) -> None:
    """Saves the state after the best round so far, in place of the last one."""
    with contextlib.suppress(tff.program.ProgramStateExistsError):
      asyncio.run(self._best().save({'process': state}, round_number))

  def load_best(self, structure: Any, round_number: int) -> Any:
    """Loads the state after the best round.

    Raises:
      RunError: If it is missing, damaged or of another run.
    """
    try:
      found = self._best().load(round_number, {'process': structure})
      return asyncio.run(found)['process']
    except tff.program.ProgramStateNotFoundError:
      why = 'it is not there'
    except (
      checkpoints.DamagedStateError,
      checkpoints.OtherStateError,
    ) as error:
      why = str(error)
    raise errors.RunError(
      f'{self.path / _BEST} must hold the state after round {round_number}, the'
      f' best one, found: {why}'
    )

  def write_round(self, round_number: int, metrics: Mapping[str, Any]) -> None:
    """Adds a round to metrics.csv; earlier rounds have no new columns.

    Not by TFF's `CSVFileReleaseManager`, which writes the whole file again in
    every round, so that rounds would take longer and longer.
    """
    path = self.path / 'metrics.csv'
    values = {k: np.asarray(v).tolist() for k, v in sorted(metrics.items())}
    row = {'round': round_number, **values}
    new = [name for name in row if name not in self._columns]
    if new or not path.exists():
      self._columns += new
      with path.open(encoding='utf-8', newline='') as file:
        rows = [*csv.DictReader(file), row]
      run_files.write_atomically(path, _as_csv(self._columns, rows))
    else:
      with path.open('a', encoding='utf-8', newline='') as file:
        csv.DictWriter(file, self._columns).writerow(row)

  def write_reports(self, round_number: int, reports: pd.DataFrame) -> None:
    """Adds a row to reports.csv for every client that took part."""
    reports = reports.sort_values('client_id')
    self._append('reports.csv', round_number, reports)

  def write_client_scores(
    self, round_number: int, scores: Mapping[str, Any]
  ) -> None:
    """Adds a row to client_scores.csv for every client."""
    self._append('client_scores.csv', round_number, pd.DataFrame(scores))

  def write_clients(self, columns: Mapping[str, Any]) -> None:
    """Writes clients.csv, one row per client."""
    text = self._named(pd.DataFrame(columns)).to_csv(index=False)
    run_files.write_atomically(self.path / 'clients.csv', text)

  def write_groups(self, tables: groups_lib.GroupTables) -> None:
    """Writes groups.csv and group_differences.csv."""
    for name, table in (
      (groups_lib.FILE, tables.groups),
      (groups_lib.DIFFERENCES_FILE, tables.differences),
    ):
      table = table.assign(column=table['column'].map(client_names.encodable))
      if 'group' in table:
        table['group'] = table['group'].map(client_names.encodable)
      text = self._named(table).to_csv(index=False)
      run_files.write_atomically(self.path / name, text)

  def write_summary(self, summary: Mapping[str, Any]) -> None:
    """Writes summary.json; NaN becomes null."""
    text = json.dumps(_without_nan(summary), indent=2)
    run_files.write_atomically(self.path / 'summary.json', text + '\n')

  def read_summary(self, names: Sequence[str]) -> dict[str, Any]:
    """Reads keys of summary.json; a missing or damaged file has none."""
    try:
      there = json.loads((self.path / 'summary.json').read_text())
      return {name: there[name] for name in names if name in there}
    except (OSError, ValueError, TypeError):
      return {}

  def remove_summary(self) -> None:
    """Removes summary.json, as the run is not finished, or no longer."""
    (self.path / 'summary.json').unlink(missing_ok=True)

  def read_metrics(self) -> pd.DataFrame:
    """Reads metrics.csv."""
    return pd.read_csv(self.path / 'metrics.csv')

  def read_mean_accuracies(self, rounds: range) -> np.ndarray:
    """Returns each client's mean accuracy over evaluated rounds, float64[k]."""
    # Exactly what was written.
    scores = pd.read_csv(
      self.path / 'client_scores.csv', float_precision='round_trip'
    )
    scores = scores[scores['round'].isin(rounds)]
    found = scores.pivot(index='client_id', columns='round', values='accuracy')
    return found[list(rounds)].mean(axis=1, skipna=False).to_numpy()

  def read_last_reports(self) -> pd.DataFrame:
    """Reads the last row of each client in reports.csv, by `client_id`."""
    reports = pd.read_csv(self.path / 'reports.csv')
    return reports.drop_duplicates('client_id', keep='last').set_index(
      'client_id'
    )

  def read_always_rejected(self) -> list[int]:
    """Reads the clients whose update was not finite in any of their rounds."""
    reports = pd.read_csv(
      self.path / 'reports.csv', usecols=['client_id', 'rejected']
    )
    always = reports.groupby('client_id')['rejected'].min() > 0
    return always.index[always].tolist()

  def _append(self, name, round_number, frame):
    path = self.path / name
    frame = self._named(frame)
    frame.insert(0, 'round', round_number)
    frame.to_csv(path, mode='a', header=not path.exists(), index=False)

  def _named(self, frame) -> pd.DataFrame:
    """With the clients' names beside their ids, if they have names."""
    if not self._names:
      return frame
    # Of all clients together, too.
    names = [self._names[i] if i != _ALL else i for i in frame['client_id']]
    frame.insert(1, client_names.COLUMN, names)
    return frame

  def _set_aside(self, version, error):
    path = self._states.path(version)
    damaged = path.with_name(f'damaged_{path.name}')
    number = 1
    while damaged.exists():
      number += 1
      damaged = path.with_name(f'damaged_{number}_{path.name}')
    path.rename(damaged)
    warnings.warn(
      f'{error} It is kept as {damaged.name}, and the previous checkpoint is'
      ' tried.',
      stacklevel=3,
    )


def load_state(
  path: pathlib.Path,
  structure: Any,
  round_number: int,
  settings: Mapping[str, str],
) -> Any:
  """Loads the state of a run after a round; arguments as of `RunDirectory`.

  Raises:
    FileNotFoundError: If the run has no checkpoint of that round.
    checkpoints.DamagedStateError: If the checkpoint is damaged.
    checkpoints.OtherStateError: If it belongs to another run.
  """
  states = _states(path, settings=settings)
  versions = asyncio.run(states.get_versions()) or []
  if round_number not in versions:
    raise FileNotFoundError(
      f'{path} must hold a checkpoint of round {round_number}, found those of'
      f' the rounds {", ".join(map(str, versions)) or "none"}.'
    )
  return _load(states, round_number, structure)[0]


def _as_csv(columns, rows) -> str:
  """A csv file of dicts, with nothing where one lacks a column."""
  text = io.StringIO(newline='')
  writer = csv.DictWriter(text, columns)
  writer.writeheader()
  writer.writerows(rows)
  return text.getvalue()


def _states(
  path, folder='checkpoints', **options
) -> checkpoints.SafetensorsStateManager:
  return checkpoints.SafetensorsStateManager(
    path / folder,
    prefix=_CHECKPOINT_PREFIX,
    keep_first=False,
    **options,
  )


def _load(states, version, structure) -> tuple[Any, dict[str, bytes]]:
  """The state of the process, and the content of the tables."""
  like = {'process': structure, 'tables': dict.fromkeys(_TABLES, b'')}
  found = asyncio.run(states.load(version, like))
  _check_like(structure, found['process'], states.path(version))
  return found['process'], found['tables']


def _check_like(structure, state, path):
  """Refuses a state with other shapes or types than `structure`."""

  def check(expected, found):
    here, there = (
      (np.shape(value), np.asarray(value).dtype) for value in (expected, found)
    )
    if here != there:
      raise checkpoints.OtherStateError(
        f'{path} must hold a tensor of shape {here[0]} and type {here[1]},'
        f' found shape {there[0]} and type {there[1]}.'
      )

  tf.nest.map_structure(check, structure, state)


def _without_nan(value):
  if isinstance(value, Mapping):
    return {k: _without_nan(v) for k, v in value.items()}
  if isinstance(value, float) and not np.isfinite(value):
    return None
  return value
