"""Sentences of a report and a comparison: best, runner-up, caveats.

Sentences say what tables do not: who is first, whether the seeds can tell that
from the baseline, and what limits it. Nothing here imports TensorFlow.
"""

from collections.abc import Sequence

import numpy as np

from tff_fair import fairness
from tff_fair.launchers import differences
from tff_fair.launchers import frame
from tff_fair.launchers import measures
from tff_fair.launchers import statistics
from tff_fair.launchers import summary as summary_lib
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.execution import options
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.show import words

FEWEST_SEEDS = 5
"""With fewer, no method is called a leader."""

_MEAN, _WORST10 = 'client_accuracy_mean', 'client_accuracy_worst10'
_FINE_TUNED, _FINE_TUNED_CF = 'fine_tuned_accuracy_mean', 'fine_tuned_cf'
_MIN, _JAIN = 'client_accuracy_min', 'client_accuracy_jain'
# What is told beside the highest CF coefficient.
_ALONE = {
  'better_off': '{} of its clients are better off than alone',
  'gain_mean': 'the mean gain is {}',
  'harmed': '{} clients are harmed',
}
# The measures that a practitioner chooses a method by. Who gets which model is
# no question where all have one.
_CHOSEN_BY = {
  methods_lib.ONE_MODEL: (_MEAN, _WORST10),
  methods_lib.OWN_MODELS: (_MEAN, _WORST10, 'cf'),
}
# More seeds than these nobody trains, and no guess is that exact.
_MOST_SEEDS = 50
_FAR_TOO_MANY = f'more than {_MOST_SEEDS} seeds'
# More names than these are counted; characters of a client's name.
_MAX_METHODS, _NAME_WIDTH = 4, 30


def find_rising(
  analysis: analysis_lib.Analysis, column: str
) -> tuple[str, ...]:
  """Finds what has not settled of the first methods and what they are told by.

  These are the baseline, and for the CF coefficient also Standalone. They have
  not converged, see `Analysis.is_flat`, or nobody knows.
  """
  compared = [analysis.baseline, *analysis.leaders(column)]
  if column == 'cf':
    compared.append(plan.ALONE)
  return tuple(
    m
    for m in dict.fromkeys(compared)
    if m in analysis.methods and not analysis.is_flat(m)
  )


def find_leader(analysis: analysis_lib.Analysis, column: str) -> str | None:
  """Finds the method that leads in a measure, if nothing speaks against it."""
  first = analysis.leaders(column)
  if len(first) != 1 or len(analysis.facts['seeds']) < FEWEST_SEEDS:
    return None
  is_separable = analysis.verdict(first[0], column) > 0
  settled = not find_rising(analysis, column)
  return first[0] if is_separable and settled else None


def describe_methods(analysis: analysis_lib.Analysis) -> list[str]:
  """Says what a comparison has found."""
  facts = analysis.facts
  sizes = (facts['num_clients'], facts['rounds'], len(facts['seeds']))
  counts = map(words.format_count, sizes, ('client', 'round', 'seed'))
  setting = f'On {facts["data"]} with {words.join_words([*counts])}'
  left_out = []
  if analysis.incomplete:
    left_out = [f'Left out: {" ".join(list_left_out(analysis))}']
  left_out = [*left_out, *_not_started(analysis)]
  if len(analysis.ranked) < 2:
    which = [f'only {analysis.title(m)}' for m in analysis.ranked]
    return [
      f'{setting}, {"".join(which) or "no method"} has a result for every seed:'
      ' there is nothing to compare.',
      *left_out,
    ]
  return [
    f'{setting}:',
    *(
      sentence
      for kind in _CHOSEN_BY
      if kind in analysis.kinds
      for sentence in _describe_kind(analysis.of(kind), kind)
    ),
    *_without_baseline(analysis),
    *_separable(analysis),
    *_equivalent(analysis),
    *_fine_tuned(analysis),
    *_not_converged(analysis),
    *_of_one_seed(analysis),
    *_by_chance(analysis),
    *_small_tests(analysis),
    *_of_groups(analysis),
    *_in_turn(analysis),
    _worth_of_marks(analysis),
    *left_out,
  ]


