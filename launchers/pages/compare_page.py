"""The web page about a comparison of methods, and its table for the docs.

Nothing here imports TensorFlow.
"""

from collections.abc import Container, Mapping, Sequence
import pathlib
import shlex
from typing import Any

import pandas as pd

from tff_fair import fairness
from tff_fair.launchers import command_names
from tff_fair.launchers import measures
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.pages import group_blocks
from tff_fair.launchers.pages import page
from tff_fair.launchers.pages import tables
from tff_fair.launchers.pages import text
from tff_fair.launchers.plots import compare_plots
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.show import numbers
from tff_fair.launchers.show import words

MARK = '<!doctype html>\n<!-- Written by launchers.compare. -->\n'
"""The start of a page."""

_GROUPS = tuple(m for m in measures.OF_METHODS if m.group == group_blocks.TITLE)
_SCORES = tuple(
  m for m in measures.OF_METHODS if m.group not in ('Cost', group_blocks.TITLE)
)
_COSTS = tuple(m for m in measures.OF_METHODS if m.group == 'Cost')
# What a person asks first; the web page has all measures.
_MAIN = (
  'client_accuracy_mean',
  client_scores.KEPT_MEAN,
  'equal_bytes_mean',
  'client_accuracy_worst10',
  client_scores.BY_CHANCE,
  'cf',
  'better_off',
  'gain_mean',
  'harmed',
)
_COST = 'seconds_ratio'
# The measures whose ranking is looked at twice.
_RANKED_BY = ('client_accuracy_mean', 'client_accuracy_worst10', 'cf')
_CF = (
  'The CF coefficient is high where those clients get the best models that'
  ' would also do best alone: 100 × the correlation of the clients’ accuracies'
  ' with those of Standalone (CFFL, equation 4). It ignores by how much they'
  ' gain: the mean gain and the number of harmed clients stand beside it. Where'
  ' all clients get one model, it tells of their data, not of the method.'
)
_PICTURES = {
  'pareto': 'Mean accuracy against the worst clients and the CF coefficient',
  'curves': 'Mean accuracy of the clients over the rounds',
}
_TUNED = (
  'Method',
  'Learning rate',
  'Accuracy on holdout',
  'Trials',
  'Diverged',
  'Own parameters',
)
# Of trials in two stages.
_STAGES = ('Trials in full', 'Beyond the range', 'Rates tried')


def write(
  frame: pd.DataFrame, facts: Mapping[str, Any], output_dir: pathlib.Path
) -> list[str]:
  """Writes a comparison; returns its answer."""
  csv_file, json_file = output_dir / 'compare.csv', output_dir / 'compare.json'
  reading.write(frame, facts, csv_file, json_file)
  # From the files, so that pages of committed results are the same.
  analysis = analysis_lib.analyse(*reading.read(csv_file, json_file))
  run_files.write_atomically(output_dir / 'compare.html', render(analysis))
  plots = output_dir / 'plots'
  plots.mkdir(exist_ok=True)
  for name, figure in compare_plots.draw(analysis).items():
    plot_parts.save(figure, plots / f'{name}.png')
  return text.describe_methods(analysis)


