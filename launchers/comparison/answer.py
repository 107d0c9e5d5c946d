"""The answer of a comparison in words: which method for which purpose.

A number is told with what it is worth: whether the seeds can tell it from the
baseline's. Nothing here imports TensorFlow.
"""

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import answer_leads
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.comparison import words

_MEAN, _WORST10 = 'client_accuracy_mean', 'client_accuracy_worst10'
_BETTER_OFF, _TARGET = 'better_off', 'rounds_to_target'
_BYTES, _SECONDS = ('bytes_down', 'bytes_up'), 'seconds_ratio'
# The measures that a practitioner chooses a method by.
_CHOSEN_BY = (_MEAN, _WORST10, 'cf')
_LEVEL = 0.05
# From six seeds on, chance makes all of them agree in less than 5 % of cases.
_FEW_SEEDS = 5


def sentences(analysis: analysis_lib.Analysis) -> list[str]:
  """What the runs of a comparison say.

  Args:
    analysis: The analysis of the runs.

  Returns:
    Sentences, the most important first.
  """
  if len(analysis.methods) < 2:
    return [_nothing_to_compare(analysis), *_left_out(analysis)]
  return [
    *_leads(analysis),
    *_counts(analysis),
    *_inseparable(analysis),
    *_better_off(analysis),
    *_costs(analysis),
    _target(analysis),
    *_ranks(analysis),
    _worth_of_intervals(analysis),
    *_left_out(analysis),
  ]


def _nothing_to_compare(analysis) -> str:
  if not analysis.methods:
    return f'{_setting(analysis)}, no method has a result for every seed.'
  (method,) = analysis.methods
  return (
    f'{_setting(analysis)}, only {words.title(method)} has a result for every'
    ' seed, a mean accuracy of'
    f' {words.with_interval(analysis, method, _MEAN)}: there is nothing to'
    ' compare it with.'
  )


def _setting(analysis) -> str:
  facts = analysis.facts
  return (
    f'On {facts["data"]} with {words.count(facts["num_clients"], "client")},'
    f' {words.count(facts["rounds"], "round")} and'
    f' {words.count(len(facts["seeds"]), "seed")}'
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
    if not any(analysis.verdict(m, measure.column) for m in analysis.methods)
  ]
  if not equal:
    return []
  where = 'any measure' if len(equal) == len(told) else words.joined(equal)
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
  return words.joined(told) if told else 'an unknown cost'


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
  seeds = words.count(len(found.values), 'seed')
  rounds = words.number(found.mean, _TARGET)
  return f'after {rounds} rounds in {found.reached} of {seeds}'


def _ranks(analysis) -> list[str]:
  """What the tests over clients and seeds say."""
  ranking = analysis.ranking
  if ranking is None:
    return [
      'There are no ranks: they need two pairs of a client and a seed with test'
      ' data.'
    ]
  test = 'Friedman’s test' if len(ranking.methods) > 2 else 'The sign test'
  over = (
    f'{test} of accuracy over {ranking.num_blocks} pairs of a client and a seed'
  )
  if ranking.p_value >= _LEVEL:
    return [
      f'{over} finds no difference between the methods'
      f' ({_p_value(ranking.p_value)}).'
    ]
  return [
    f'{over} finds that the methods differ ({_p_value(ranking.p_value)});'
    f' {_nemenyi(analysis)}.',
    'Clients of one seed share its models and are not independent, so this p is'
    ' too small.',
  ]


def _nemenyi(analysis) -> str:
  """What Nemenyi's test separates from the baseline."""
  ranking, baseline = analysis.ranking, analysis.baseline
  if baseline not in ranking.methods:
    return f'{words.title(ranking.methods[0])} has the best average rank'
  at = ranking.methods.index(baseline)
  sides = {
    'above': ranking.methods[:at],
    'below': ranking.methods[:at:-1],  # The worst first.
  }
  told, num_far = [], 0
  for side, found in sides.items():
    far = [m for m in found if ranking.separates(m, baseline)]
    num_far += len(far)
    if far:
      told.append(f'{words.names(far)} {side} it')
  which = f': {"; ".join(told)}' if told else ''
  others = len(ranking.methods) - 1
  return (
    f'Nemenyi’s test separates {num_far or "none"} of {others} from'
    f' {words.title(baseline)}{which}'
  )


def _p_value(value) -> str:
  return 'p < 0.001' if value < 0.001 else f'p = {value:.3f}'


def _worth_of_intervals(analysis) -> str:
  """What separable means with so many seeds."""
  seeds = len(analysis.facts['seeds'])
  if seeds == 1:
    return (
      'With one seed there is no interval, and another seed may turn any lead'
      ' round.'
    )
  if seeds <= _FEW_SEEDS:
    return (
      f'An interval of {seeds} seeds is narrow: separable means little more'
      f' than that all {seeds} agree in sign, as they do by chance in 1 of'
      f' {2 ** (seeds - 1)} comparisons of equal methods.'
    )
  return (
    'The intervals are of 95 %: by chance about 1 of 20 comparisons of equal'
    ' methods is separable.'
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
  return tuple(m for m in analysis.methods if m != analysis.baseline)