def describe_runs(
  runs: Sequence[frame.Run],
  found: differences.Comparison,
  summary: summary_lib.Summary,
) -> list[str]:
  """Says what the last evaluations of runs have found."""
  whose = ' of each' * (len(runs) > 1)
  chance = f'One run{whose} cannot tell a difference from chance.'
  place = f'{_place(runs[0])}, {_progress(runs[0])}'
  sizes = [run.scores('accuracy').size for run in runs]
  columns = (_MEAN, _MIN, _JAIN)
  if found.repeats and all(sizes):
    spans = []
    for column in columns:
      shown = [summary.show(run.label, column) for run in runs]
      ends = dict.fromkeys([min(shown, key=float), max(shown, key=float)])
      spans.append(f'{measures.MEASURES[column].short} {" to ".join(ends)}')
    return [
      f'{place}, in {len(runs)} runs with other seeds: {", ".join(spans)}.'
    ]
  if not summary.ranked or len(runs) == 1 or not all(sizes):
    each = [_describe_run(run, summary, columns) for run in runs]
    return [*each, *([chance] if len(runs) == 1 else [])]
  by_label = {run.label: run for run in runs}
  if fairness.worst_count(sizes[0]) > 1:
    columns = (_MEAN, _MIN, _WORST10, _JAIN)
  return [
    f'{place}:',
    *(
      _describe_first(
        summary, c, lambda name, c=c: _show(by_label[name], summary, c), 'run'
      )
      for c in columns
    ),
    chance,
  ]


def describe_clients(run: frame.Run, name: str, score: float) -> str:
  """Names the honest clients whose accuracy, or other score, has a value.

  They are counted if they are more than two. Nothing is said if all clients, or
  none, have this score.
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


def list_left_out(analysis: analysis_lib.Analysis) -> list[str]:
  """Says why methods are left out, a sentence each."""
  return [
    reason
    if reason.startswith(analysis.title(name))
    else f'{analysis.title(name)}: {reason}'
    for name, reason in analysis.incomplete.items()
  ]


def _not_started(analysis) -> list[str]:
  """Says how much a deadline has left."""
  left = analysis.facts.get('not_started')
  if not left:
    return []
  runs = words.format_count(left['runs'], 'run')
  return [
    f'Not started in time: {runs} of {_names(analysis, left["methods"])}. Only'
    ' methods with all seeds are ranked.'
  ]


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


def _describe_kind(analysis, kind) -> list[str]:
  """Who is first among the methods of a kind, and what that is worth."""
  return [
    *(
      f'{kind.capitalize()}: {_describe_first_method(analysis, column)}'
      for column in _CHOSEN_BY[kind]
    ),
    *_why_no_leader(analysis, kind),
    *_what_it_takes(analysis, kind),
  ]


def _describe_first_method(analysis, column) -> str:
  leaders = analysis.leaders(column)
  worth = _against_baseline(analysis, column, leaders)
  if column == 'cf' and len(leaders) == 1:
    worth += _against_alone(analysis, leaders[0])
  verb = 'leads' if find_leader(analysis, column) else 'is highest'
  return _describe_first(
    analysis, column, lambda m: analysis.show(m, column), 'method', verb, worth
  )


def _against_baseline(analysis, column, leaders) -> str:
  """The baseline's number, if it is not first itself."""
  baseline = analysis.baseline
  if baseline in leaders or baseline not in analysis.methods:
    return ''
  title = analysis.title(baseline)
  if not analysis.estimates[baseline, column].reached:
    return f'; {title} has no defined value'
  usual = f'{title}’s {analysis.show(baseline, column)}'
  if not analysis.has_intervals:
    return f', against {usual}'
  # Of those that tie, some may be separable.
  verdicts = [analysis.verdict(m, column) for m in leaders]
  ahead = [m for m, v in zip(leaders, verdicts, strict=True) if v > 0]
  if max(verdicts, default=0) < 0:
    return f', separably below {usual}'
  if not ahead:
    return f', not separable from {usual}'
  who = '' if len(ahead) == len(leaders) else f'{_names(analysis, ahead)} '
  return f', {who}separably above {usual}'


