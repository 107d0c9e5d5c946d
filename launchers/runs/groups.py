"""How a run serves groups of people: groups.csv and group_differences.csv.

Each client's test examples are predicted by its final model. Clients without
training data, and those that take no part in the training, are left out.
Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from tff_fair import group_fairness
from tff_fair import tasks

if TYPE_CHECKING:
  from tff_fair import metrics

FILE, DIFFERENCES_FILE = 'groups.csv', 'group_differences.csv'

TABLES = {
  FILE: ('client_id', 'column', 'group', 'count', *group_fairness.MEASURES),
  DIFFERENCES_FILE: (
    'client_id',
    'column',
    'num_groups',
    'num_small_groups',
    *group_fairness.DIFFERENCES,
  ),
}
"""File -> its columns, beside the names of clients."""

_ALL = group_fairness.ALL
# Difference -> what is worst of several sensitive columns.
_WORST = {
  name: 'min' if name.endswith('_ratio') else 'max'
  for name in group_fairness.DIFFERENCES
}
_MEANS = tuple(name for name, worst in _WORST.items() if worst == 'max')

CLIENT_MEANS = tuple(f'clients_{name}' for name in _MEANS)
COLUMNS = (
  'group_accuracy_min',
  *group_fairness.DIFFERENCES,
  *CLIENT_MEANS,
  'num_small_groups',
)
"""The measures of a run: of all sensitive columns, the worst value."""


class GroupTables(NamedTuple):
  """The content of the two files, a row a client and group, or a client.

  Attributes:
    groups: The columns `client_id` ('all' or an integer), `column`, `group`,
      `count` and `group_fairness.MEASURES`.
    differences: The columns `client_id`, `column`, `num_groups`,
      `num_small_groups` and `group_fairness.DIFFERENCES`.
  """

  groups: pd.DataFrame
  differences: pd.DataFrame


def measure(
  task: tasks.Task, scores: 'metrics.ClientScores', is_scored: Sequence[bool]
) -> GroupTables | None:
  """Measures the groups of people of a task by the scores of its clients.

  Returns:
    The tables; None without sensitive columns, or without a test example.
  """
  parts = [split.test for split in task.splits]
  clients = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
  counts = np.asarray(is_scored, bool)[clients]
  # The server's test examples are of no client, and have no groups here.
  if not task.sensitive or not counts.any() or scores.predicted is None:
    return None
  positions = np.concatenate(parts)[counts]
  found = []
  for groups in task.sensitive:
    measured = group_fairness.measure(
      task.data.y[positions],
      scores.predicted[counts],
      groups.codes[positions],
      groups.names,
      clients[counts],
      task.positive_class,
    )
    for table in measured:
      table.insert(1, 'column', groups.column)
    found.append(measured)
  return GroupTables(
    *(pd.concat(p, ignore_index=True) for p in zip(*found, strict=True))
  )


def metric_columns(tables: GroupTables | None) -> dict[str, float]:
  """Returns the measures of summary.json; none without tables.

  Of several sensitive columns each is that of the worst one; NaN if that of one
  column is not defined. Those of clients are means over the clients that have a
  value.
  """
  if tables is None:
    return {}
  groups, differences = tables
  overall = differences[differences['client_id'] == _ALL]
  each = differences[differences['client_id'] != _ALL]
  accuracies = groups.loc[groups['client_id'] == _ALL, 'accuracy']
  found = {'group_accuracy_min': accuracies.min()}
  for name, worst in _WORST.items():
    found[name] = getattr(overall[name], worst)(skipna=False)
  means = each.groupby('column')[[*_MEANS]].mean()
  for column, name in zip(CLIENT_MEANS, _MEANS, strict=True):
    found[column] = means[name].max(skipna=False)
  found['num_small_groups'] = each['num_small_groups'].sum()
  return {name: float(value) for name, value in found.items()}


def describe(
  tables: GroupTables | None, positive_class: str | None
) -> dict[str, Any]:
  """Returns the key `groups` of summary.json; nothing without tables.

  It has the measures over all clients by column.
  """
  if tables is None:
    return {}
  columns: dict[str, Mapping[str, Any]] = {}
  for name, rows in tables.differences.groupby('column', sort=False):
    groups = tables.groups[tables.groups['column'] == name]
    of_all = groups[groups['client_id'] == _ALL].set_index('group')
    is_all = rows['client_id'] == _ALL
    shown = ['count', *group_fairness.MEASURES]
    columns[str(name)] = {
      'groups': of_all[shown].to_dict('index'),
      'differences': rows[is_all].iloc[0][[*_WORST]].to_dict(),
      'clients_compared': int((rows.loc[~is_all, 'num_groups'] > 1).sum()),
      'clients': int((~is_all).sum()),
      'small_groups_of_clients': int(
        rows.loc[~is_all, 'num_small_groups'].sum()
      ),
    }
  return {
    'groups': {
      'positive_class': positive_class,
      'fewest_examples': group_fairness.FEWEST_EXAMPLES,
      'columns': columns,
    }
  }


def positive_name(task: tasks.Task) -> str | None:
  """Returns the name of the positive class, its number if it has no name."""
  if task.positive_class is None:
    return None
  return (
    task.class_names[task.positive_class]
    if task.class_names
    else str(task.positive_class)
  )
