"""What a report and a comparison say in words: best, runner-up, caveats.

Sentences say what tables do not: who is first, whether the seeds can tell that
from the baseline, and what limits it. Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tff_fair import fairness
from tff_fair.launchers import differences
from tff_fair.launchers import frame
from tff_fair.launchers import measures
from tff_fair.launchers import summary as summary_lib
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.show import words

FEWEST_SEEDS = 5
"""With fewer, no method is called a leader."""

_MEAN, _WORST10 = 'client_accuracy_mean', 'client_accuracy_worst10'
_MIN, _JAIN = 'client_accuracy_min', 'client_accuracy_jain'
_BETTER_OFF = 'better_off'
# The measures that a practitioner chooses a method by.
_CHOSEN_BY = (_MEAN, _WORST10, 'cf')
# Standalone's accuracies are what these compare with.
_AGAINST_ALONE = ('cf', _BETTER_OFF)
# More names than these are counted; characters of a client's name.
_MAX_METHODS, _MAX_CLIENTS, _NAME_WIDTH = 4, 3, 30


class Lead(NamedTuple):
  """Which method is first in a measure, and whether it may be called a leader.

  Attributes:
    column: The measure's.
    leaders: The methods with the best mean; none if it is not defined.
    runner_up: The best one behind them, if there is one.
    few_seeds: Whether there are fewer than `FEWEST_SEEDS`.
    rising: Those methods that the measure compares whose mean accuracy still
      gains more than `analysis.LARGEST_GAIN` in the last quarter of the rounds,
      or may do so.
    separable: Whether the first one is separably better than the baseline.
  """

  column: str
  leaders: tuple[str, ...]
  runner_up: str | None
  few_seeds: bool
  rising: tuple[str, ...]
  separable: bool

  @property
  def is_settled(self) -> bool:
    """Whether one method leads, and nothing speaks against it."""
    obstacles = self.few_seeds or self.rising or not self.separable
    return len(self.leaders) == 1 and not obstacles


def find_lead(analysis: analysis_lib.Analysis, column: str) -> Lead:
  """Finds the first method in a measure."""
  leaders = analysis.leaders(column)
  compared = [analysis.baseline, *leaders]
  if column in _AGAINST_ALONE:
    compared.append(plan.ALONE)
  rising = [
    m
    for m in dict.fromkeys(compared)
    if m in analysis.methods
    # Unknown is no reason to call it a leader.
    and not analysis.gain(m) <= analysis_lib.LARGEST_GAIN
  ]
  return Lead(
    column,
    leaders,
    analysis.runner_up(column),
    len(analysis.facts['seeds']) < FEWEST_SEEDS,
    tuple(rising),
    bool(leaders) and analysis.verdict(leaders[0], column) > 0,
  )


def describe_methods(analysis: analysis_lib.Analysis) -> list[str]:
  """Says what a comparison has found."""
  facts = analysis.facts
  sizes = (facts['num_clients'], facts['rounds'], len(facts['seeds']))
  nouns = ('client', 'round', 'seed')
  counts = [*map(words.format_count, sizes, nouns)]
  setting = f'On {facts["data"]} with {words.join_words(counts)}'
  if len(analysis.ranked) < 2:
    which = [f'only {analysis.title(m)}' for m in analysis.ranked]
    return [
      f'{setting}, {"".join(which) or "no method"} has a result for every seed:'
      ' there is nothing to compare.',
      *_left_out(analysis),
    ]
  leads = [find_lead(analysis, column) for column in _CHOSEN_BY]
  return [
    f'{setting}:',
    *(_describe_lead(analysis, lead) for lead in leads),
    *_why_none(analysis, leads),
    *_baseline_lacks(analysis),
    *_by_chance(analysis),
    *_small_tests(analysis),
    *_in_turn(analysis),
    _worth_of_marks(analysis),
    *_left_out(analysis),
  ]


def describe_runs(
  runs: Sequence[frame.Run],
  found: differences.Comparison,
  summary: summary_lib.Summary,
) -> list[str]:
  """Says what the last evaluations of runs have found."""
  if found.repeats and all(run.scores('accuracy').size for run in runs):
    spans = []
    for column in (_MEAN, _MIN, _JAIN):
      shown = [summary.show(run.label, column) for run in runs]
      spans.append(f'{measures.MEASURES[column].short} {_span(shown)}')
    return [
      f'{_place(runs[0])}, {_progress(runs[0])}, in {len(runs)} runs with other'
      f' seeds: {", ".join(spans)}.'
    ]
  sizes = [run.scores('accuracy').size for run in runs]
  if not summary.ranked or len(runs) == 1 or not all(sizes):
    each = [f'{_place(run)}, {_describe_run(run, summary)}' for run in runs]
    chance = ['One run says nothing about chance.'] if len(runs) == 1 else []
    return [*each, *chance]
  by_label = {run.label: run for run in runs}
  tenth = [_WORST10] if fairness.worst_count(sizes[0]) > 1 else []
  return [
    f'{_place(runs[0])}, {_progress(runs[0])}:',
    *(
      _describe_first(
        summary, c, lambda name, c=c: _show(by_label[name], summary, c), 'run'
      )
      for c in (_MEAN, _MIN, *tenth, _JAIN)
    ),
    'One run of each says nothing about chance.',
  ]


def describe_clients(run: frame.Run, name: str, score: float) -> str:
  """Names the honest clients that have a score.

  Args:
    run: Their run.
    name: The score's name, such as 'accuracy'.
    score: Its value.

  Returns:
    The id of each client, with its name if it has one; the number of clients
    if they are more than two; empty if all clients, or none, have this score.
  """
  known = run.honest[name].dropna()
  ids = known.index[known == score]
  if ids.empty or 1 < len(ids) == len(known):
    return ''
  if len(ids) > 2:
    return f'{len(ids)} clients'
  described = [
    f'{i} {client_names.one_line(run.names.get(i, ""), _NAME_WIDTH)}'.rstrip()
    for i in ids
  ]
  return f'client{"s" * (len(ids) > 1)}\u00a0{" and ".join(described)}'


def _describe_first(
  summary, column, show, noun, verb='is highest', worth=''
) -> str:
  """Who is first, what that is worth, and who is next."""
  leaders, second = summary.leaders(column), summary.runner_up(column)
  short = measures.MEASURES[column].short
  if not leaders:
    return f'No {noun} has a defined {short}.'
  if len(leaders) == 1:
    told = f'{summary.title(leaders[0])} {verb} in {short} with'
    told += f' {show(leaders[0])}{worth}'
  else:
    who = f'All {len(leaders)} {noun}s'
    if len(leaders) < len(summary.ranked):
      who = _names(summary, leaders)
    told = f'{who} tie in {short} at {summary.show(leaders[0], column)}{worth}'
  # What the first one is worth tells of the baseline.
  if second is None or second == getattr(summary, 'baseline', None):
    return f'{told}.'
  return f'{told}; next is {summary.title(second)} with {show(second)}.'


def _describe_lead(analysis, lead) -> str:
  column = lead.column
  worth = _against(analysis, lead)
  if column == 'cf' and len(lead.leaders) == 1:
    worth += _shares(analysis, lead.leaders[0])
  verb = 'leads' if lead.is_settled else 'is highest'
  return _describe_first(
    analysis, column, lambda m: analysis.show(m, column), 'method', verb, worth
  )


def _against(analysis, lead) -> str:
  """The baseline's number, if it is not first itself."""
  baseline, column = analysis.baseline, lead.column
  if baseline in lead.leaders or baseline not in analysis.methods:
    return ''
  title = analysis.title(baseline)
  if not analysis.estimates[baseline, column].reached:
    return f'; {title} has no defined value'
  usual = f'{title}’s {analysis.show(baseline, column)}'
  ahead = [m for m in lead.leaders if analysis.verdict(m, column) > 0]
  if not analysis.has_intervals:
    return f', against {usual}'
  if not ahead:
    return f', not separable from {usual}'
  which = '' if len(ahead) == len(lead.leaders) else _names(analysis, ahead)
  return f', {which} separably above {usual}'.replace('  ', ' ')


