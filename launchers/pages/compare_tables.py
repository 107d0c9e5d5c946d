"""The tables of a comparison, for its web page and its Markdown page.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import math
import shlex

from matplotlib import ticker

from tff_fair.launchers import command_names
from tff_fair.launchers import statistics
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.pages import report_tables
from tff_fair.launchers.plots import compare_plots

MISSING = report_tables.MISSING
SCORES = tuple(m for m in measures.MEASURES if not m.is_cost)
"""The measures of how well the clients are served."""
COSTS = tuple(m for m in measures.MEASURES if m.is_cost)
"""The others."""
CHANCE = measures.BY_COLUMN[client_scores.BY_CHANCE]
"""What the worst clients would have by chance."""
IN_TURN = 'Clients take turns'
"""The heading of the methods that are not ranked."""
MARKS = {1: '▲', -1: '▼', 0: ''}
"""Separably better than the baseline, separably worse, and neither."""
HOW_SEPARABLE = (
  'by a paired t test over the seeds, corrected for the number of methods'
  ' (Holm)'
)
"""What a mark means."""

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
  """A method.

  Attributes:
    title: Its name in papers.
    is_baseline: Whether it is the baseline.
    cells: Its numbers.
    detail: Of a method in turn, where it is at the baseline's depth.
  """

  title: str
  is_baseline: bool
  cells: Sequence[Cell]
  detail: str = ''


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
    methods: The methods of its rows; by default all that are ranked.

  Returns:
    A row per method.
  """
  shown = analysis.ranked if methods is None else methods
  best = {m.column: _best_looking(analysis, m) for m in columns}
  return [
    Row(
      compare_plots.title(method),
      method == analysis.baseline,
      [_cell(analysis, method, m, best[m.column]) for m in columns],
      _depth(analysis, method),
    )
    for method in shown
  ]


def shown(
  analysis: analysis_lib.Analysis, columns: Iterable[measures.Measure]
) -> list[measures.Measure]:
  """The measures that a table has.

  Args:
    analysis: The comparison.
    columns: Measures.

  Returns:
    Those of them, without what chance gives where that is not known.
  """
  chance = client_scores.BY_CHANCE
  known = any(analysis.estimates[m, chance].reached for m in analysis.methods)
  return [m for m in columns if known or m.column != chance]


def at_depth(analysis: analysis_lib.Analysis, method: str) -> str:
  """Where a method in turn is after as many updates as the baseline.

  Args:
    analysis: The comparison.
    method: One of its methods in turn.

  Returns:
    The mean accuracy and the place, as a text; a dash if they are not known.
  """
  depth = analysis.at_baseline_depth(method)
  if depth is None:
    return MISSING
  return f'{depth.accuracy:.3f}, place {depth.place} of {depth.count}'


def depth_heading(analysis: analysis_lib.Analysis) -> str:
  """The heading of the column of `at_depth`.

  Args:
    analysis: The comparison.
  """
  rounds = analysis.facts['rounds'] / analysis.facts['num_clients']
  baseline = compare_plots.title(analysis.baseline)
  return f'Mean accuracy at {baseline}’s depth ({rounds:.3g} rounds)'


def tuned(analysis: analysis_lib.Analysis) -> list[Tuned]:
  """What each method was tuned to.

  Args:
    analysis: The comparison.

  Returns:
    A row per method: those with a result first, best mean accuracy first, then
    those in turn.
  """
  order = dict.fromkeys((*analysis.ranked, *analysis.in_turn, *analysis.tuned))
  return [_tuned(m, analysis.tuned[m]) for m in order]


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


def _depth(analysis, method) -> str:
  if method not in analysis.in_turn:
    return ''
  return f'{depth_heading(analysis)}: {at_depth(analysis, method)}'


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


def _detail(measure, estimate: statistics.Estimate) -> str:
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