def render(analysis: analysis_lib.Analysis) -> str:
  """Renders the web page, the same for the same comparison."""
  number = words.format_count(len(analysis.methods), 'method')
  left_out = [*text.list_left_out(analysis), *analysis.facts['notes']]
  pictures = {
    name: page.Picture(figure, _PICTURES[name])
    for name, figure in compare_plots.draw(analysis).items()
  }
  settings = [
    tables.Row(name, tables.texts(value)) for name, value in _settings(analysis)
  ]
  baseline = analysis.title(analysis.baseline)
  return page.render(
    mark=MARK,
    title=f'{number} on {analysis.facts["data"]}',
    answer=text.describe_methods(analysis),
    picture=pictures.pop('pareto', None),
    source='compare.csv and compare.json',
    baseline=baseline,
    sections={
      'Pictures': [
        *pictures.values(),
        page.Text(_CF if pictures else 'No method has a result.'),
      ],
      'All measures': [
        page.Text(_legend(analysis)),
        *map(page.Text, _agreement(analysis)),
        *_tables(analysis, _SCORES),
      ],
      **_of_groups(analysis),
      'What each method was tuned to': [_tuned_table(analysis)],
      'Cost': [
        page.Text(
          'Bytes are of all clients together in one round. Seconds are those of'
          ' the least disturbed runs, compared on one kind of processor; there'
          f' are none (–) where {baseline} has no run on that of the method.'
        ),
        *_tables(analysis, _COSTS),
      ],
      'What was left out': [
        page.Items(left_out or ['Nothing: every method has all results.'])
      ],
      'How it was done': [
        *map(page.Text, _explain(analysis)),
        tables.Table(
          'Settings that all methods share',
          ['Setting', 'Value'],
          {'': settings},
          'flags',
        ),
        page.Text('This command repeats the comparison in a new directory:'),
        page.Code(_command(analysis)),
      ],
    },
  )


def render_headline(analysis: analysis_lib.Analysis) -> str:
  """Renders the Markdown table of few methods, without intervals.

  It has a table for each kind of methods: the baseline, Standalone, the papers'
  methods and the best ones, best mean accuracy first; and all whose clients
  take turns.
  """
  best = [
    method
    for kind in analysis.kinds
    for score in _SCORES
    if analysis_lib.is_merit(kind, score.column)
    for method in analysis.of(kind).leaders(score.column)[:1]
  ]
  references = (analysis.baseline, plan.ALONE)
  short = {*references, *methods_lib.PAPERS, *best, *analysis.in_turn}
  shown = [measures.MEASURES[column] for column in (*_MAIN, _COST)]
  found = _tables(analysis, shown, short)
  return '\n\n'.join(tables.to_markdown(t, with_details=False) for t in found)


def _of_groups(analysis) -> dict[str, list]:
  """The section on groups of people, if there are sensitive columns."""
  if not analysis.groups:
    return {}
  return {
    group_blocks.TITLE: [
      group_blocks.explain(analysis.facts.get('positive_class')),
      *_tables(analysis, _GROUPS),
      *group_blocks.of_methods(analysis),
    ]
  }


def _legend(analysis) -> str:
  if not analysis.has_intervals:
    return (
      'Of one seed: there are no intervals, and nothing can be told from'
      ' chance. ↑ higher is better, ↓ lower is better; the best of a column is'
      ' marked.'
    )
  better, worse = tables.MARKS[1], tables.MARKS[-1]
  return (
    'Means over the seeds at the end of the training with Student’s 95 %'
    ' intervals. ↑'
    ' higher is better, ↓ lower is better; the best of a column is marked.'
    f' {better} better than {analysis.title(analysis.baseline)} by a paired t'
    ' test over the seeds, corrected for the number of methods (Holm),'
    f' {worse} worse.'
  )


