"""The metrics of a round as in the files of a run: a row, and reports."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

# Metrics that count dropped clients and updates, and their titles.
DROPPED = {
  'num_empty_clients': 'Clients without training data',
  'num_rejected_clients': 'Clients whose update is not finite',
  'num_clipped_clients': 'Clients whose update exceeds the norm bound',
  'aggregator_num_zeroed': 'Clients whose update the robust rule leaves out',
  'aggregator_num_excluded': 'Clients that the aggregation rule excludes',
  'aggregator_num_isolated': 'Clients that the server isolates',
  'aggregator_num_non_finite': 'Clients that the server counts as absent',
  'aggregator_fallback': 'Rounds without a client of positive weight',
  'finalizer_update_non_finite': 'Rounds whose update is not finite',
}


class RoundMetrics(NamedTuple):
  """The metrics of a round.

  Attributes:
    row: Scalars by the names of the columns of metrics.csv. Means over examples
      begin with `train_`; the others are totals of the round.
    reports: A row with a `client_id` for each client in the cohort, and for
      other clients that the aggregator reports on.
  """

  row: Mapping[str, Any]
  reports: pd.DataFrame


def dropped(rounds: pd.DataFrame) -> dict[str, int]:
  """Sums the columns of metrics.csv in `DROPPED` over the rounds."""
  return {name: int(rounds[name].sum()) for name in DROPPED if name in rounds}


def flatten(metrics: Mapping[str, Any]) -> RoundMetrics:
  """Flattens the metrics of one call of `next`, whose clients have ids.

  A report joins a client's metrics from the client work and the aggregator.
  """
  row = {}
  for name, value in metrics['client_work'].items():
    if name != 'clients':
      prefix = '' if name.startswith('num_') else 'train_'
      row[prefix + name] = value
  server = {  # A part without metrics is an empty tuple.
    part: dict(metrics[part]) for part in ('aggregator', 'finalizer')
  }
  for part, measured in server.items():
    for name, value in measured.items():
      if not isinstance(value, Mapping) and np.ndim(value) == 0:
        row[f'{part}_{name}'] = value
  reports = _frame(metrics['client_work']['clients'])
  if 'clients' in server['aggregator']:
    reports = _joined(reports, _frame(server['aggregator']['clients']))
  return RoundMetrics(row, reports)


def merge(calls: Sequence[RoundMetrics]) -> RoundMetrics:
  """Merges the calls of a round, each with some of the clients.

  Metrics of the training are means weighted by the numbers of examples, others
  are sums.
  """
  if len(calls) == 1:
    return calls[0]
  rows = [call.row for call in calls]
  weights = [row['num_examples'] for row in rows]

  def combine(name):
    values = [row[name] for row in rows]
    if name.startswith('train_'):
      return np.dot(values, weights) / max(sum(weights), 1)
    return np.sum(values)

  return RoundMetrics(
    {name: combine(name) for name in rows[0]},
    pd.concat([call.reports for call in calls], ignore_index=True),
  )


def _joined(reports, from_server) -> pd.DataFrame:
  """Both, by ascending id; absent clients have 0 examples, and flags of 0."""
  joined = reports.merge(from_server, 'outer', 'client_id', validate='1:1')
  counts = reports.select_dtypes('integer')
  joined[counts.columns] = joined[counts.columns].fillna(0)
  return joined.astype(counts.dtypes)


def _frame(vectors) -> pd.DataFrame:
  return pd.DataFrame({k: np.asarray(v) for k, v in vectors.items()})
