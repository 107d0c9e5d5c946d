"""The files of one run: metrics, client scores, checkpoints, summary."""

import asyncio
from collections.abc import Mapping
import contextlib
import gc
import json
import pathlib
from typing import Any
import warnings

import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_federated as tff

from launchers.runs import run_files

_CHECKPOINT_PREFIX = 'round_'
# Files that every round appends rows to; the first column is the round.
_TABLES = ('metrics.csv', 'reports.csv', 'client_scores.csv')


class RunDirectory:
  """Writes the files of a run, and reads them to resume it."""

  def __init__(self, path: pathlib.Path, *, checkpoints_to_keep: int):
    """Opens the directory, which must exist.

    Args:
      path: The directory.
      checkpoints_to_keep: Number of latest checkpoints to keep.
    """
    self.path = path
    self._states = tff.program.FileProgramStateManager(
      path / 'checkpoints',
      prefix=_CHECKPOINT_PREFIX,
      keep_total=checkpoints_to_keep,
      keep_first=False,
    )
    self._tensorboard = tff.program.TensorBoardReleaseManager(
      path / 'tensorboard'
    )
    self._metrics = None

  def load_checkpoint(self, structure: Any) -> tuple[Any, int]:
    """Loads the newest readable state.

    A checkpoint that cannot be read is renamed, with a warning, and the
    previous one is tried.

    Args:
      structure: A state of the process with the expected structure.

    Returns:
      The state and its round; `structure` and 0 without any checkpoint.
    """
    versions = asyncio.run(self._states.get_versions()) or []
    for version in reversed(versions):
      try:
        state = asyncio.run(self._states.load(version, structure))
        _check_like(structure, state)
        return state, version
      except Exception as error:  # pylint: disable=broad-exception-caught
        # A damaged SavedModel can raise almost any error.
        self._set_aside(version, error)
        if version == versions[0]:
          warnings.warn('No checkpoint is left: starting over.', stacklevel=2)
    return structure, 0

  def save_checkpoint(self, state: Any, round_number: int) -> None:
    """Saves the state after `round_number` rounds, unless it exists."""
    with contextlib.suppress(tff.program.ProgramStateExistsError):
      asyncio.run(self._states.save(state, round_number))
    # TFF leaves copies of the state in reference cycles.
    gc.collect()

  def start_after(self, round_number: int) -> None:
    """Removes what a killed run wrote after `round_number`; opens the files.

    Args:
      round_number: The round that the run resumes after.
    """
    for name in _TABLES:
      _truncate(self.path / name, round_number)
    self._metrics = tff.program.CSVFileReleaseManager(
      self.path / 'metrics.csv', key_fieldname='round'
    )

  def write_round(
    self, round_number: int, metrics: Mapping[str, Any], seconds: float
  ) -> None:
    """Adds a round to metrics.csv and, with its time, to TensorBoard."""
    asyncio.run(self._metrics.release(metrics, round_number))
    with_time = {**metrics, 'seconds': seconds}
    asyncio.run(self._tensorboard.release(with_time, round_number))

  def write_reports(self, round_number: int, reports: pd.DataFrame) -> None:
    """Adds a row to reports.csv for every client that took part."""
    reports = reports.sort_values('client_id')
    self._append('reports.csv', round_number, reports)

  def write_client_scores(
    self, round_number: int, scores: Mapping[str, Any]
  ) -> None:
    """Adds a row to client_scores.csv for every client."""
    frame = pd.DataFrame(scores)
    self._append('client_scores.csv', round_number, frame)

  def write_clients(self, columns: Mapping[str, Any]) -> None:
    """Writes clients.csv, one row per client."""
    text = pd.DataFrame(columns).to_csv(index=False)
    run_files.write_atomically(self.path / 'clients.csv', text)

  def write_summary(self, summary: Mapping[str, Any]) -> None:
    """Writes summary.json; NaN becomes null."""
    text = json.dumps(_without_nan(summary), indent=2)
    run_files.write_atomically(self.path / 'summary.json', text + '\n')

  def read_metrics(self) -> pd.DataFrame:
    """Reads metrics.csv."""
    return pd.read_csv(self.path / 'metrics.csv')

  def read_last_reports(self) -> pd.DataFrame:
    """Reads the last row of each client in reports.csv, by `client_id`."""
    reports = pd.read_csv(self.path / 'reports.csv')
    return reports.drop_duplicates('client_id', keep='last').set_index(
      'client_id'
    )

  def _append(self, name, round_number, frame):
    path = self.path / name
    frame.insert(0, 'round', round_number)
    frame.to_csv(path, mode='a', header=not path.exists(), index=False)

  def _set_aside(self, version, error):
    folder = self.path / 'checkpoints'
    damaged = folder / f'damaged_{_CHECKPOINT_PREFIX}{version}'
    number = 1
    while damaged.exists():
      number += 1
      damaged = damaged.with_name(f'{damaged.name}_{number}')
    (folder / f'{_CHECKPOINT_PREFIX}{version}').rename(damaged)
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    warnings.warn(
      f'The checkpoint of round {version} cannot be read ({reason}); it is'
      f' kept as {damaged.name}, and the previous one is tried.',
      stacklevel=3,
    )


def load_state(path: pathlib.Path, structure: Any, round_number: int) -> Any:
  """Loads the state of a run after a round.

  Args:
    path: The run's directory.
    structure: A state of the process with the expected structure.
    round_number: The round.

  Returns:
    The state.

  Raises:
    FileNotFoundError: If the run has no checkpoint of that round.
  """
  states = tff.program.FileProgramStateManager(
    path / 'checkpoints', prefix=_CHECKPOINT_PREFIX
  )
  versions = asyncio.run(states.get_versions()) or []
  if round_number not in versions:
    raise FileNotFoundError(
      f'{path} must hold a checkpoint of round {round_number}, found those of'
      f' the rounds {", ".join(map(str, versions)) or "none"}.'
    )
  return asyncio.run(states.load(round_number, structure))


def _truncate(path, round_number):
  """Keeps the complete rows up to `round_number`."""
  if not path.exists():
    return
  with open(path, newline='') as file:
    rows = file.readlines()
  kept = [
    row
    for row in rows[1:]
    if row.endswith('\n') and int(row.split(',', 1)[0]) <= round_number
  ]
  if kept:
    run_files.write_atomically(path, ''.join(rows[:1] + kept))
  else:
    path.unlink()


def _check_like(structure, state):
  """Raises an error unless `state` has the shapes of `structure`."""

  def check(expected, found):
    if np.shape(expected) != np.shape(found):
      raise ValueError(
        f'a tensor must have shape {np.shape(expected)}, found'
        f' {np.shape(found)}'
      )

  tf.nest.map_structure(check, structure, state)


def _without_nan(value):
  if isinstance(value, Mapping):
    return {k: _without_nan(v) for k, v in value.items()}
  if isinstance(value, float) and not np.isfinite(value):
    return None
  return value
