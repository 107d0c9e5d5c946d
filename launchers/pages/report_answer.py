"""The answer of a report in words: who is served best, and how evenly.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable, Sequence

from tff_fair import fairness
from tff_fair.launchers.pages import report_differences
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.show import words

# As in the tables, so that the same runs are the best there; and in lists of
# numbers without an order.
_DIGITS, _FEW_DIGITS = 4, 3


def sentences(
  runs: Sequence[report_runs.Run], comparison: report_differences.Comparison
) -> list[str]:
  """What the runs' last evaluations say.

  Runs are ranked if they may be; otherwise each has a sentence of its own.

  Args:
    runs: The runs, at least one.
    comparison: How their numbers may be compared.

  Returns:
    Sentences.
  """
  if not all(run.scores('accuracy').size for run in runs):
    return _each(runs)
  if len(runs) == 1:
    return [*_of_one(runs[0]), 'One run says nothing about chance.']
  if comparison.repeats:
    return [_of_repeats(runs)]
  if comparison.ranked:
    return [*_ranking(runs), 'One run of each says nothing about chance.']
  return _each(runs)


def _progress(run) -> str:
  """After which round the scores of a run were measured."""
  if not run.finished:
    return (
      f'after round {run.evaluated} of {run.settings["rounds"]}, unfinished'
    )
  rounds = 'round' if run.round == 1 else 'rounds'
  early = ' (stopped early)' if run.stopped_early else ''
  return f'after {run.round} {rounds}{early}'


def _of_one(run) -> list[str]:
  found = [
    f'{_place(run)}, {_progress(run)}, {run.label} gives the clients a mean'
    f' accuracy of {_mean(run)}.',
    f'The worst client has {_worst(run)}, the best'
    f' {_shown(run.scores("accuracy").max())}.',
  ]
  if _num_worst(run) > 1:
    found.append(
      f'The worst 10 % ({_num_worst(run)} clients) have {_worst10(run)} in the'
      ' mean.'
    )
  return [
    *found,
    f'Jain’s index, 1 if all clients have the same, is {_jain(run)}.',
  ]


def _of_repeats(runs) -> str:
  told = [
    f'{name} is {_span(map(measure, runs))}'
    for name, measure in (
      ('the mean accuracy of the clients', _mean),
      ('the accuracy of the worst client', _lowest),
      ('Jain’s index', _jain),
    )
  ]
  return (
    f'{_place(runs[0])}, {_progress(runs[0])}, in {len(runs)} runs with other'
    f' seeds: {words.join_words(told)}.'
  )


def _ranking(runs) -> list[str]:
  found = [
    f'{_place(runs[0])}, {_progress(runs[0])}, the mean accuracy of the clients'
    f' is {_order(runs, map(_mean, runs))}.',
    'The accuracy of the worst client is'
    f' {_order(runs, map(_lowest, runs), map(_who, runs))}.',
  ]
  if _num_worst(runs[0]) > 1:
    found.append(
      f'The mean of the worst 10 % ({_num_worst(runs[0])} clients) is'
      f' {_order(runs, map(_worst10, runs))}.'
    )
  return [
    *found,
    'Jain’s index, 1 if all clients have the same, is'
    f' {_order(runs, map(_jain, runs))}.',
  ]


def _order(
  runs: Sequence[report_runs.Run],
  values: Iterable[str],
  details: Iterable[str] = (),
) -> str:
  """Which runs have the highest of some numbers, and what the others have.

  Args:
    runs: The runs, at least two.
    values: Each run's number as it is shown, so that runs look equal only if
      they are said to be.
    details: What to say behind each number.

  Returns:
    The end of a sentence.
  """
  values = list(values)
  details = list(details) or [''] * len(values)
  highest = max(values, key=float)
  told = {True: [], False: []}  # Whether a run is among the highest.
  for run, value, detail in zip(runs, values, details, strict=True):
    shown = f'{value} ({detail})' if detail else value
    told[value == highest].append((run.label, value, shown))
  leaders, others = told[True], told[False]
  # The same clients need no repetition.
  who = '; '.join(dict.fromkeys(filter(None, details)))
  if not others:
    runs_in_words = 'both' if len(runs) == 2 else f'all {len(runs)}'
    return f'{highest} in {runs_in_words} runs{f" ({who})" if who else ""}'
  degree = 'higher' if len(runs) == 2 else 'highest'
  first = leaders[0][2] if len(leaders) == 1 else highest
  if len(others) == 1:
    rest = f'{others[0][2]} with {others[0][0]}'
  else:
    rest = f'{_span(value for _, value, _ in others)} with the others'
  names = words.join_words([label for label, _, _ in leaders])
  return f'{degree} with {names}: {first}, against {rest}'


def _each(runs) -> list[str]:
  """Every run's numbers, without a word on other runs."""
  places = list(dict.fromkeys(map(_place, runs)))
  if len(places) == 1:
    return [f'{places[0]}, accuracies of the clients:', *map(_numbers, runs)]
  return [f'{_place(run)}: {_numbers(run)}' for run in runs]


def _numbers(run) -> str:
  if not run.scores('accuracy').size:
    if run.finished:
      return f'{run.label}: no client has test data.'
    return (
      f'{run.label} has no scores yet; it is unfinished, after round'
      f' {run.round} of {run.settings["rounds"]}.'
    )
  return (
    f'{run.label}, {_progress(run)}: mean {_mean(run, _FEW_DIGITS)}, worst'
    f' client {_worst(run, _FEW_DIGITS)}, Jain’s index'
    f' {_jain(run, _FEW_DIGITS)}.'
  )


def _place(run) -> str:
  clients = len(run.honest)
  return f'On {run.data} with {clients} client{"s" if clients > 1 else ""}'


def _num_worst(run) -> int:
  return fairness.worst_count(run.scores('accuracy').size)


def _mean(run, digits=_DIGITS) -> str:
  return _shown(run.scores('accuracy').mean(), digits)


def _lowest(run, digits=_DIGITS) -> str:
  return _shown(run.scores('accuracy').min(), digits)


def _who(run) -> str:
  return run.who('accuracy', run.scores('accuracy').min())


def _worst(run, digits=_DIGITS) -> str:
  who = _who(run)
  lowest = _lowest(run, digits)
  return f'{lowest} ({who})' if who else lowest


def _worst10(run, digits=_DIGITS) -> str:
  return _shown(fairness.worst_mean(run.scores('accuracy')), digits)


def _jain(run, digits=_DIGITS) -> str:
  return _shown(fairness.jain_index(run.scores('accuracy')), digits)


def _shown(value: float, digits: int = _DIGITS) -> str:
  return f'{value:.{digits}f}'


def _span(values: Iterable[str]) -> str:
  """Numbers as they are shown, from the lowest to the highest."""
  values = sorted(values, key=float)
  low, high = values[0], values[-1]
  return low if low == high else f'{low} to {high}'
