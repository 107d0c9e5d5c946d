"""Rounds that trained nothing, and runs that consist of them."""

import collections
from collections.abc import Mapping
import re
from typing import Any

import numpy as np
import pandas as pd

# So many in a row end a run.
LIMIT = 3


class FailedRounds:
  """Counts the last rounds of a run that had no finite loss or update."""

  def __init__(self, rounds: pd.DataFrame):
    """Starts after the rounds of an earlier start.

    Args:
      rounds: metrics.csv so far.
    """
    self._last = collections.deque(maxlen=LIMIT)
    for row in rounds.tail(LIMIT).to_dict('records'):
      self.add(row)

  def add(self, row: Mapping[str, Any]) -> str | None:
    """Adds a round.

    Args:
      row: Its row of metrics.csv.

    Returns:
      Why the run has diverged; None if it has not.
    """
    self._last.append(_failure(row))
    if len(self._last) < LIMIT or None in self._last:
      return None
    return f'{self._last[-1]} for {LIMIT} rounds'


def any_aggregated(rounds: pd.DataFrame) -> bool:
  """Returns whether a run aggregated any update in any round.

  Args:
    rounds: metrics.csv.
  """
  return any(_num_aggregated(row) for row in rounds.to_dict('records'))


def _failure(row) -> str | None:
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