def _shares(analysis, leader) -> str:
  """Without it a CF coefficient says little: it rewards being like alone."""
  if not analysis.estimates[leader, _BETTER_OFF].reached:
    return ''
  share = analysis.show(leader, _BETTER_OFF)
  told = f'; {share} of its clients are better off than alone'
  if leader == analysis.baseline or analysis.baseline not in analysis.methods:
    return told
  usual = analysis.show(analysis.baseline, _BETTER_OFF)
  return f'{told} ({analysis.title(analysis.baseline)}: {usual})'


def _why_none(analysis, leads) -> list[str]:
  """Why the first methods are not called leaders; not where methods tie."""
  single = [lead for lead in leads if len(lead.leaders) == 1]
  blocked = [lead for lead in single if not lead.is_settled]
  if not blocked:
    return []
  rising = dict.fromkeys(m for lead in blocked for m in lead.rising)
  known = [m for m in rising if not np.isnan(analysis.gain(m))]
  seeds = len(analysis.facts['seeds'])
  reasons = []
  if blocked[0].few_seeds:
    reasons.append(f'that takes {FEWEST_SEEDS} seeds, found {seeds}')
  if known:
    reasons.append(f'mean accuracy still rises with {_names(analysis, known)}')
  if len(known) < len(rising):
    reasons.append('some curves do not tell whether they still rise')
  own = [c.column for c in blocked if analysis.baseline in c.leaders]
  unclear = [c.column for c in blocked if not c.separable]
  unclear = [column for column in unclear if column not in own]
  if seeds > 1 and unclear:
    reasons.append(f'no separable lead in {_shorts(unclear)}')
  if seeds > 1 and own:
    title = analysis.title(analysis.baseline)
    reasons.append(f'{title} itself is first in {_shorts(own)}')
  where = ''
  if blocked != single:
    where = f' in {_shorts([lead.column for lead in blocked])}'
  return [f'No method is called a leader{where}: {"; ".join(reasons)}.']


