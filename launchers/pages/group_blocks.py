"""Blocks of pages about groups of people.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tff_fair import group_fairness
from tff_fair.launchers import frame
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.pages import page
from tff_fair.launchers.pages import tables
from tff_fair.launchers.plots import group_plots
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.show import numbers

TITLE = 'Groups of people'
"""The heading of the section, and the group of `measures.csv`."""

_EXPLANATION = (
  'Of the people of a group on test data: accuracy is the share that is'
  ' predicted rightly, the selection rate the share for whom the model predicts'
  ' the positive class, the true positive rate this share of those who truly'
  ' belong to it, the false positive rate of those who do not. Between groups:'
  ' the demographic parity difference is the largest minus the smallest'
  ' selection rate, the ratio the smallest over the largest; the equalised odds'
  ' difference is the larger one of the differences of the true and of the'
  f' false positive rates. A group with fewer than'
  f' {group_fairness.FEWEST_EXAMPLES} test examples, at a client or over all,'
  ' is counted, not measured. A rate without people of whom it would be the'
  ' share is not defined, nor is an equalised odds difference that needs it. A'
  ' model that selects nobody, or everybody, has no difference in selection:'
  ' read the rates beside it.'
)

# Characters of a name in a table.
_NAME_WIDTH = 60
_TITLES = {
  'group_accuracy_difference': 'Accuracy difference',
  'demographic_parity_difference': 'Demographic parity difference',
  'demographic_parity_ratio': 'Demographic parity ratio',
  'equalized_odds_difference': 'Equalised odds difference',
}


def explain(positive_class: str | None) -> page.Text:
  """Says what the measures are, and of which class, if there is one."""
  which = ''
  if positive_class is not None:
    shown = client_names.one_line(positive_class, _NAME_WIDTH)
    which = f' The positive class is ‘{shown}’.'
  return page.Text(_EXPLANATION + which)


def of_runs(runs: Sequence[frame.Run]) -> list:
  """The blocks about runs; none if no run has groups of people."""
  measured = {run.label: run for run in runs if len(run.groups)}
  if not measured:
    return []
  styles = run_plots.find_styles(measured)
  columns = dict.fromkeys(
    name for run in measured.values() for name in run.groups['column']
  )
  classes = {run.positive_class for run in measured.values()}
  blocks: list[Any] = [explain(classes.pop() if len(classes) == 1 else None)]
  for column in columns:
    figure = group_plots.group_measures(measured, styles, column)
    if figure:
      blocks.append(page.Picture(figure, f'Groups by {column}'))
  for run in measured.values():
    blocks.append(page.Text(run.label, 'run'))
    blocks.append(make_group_table(run))
    blocks.append(make_client_table(run))
  return blocks


def make_group_table(run: frame.Run) -> tables.Table:
  """Makes the table of the groups over all clients' test examples."""
  groups = run.groups[run.groups['client_id'] == group_fairness.ALL]
  rows: dict[str, list[tables.Row]] = {}
  for row in groups.to_dict('records'):
    cells = [str(row['count']), *_format(row, group_plots.TITLES)]
    title = client_names.one_line(row['group'], _NAME_WIDTH)
    rows.setdefault(f'By {row["column"]}', []).append(
      tables.Row(title, tables.texts(*cells))
    )
  header = ['Group', 'Test examples', *group_plots.TITLES.values()]
  name = f'Groups of people, all clients of {run.label}'
  return tables.Table(name, header, rows)


def make_client_table(run: frame.Run) -> tables.Table:
  """Makes the table of the differences between groups, a row a client."""
  rows: dict[str, list[tables.Row]] = {}
  for row in run.group_differences.to_dict('records'):
    who = 'all clients together'
    if row['client_id'] != group_fairness.ALL:
      name = run.names.get(int(row['client_id']), '')
      who = client_names.one_line(f'{row["client_id"]} {name}', _NAME_WIDTH)
    cells = [
      str(row['num_groups']),
      str(row['num_small_groups']),
      *_format(row, _TITLES),
    ]
    rows.setdefault(f'By {row["column"]}', []).append(
      tables.Row(who, tables.texts(*cells))
    )
  header = ['Client', 'Groups measured', 'Too small', *_TITLES.values()]
  name = f'Differences between groups of people, clients of {run.label}'
  return tables.Table(name, header, rows, 'tall clients')


def of_methods(analysis: analysis_lib.Analysis) -> list:
  """The table of a comparison: the methods for each group; or nothing."""
  if not analysis.groups:
    return []
  rows: dict[str, list[tables.Row]] = {}
  for method in (*analysis.ranked, *analysis.in_turn):
    for (column, group), row in analysis.groups[method].iterrows():
      heading = client_names.one_line(f'{column}: {group}', _NAME_WIDTH)
      cells = [f'{row["count"]:.0f}', *_format(row, group_plots.TITLES)]
      rows.setdefault(heading, []).append(
        tables.Row(
          analysis.title(method),
          tables.texts(*cells),
          mark='baseline' if method == analysis.baseline else '',
        )
      )
  header = ['Method', 'Test examples', *group_plots.TITLES.values()]
  return [
    page.Text(
      'For each group, over all clients’ test examples: means over the seeds in'
      ' which the group is large enough.'
    ),
    tables.Table('Methods for each group', header, rows, 'tall methods'),
  ]


def _format(row: pd.Series | dict, names) -> list[str]:
  return [numbers.format_number(row[name], '.3f') for name in names]
