"""Who leads in a measure, by how much, and whether that can be told."""

from collections.abc import Sequence

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import estimates
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.comparison import words


def sentence(analysis: analysis_lib.Analysis, column: str, purpose: str) -> str:
  """Who leads in a measure.

  Args:
    analysis: An analysis with at least two methods.
    column: The measure's, of which higher is better.
    purpose: What it is taken for, the beginning of the sentence.

  Returns:
    A sentence that names the leader and whether its leads over the baseline and
    over the runner-up are separable.
  """
  leaders = analysis.leaders(column)
  if not leaders:
    short = measures.BY_COLUMN[column].short
    return f'{purpose} there is no answer: no method has a defined {short}.'
  if len(leaders) > 1:
    return f'{purpose} {_tie(analysis, column, leaders)}.'
  return f'{purpose} {_one(analysis, column, leaders[0])}.'


def _one(analysis, column, leader) -> str:
  baseline = analysis.baseline
  itself = ' itself' if leader == baseline else ''
  value = words.with_interval(analysis, leader, column)
  claims = _claims(analysis, column, leader)
  others = _of_baseline(analysis, column, leader)
  return f'{words.title(leader)}{itself} leads with {value}{others}{claims}'


def _of_baseline(analysis, column, leader) -> str:
  """What the baseline has, if it is not the leader."""
  baseline = analysis.baseline
  if leader == baseline or baseline not in analysis.methods:
    return ''
  title = words.title(baseline)
  if not analysis.estimates[baseline, column].reached:
    return f'; {title} has no defined value'
  return f', against {words.mean(analysis, baseline, column)} with {title}'


def _claims(analysis, column, leader) -> str:
  """Which of a leader's leads are separable; nothing with one seed."""
  leads = {}
  for text, other in _rivals(analysis, column, leader):
    gap = analysis.difference(leader, other, column)
    if words.has_interval(gap):
      told = f'over {text} ({words.number(gap.mean, column)})'
      leads.setdefault(_is_ahead(gap), []).append(told)
  return f'; {_verdicts(leads)}' if leads else ''


def _rivals(analysis, column, leader) -> list[tuple[str, str]]:
  """The baseline and the runner-up in words, without the leader."""
  runner_up = analysis.order(column)[1:2]
  baseline = analysis.baseline
  found = []
  if baseline in analysis.methods and baseline not in (leader, *runner_up):
    found.append((words.title(baseline), baseline))
  found += [(f'the runner-up {words.title(m)}', m) for m in runner_up]
  return found


def _is_ahead(gap: estimates.Estimate) -> bool:
  return gap.sign > 0


def _verdicts(leads: dict[bool, Sequence[str]]) -> str:
  """`leads`: whether they are separable -> the leads in words."""
  if len(leads) == 2:
    return (
      f'its lead {leads[True][0]} is separable, that {leads[False][0]} is not'
    )
  ((separable, told),) = leads.items()
  if len(told) == 1:
    return f'its lead {told[0]} is {"" if separable else "not "}separable'
  if separable:
    return f'its leads {" and ".join(told)} are separable'
  return f'neither its lead {told[0]} nor that {told[1]} is separable'


def _tie(analysis, column, leaders) -> str:
  value = words.mean(analysis, leaders[0], column)
  if len(leaders) == len(analysis.methods):
    return f'all {len(leaders)} methods tie at {value}'
  tie = f'{words.names(leaders)} tie at {value}'
  baseline = analysis.baseline
  if baseline in leaders or baseline not in analysis.methods:
    return tie
  tie += _of_baseline(analysis, column, leaders[0])
  gaps = {m: analysis.differences[m, column] for m in leaders}
  known = [m for m in leaders if words.has_interval(gaps[m])]
  if not known:
    return tie
  ahead = [m for m in known if _is_ahead(gaps[m])]
  return f'{tie}; {_separable_ties(ahead, known, words.title(baseline))}'


def _separable_ties(ahead, known, baseline) -> str:
  if not ahead:
    return f'none of their leads over {baseline} is separable'
  if len(ahead) == len(known):
    return f'their leads over {baseline} are separable'
  which = words.names(ahead)
  return f'of their leads over {baseline} only that of {which} is separable'