def _agreement(analysis) -> list[str]:
  """Whether another choice of seeds would rank the methods alike."""
  told = []
  for kind in analysis.kinds:
    if kind != methods_lib.IN_TURN:
      taus = {c: analysis.of(kind).agreement(c) for c in _RANKED_BY}
      told += [
        f'{measures.MEASURES[column].short} {tau:.2f} ({kind})'
        for column, tau in taus.items()
        if not pd.isna(tau)
      ]
  if not told:
    return []
  seeds = list(map(str, analysis.facts['seeds']))
  middle = -(-len(seeds) // 2)
  halves = [words.join_words(half) for half in (seeds[:middle], seeds[middle:])]
  return [
    f'Kendall’s τ between the ranking of the methods with seeds {halves[0]} and'
    f' that with {halves[1]}: {", ".join(told)}. 1 is the same order, 0 no'
    ' relation: a low one means that other seeds would rank otherwise.'
  ]


def _explain(analysis) -> list[str]:
  """How the runs became the numbers, in paragraphs."""
  title = analysis.title(analysis.baseline)
  return [
    *_explain_tuning(analysis),
    f'A method is called a leader with {text.FEWEST_SEEDS} seeds or more, if it'
    f' is separably better than {title}, and if neither its mean accuracy nor'
    f' {title}’s (nor Standalone’s, for the CF coefficient) still rises: by'
    ' more in the last fifth of the rounds than the standard error of that rise'
    ' over the seeds.',
    'A client with fewer than'
    f' {fairness.FEWEST_TEST_EXAMPLES} test examples enters averages, but'
    ' not what tells how clients differ; where there is one, the mean without'
    ' such clients stands beside the mean of all. “The same by chance” is what'
    ' the number before it would be, as expected, if all clients had one true'
    ' accuracy, the mean. A worst 10 % within'
    f' {analysis_lib.NEAR_CHANCE:g} of it is no sign that some clients are'
    ' treated worse.',
    'Methods with one model for all and methods with a model for each client'
    ' answer other questions, so they are ranked apart. Marks are corrected for'
    ' the number of both. The mean accuracy at equal bytes is read off the'
    f' learning curve where a method has sent as many bytes as {title} in all'
    ' its rounds; what clients keep between rounds is sent here, and counts.',
    'Where clients take turns, a round is as many updates, one after the other,'
    ' as there are clients. Such methods are not ranked and have no marks.'
    f' Their mean accuracy at {title}’s depth, after as many updates in a row,'
    ' and after as many client updates, is read off the learning curve; the'
    ' place is that among the ranked methods at the end of their rounds.',
  ]


def _explain_tuning(analysis) -> list[str]:
  """How values were chosen, also by older versions."""
  facts = analysis.facts
  if not facts['tune']:
    return ['Nothing was tuned: each method has its own defaults.']
  found = facts.get('tuning')
  if not found:
    return [
      f'The trials are runs with seed {facts["seeds"][0]}, which is scored,'
      ' too. The trial with the highest mean accuracy of the clients on their'
      ' holdout data gave the values for all seeds; test data took no part in'
      ' the choice.'
    ]
  seeds = list(map(str, found['seeds']))
  told = [
    'Values are chosen by the mean accuracy of the clients on their holdout'
    f' data, with seeds that are not scored ({words.join_words(seeds)}); test'
    ' data took no part in the choice.'
  ]
  full = words.format_count(facts['rounds'], 'round')
  if found['screened']:
    short = words.format_count(found['screening_rounds'], 'round')
    told.append(
      f'Each method has {words.format_count(found["screened"], "trial")} of'
      f' {short} with seed {seeds[0]}. The best {found["finalists"]} have'
      f' {full} with each of {len(seeds)} seeds; the others were dropped. While'
      ' the best trial has the lowest or the highest rate so far, one of the'
      f' last {found["most_widened"]} goes beyond it.'
    )
  else:
    told.append(
      f'Each method has {words.format_count(found["finalists"], "trial")} of'
      f' {full} with each of these seeds.'
    )
  told[-1] += (
    ' Of those that the best one leads by no more than one standard error (of'
    ' the paired differences), the one whose rate is nearest to the middle of'
    ' the range was taken. That is up to'
    f' {found["client_updates"]} client updates, the same for all methods; a'
    ' trial that diverges has fewer.'
  )
  tuned = analysis.tuned.values()
  edge = sum(row.is_at_edge for row in tuned)
  wider = sum(row.num_widened > 0 for row in tuned)
  return [
    ' '.join(told),
    'Methods whose range was widened:'
    f' {wider} of {len(tuned)}. Methods whose chosen rate is the lowest or the'
    f' highest tried, so that a better one may be beyond it: {edge}.',
  ]


def _tables(
  analysis: analysis_lib.Analysis,
  shown: Sequence[measures.Measure],
  wanted: Container[str] | None = None,
) -> list[tables.Table]:
  """A table for each kind of methods, of all of them or of wanted ones."""
  shown = [m for m in shown if analysis.knows(m.column)]
  found = []
  for kind, of_kind in analysis.kinds.items():
    methods = [m for m in of_kind if wanted is None or m in wanted]
    told = [
      m if analysis_lib.is_merit(kind, m.column) else m._replace(direction=0)
      for m in shown
    ]
    header = [kind.capitalize(), *(measure.heading for measure in told)]
    if kind == methods_lib.IN_TURN:
      rows = _rows(analysis, told, methods)
      if shown[0] is measures.OF_METHODS[0]:
        header += _add_places(analysis, methods, rows)
    else:
      rows = _rows(analysis.of(kind), told, methods)
    if rows:
      found.append(_table(header, rows))
  return found


def _add_places(analysis, methods, rows) -> list[str]:
  """Adds where methods in turn are after fewer rounds; returns headings."""
  title = analysis.title(analysis.baseline)
  fewer = {f'at {title}’s depth': analysis.equal_depth}
  if analysis.equal_updates < analysis.facts['rounds']:
    fewer['at equal client updates'] = analysis.equal_updates
  for rounds in fewer.values():
    for method, row in zip(methods, rows, strict=True):
      row.cells.append(tables.Cell(_tell_place(analysis, method, rounds)))
  return [
    f'Mean accuracy {where} ({rounds:.3g} rounds)'
    for where, rounds in fewer.items()
  ]


def _table(header, rows) -> tables.Table:
  return tables.Table(header[0], header, {'': rows}, 'tall methods')


def _rows(analysis, shown, methods) -> list[tables.Row]:
  columns = [tables.make_cells(analysis, m, methods) for m in shown]
  return [
    tables.Row(
      analysis.title(method),
      [column[i] for column in columns],
      mark='baseline' if method == analysis.baseline else '',
    )
    for i, method in enumerate(methods)
  ]


def _tell_place(analysis, method, rounds) -> str:
  found = analysis.place_after(method, rounds)
  if found is None:
    return numbers.MISSING
  return f'{found.accuracy:.3f}, place {found.place} of {found.count}'


def _tuned_table(analysis) -> tables.Table:
  order = dict.fromkeys((*analysis.ranked, *analysis.in_turn, *analysis.tuned))
  has_stages = bool(analysis.facts.get('tuning'))
  rows = []
  for method in order:
    tuned = analysis.tuned[method]
    cells = [
      numbers.format_number(tuned.learning_rate, 'g'),
      numbers.format_number(tuned.holdout_accuracy, '.3f'),
      str(tuned.num_trials),
      str(tuned.num_diverged),
      tuned.parameters or numbers.MISSING,
    ]
    if has_stages:
      ends = [
        numbers.format_number(rate, 'g')
        for rate in (tuned.lowest, tuned.highest)
      ]
      edge = ' (chosen at the edge)' if tuned.is_at_edge else ''
      cells += [
        str(tuned.num_finalists),
        str(tuned.num_widened),
        f'{" to ".join(ends)}{edge}',
      ]
    rows.append(tables.Row(analysis.title(method), tables.texts(*cells)))
  return _table((*_TUNED, *(_STAGES if has_stages else ())), rows)


def _settings(analysis) -> list[tuple[str, str]]:
  """Lists the settings that all methods have in common."""
  facts = analysis.facts
  return [
    ('Data', facts['data']),
    ('Task', facts['task']),
    *((f'--{name}', str(value)) for name, value in facts['options'].items()),
    ('Clients', str(facts['num_clients'])),
    ('Clients a round', str(facts['cohort_size'])),
    ('Rounds', str(facts['rounds'])),
    ('Seeds', ', '.join(map(str, facts['seeds']))),
    ('Trials of each method', str(facts['tune'])),
    ('Baseline', analysis.title(analysis.baseline)),
    ('Target', facts['target_rule']),
    ('Version of tff-fair', facts['version']),
  ]


def _command(analysis) -> str:
  facts = analysis.facts
  flags = {
    'task': facts['task'],
    **facts['options'],
    'methods': ','.join(sorted(analysis.tuned)),
    'rounds': facts['rounds'],
    'seeds': len(facts['seeds']),
    'tune': facts['tune'],
    'output_dir': 'again',
  }
  arguments = [f'--{name}={value}' for name, value in flags.items()]
  return shlex.join([*command_names.command('compare').split(), *arguments])
