"""Collects the runs of a comparison in compare.csv: a row a run."""

from collections.abc import Iterable, Mapping
import json
import math
import shlex
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair import group_fairness
from tff_fair.launchers import frame
from tff_fair.launchers import measures
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.comparison import tuning
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.options import methods
from tff_fair.launchers.runs import planned_run

TARGET_SHARE = 0.95
_CURVE = {'mean': 'client_accuracy_mean', 'worst10': 'client_accuracy_worst10'}
# Flags of a run that its command is shown without: the numbers do not depend on
# them, and the data may be elsewhere for another reader.
_NOT_SHOWN = (
  'checkpoint_every',
  'checkpoints_to_keep',
  'client_threads',
  'data_dir',
  'export',
)
_DIGITS = 4  # Of curves, which are drawn.
_FINE_TUNED = 'fine_tuned_accuracy'  # A column of clients.csv.


class Ended(NamedTuple):
  """A run that has ended: of which trial (`number`), in which stage."""

  method: str
  number: int
  trial: tuning.Trial
  stage: str
  run: planned_run.PlannedRun
  outcome: outcomes.Outcome

  @property
  def chosen(self) -> bool:
    """Whether it is for the scores, and not a trial."""
    return self.stage == tuning.SCORE

  @property
  def is_result(self) -> bool:
    """Whether its scores on test data are reported."""
    return self.chosen and self.outcome.status == outcomes.FINISHED


def table(
  ended: Iterable[Ended],
  target: float | None,
  known: Mapping[tuple[str, int], np.ndarray] | None = None,
) -> pd.DataFrame:
  """Makes compare.csv: a row for each run, in their order.

  Args:
    ended: The runs that have ended.
    target: The accuracy of `rounds_to_target`; None for `TARGET_SHARE` of the
      baseline's last mean accuracy with the same seed.
    known: The clients' accuracies of methods and seeds whose runs are not among
      them.

  Raises:
    FrameError: If a file of a run is damaged.
  """
  runs = list(ended)
  results = {(e.method, e.run.seed): _read(e.run) for e in runs if e.is_result}
  accuracies = dict(known or {})
  accuracies |= {key: _accuracies(run) for key, run in results.items()}
  rows = []
  for e in runs:
    row = _row(e)
    if e.is_result:
      key = e.method, e.run.seed
      alone = accuracies.get((plan.ALONE, e.run.seed))
      baseline = accuracies.get((plan.BASELINE, e.run.seed))
      row |= _scores(e, results[key], accuracies[key], alone)
      goal = _target(baseline) if target is None else target
      row |= _speed(results[key], goal)
    rows.append(row)
  return pd.DataFrame(rows, columns=list(reading.COLUMNS))


def _read(run) -> frame.Run:
  try:
    return frame.read_run(run.output_dir)
  except frame.FrameError as error:
    sentence = str(error).rstrip('.')
    raise frame.FrameError(
      f'{sentence}; remove {run.output_dir}, and the same command trains this'
      ' run again.'
    ) from error


def _row(e) -> dict[str, Any]:
  """Returns the facts known of every run, without scores on test data."""
  settings = e.run.settings
  own = {n: v for n, v in e.trial.tried.items() if n != 'client_learning_rate'}
  return {
    'method': e.method,
    'seed': e.run.seed,
    'trial': e.number,
    'stage': e.stage,
    'widened': e.trial.is_widened,
    'chosen': e.chosen,
    'status': e.outcome.status,
    'learning_rate': settings['client_learning_rate'],
    'parameters': ' '.join(f'{n}={v:g}' for n, v in own.items()),
    'rounds': settings['rounds'],
    'holdout_accuracy': e.outcome.holdout_accuracy,
    'bytes_down': e.outcome.bytes_down,
    'bytes_up': e.outcome.bytes_up,
    'seconds_per_round': e.outcome.seconds_per_round,
    'command': _command(e.run),
  }


def _scores(e, run, accuracy, alone) -> dict[str, Any]:
  found = {name: run.end[name] for name in reading.SCORES}
  found |= {n: v for n, v in run.end.items() if n in measures.FURTHER_SCORES}
  found['processor'] = run.processor
  if methods.METHODS[e.method].has_global_model:
    found['global_accuracy'] = run.end['global_accuracy']
  if alone is not None and e.method != plan.ALONE:
    found |= fairness.against_alone(alone, accuracy, run.test_sizes)
  if len(run.groups):
    found['groups'] = _groups(run)
  if _FINE_TUNED in run.clients:
    found['fine_tuned_accuracies'] = _as_json(_accuracies(run, _FINE_TUNED))
  return {**found, 'client_accuracies': _as_json(accuracy)}


def _as_json(values) -> str:
  return json.dumps([None if math.isnan(value) else value for value in values])


def _groups(run) -> str:
  """The groups of people over all clients, as JSON."""
  groups = run.groups[run.groups['client_id'] == group_fairness.ALL]
  names = ['column', 'group', 'count', *group_fairness.MEASURES]
  return groups[names].to_json(orient='records', double_precision=_DIGITS)


def _speed(run, target) -> dict[str, Any]:
  """The learning curve, and when it reaches the target."""
  curves = pd.DataFrame({n: run.curve(c) for n, c in _CURVE.items()})
  curves = curves.dropna(subset='mean')
  reached = curves.index[curves['mean'] >= target]
  shown = {n: curves[n].round(_DIGITS).tolist() for n in _CURVE}
  return {
    'target': target,
    'rounds_to_target': reached.min() if len(reached) else math.nan,
    'curve': json.dumps({'rounds': curves.index.tolist(), **shown}),
  }


def _target(baseline) -> float:
  """A share of the baseline's accuracy; NaN, never reached, without one."""
  return math.nan if baseline is None else TARGET_SHARE * np.nanmean(baseline)


def _accuracies(run, column='accuracy') -> np.ndarray:
  """The accuracies; NaN of attackers, and without training or test data."""
  counts = run.clients['num_train'] > 0
  if run.settings.get('split') == 'server':
    counts[:] = True
  counts &= ~frame.is_attacker(run.clients)
  return run.clients[column].where(counts).to_numpy()


def _command(run) -> str:
  """The command that trains the run alone."""
  seeds = planned_run.as_arguments(
    dict.fromkeys(planned_run.SEED_FLAGS, run.seed)
  )
  arguments = [
    argument
    for argument in run.arguments
    if argument.partition('=')[0].removeprefix('--') not in _NOT_SHOWN
  ]
  return shlex.join(['python', '-m', 'launchers.train', *arguments, *seeds])
