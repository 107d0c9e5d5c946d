"""The tables of a comparison, for its web page and its Markdown page.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import math
import shlex

from matplotlib import ticker

from tff_fair.launchers import command_names
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import estimates
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.pages import report_tables
from tff_fair.launchers.plots import compare_plots

MISSING = report_tables.MISSING
SCORES = tuple(m for m in measures.MEASURES if m.higher is not None)
"""The measures of which one direction is better."""
COSTS = tuple(m for m in measures.MEASURES if m.higher is None)
"""The others."""
MARKS = {1: '▲', -1: '▼', 0: ''}
"""Separably better than the baseline, separably worse, and neither."""

_ARROWS = {True: '↑', False: '↓', None: ''}
_BYTES = ticker.EngFormatter(unit='B', places=2)


@dataclasses.dataclass(frozen=True)
class Cell:
  """A number of a method.

  Attributes:
    text: The number, or a dash.
    detail: Its interval, and of how many seeds it is if not of all; may be
      empty.
    best: Whether no other method's looks better, and some look worse.
    verdict: 1 if it is separably better than the baseline's, -1 if worse,
      otherwise 0.
  """

  text: str
  detail: str = ''
  best: bool = False
  verdict: int = 0


@dataclasses.dataclass(frozen=True)
class Row:
  """A method: its name in papers, whether it is the baseline, its cells."""

  title: str
  is_baseline: bool
  cells: Sequence[Cell]


@dataclasses.dataclass(frozen=True)
class Tuned:
  """What a method was tuned to, as texts.

  Attributes:
    title: The method.
    learning_rate: The chosen one.
    parameters: The method's own ones, in one line.
    holdout: The accuracy on the holdout by which they were chosen.
    trials: How many there were.
    diverged: How many of them diverged.
  """

  title: str
  learning_rate: str
  parameters: str
  holdout: str
  trials: str
  diverged: str


def heading(measure: measures.Measure) -> str:
  """The heading of a measure's column, with the direction that is better.

  Args:
    measure: The measure.
  """
  # The arrow stays with the last word.
  return f'{measure.title}\N{NO-BREAK SPACE}{_ARROWS[measure.higher]}'.rstrip()


def rows(
  analysis: analysis_lib.Analysis,
  columns: Sequence[measures.Measure],
  methods: Iterable[str] | None = None,
) -> list[Row]:
  """The rows of a table of measures.

  Args:
    analysis: The comparison.
    columns: The measures of its columns.
    methods: The methods of its rows; by default all with a result.

  Returns:
    A row per method.
  """
  shown = analysis.methods if methods is None else methods
  best = {m.column: _best_looking(analysis, m) for m in columns}
  return [
    Row(
      compare_plots.title(method),
      method == analysis.baseline,
      [_cell(analysis, method, m, best[m.column]) for m in columns],
    )
    for method in shown
  ]


def tuned(analysis: analysis_lib.Analysis) -> list[Tuned]:
  """What each method was tuned to.

  Args:
    analysis: The comparison.

  Returns:
    A row per method: those with a result first, best mean accuracy first.
  """
  last = [m for m in analysis.tuned if m not in analysis.methods]
  return [_tuned(m, analysis.tuned[m]) for m in (*analysis.methods, *last)]


def settings(analysis: analysis_lib.Analysis) -> list[tuple[str, str]]:
  """What all methods have in common.

  Args:
    analysis: The comparison.

  Returns:
    Names and values, to be shown in this order.
  """
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
    ('Baseline', compare_plots.title(analysis.baseline)),
    ('Target', facts['target_rule']),
    ('Version of tff-fair', facts['version']),
  ]


def explanations(analysis: analysis_lib.Analysis) -> list[str]:
  """How the runs became the numbers of the tables.

  Args:
    analysis: The comparison.

  Returns:
    Sentences.
  """
  baseline, seeds = (
    compare_plots.title(analysis.baseline),
    analysis.facts['seeds'],
  )
  if analysis.facts['tune'] > 1:
    found = [
      f'The trials are runs with seed {seeds[0]}. The trial with the highest'
      ' mean accuracy of the clients on their holdout data gave the values'
      ' for all seeds; test data took no part in the choice.'
    ]
  else:
    found = ['Nothing was tuned: each method has its own defaults.']
  if len(seeds) > 1:
    found.append(
      'An interval is the 95 % percentile bootstrap interval of the mean over'
      f' {len(seeds)} seeds. “Separably” better or worse means that the'
      f' interval of the paired differences to {baseline}, seed by seed, lies'
      ' on one side of 0. Many methods are compared, so some of these marks'
      ' may be due to chance.'
    )
  else:
    found.append(
      'There is one seed: the numbers have no intervals, and differences may'
      ' be due to chance.'
    )
  if analysis.ranking:
    found.append(
      f'Ranks are of {len(analysis.ranking.methods)} methods in'
      f' {analysis.ranking.num_blocks} blocks, a client with a seed each, by'
      ' accuracy. Friedman’s test that all methods are alike:'
      f' p {_p_value(analysis.ranking.p_value)}. Methods whose average ranks'
      f' differ by less than {analysis.ranking.critical_difference:.2f} are'
      ' not separable by Nemenyi’s test at the 5 % level (Demšar, 2006).'
    )
  return found


def left_out(analysis: analysis_lib.Analysis) -> list[str]:
  """What the comparison lacks.

  Args:
    analysis: The comparison.

  Returns:
    Sentences; none if nothing was left out.
  """
  methods = [
    reason
    if reason.startswith(compare_plots.title(name))
    else f'{compare_plots.title(name)}: {reason}'
    for name, reason in analysis.incomplete.items()
  ]
  return [*methods, *analysis.facts['notes']]


def command(analysis: analysis_lib.Analysis) -> str:
  """The shell command that repeats the comparison in a new directory.

  Args:
    analysis: The comparison.
  """
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
  return shlex.join(
    [
      *command_names.command('compare').split(),
      *(f'--{name}={value}' for name, value in flags.items()),
    ]
  )


def _best_looking(analysis, measure) -> set[str]:
  """The methods whose number looks as good as the best one."""
  order = analysis.order(measure.column)
  looks = {
    m: _look(measure, analysis.estimates[m, measure.column]) for m in order
  }
  found = {m for m in order if looks[m] == looks[order[0]]}
  return found if len(found) < len(order) else set()


def _look(measure, estimate) -> tuple[int, str]:
  return estimate.reached, _shown(measure, estimate.mean)


def _cell(analysis, method, measure, best) -> Cell:
  estimate = analysis.estimates[method, measure.column]
  if not estimate.reached:
    return Cell(MISSING)
  return Cell(
    _shown(measure, estimate.mean),
    _detail(measure, estimate),
    method in best,
    analysis.verdict(method, measure.column),
  )


def _detail(measure, estimate: estimates.Estimate) -> str:
  parts, seeds = [], len(estimate.values)
  if not math.isnan(estimate.low):
    low, high = (_shown(measure, v) for v in (estimate.low, estimate.high))
    # Of costs that are always the same there is nothing to say.
    if low != high or measure.higher is not None:
      parts.append(f'{low} to {high}')
  if estimate.reached < seeds:
    parts.append(f'{estimate.reached} of {seeds} seeds')
  return '; '.join(parts)


def _shown(measure, value: float) -> str:
  if measure.unit == 'bytes':
    return _BYTES(value)
  return f'{value:.{measure.digits}f}'


def _tuned(method, values: analysis_lib.Tuned) -> Tuned:
  return Tuned(
    compare_plots.title(method),
    _number(values.learning_rate, 'g'),
    values.parameters or MISSING,
    _number(values.holdout_accuracy, '.3f'),
    str(values.num_trials),
    str(values.num_diverged),
  )


def _number(value: float, form: str) -> str:
  return MISSING if math.isnan(value) else format(value, form)


def _p_value(value: float) -> str:
  return '< 0.0001' if value < 1e-4 else f'= {value:.2g}'
