"""The web page about runs.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
import shlex

from tff_fair.launchers import command_names
from tff_fair.launchers import differences
from tff_fair.launchers import frame
from tff_fair.launchers import measures
from tff_fair.launchers import summary as summary_lib
from tff_fair.launchers.options import attack
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.pages import group_blocks
from tff_fair.launchers.pages import page
from tff_fair.launchers.pages import tables
from tff_fair.launchers.pages import text
from tff_fair.launchers.plots import all_plots
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import round_metrics
from tff_fair.launchers.show import numbers

MARK = '<!doctype html>\n<!-- Written by launchers.report. -->\n'
"""The start of a page, checked so that no other file is overwritten."""

_DROPPED = 'Dropped clients and updates'
# Different for every run; the report shows it elsewhere.
_OWN_FLAGS = ('output_dir',)
# Characters of a client's name in a table.
_NAME_WIDTH = 60
_NO_EVALUATION = page.Text('There is no evaluation yet.')


def render(runs: Sequence[frame.Run]) -> str:
  """Renders the page, the same for the same runs."""
  found = differences.compare(runs)
  summary = summary_lib.summarize_runs(runs, found.ranked)
  by_label = {run.label: run for run in runs}
  shown = ', '.join(by_label) if len(runs) < 4 else f'{len(runs)} runs'
  styles = run_plots.find_styles(by_label)
  figures = all_plots.draw(runs)
  scores = figures.pop('client_f1', None)
  of_groups = group_blocks.of_runs(runs)
  accuracy = run_plots.client_scores(by_label, styles, 'accuracy')
  of_clients = {
    'Macro-F1 of the clients': scores,
    'Accuracy of the clients by amount of data': run_plots.accuracy_by_amount(
      by_label, styles
    ),
  }
  return page.render(
    mark=MARK,
    title=f'{shown} on {", ".join(dict.fromkeys(run.data for run in runs))}',
    warnings=found.warnings,
    answer=text.describe_runs(runs, found, summary),
    picture=accuracy and page.Picture(accuracy, 'Accuracy of the clients'),
    cards=[_card(run) for run in runs],
    source='the files of the runs',
    sections={
      'Fairness': _fairness(runs, summary),
      'Curves': [
        page.Picture(figure, n.capitalize().replace('_', ' '))
        for n, figure in figures.items()
      ],
      'Clients': [
        *(
          page.Picture(figure, shows)
          for shows, figure in of_clients.items()
          if figure
        ),
        *map(_clients, runs),
      ],
      **({group_blocks.TITLE: of_groups} if of_groups else {}),
      'Inside the method': _reports(runs),
      'Settings': _settings(runs),
    },
  )


def _reports(runs) -> list:
  blocks = [page.Text('What the method reports of single clients each round.')]
  for run in runs:
    figure = client_plots.reports(run)
    blocks.append(page.Text(run.label, 'run'))
    if figure:
      blocks.append(page.Picture(figure, f'Clients of {run.label}'))
  return blocks


def make_fairness_table(
  runs: Sequence[frame.Run], summary: summary_lib.Summary
) -> tables.Table:
  """Makes the table of the last evaluations: a row a measure, a cell a run."""
  labels = [run.label for run in runs]
  groups = {}
  for measure in measures.MEASURES.values():
    row = _row(runs, summary, measure, labels)
    groups.setdefault(measure.group, []).append(row)
  groups[_DROPPED] = _dropped_rows(runs)
  missing = tables.Cell(numbers.MISSING)
  known = {
    title: [row for row in rows if any(cell != missing for cell in row.cells)]
    for title, rows in groups.items()
  }
  header = [
    'Measure',
    *(run.label + ('' if run.finished else ' (unfinished)') for run in runs),
  ]
  return tables.Table(
    'Fairness of the runs',
    header,
    {t: rows for t, rows in known.items() if rows},
  )


def make_client_table(run: frame.Run) -> tables.Table:
  """Makes the table of the clients, the lowest accuracy first.

  Clients without a score, or without training data, come last. The lowest are
  marked if not all are equal.
  """
  scores = run.honest['accuracy']
  first = scores.sort_values(kind='stable').index
  clients = run.clients.loc[first.append(run.clients.index.difference(first))]
  lowest = scores.index[scores == scores.min()] if scores.nunique() > 1 else ()
  rows = []
  for i, values in zip(clients.index, clients.to_numpy(), strict=True):
    cells = [numbers.format_plain(value) for value in values]
    if run.names:
      cells.insert(0, client_names.one_line(run.names.get(i, ''), _NAME_WIDTH))
    mark = 'worst' if i in lowest else ''
    rows.append(tables.Row(str(i), tables.texts(*cells), note=mark, mark=mark))
  named = [client_names.COLUMN] if run.names else []
  header = ['client id', *named, *(n.replace('_', ' ') for n in clients)]
  name = f'Clients of {run.label}'
  return tables.Table(name, header, {'': rows}, 'tall clients')


def make_settings_table(
  runs: Sequence[frame.Run], only_differing: bool
) -> tables.Table:
  """Makes the table of the flags; a dash where a run does not read one.

  Of those that differ, flags that only some runs have come last.
  """
  rows = []
  for name in sorted({name for run in runs for name in run.settings}):
    values = [run.settings.get(name, numbers.MISSING) for run in runs]
    differs = len(set(values)) > 1 and name not in _OWN_FLAGS
    if differs or not only_differing:
      mark = 'differs' if differs and not only_differing else ''
      rows.append(tables.Row(name, tables.texts(*values), mark=mark))
  if only_differing:
    missing = tables.Cell(numbers.MISSING)
    rows.sort(key=lambda row: missing in row.cells)
  title = 'Settings that differ' if only_differing else 'All settings'
  header = ['Flag', *(run.label for run in runs)]
  return tables.Table(title, header, {'': rows}, 'flags')


def make_command(run: frame.Run) -> str:
  """Makes the shell command that repeats a finished run, or resumes another."""
  output_dir = str(run.directory) + ('_again' if run.finished else '')
  return shlex.join(
    [
      *command_names.command('train').split(),
      f'--flagfile={run.directory / settings_lib.FLAGS_FILE}',
      f'--output_dir={output_dir}',
    ]
  )


def _card(run) -> page.Card:
  if run.finished:
    rounds = f'{run.last_round}{", stopped early" * run.stopped_early}'
    last = run.settings.get('score_last')
    if last:
      rounds += f'; clients’ accuracies are means of the last {last}'
  else:
    scores = 'no scores yet'
    if run.evaluated:
      scores = f'scores of round {run.evaluated}'
    rounds = (
      f'unfinished after round {run.last_round} of {run.settings["rounds"]};'
      f' {scores}'
    )
  so_far = '' if run.finished else ' so far'
  return page.Card(
    run.label,
    [
      ('Data', f'{run.data}, {len(run.clients)} clients{so_far}'),
      ('Rounds', rounds),
      *(('Note', note) for note in run.notes),
      ('Preset', run.preset),
      ('Files', str(run.directory)),
    ],
  )


def _fairness(runs, summary) -> list:
  table = make_fairness_table(runs, summary)
  best = '; the best value of a row is marked' if table.has_best else ''
  attacked = any(attack.is_attacked(run.settings) for run in runs)
  attackers = 'Attackers, c' if attacked else 'C'
  blocks = [
    page.Text(
      'At the last evaluation. ↑ higher is better, ↓ lower is better'
      f'{best}. {attackers}lients without training data (free riders) and'
      ' without test data are excluded.'
    )
  ]
  if any(run.settings.get('split') == 'server' for run in runs):
    blocks.append(
      page.Text(
        'With split=server all clients are scored on the server’s test set: if'
        ' a method gives all clients the same model, their scores are equal.',
        'note',
      )
    )
  if not table.groups:
    return [*blocks, _NO_EVALUATION]
  blocks.append(table)
  if _DROPPED not in table.groups:
    blocks.append(page.Text('No client and no update was dropped.'))
  return blocks


def _row(runs, summary, measure, labels) -> tables.Row:
  cells = tables.make_cells(summary, measure, labels)
  for name in ('accuracy', 'f1'):
    for end in ('min', 'max'):
      if measure.column == f'client_{name}_{end}':
        cells = [
          tables.Cell(cell.text, _who(run, name, end), cell.best)
          for cell, run in zip(cells, runs, strict=True)
        ]
  return tables.Row(measure.heading, cells, measure.note)


def _who(run, name, end) -> str:
  """Names the clients that have the lowest, or the highest, score."""
  scores = run.scores(name)
  if not scores.size:
    return ''
  return text.describe_clients(run, name, getattr(scores, end)())


def _dropped_rows(runs) -> list[tables.Row]:
  """The numbers of dropped clients and updates, if positive in some run."""
  names = dict.fromkeys(name for run in runs for name in run.dropped)
  return [
    tables.Row(
      round_metrics.DROPPED.get(name, name),
      tables.texts(
        *(
          numbers.format_number(run.dropped.get(name, float('nan')), '.0f')
          for run in runs
        )
      ),
      'Summed over all rounds.',
    )
    for name in names
    if any(run.dropped.get(name) for run in runs)
  ]


def _clients(run) -> page.Details:
  table = make_client_table(run)
  return page.Details(
    f'{run.label}: all {len(table.rows)} clients, the lowest accuracy first',
    [table],
  )


def _settings(runs) -> list:
  blocks = []
  differing = make_settings_table(runs, only_differing=True)
  if differing.rows:
    blocks.append(differing)
  elif len(runs) > 1:
    blocks.append(page.Text('The runs have the same settings.'))
  everything = make_settings_table(runs, only_differing=False)
  blocks.append(page.Details('All settings', [everything]))
  for run in runs:
    does = 'repeats the run in a new directory'
    if not run.finished:
      does = 'resumes the run'
    blocks.append(page.Text(f'{run.label}: this command {does}.'))
    blocks.append(page.Code(make_command(run)))
  return blocks
