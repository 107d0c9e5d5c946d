"""Runs that have trained nothing, or whose results mean nothing."""

import collections
from collections.abc import Mapping
import re
from typing import Any

import numpy as np

from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation

# So many failed rounds in a row end a run.
LIMIT = 3


class Divergence(callbacks.Callback):
  """Ends a run that has diverged, before its state is saved."""

  def on_start(self, run):
    """Reads the last rounds of an earlier start."""
    rows = run.directory.read_metrics().tail(LIMIT).to_dict('records')
    self._last = collections.deque(map(find_failure, rows), maxlen=LIMIT)

  def after_round(self, run, result):
    """Raises `DivergedError` if the run has diverged."""
    if result.scores is not None:
      check_scores(run, result.scores, result.number)
    self._last.append(find_failure(result.row))
    if len(self._last) == LIMIT and None not in self._last:
      why = f'{self._last[-1]} for {LIMIT} rounds'
      raise errors.diverged(f'{why}, up to round {result.number}')


def check_scores(run: Any, scores: evaluation.Scores, number: int) -> None:
  """Raises `DivergedError` if the loss of a model is not finite."""
  evaluation.check_finite(
    scores,
    run.is_scored,
    run.task.client_names,
    number,
    has_global_loss=run.centroids is None,
  )


def check_aggregated(run: Any) -> None:
  """Raises `DivergedError` if no round has aggregated any update."""
  rows = run.directory.read_metrics().to_dict('records')
  if not any(map(_num_aggregated, rows)):
    raise errors.DivergedError(
      "no round has aggregated any client's update, so the model is as it was"
      f' at the start; {run.directory.path / "metrics.csv"} has the numbers of'
      ' clients.'
    )


def check_trained(run: Any) -> None:
  """Raises `DivergedError` if a personal model is as it was at the start."""
  if 'personal' not in run.scores:
    return
  rejected = run.directory.read_always_rejected()
  untrained = [i for i in rejected if run.is_scored[i]]
  if untrained:
    who = evaluation.listed(untrained, run.task.client_names)
    raise errors.diverged(
      f'no update of {who} was finite in {run.done} rounds, whose model is as'
      ' it was at the start',
    )


def find_failure(row: Mapping[str, Any]) -> str | None:
  """Returns why a round, a row of metrics.csv, has trained nothing, or None."""
  # FedAKD's clients have one loss for each exchange.
  losses = [row[n] for n in row if re.fullmatch(r'train_(.*_)?loss', n)]
  if not np.isfinite(losses).all():
    return 'the training loss was not finite'
  # Empty clients are no sign of divergence.
  if row['num_rejected_clients'] and not _num_accepted(row):
    return "no client's update was finite"
  if row.get('finalizer_update_non_finite', 0):
    return 'the aggregated update was not finite'
  return None


def _num_accepted(row) -> int:
  return (
    row['num_clients'] - row['num_empty_clients'] - row['num_rejected_clients']
  )


def _num_aggregated(row) -> int:
  """Number of clients that the rule has aggregated, as far as it says so."""
  return row.get('aggregator_num_aggregated', _num_accepted(row))