def _against_alone(analysis, leader) -> str:
  """Without it a CF coefficient says little: it rewards being like alone."""
  baseline, told = analysis.baseline, []
  for column, phrase in _ALONE.items():
    if analysis.estimates[leader, column].reached:
      usual = ''
      if leader != baseline and baseline in analysis.methods:
        shown = analysis.show(baseline, column)
        usual = f' ({analysis.title(baseline)}: {shown})'
      told.append(f'{phrase.format(analysis.show(leader, column))}{usual}')
  return f'; {words.join_words(told)}' if told else ''


def _separable(analysis) -> list[str]:
  """Names methods that are marked, also those that tables leave out."""
  told = []
  for word, side in (('above', 1), ('below', -1)):
    for column in (_MEAN, _WORST10):
      found = analysis.separable(column, side)
      if found:
        short = measures.MEASURES[column].short
        told.append(f'{_names(analysis, found)} {word} it in {short}')
  if not told:
    return []
  title = analysis.title(analysis.baseline)
  return [f'Separable from {title}: {"; ".join(told)}.']


def _equivalent(analysis) -> list[str]:
  """Names methods that are shown to cost little, and to gain little."""
  told = [
    f'{words.join_words([*map(analysis.title, found)])} in'
    f' {measures.MEASURES[column].short}'
    for column in (_MEAN, _WORST10)
    if (found := analysis.equivalent(column))
  ]
  if not told:
    return []
  return [
    f'No difference from {analysis.title(analysis.baseline)} larger than'
    f' {analysis_lib.NEGLIGIBLE:g}, by two one-sided tests: {"; ".join(told)}.'
  ]


def _fine_tuned(analysis) -> list[str]:
  """A stronger reference for leads of a model for each client."""
  baseline, title = analysis.baseline, analysis.title(analysis.baseline)
  own = analysis.kinds.get(methods_lib.OWN_MODELS, ())
  ahead = [
    m for m in own for c in (_MEAN, _WORST10) if analysis.verdict(m, c) > 0
  ]
  if not ahead:
    return []
  tuned = analysis.estimates[baseline, _FINE_TUNED]
  if not tuned.reached:
    return [
      f'{title}’s one model may be a weak reference for a model for each'
      ' client. With --fine_tune_epochs=5 it is also scored after five more'
      ' epochs on each client.'
    ]
  best = analysis.of(methods_lib.OWN_MODELS).best(_MEAN)
  lead = statistics.difference(
    analysis.estimates[best, _MEAN].values, tuned.values
  )
  shown = [analysis.format(_MEAN, n) for n in (lead.mean, lead.low, lead.high)]
  served = ''
  if analysis.estimates[baseline, _FINE_TUNED_CF].reached:
    served = (
      f' and a CF coefficient of {analysis.show(baseline, _FINE_TUNED_CF)}'
    )
  return [
    f'{title}, whose model each client trains further before it is scored, has'
    f' a mean accuracy of {analysis.show(baseline, _FINE_TUNED)}{served}.'
    f' {analysis.title(best)}’s lead over it in mean accuracy is'
    f' {shown[0]}, with a 95 % interval of [{shown[1]}, {shown[2]}].'
  ]


def _without_baseline(analysis) -> list[str]:
  if analysis.baseline in analysis.methods:
    return []
  title = analysis.title(analysis.baseline)
  return [
    f'{title} lacks a result for some seed, so no method is compared with it.'
  ]


def _why_no_leader(analysis, kind) -> list[str]:
  """Why first methods are not called leaders; not where methods tie."""
  title = analysis.title(analysis.baseline)
  if analysis.baseline not in analysis.methods:
    return []
  # The baseline is no leader over itself.
  single = [
    c
    for c in _CHOSEN_BY[kind]
    if len(analysis.leaders(c)) == 1
    and analysis.leaders(c)[0] != analysis.baseline
  ]
  blocked = [c for c in single if not find_leader(analysis, c)]
  if not blocked:
    return []
  seeds = len(analysis.facts['seeds'])
  reasons = []
  if seeds < FEWEST_SEEDS:
    reasons.append(f'that takes {FEWEST_SEEDS} seeds, found {seeds}')
  rising = [m for column in blocked for m in find_rising(analysis, column)]
  if rising:
    who = _names(analysis, dict.fromkeys(rising))
    verb = 'has' if len({*rising}) == 1 else 'have'
    reasons.append(f'{who} {verb} not converged')
  unclear = [
    c for c in blocked if analysis.verdict(analysis.leaders(c)[0], c) <= 0
  ]
  if seeds > 1 and unclear:
    where = _shorts(unclear)
    reasons.append(f'no separable lead over {title} in {where}')
  where = '' if blocked == single else f' in {_shorts(blocked)}'
  return [
    f'No method with {kind} is called a leader{where}: {"; ".join(reasons)}.'
  ]


