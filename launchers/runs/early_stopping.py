"""When `--stop_after` ends a run.

The rule is a function of metrics.csv and of the flags. So a run that was killed
stops where an uninterrupted one does, and with other flags it may go on.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tff_fair.launchers.options import stop_metrics


class Stop(NamedTuple):
  """Why a run has ended before its last round.

  Attributes:
    round: The round after which it ended.
    metric: The column of metrics.csv that no longer got better.
    best: Its best value; NaN if it was never defined.
    best_round: The round of the first evaluation with this value; None if there
      is none.
    stop_after: At least so many evaluations came after that.
  """

  round: int
  metric: str
  best: float
  best_round: int | None
  stop_after: int

  def sentence(self, rounds: int) -> str:
    """Describes the stop for the user.

    Args:
      rounds: The number of rounds that the run was to have.
    """
    if self.best_round is None:
      why = f'{self.metric} was never defined'
    else:
      why = (
        f'{self.metric} was best, {self.best:.4f}, in round {self.best_round}'
      )
    return f'stopped early after round {self.round} of {rounds}: {why}'


def find(rounds: pd.DataFrame, settings: Mapping[str, Any]) -> Stop | None:
  """Decides whether a run stops early after its last round.

  It stops if at least `stop_after` evaluations came after the best one. The
  first of equal values is the best; an undefined value, NaN, is never better.

  Args:
    rounds: metrics.csv.
    settings: The flag values of the run, with a `stop_after`.

  Returns:
    Why it ends here; None if it goes on, or has had all its rounds.
  """
  patience, metric = settings['stop_after'], settings['stop_metric']
  if rounds.empty:
    return None
  last = int(rounds['round'].iloc[-1])
  if last >= settings['rounds']:
    return None
  evaluated = rounds[rounds['round'] % settings['eval_every'] == 0]
  values = np.full(len(evaluated), np.nan)
  if metric in evaluated:
    values = evaluated[metric].to_numpy(float)
  defined = np.flatnonzero(~np.isnan(values))
  if not defined.size:
    since, best, best_round = len(values), np.nan, None
  else:
    sign = -1 if stop_metrics.is_lower_better(metric) else 1
    index = defined[np.argmax(sign * values[defined])]
    since = len(values) - 1 - index
    best, best_round = float(values[index]), int(evaluated['round'].iloc[index])
  if since < patience:
    return None
  return Stop(last, metric, best, best_round, patience)
