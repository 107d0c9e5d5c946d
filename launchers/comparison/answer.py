"""The answer of a comparison in words: which method for which purpose.

A number is told with what it is worth: whether the seeds can tell it from the
baseline's. Nothing here imports TensorFlow.
"""

import numpy as np

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import answer_leads
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.comparison import words
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.show import words as english

_MEAN, _WORST10 = 'client_accuracy_mean', 'client_accuracy_worst10'
_CHANCE = client_scores.BY_CHANCE
_BETTER_OFF, _TARGET = 'better_off', 'rounds_to_target'
_BYTES, _SECONDS = ('bytes_down', 'bytes_up'), 'seconds_ratio'
# The measures that a practitioner chooses a method by.
_CHOSEN_BY = (_MEAN, _WORST10, 'cf')
NEAR_CHANCE = 0.02
"""So near to what chance gives, the worst clients tell nothing."""

_MOST_NAMED, _NAME_WIDTH = 3, 30


def sentences(analysis: analysis_lib.Analysis) -> list[str]:
  """What the runs of a comparison say.

  Args:
    analysis: The analysis of the runs.

  Returns:
    Sentences, the most important first.
  """
  if len(analysis.ranked) < 2:
    return [_nothing_to_compare(analysis), *_left_out(analysis)]
  return [
    *_leads(analysis),
    *answer_leads.why_none(analysis, _CHOSEN_BY),
    *_by_chance(analysis),
    *_small_tests(analysis),
    *_counts(analysis),
    *_inseparable(analysis),
    *_better_off(analysis),
    *_costs(analysis),
    _target(analysis),
    *_in_turn(analysis),
    _worth_of_marks(analysis),
    *_left_out(analysis),
  ]


def _nothing_to_compare(analysis) -> str:
  if not analysis.ranked:
    return f'{_setting(analysis)}, no method has a result for every seed.'
  (method,) = analysis.ranked
  return (
    f'{_setting(analysis)}, only {words.title(method)} has a result for every'
    ' seed, a mean accuracy of'
    f' {words.with_interval(analysis, method, _MEAN)}: there is nothing to'
    ' compare it with.'
  )


def _setting(analysis) -> str:
  facts = analysis.facts
  return (
    f'On {facts["data"]} with'
    f' {english.format_count(facts["num_clients"], "client")},'
    f' {english.format_count(facts["rounds"], "round")} and'
    f' {english.format_count(len(facts["seeds"]), "seed")}'
  )


def _leads(analysis) -> list[str]:
  purposes = (
    f'{_setting(analysis)}, for the mean',
    'For the worst 10 % of the clients',
    'For collaborative fairness (CF coefficient)',
  )
  return [
    answer_leads.sentence(analysis, column, purpose)
    for column, purpose in zip(_CHOSEN_BY, purposes, strict=True)
  ]


def _counts(analysis) -> list[str]:
  """With how many methods the clients fare separably better, and worse."""
  baseline, others = words.title(analysis.baseline), _others(analysis)
  if analysis.baseline not in analysis.methods:
    return [
      f'{baseline} lacks a result for some seed, so no method is compared with'
      ' it.'
    ]
  found = [analysis.verdict(m, c) for m in others for c in (_MEAN, _WORST10)]
  # The leads tell of a single other method, and `_inseparable` of no verdict.
  if len(others) == 1 or not any(found):
    return []
  return [
    f'Of {len(others)} other methods, the mean is separably better than'
    f' {baseline}’s with {_count(analysis, _MEAN)}; the worst 10 % are better'
    f' with {_count(analysis, _WORST10)}.'
  ]


def _count(analysis, column) -> str:
  better, worse = (
    [m for m in _others(analysis) if analysis.verdict(m, column) == verdict]
    for verdict in (1, -1)
  )
  told = f'{len(better) or "none"} and worse with {len(worse) or "none"}'
  if not worse:
    return told
  gaps = {m: -analysis.differences[m, column].mean for m in worse}
  worst = max(worse, key=gaps.get)
  most = 'most with ' if len(worse) > 1 else ''
  gap = words.number(gaps[worst], column)
  return f'{told} ({most}{words.title(worst)}, by {gap})'


