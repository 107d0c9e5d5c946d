"""Fairness between groups of people, by Fairlearn; without TensorFlow.

With Y the label, P the prediction, A the group, and 1 the positive class, the
measures of group a are

    accuracy             P(P = Y | A = a)
    selection rate       P(P = 1 | A = a)
    true positive rate   P(P = 1 | Y = 1, A = a)
    false positive rate  P(P = 1 | Y = 0, A = a)

and those between groups

    accuracy difference            largest minus smallest accuracy
    demographic parity difference  largest minus smallest selection rate
    demographic parity ratio       smallest over largest selection rate
    equalised odds difference      the larger one of the differences of the true
                                   and of the false positive rates
"""

from collections.abc import Sequence
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tff_fair import checks

FEWEST_EXAMPLES = 10
"""A group with fewer test examples is counted, and not measured."""

ALL = 'all'
"""In place of a client: the test examples of all clients together."""

RATES = ('selection_rate', 'true_positive_rate', 'false_positive_rate')
MEASURES = ('accuracy', *RATES)
"""Those of a group; the rates need two classes."""

DIFFERENCES = (
  'group_accuracy_difference',
  'demographic_parity_difference',
  'demographic_parity_ratio',
  'equalized_odds_difference',
)
"""Those between groups."""

_ODDS = ['true_positive_rate', 'false_positive_rate']


class Measured(NamedTuple):
  """The measures of the groups of people of one sensitive column.

  Attributes:
    groups: A row for each group that a client has, and for each group over all
      clients: `client_id` (`ALL` or an integer), `group`, `count` and
      `MEASURES`, which are NaN for a small group.
    differences: A row for `ALL` and each client: `client_id`, `num_groups`
      (those that are measured), `num_small_groups`, and `DIFFERENCES`, which
      are NaN where fewer than two groups are measured.
  """

  groups: pd.DataFrame
  differences: pd.DataFrame


def measure(
  labels: Sequence[int],
  predicted: Sequence[int],
  codes: Sequence[int],
  names: Sequence[str],
  clients: Sequence[int],
  positive: int | None,
  *,
  fewest: int = FEWEST_EXAMPLES,
) -> Measured:
  """Measures how a classifier serves groups of people.

  A rate of a group without a positive, or negative, example is NaN, and so is
  an equalised odds difference in which it would enter. Differences are between
  the groups of `fewest` examples or more, at a client as over all.

  Args:
    labels: int [n], the classes of the examples.
    predicted: int [n], the predicted classes.
    codes: int [n], the group of each example, 0..len(names)-1.
    names: The name of each group.
    clients: int [n], the client of each example.
    positive: The positive class of two; None for more classes, of which only
      the accuracy is measured.
    fewest: Number of examples below which a group is small, at least 1.

  Returns:
    The measures; clients are in the order of their ids.

  Raises:
    TypeError: If `fewest` is not an integer.
    ValueError: If the lengths differ, there is no example, or `fewest` is below
      1.
  """
  checks.check_integer('fewest', fewest, 1)
  table = pd.DataFrame(
    {
      'label': _as_vector('labels', labels, len(labels)),
      'predicted': _as_vector('predicted', predicted, len(labels)),
      'group': _as_vector('codes', codes, len(labels)),
      'client_id': _as_vector('clients', clients, len(labels)),
    }
  )
  if table.empty:
    raise ValueError('labels must be of at least one example, found none.')
  parts = [
    _measure(table.assign(client_id=ALL), positive, fewest),
    _measure(table, positive, fewest),
  ]
  groups, differences = (
    pd.concat(part, ignore_index=True) for part in zip(*parts, strict=True)
  )
  return Measured(
    groups.assign(group=[names[code] for code in groups['group']]), differences
  )


def _as_vector(what: str, values: Sequence[int], length: int) -> np.ndarray:
  vector = np.asarray(values)
  if vector.shape != (length,):
    raise ValueError(
      f'{what} must have the shape [{length}], one for each label, found'
      f' {list(vector.shape)}.'
    )
  return vector


def _measure(
  table: pd.DataFrame, positive: int | None, fewest: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
  keys = ['client_id', 'group']
  groups = table.groupby(keys).size().rename('count').reset_index()
  is_large = groups['count'] >= fewest
  differences = pd.DataFrame({'client_id': groups['client_id'].unique()})
  for name, counted in (
    ('num_groups', is_large),
    ('num_small_groups', ~is_large),
  ):
    sums = counted.groupby(groups['client_id']).sum()
    differences[name] = differences['client_id'].map(sums)
  kept = table.merge(groups.loc[is_large, keys], on=keys)
  measured, between = _by_fairlearn(kept, positive)
  groups = groups.join(measured, on=keys)
  differences = differences.join(between, on='client_id')
  differences.loc[differences['num_groups'] < 2, [*DIFFERENCES]] = np.nan
  return groups, differences


def _by_fairlearn(
  table: pd.DataFrame, positive: int | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
  """The measures by client and group, and the differences by client."""
  if table.empty:
    return (
      pd.DataFrame(
        columns=[*MEASURES],
        index=pd.MultiIndex.from_arrays([[], []]),
        dtype=float,
      ),
      pd.DataFrame(columns=[*DIFFERENCES], dtype=float),
    )
  # Takes a second to import.
  from fairlearn import metrics
  from sklearn import metrics as sklearn_metrics

  labels, predicted = table['label'], table['predicted']
  chosen = {'accuracy': sklearn_metrics.accuracy_score}
  if positive is not None:
    labels = (labels == positive).astype(int)
    predicted = (predicted == positive).astype(int)
    chosen |= {
      'selection_rate': metrics.selection_rate,
      'true_positive_rate': _defined(metrics.true_positive_rate, 1),
      'false_positive_rate': _defined(metrics.false_positive_rate, 0),
    }
  frame = metrics.MetricFrame(
    metrics=chosen,
    y_true=labels.to_numpy(),
    y_pred=predicted.to_numpy(),
    sensitive_features=table['group'],
    control_features=table['client_id'],
  )
  # A group that a client lacks has a row of NaN.
  there = pd.MultiIndex.from_frame(
    table[['client_id', 'group']].drop_duplicates()
  )
  measured = frame.by_group.loc[there].astype(float)
  measured = measured.reindex(columns=[*MEASURES])
  gaps = frame.difference().astype(float).reindex(columns=[*MEASURES])
  ratios = frame.ratio().astype(float).reindex(columns=[*MEASURES])
  is_defined = measured[_ODDS].notna().groupby(level=0).all().all(axis=1)
  between = pd.DataFrame(
    {
      'group_accuracy_difference': gaps['accuracy'],
      'demographic_parity_difference': gaps['selection_rate'],
      'demographic_parity_ratio': ratios['selection_rate'],
      'equalized_odds_difference': gaps[_ODDS].max(axis=1).where(is_defined),
    }
  )
  return measured, between


def _defined(rate: Any, condition: int) -> Any:
  """A rate that is NaN, where Fairlearn has 0, without examples of a label."""

  def measured(y_true, y_pred):
    if not np.equal(y_true, condition).any():
      return math.nan
    return rate(y_true, y_pred, pos_label=1)

  return measured