def _baseline_lacks(analysis) -> list[str]:
  if analysis.baseline in analysis.methods:
    return []
  title = analysis.title(analysis.baseline)
  return [
    f'{title} lacks a result for some seed, so no method is compared with it.'
  ]


def _by_chance(analysis) -> list[str]:
  """What the worst clients of the baseline would have if all were alike."""
  baseline = analysis.baseline
  chance = client_scores.BY_CHANCE
  if (
    baseline not in analysis.methods
    or not analysis.estimates[baseline, chance].reached
  ):
    return []
  expected, found = (
    analysis.show(baseline, column) for column in (chance, _WORST10)
  )
  near = sum(map(analysis.near_chance, analysis.ranked))
  nothing = ''
  if analysis.near_chance(baseline):
    nothing = ', no sign of clients that are treated worse'
  return [
    'If all clients had one true accuracy,'
    f' {analysis.title(baseline)}’s worst 10 % would be {expected} by chance,'
    f' found {found}{nothing}. Within {analysis_lib.NEAR_CHANCE:g} of chance:'
    f' {near} of {words.format_count(len(analysis.ranked), "method")}.'
  ]


def _small_tests(analysis) -> list[str]:
  """Who counts in averages only."""
  small = client_scores.left_out(analysis.facts)
  if not small.any():
    return []
  counts = np.unique(small.sum(axis=1))
  clients = words.format_count(analysis.facts['num_clients'], 'client')
  who = f'{" to ".join(map(str, counts[[0, -1]][: len(counts)]))} of {clients}'
  names = analysis.facts['client_names']
  if names and counts[-1] <= _MAX_CLIENTS and (small == small[0]).all():
    ids = np.flatnonzero(small[0])
    lines = [client_names.one_line(names[i], _NAME_WIDTH) for i in ids]
    who = words.join_words(lines)
  best = max(analysis.ranked, key=analysis.kept_means.get)
  means = [
    f'{analysis.format(_MEAN, analysis.kept_means[m])} ({analysis.title(m)})'
    for m in dict.fromkeys((best, analysis.baseline))
    if m in analysis.methods
  ]
  return [
    f'Fewer than {client_scores.FEWEST_TEST_EXAMPLES} test examples, so in'
    f' averages only: {who}. Without them the highest mean is'
    f' {", against ".join(means)}.'
  ]


