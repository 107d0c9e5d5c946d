"""A comparison of methods as Markdown, for documents.

Nothing here imports TensorFlow.
"""

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import answer
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.pages import compare_explanations
from tff_fair.launchers.pages import compare_tables
from tff_fair.launchers.plots import compare_plots
from tff_fair.launchers.show import markdown

MARK = '<!-- Written by launchers.compare. -->\n'
"""The start of a page, so that no other file is overwritten."""

# What a person asks first; the web page has all measures.
_MAIN = (
  'client_accuracy_mean',
  'client_accuracy_worst10',
  'worst10_by_chance',
  'cf',
  'better_off',
)
_COLUMNS = (*_MAIN, 'client_accuracy_min', 'client_f1_mean', 'rounds_to_target')
_COST = 'seconds_ratio'


def render(analysis: analysis_lib.Analysis) -> str:
  """Renders the page, the same for the same comparison.

  Args:
    analysis: The comparison.

  Returns:
    The text of a Markdown file.
  """
  data = markdown.escape(analysis.facts['data'])
  number = len(analysis.methods)
  settings = [
    f'{name}: {value}' for name, value in compare_tables.settings(analysis)
  ]
  left_out = compare_tables.left_out(analysis)
  parts = [
    f'# {number} method{"" if number == 1 else "s"} on {data}',
    answer_list(analysis),
    '## Measures',
    _legend(analysis),
    _measures_tables(analysis, analysis.ranked, (*_COLUMNS, _COST), True),
    '## What each method was tuned to',
    _tuned_table(analysis),
    '## What was left out',
    markdown.bullets(left_out) if left_out else 'Nothing.',
    '## How it was done',
    '\n\n'.join(map(markdown.escape, compare_explanations.sentences(analysis))),
    markdown.bullets(settings),
  ]
  return MARK + '\n' + '\n\n'.join(parts) + '\n'


def headline_table(analysis: analysis_lib.Analysis) -> str:
  """A table of few methods: the baseline, the papers' ones, the best ones.

  Args:
    analysis: The comparison.

  Returns:
    A Markdown table without intervals, best mean accuracy first; below it one
    of the methods whose clients take turns.
  """
  best = [
    method
    for measure in compare_tables.SCORES
    for method in analysis.leaders(measure.column)[:1]
  ]
  short = {analysis.baseline, *methods_lib.PAPERS, *best}
  methods = [method for method in analysis.ranked if method in short]
  return _measures_tables(analysis, methods, (*_MAIN, _COST), False)


def answer_list(analysis: analysis_lib.Analysis) -> str:
  """The answer in words.

  Args:
    analysis: The comparison.

  Returns:
    A Markdown list of sentences.
  """
  return markdown.bullets(answer.sentences(analysis))


def _legend(analysis) -> str:
  better, worse = compare_tables.MARKS[1], compare_tables.MARKS[-1]
  baseline = markdown.escape(compare_plots.title(analysis.baseline))
  if len(analysis.facts['seeds']) == 1:
    return 'Of one seed. Bold: the best of a column.'
  return (
    'Means over the seeds with 95 % intervals. Bold: the best of a column.'
    f' {better} better than {baseline} {compare_tables.HOW_SEPARABLE}, {worse}'
    ' worse.'
  )


def _measures_tables(analysis, methods, columns, with_intervals) -> str:
  """The table of ranked methods, and that of methods in turn."""
  shown = compare_tables.shown(
    analysis, [measures.BY_COLUMN[column] for column in columns]
  )
  headings = [*map(compare_tables.heading, shown)]
  found = _rows(analysis, shown, methods, with_intervals)
  tables = [markdown.table(['Method', *headings], found)]
  if analysis.in_turn:
    depth = compare_tables.depth_heading(analysis)
    found = _rows(analysis, shown, analysis.in_turn, with_intervals)
    for row, method in zip(found, analysis.in_turn, strict=True):
      row.append(compare_tables.at_depth(analysis, method))
    tables.append(
      markdown.table([compare_tables.IN_TURN, *headings, depth], found)
    )
  return '\n\n'.join(tables)


def _rows(analysis, shown, methods, with_intervals) -> list[list[str]]:
  return [
    [
      markdown.bold(markdown.escape(row.title), row.is_baseline),
      *(_cell(cell, with_intervals) for cell in row.cells),
    ]
    for row in compare_tables.rows(analysis, shown, methods)
  ]


def _cell(cell: compare_tables.Cell, with_intervals) -> str:
  mark = compare_tables.MARKS[cell.verdict]
  text = f'{markdown.bold(cell.text, cell.best)} {mark}'
  if with_intervals and cell.detail:
    text = f'{text.strip()} ({cell.detail})'
  return text.strip()


def _tuned_table(analysis) -> str:
  header = (
    'Method',
    'Learning rate',
    'Accuracy on holdout',
    'Trials',
    'Diverged',
    'Own parameters',
  )
  rows = [
    [
      markdown.escape(row.title),
      row.learning_rate,
      row.holdout,
      row.trials,
      row.diverged,
      markdown.escape(row.parameters),
    ]
    for row in compare_tables.tuned(analysis)
  ]
  return markdown.table(header, rows)