def _inseparable(analysis) -> list[str]:
  """The measures in which the seeds tell nothing from the baseline."""
  if not _has_verdicts(analysis):
    return []
  told = [measure for measure in measures.MEASURES if _tells(analysis, measure)]
  equal = [
    measure.short
    for measure in told
    if not any(analysis.verdict(m, measure.column) for m in analysis.ranked)
  ]
  if not equal:
    return []
  where = (
    'any measure' if len(equal) == len(told) else english.join_words(equal)
  )
  baseline = words.title(analysis.baseline)
  return [f'Nothing is separable from {baseline} in {where}.']


def _tells(analysis, measure) -> bool:
  """Whether a measure has an order and intervals of differences."""
  return measure.higher is not None and any(
    words.has_interval(analysis.differences[m, measure.column])
    for m in _others(analysis)
  )


def _better_off(analysis) -> list[str]:
  """With which methods no client loses by taking part."""
  order = analysis.order(_BETTER_OFF)
  if not order:
    return []  # Nobody trained alone.
  always = [
    m for m in order if set(analysis.estimates[m, _BETTER_OFF].values) == {1}
  ]
  if always:
    which = 'every method' if len(always) == len(order) else words.names(always)
    return [
      f'With {which} every client is better off in every run than when it'
      ' trains alone.'
    ]
  share = words.mean(analysis, order[0], _BETTER_OFF)
  return [
    'With no method every client is better off in every run than when it trains'
    f' alone; the largest share of clients is {share}, with'
    f' {words.names(analysis.leaders(_BETTER_OFF))}.'
  ]


def _costs(analysis) -> list[str]:
  """What the leaders cost, by the baseline's costs."""
  baseline = analysis.baseline
  if baseline not in analysis.methods:
    return []
  leaders = [analysis.leaders(column) for column in _CHOSEN_BY]
  # Who leads together with the baseline is no reason to pay for it.
  costly = [tied[0] for tied in leaders if tied and baseline not in tied]
  told = [
    f'one of {words.title(method)} takes {_cost(analysis, method)}'
    for method in dict.fromkeys(costly)
  ]
  if not told:
    return []
  title = words.title(baseline)
  return [f'Compared with a round of {title}, {"; ".join(told)}.']


def _cost(analysis, method) -> str:
  own, of_baseline = (
    sum(analysis.estimates[m, column].mean for column in _BYTES)
    for m in (method, analysis.baseline)
  )
  told = []
  if analysis.estimates[method, _SECONDS].reached:
    seconds = words.mean(analysis, method, _SECONDS)
    told.append(f'{seconds} times the seconds')
  if of_baseline > 0:
    told.append(f'{own / of_baseline:.2f} times the bytes')
  return english.join_words(told) if told else 'an unknown cost'


def _target(analysis) -> str:
  """Who reaches the target with most seeds, and of these first."""
  rule = analysis.facts['target_rule']
  leaders, baseline = analysis.leaders(_TARGET), analysis.baseline
  if not leaders:
    return f'No method reaches the target ({rule}).'
  first = (
    f'The target ({rule}) is best reached with {words.names(leaders)},'
    f' {_reached(analysis, leaders[0])}'
  )
  if baseline in leaders or baseline not in analysis.methods:
    return f'{first}.'
  title = words.title(baseline)
  if not analysis.estimates[baseline, _TARGET].reached:
    return f'{first}; {title} does not reach it.'
  return f'{first}; with {title} {_reached(analysis, baseline)}.'


def _reached(analysis, method) -> str:
  found = analysis.estimates[method, _TARGET]
  seeds = english.format_count(len(found.values), 'seed')
  rounds = words.number(found.mean, _TARGET)
  return f'after {rounds} rounds in {found.reached} of {seeds}'


def _in_turn(analysis) -> list[str]:
  """Where the methods are whose clients take turns, at the baseline's depth."""
  if not analysis.in_turn:
    return []
  rounds, clients = analysis.facts['rounds'], analysis.facts['num_clients']
  group = '; '.join(map(words.title, analysis.in_turn))
  first = (
    'Not ranked, since clients take turns and a round is'
    f' {english.format_count(clients, "update")} in a row: {group}.'
  )
  places = {m: analysis.at_baseline_depth(m) for m in analysis.in_turn}
  told = [
    f'{words.title(m)} {words.number(depth.accuracy, _MEAN)}, place'
    f' {depth.place} of {depth.count}'
    for m, depth in places.items()
    if depth is not None
  ]
  if not told:
    return [first]
  return [
    f'{first} After {rounds} updates in a row, as many as with'
    f' {words.title(analysis.baseline)} ({rounds / clients:.3g} of their'
    f' rounds), their mean accuracy is: {"; ".join(told)}.'
  ]


