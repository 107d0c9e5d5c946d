"""Which method has the highest number of a measure, and whether it leads.

A method is called a leader only if it is separably better than the baseline,
with `FEWEST_SEEDS` seeds or more, and if neither its mean accuracy nor that of
what it is compared with still rises: gains more than `analysis.LARGEST_GAIN` in
the last quarter of the rounds. Otherwise the highest number is told as such.
"""

from collections.abc import Sequence
import math

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import words
from tff_fair.launchers.show import words as english

FEWEST_SEEDS = 5
"""With fewer, no method is called a leader."""

_MEAN, _BETTER_OFF = 'client_accuracy_mean', 'better_off'
# Standalone's accuracies are what these compare with.
_AGAINST_ALONE = ('cf', _BETTER_OFF)


def sentence(analysis: analysis_lib.Analysis, column: str, purpose: str) -> str:
  """Who has the highest number of a measure.

  Args:
    analysis: An analysis with at least two ranked methods.
    column: The measure's, of which higher is better.
    purpose: What it is taken for, the beginning of the sentence.

  Returns:
    A sentence that names the method, whether its difference to the baseline is
    separable, and the runner-up.
  """
  leaders = analysis.leaders(column)
  if not leaders:
    short = measures.BY_COLUMN[column].short
    return f'{purpose} there is no answer: no method has a defined {short}.'
  if len(leaders) > 1:
    return f'{purpose} {_tie(analysis, column, leaders)}.'
  return f'{purpose} {_one(analysis, column, leaders[0])}.'


def why_none(
  analysis: analysis_lib.Analysis, columns: Sequence[str]
) -> list[str]:
  """Why the methods with the highest numbers are not called leaders.

  Args:
    analysis: The analysis.
    columns: The measures'.

  Returns:
    One sentence; none if all of them are, and where methods tie.
  """
  single = [c for c in columns if len(analysis.leaders(c)) == 1]
  blocked = [c for c in single if not _leads(analysis, c)]
  if not blocked:
    return []
  where = '' if blocked == single else f' in {_shorts(blocked)}'
  reasons = [
    *_seeds(analysis),
    *_rises(analysis, blocked),
    *_not_separable(analysis, blocked),
  ]
  return [f'No method is called a leader{where}: {"; ".join(reasons)}.']


def _seeds(analysis) -> list[str]:
  if not _few_seeds(analysis):
    return []
  found = len(analysis.facts['seeds'])
  return [f'that takes {FEWEST_SEEDS} seeds, found {found}']


def _rises(analysis, columns) -> list[str]:
  rising = dict.fromkeys(m for c in columns for m in _rising(analysis, c))
  gains = {m: analysis.gain(m) for m in rising}
  told = [
    f'{words.title(m)} ({words.number(gain, _MEAN)})'
    for m, gain in gains.items()
    if not math.isnan(gain)
  ]
  reasons = []
  if told:
    reasons.append(
      'the mean accuracy still rises in the last quarter of the rounds, by more'
      f' than {analysis_lib.LARGEST_GAIN:g}, with {english.join_words(told)}'
    )
  if len(told) < len(rising):
    reasons.append('some curves do not tell whether they still rise')
  return reasons


def _not_separable(analysis, columns) -> list[str]:
  """What cannot be told from the baseline, and where it is highest itself."""
  if len(analysis.facts['seeds']) == 1:
    return []
  title = words.title(analysis.baseline)
  own = [c for c in columns if analysis.best(c) == analysis.baseline]
  same = [c for c in columns if c not in own and not _is_above(analysis, c)]
  reasons = []
  if same:
    reasons.append(f'no separable lead in {_shorts(same)}')
  if own:
    reasons.append(f'{title} itself is first in {_shorts(own)}')
  return reasons


def _shorts(columns) -> str:
  return english.join_words([measures.BY_COLUMN[c].short for c in columns])


def _leads(analysis, column) -> bool:
  return not (
    _few_seeds(analysis)
    or _rising(analysis, column)
    or not _is_above(analysis, column)
  )


def _is_above(analysis, column) -> bool:
  """Whether the best method is separably better than the baseline."""
  return analysis.verdict(analysis.best(column), column) > 0


def _few_seeds(analysis) -> bool:
  return len(analysis.facts['seeds']) < FEWEST_SEEDS


def _rising(analysis, column) -> list[str]:
  """The best method and what it is compared with, as far as they still rise."""
  compared = [analysis.baseline, analysis.best(column)]
  if column in _AGAINST_ALONE:
    compared.append(plan.ALONE)
  return [
    m
    for m in dict.fromkeys(compared)
    if m in analysis.methods
    # Unknown is no reason to call it a leader.
    and not analysis.gain(m) <= analysis_lib.LARGEST_GAIN
  ]


def _one(analysis, column, leader) -> str:
  baseline = analysis.baseline
  itself = ' itself' if leader == baseline else ''
  title = f'{words.title(leader)}{itself}'
  value = words.with_interval(analysis, leader, column)
  has = 'leads with' if _leads(analysis, column) else 'has the highest number,'
  others = _of_baseline(analysis, column, leader)
  gains = _better_off(analysis, leader) if column == 'cf' else ''
  return f'{title} {has} {value}{others}{gains}{_next(analysis, column)}'


def _of_baseline(analysis, column, leader) -> str:
  """What the baseline has, if it is another, and whether that differs."""
  baseline = analysis.baseline
  if leader == baseline or baseline not in analysis.methods:
    return ''
  title = words.title(baseline)
  if not analysis.estimates[baseline, column].reached:
    return f'; {title} has no defined value'
  told = f', against {words.mean(analysis, baseline, column)} with {title}'
  if math.isnan(analysis.p_values[leader, column]):
    return told
  if analysis.verdict(leader, column):
    return f'{told}, separably less'
  return f'{told}, not separable'


def _better_off(analysis, leader) -> str:
  """Without it a CF coefficient says little: it rewards being like alone."""
  if not analysis.estimates[leader, _BETTER_OFF].reached:
    return ''
  share = words.mean(analysis, leader, _BETTER_OFF)
  told = f'; better off than alone are {share} of its clients'
  baseline = analysis.baseline
  if leader == baseline or baseline not in analysis.methods:
    return told
  usual = words.mean(analysis, baseline, _BETTER_OFF)
  return f'{told} ({words.title(baseline)} {usual})'


def _next(analysis, column) -> str:
  """The second best method with its number, if it is not the baseline."""
  second = analysis.order(column)[1:2]
  if not second or second[0] == analysis.baseline:
    return ''
  value = words.mean(analysis, second[0], column)
  return f'; next is {words.title(second[0])} with {value}'


def _tie(analysis, column, leaders) -> str:
  value = words.mean(analysis, leaders[0], column)
  if len(leaders) == len(analysis.ranked):
    return f'all {len(leaders)} methods tie at {value}'
  tie = f'{words.names(leaders)} tie at {value}'
  baseline = analysis.baseline
  if baseline in leaders or baseline not in analysis.methods:
    return tie
  if not analysis.estimates[baseline, column].reached:
    return f'{tie}; {words.title(baseline)} has no defined value'
  tie += f', against {words.mean(analysis, baseline, column)}'
  tie += f' with {words.title(baseline)}'
  ahead = [m for m in leaders if analysis.verdict(m, column) > 0]
  if not ahead:
    return tie
  return f'{tie}, from which {words.names(ahead)} can be separated'