def _not_converged(analysis) -> list[str]:
  """By how much the baseline still rises."""
  baseline = analysis.baseline
  if baseline not in analysis.methods or analysis.is_flat(baseline):
    return []
  title, rise = analysis.title(baseline), analysis.rises[baseline].mean
  last = 'the last fifth of the rounds'
  if np.isnan(rise):
    return [
      f'Whether {title} has converged is not known: that takes an evaluation'
      f' before {last}.'
    ]
  if not analysis.has_intervals:
    return [
      f'{title}’s mean accuracy changes by {rise:+.4f} in {last}: whether it'
      ' has converged takes more than one seed.'
    ]
  return [
    f'Not converged: {title}’s mean accuracy rises by {rise:.4f} in {last},'
    ' which is more than the standard error of that over the seeds,'
    f' {analysis.error_of_rise(baseline):.4f}.'
  ]


def _of_one_seed(analysis) -> list[str]:
  if analysis.has_intervals or analysis.baseline not in analysis.methods:
    return []
  return [
    'One seed shows no differences between seeds, so that nobody knows how'
    f' many it takes; from {FEWEST_SEEDS} a leader may be named.'
    f'{_time(analysis, FEWEST_SEEDS - 1)}'
  ]


def _what_it_takes(analysis, kind) -> list[str]:
  """How many seeds, and how much time, would tell first methods apart."""
  seeds = len(analysis.facts['seeds'])
  if analysis.baseline not in analysis.methods or not analysis.has_intervals:
    return []
  needed = {}
  for column in _CHOSEN_BY[kind]:
    first = analysis.leaders(column)
    if len(first) == 1 and first[0] != analysis.baseline:
      count = analysis.seeds_needed(first[0], column)
      if analysis.verdict(first[0], column):
        count = FEWEST_SEEDS
      if max(count, FEWEST_SEEDS) > seeds:
        needed[column] = max(count, FEWEST_SEEDS)
  if not needed:
    return []
  told = [
    f'{measures.MEASURES[column].short} '
    + (f'{count:.0f} seeds' if count <= _MOST_SEEDS else _FAR_TOO_MANY)
    for column, count in needed.items()
  ]
  few = [count for count in needed.values() if count <= _MOST_SEEDS]
  more = max(few, default=seeds) - seeds
  return [
    f'To tell the highest with {kind} from'
    f' {analysis.title(analysis.baseline)} would take, if the differences stay'
    f' as they are, about: {"; ".join(told)}.{_time(analysis, more)}'
  ]


def _time(analysis, more) -> str:
  """Says how long more seeds of all methods take, or nothing if unknown."""
  seconds = more * analysis.seconds_a_seed
  if not seconds > 0:
    return ''
  return (
    f' The rounds of {words.format_count(int(more), "more seed")} of these'
    f' methods take {options.in_words(seconds)}, one run after the other.'
  )


def _by_chance(analysis) -> list[str]:
  """Says where the baseline's worst clients would be if all were alike."""
  baseline, chance = analysis.baseline, client_scores.BY_CHANCE
  if (
    baseline not in analysis.methods
    or not analysis.estimates[baseline, chance].reached
  ):
    return []
  near = sum(map(analysis.near_chance, analysis.ranked))
  nothing = ''
  if analysis.near_chance(baseline):
    nothing = (
      f'; within {analysis_lib.NEAR_CHANCE:g} of chance, so this number cannot'
      ' show unequal clients'
    )
  return [
    'If all clients had the same true accuracy, chance alone would give'
    f' {analysis.title(baseline)} a worst 10 % of'
    f' {analysis.show(baseline, chance)}. It has'
    f' {analysis.show(baseline, _WORST10)}{nothing}. Within'
    f' {analysis_lib.NEAR_CHANCE:g} of chance: {near} of'
    f' {words.format_count(len(analysis.ranked), "method")}.'
  ]


