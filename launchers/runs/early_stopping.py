"""When `--stop_after` ends a run.

The rule is a function of metrics.csv and of the flags. So a run that was killed
stops where an uninterrupted one does, and with other flags it may go on.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import tensorflow_federated as tff

from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation

# By which the best round is chosen unless `--stop_metric` is one of its kind.
_HOLDOUT_METRIC = train_flags.HOLDOUT_METRICS[0]


class Stop(NamedTuple):
  """Why a run has ended after a round that was not its last one.

  At least `stop_after` evaluations came after the first with the best value of
  the metric, a column of metrics.csv. If it was never defined, `best` is NaN
  and `best_round` None.
  """

  round: int
  metric: str
  best: float
  best_round: int | None
  stop_after: int

  def sentence(self, rounds: int) -> str:
    """Describes the stop of a run that was to have so many rounds."""
    if self.best_round is None:
      why = f'{self.metric} was never defined'
    else:
      why = (
        f'{self.metric} was best, {self.best:.4f}, in round {self.best_round}'
      )
    return f'stopped early after round {self.round} of {rounds}: {why}'


class EarlyStopping(callbacks.Callback):
  """Stops a run by `--stop_after` and `--stop_metric`."""

  def after_round(self, run, result):
    """Returns why the run stops, or None."""
    if run.settings['stop_after'] is not None and result.scores is not None:
      return find(run.directory.read_metrics(), run.settings)
    return None


def check_metric(run: Any, initial: Any) -> None:
  """Refuses a metric that is not defined, before anything is trained."""
  metric = run.settings['stop_metric']
  if run.settings['stop_after'] is None:
    return
  if metric in train_flags.TRAINING_METRICS:
    measured = run.process.next.type_signature.result.metrics.member
    names = tff.structure.name_list(measured['client_work'])
    defined = metric.removeprefix('train_') in names
  else:
    scores = run.evaluate(initial, 0)
    columns = evaluation.metric_columns(scores, run.is_scored)
    defined = not np.isnan(columns[metric])
  if not defined:
    raise errors.RunError(
      '--stop_metric must be a metric that this run measures, found'
      f' {metric!r}, which is not defined for its method and data.'
    )


def find(rounds: pd.DataFrame, settings: Mapping[str, Any]) -> Stop | None:
  """Decides whether a run stops early after its last round.

  It stops if at least `stop_after` evaluations came after the best one. The
  first of equal values is the best; an undefined value, NaN, is never better.
  None if it goes on, or has had all its rounds. `rounds` is metrics.csv.
  """
  patience, metric = settings['stop_after'], settings['stop_metric']
  if patience is None or rounds.empty:
    return None
  last = int(rounds['round'].iloc[-1])
  if last >= settings['rounds'] or last % settings['eval_every']:
    return None
  evaluated = rounds[rounds['round'] % settings['eval_every'] == 0]
  best_round, best = find_best(evaluated, metric)
  if best_round is None:
    since = len(evaluated)
  else:
    since = int((evaluated['round'] > best_round).sum())
  if since < patience:
    return None
  return Stop(last, metric, best, best_round, patience)


def holdout_metric(settings: Mapping[str, Any]) -> str:
  """Returns the metric of held out examples that chooses the best round."""
  metric = settings['stop_metric']
  return metric if metric in train_flags.HOLDOUT_METRICS else _HOLDOUT_METRIC


def find_best(rounds: pd.DataFrame, metric: str) -> tuple[int | None, float]:
  """The first round with the best value of a metric, and the value.

  `rounds` is metrics.csv, or a part of it. Without a value that is defined the
  round is None, and the value NaN.
  """
  if metric not in rounds:
    return None, np.nan
  defined = rounds.dropna(subset=[metric])
  if defined.empty:
    return None, np.nan
  sign = -1 if train_flags.is_lower_better(metric) else 1
  index = int(np.argmax(sign * defined[metric].to_numpy(float)))
  row = defined.iloc[index]
  return int(row['round']), float(row[metric])
