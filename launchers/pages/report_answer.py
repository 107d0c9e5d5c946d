"""The answer of a report in words: who is served best, and how evenly.

Nothing here imports TensorFlow.
"""

from collections.abc import Callable, Sequence
import math

from tff_fair import fairness
from tff_fair.launchers.pages import report_differences
from tff_fair.launchers.pages import report_runs

# Clients that are named; of more, the number is told.
_MAX_NAMED = 2
_SHARE = 0.1


def sentences(
  runs: Sequence[report_runs.Run], comparison: report_differences.Comparison
) -> list[str]:
  """What the runs' last evaluations say.

  Runs are ranked if they may be; otherwise each has a sentence of its own.

  Args:
    runs: The runs.
    comparison: How their numbers may be compared.

  Returns:
    Sentences.
  """
  scored = all(run.scores('accuracy').size for run in runs)
  chance = ''
  if len(runs) == 1:
    found = _of_one(runs[0])
    chance = 'One run says nothing about chance.'
  elif comparison.repeats and scored:
    found = _of_repeats(runs)
  elif comparison.ranked and scored:
    found = _ranked(runs)
    chance = 'One run of each says nothing about chance.'
  else:
    found = [_listed(run) for run in runs]
  return [*found, chance] if chance and scored else found


def worst(run: report_runs.Run) -> tuple[str, str]:
  """The accuracy of a run's worst client, and who that is.

  Args:
    run: A run with scores.

  Returns:
    Both as text; no client if all are alike.
  """
  scores = run.scores('accuracy')
  lowest = scores.min()
  if scores.size > 1 and lowest == scores.max():
    return _number(lowest), ''
  clients = run.clients_with('accuracy', lowest)
  if len(clients) > _MAX_NAMED:
    return _number(lowest), f'{len(clients)} clients'
  plural = 's' if len(clients) > 1 else ''
  return _number(lowest), f'client{plural} {" and ".join(clients)}'


def _of_one(run) -> list[str]:
  if not run.scores('accuracy').size:
    return [_listed(run)]
  start = f'{_place(run)}{_progress(run)}'
  value, who = worst(run)
  who = f' ({who})' if who else ''
  found = [
    f'{start} with {run.label} the mean accuracy of the clients is'
    f' {_mean(run)}.',
    f'The worst client has {value}{who}, the best'
    f' {_number(run.scores("accuracy").max())}.',
  ]
  if _num_worst(run) > 1:
    found.append(f'The worst 10 % of the clients have {_worst10(run)}.')
  found.append(f'Jain’s index, 1 if all clients are equal, is {_jain(run)}.')
  return found


def _of_repeats(runs) -> list[str]:
  spans = {
    'the mean accuracy of the clients': _span(map(_mean, runs)),
    'the accuracy of the worst client': _span(worst(run)[0] for run in runs),
    'Jain’s index': _span(map(_jain, runs)),
  }
  told = [f'{name} is {span}' for name, span in spans.items()]
  # With one seed of the data the place is the same for all.
  start = f'{_place(runs[0])}{_progress(runs[0])}'
  return [
    f'{start} in {len(runs)} runs with other seeds {", ".join(told[:-1])} and'
    f' {told[-1]}.'
  ]


def _ranked(runs) -> list[str]:
  start = f'{_place(runs[0])}{_progress(runs[0])}'
  worsts = [worst(run) for run in runs]
  found = [
    f'{start} the mean accuracy of the clients is'
    f' {_order(runs, map(_mean, runs))}.',
    'The accuracy of the worst client is'
    f' {_order(runs, *zip(*worsts, strict=True))}.',
  ]
  number = _num_worst(runs[0])
  if number > 1:
    found.append(
      f'The mean of the worst 10 % ({number} clients) is'
      f' {_order(runs, map(_worst10, runs))}.'
    )
  found.append(
    'Jain’s index, 1 if all clients are equal, is'
    f' {_order(runs, map(_jain, runs))}.'
  )
  return found


def _order(runs, values, details=None) -> str:
  """Which runs have the highest of some numbers, and what the others have.

  Args:
    runs: The runs, at least two.
    values: Each run's number as it is shown, so that equal ones are equal.
    details: What to say behind each number.
  """
  values = list(values)
  details = [f' ({detail})' if detail else '' for detail in details or values]
  details = details if details != [f' ({v})' for v in values] else []
  return ''