def _small_tests(analysis) -> list[str]:
  """Who counts in averages only."""
  small = client_scores.left_out(analysis.facts)
  if not small.any():
    return []
  counts = np.unique(small.sum(axis=1))
  who = ' to '.join(map(str, counts[[0, -1]][: len(counts)]))
  clients = words.format_count(analysis.facts['num_clients'], 'client')
  told = (
    f'Clients with fewer than {fairness.FEWEST_TEST_EXAMPLES} test examples'
    f' count in averages only: {who} of {clients}.'
  )
  column = client_scores.KEPT_MEAN
  best = analysis.best(column)
  if best is None:
    return [told]
  means = [
    f'{analysis.show(m, column)} ({analysis.title(m)})'
    for m in dict.fromkeys((best, analysis.baseline))
    if m in analysis.methods
  ]
  told += f' Without them the highest mean is {", against ".join(means)}'
  above = [analysis.title(m) for m in analysis.separable(column)]
  if above:
    told += f'; separably higher: {words.join_words(above)}'
  return [f'{told}.']


def _of_groups(analysis) -> list[str]:
  """How the baseline serves groups of people, a sentence a column."""
  measured = analysis.groups.get(analysis.baseline)
  if measured is None:
    return []
  positive, told = analysis.facts.get('positive_class'), []
  for column, rows in measured.groupby('column', sort=False):
    rows = rows.droplevel('column').dropna(subset='accuracy')
    if len(rows) < 2:
      continue
    told.append(
      f'Groups by {_name(column)}: {analysis.title(analysis.baseline)} predicts'
      f' rightly for {_extremes(rows["accuracy"])}'
    )
    if positive is not None:
      rates = _extremes(rows['selection_rate'])
      told[-1] += f', and predicts ‘{_name(positive)}’ for {rates}'
  return [f'{sentence}.' for sentence in told]


def _extremes(rates) -> str:
  lowest, highest = rates.idxmin(), rates.idxmax()
  if lowest == highest:
    return f'{rates[lowest]:.3f} of each group'
  return (
    f'{rates[lowest]:.3f} of {_name(lowest)} (the lowest) to'
    f' {rates[highest]:.3f} of {_name(highest)} (the highest)'
  )


def _name(name) -> str:
  return client_names.one_line(str(name), _NAME_WIDTH)


def _in_turn(analysis) -> list[str]:
  if not analysis.in_turn:
    return []
  told = []
  for method in analysis.in_turn:
    title = analysis.title(method)
    place = analysis.place_after(method, analysis.equal_depth)
    if place:
      title += f' (place {place.place} of {place.count})'
    told.append(title)
  facts = analysis.facts
  updates = words.format_count(facts['num_clients'], 'update')
  return [
    'Not ranked, because their clients take turns, a round being'
    f' {updates} in sequence: {"; ".join(told)}. The place is that after'
    f' {facts["rounds"]} updates in sequence, as many as'
    f' {analysis.title(analysis.baseline)} has.'
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
    ' corrected for the number of methods (Holm). A mark takes a lead of up to'
    f' {analysis.smallest_marked(_MEAN):.2g} standard deviations of the paired'
    ' differences, so not separable does not mean equal.'
  )


def _names(analysis, methods) -> str:
  titles = [analysis.title(method) for method in methods]
  if len(titles) > _MAX_METHODS:
    more = len(titles) - _MAX_METHODS + 1
    titles = [*titles[: _MAX_METHODS - 1], f'{more} more']
  return words.join_words(titles)


def _shorts(columns) -> str:
  return words.join_words([measures.MEASURES[c].short for c in columns])


def _describe_run(run, summary, columns) -> str:
  who = f'{_place(run)}, {_progress(run)}, {run.label}'
  if not run.scores('accuracy').size:
    why = 'no client has test data' if run.finished else 'no scores yet'
    return f'{who}: {why}.'
  shown = [
    f'{measures.MEASURES[c].short} {_show(run, summary, c)}' for c in columns
  ]
  return f'{who}: {", ".join(shown)}.'


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