def _in_turn(analysis) -> list[str]:
  if not analysis.in_turn:
    return []
  facts = analysis.facts
  updates = words.format_count(facts['num_clients'], 'update')
  told, places = [], ''
  for method in analysis.in_turn:
    depth, title = analysis.at_baseline_depth(method), analysis.title(method)
    if depth:
      title += f' (place {depth.place} of {depth.count})'
      places = (
        f'; places are those after {facts["rounds"]} updates in a row, as many'
        f' as with {analysis.title(analysis.baseline)}'
      )
    told.append(title)
  return [
    f'Not ranked, since clients take turns and a round is {updates} in a row:'
    f' {"; ".join(told)}{places}.'
  ]


def _worth_of_marks(analysis) -> str:
  if not analysis.has_intervals:
    return (
      'With a single seed there is no interval; another seed could reverse any'
      ' ranking.'
    )
  return (
    'Separable: a paired t test over'
    f' {len(analysis.facts["seeds"])} seeds, p < {analysis_lib.LEVEL:g},'
    ' corrected for the number of methods (Holm).'
  )


def _left_out(analysis) -> list[str]:
  if not analysis.incomplete:
    return []
  return [f'Left out: {" ".join(list_left_out(analysis))}']


def list_left_out(analysis: analysis_lib.Analysis) -> list[str]:
  """Says why methods are left out, a sentence each."""
  return [
    reason
    if reason.startswith(analysis.title(name))
    else f'{analysis.title(name)}: {reason}'
    for name, reason in analysis.incomplete.items()
  ]


def _names(analysis, methods) -> str:
  titles = [analysis.title(method) for method in methods]
  if len(titles) > _MAX_METHODS:
    more = len(titles) - _MAX_METHODS + 1
    titles = [*titles[: _MAX_METHODS - 1], f'{more} more']
  return words.join_words(titles)


def _shorts(columns) -> str:
  return words.join_words([measures.MEASURES[c].short for c in columns])


def _describe_run(run, summary) -> str:
  if not run.scores('accuracy').size:
    why = 'no client has test data' if run.finished else 'no scores yet'
    return f'{_progress(run)}, {run.label}: {why}.'
  numbers = [
    f'{measures.MEASURES[c].short} {_show(run, summary, c)}'
    for c in (_MEAN, _MIN, _JAIN)
  ]
  return f'{_progress(run)}, {run.label}: {", ".join(numbers)}.'


def _show(run, summary, column) -> str:
  """A number, and of the worst client also who it is."""
  shown = summary.show(run.label, column)
  if column != _MIN:
    return shown
  who = describe_clients(run, 'accuracy', run.scores('accuracy').min())
  return f'{shown} ({who})' if who else shown


def _place(run) -> str:
  return f'On {run.data} with {words.format_count(len(run.honest), "client")}'


def _progress(run) -> str:
  """After which round the scores of a run were measured."""
  if not run.finished:
    after = run.evaluated or run.last_round
    return f'after round {after} of {run.settings["rounds"]} (unfinished)'
  early = ' (stopped early)' * run.stopped_early
  return f'after {words.format_count(run.last_round, "round")}{early}'


def _span(shown) -> str:
  """Numbers as they are shown, from the lowest to the highest."""
  low, high = min(shown, key=float), max(shown, key=float)
  return low if low == high else f'{low} to {high}'
