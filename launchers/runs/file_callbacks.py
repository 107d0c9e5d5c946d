"""Callbacks that write the csv files, the summary and the checkpoints."""

from typing import Any

import numpy as np
import tensorflow_federated as tff

from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import attackers
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import run_files


class RunFiles(callbacks.Callback):
  """Writes flags.txt, the rows of each round, and the files of the end."""

  def __init__(self, flags_text: str):
    """Takes the content of the flags file."""
    self._flags_text = flags_text

  def on_start(self, run):
    """Writes flags.txt."""
    # In this order: a run that goes on after an early stop is not finished.
    if not run.is_over:
      run.directory.remove_summary()
    path = run.directory.path / settings_lib.FLAGS_FILE
    run_files.write_atomically(path, self._flags_text)

  def after_round(self, run, result):
    """Writes the rows of the round."""
    if result.scores is not None:
      columns = evaluation.client_columns(result.scores)
      run.directory.write_client_scores(result.number, columns)
    run.directory.write_reports(result.number, result.reports)
    run.directory.write_round(result.number, result.row)

  def on_end(self, run, summary):
    """Writes clients.csv, the tables of groups of people, and summary.json."""
    if summary is not None:
      run.directory.write_clients(_client_columns(run))
      if run.groups is not None:
        run.directory.write_groups(run.groups)
      run.directory.write_summary(summary)


class Checkpoints(callbacks.Callback):
  """Saves the state in the rounds of `--checkpoint_every`, and at the end."""

  def after_round(self, run, result):
    """Saves the state, if it is time to."""
    if run.is_over or result.number % run.settings['checkpoint_every'] == 0:
      run.directory.save_checkpoint(result.state, result.number)


def _client_columns(run) -> dict[str, Any]:
  """The columns of clients.csv."""
  scores = evaluation.of_clients(run.scores)
  labels = [run.task.data.y[s.train] for s in run.task.splits]
  columns = {
    'client_id': range(run.num_clients),
    'num_train': run.num_train,
    'num_classes': [len(np.unique(own)) for own in labels],
    'num_test': scores.num_examples,
    'accuracy': scores.accuracy,
    'f1': scores.f1,
    'f1_own_labels': scores.f1_own_labels,
    'f1_weighted': scores.f1_weighted,
    'loss': scores.loss,
    **evaluation.fine_tuned_column(run.scores),
  }
  if run.attackers:
    columns[attackers.COLUMN] = np.isin(range(run.num_clients), run.attackers)
    columns[attackers.COLUMN] = columns[attackers.COLUMN].astype(int)
  table = run.state.client_work['table'] or {}
  for name, column in table.items():
    if isinstance(column, np.ndarray) and column.ndim == 1:
      columns[name] = column
  # From the file: a run that was complete at the start has run no round.
  reports = run.directory.read_last_reports()
  for name in reports.columns.intersection(_reported_by_server(run.process)):
    columns[name] = reports[name].reindex(columns['client_id']).to_numpy()
  return columns


def _reported_by_server(process) -> list[str]:
  """The names of the numbers that the aggregator reports of each client."""
  measured = process.next.type_signature.result.metrics.member['aggregator']
  if not hasattr(measured, 'clients'):
    return []
  return tff.structure.name_list(measured.clients)