def _by_chance(analysis) -> list[str]:
  """What the worst clients of the baseline would have if all were alike."""
  baseline = analysis.baseline
  if baseline not in analysis.methods:
    return []
  if not analysis.estimates[baseline, _CHANCE].reached:
    return []
  near = [m for m in analysis.ranked if near_chance(analysis, m)]
  expected, found = (
    words.mean(analysis, baseline, column) for column in (_CHANCE, _WORST10)
  )
  nothing = ', no sign of clients that are treated worse'
  return [
    'By chance alone, if all clients had the same true accuracy,'
    f' {words.title(baseline)}’s worst 10 % would be {expected}; found is'
    f' {found}{nothing if baseline in near else ""}. Within {NEAR_CHANCE:g} of'
    f' chance: {len(near)} of'
    f' {english.format_count(len(analysis.ranked), "method")}.'
  ]


def near_chance(analysis: analysis_lib.Analysis, method: str) -> bool:
  """Whether chance alone gives the worst 10 % of clients that were found.

  Args:
    analysis: The analysis.
    method: One of its methods.

  Returns:
    Whether they are within .02 of what clients that are served alike would
    have, see `client_scores.worst_by_chance`; not if that is unknown.
  """
  found, expected = (
    analysis.estimates[method, column].mean for column in (_WORST10, _CHANCE)
  )
  return abs(found - expected) <= NEAR_CHANCE


def _small_tests(analysis) -> list[str]:
  """Who counts in averages only."""
  small = client_scores.left_out(analysis.facts)
  if not small.any():
    return []
  best = max(analysis.ranked, key=analysis.kept_means.get)
  told = [
    f'{words.number(analysis.kept_means[m], _MEAN)} with {words.title(m)}'
    for m in dict.fromkeys((best, analysis.baseline))
    if m in analysis.methods
  ]
  return [
    f'Having fewer than {client_scores.FEWEST_TEST_EXAMPLES} test examples,'
    f' {_who(analysis.facts, small)} in averages only; without such clients the'
    f' highest mean is {", against ".join(told)}.'
  ]


def _who(facts, small) -> str:
  """Which clients, as the subject of a sentence with its verb."""
  counts, names = small.sum(axis=1), facts['client_names']
  lowest, highest = counts.min(), counts.max()
  clients = english.format_count(facts['num_clients'], 'client')
  if lowest < highest:
    return f'{lowest} to {highest} of {clients}, by seed, count'
  verb = 'counts' if highest == 1 else 'count'
  if not names or highest > _MOST_NAMED or (small != small[0]).any():
    return f'{highest} of {clients} {verb}'
  told = [
    client_names.one_line(names[i], _NAME_WIDTH)
    for i in np.flatnonzero(small[0])
  ]
  return f'{english.join_words(told)} {verb}'


def _worth_of_marks(analysis) -> str:
  """What separable means."""
  seeds = len(analysis.facts['seeds'])
  if seeds == 1:
    return (
      'With one seed there is no interval, and another seed may turn any order'
      ' round.'
    )
  return (
    'Separable is a difference by a paired t test over the'
    f' {seeds} seeds at the 5 % level, corrected for the number of methods'
    ' (Holm).'
  )


def _left_out(analysis) -> list[str]:
  if not analysis.incomplete:
    return []
  reasons = '; '.join(
    _reason(m, text) for m, text in analysis.incomplete.items()
  )
  return [f'Left out of all this: {reasons}.']


def _reason(method, text) -> str:
  """A reason as a part of a sentence that names the method."""
  text, name = text.rstrip('.'), words.title(method)
  return text if name in text else f'{name} ({text})'


def _has_verdicts(analysis) -> bool:
  """Whether there are intervals of differences to the baseline."""
  complete = analysis.baseline in analysis.methods
  return complete and len(analysis.facts['seeds']) > 1


def _others(analysis) -> tuple[str, ...]:
  return tuple(m for m in analysis.ranked if m != analysis.baseline)
