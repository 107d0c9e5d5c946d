"""The tables of a report: fairness, clients, settings.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
import dataclasses
import itertools
import math
import shlex

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers import command_names
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.pages import report_differences
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import round_metrics

MISSING = '–'
DROPPED = 'Dropped clients and updates'
_HIGHER, _LOWER = 1, -1
_ARROWS = {_HIGHER: '↑', _LOWER: '↓'}
_SCORES = {'accuracy': 'Accuracy', 'f1': 'Macro-F1'}
# Different for every run; the report shows it elsewhere.
_OWN_FLAGS = ('output_dir',)
_ROUNDING_ERROR = 1e-15
# Characters of a client's name in a table.
_NAME_WIDTH = 60


@dataclasses.dataclass(frozen=True)
class Cell:
  """A number of a run.

  Attributes:
    value: The number; NaN where there is none.
    text: The number as text.
    detail: Text to show below it.
    best: Whether no comparable run is better, and some run is worse.
  """

  value: float
  text: str
  detail: str = ''
  best: bool = False


@dataclasses.dataclass(frozen=True)
class Row:
  """A measure: its title, its explanation, and a cell per run."""

  title: str
  note: str
  cells: Sequence[Cell]


@dataclasses.dataclass(frozen=True)
class Client:
  """A row of the table of clients, and whether no client has less accuracy."""

  cells: Sequence[str]
  worst: bool


@dataclasses.dataclass(frozen=True)
class Setting:
  """A flag with its value in each run, and whether the values differ."""

  name: str
  values: Sequence[str]
  differs: bool


def fairness_groups(
  runs: Sequence[report_runs.Run], comparison: report_differences.Comparison
) -> dict[str, list[Row]]:
  """Compares the last evaluations of the runs.

  Args:
    runs: The runs.
    comparison: Whether the best values are marked.

  Returns:
    Heading -> rows, except rows without any number.
  """
  ranked = comparison.ranked
  groups = {
    title: _score_rows(runs, name, ranked) for name, title in _SCORES.items()
  }
  groups['Accuracy'] += _collaborative_fairness(runs, ranked)
  groups['Macro-F1'].append(_window_row(runs))
  groups['Loss and distances'] = [
    _ranked(
      'Loss of the global model',
      'Cross-entropy on all test data together, in nats.',
      _final(runs, 'global_loss'),
      _LOWER,
      ranked,
    ),
    *_distance_rows(runs, ranked),
  ]
  groups[DROPPED] = _dropped_rows(runs)
  groups['Cost'] = [
    _row(
      'Seconds a round',
      'Median since the last start, including other load on the machine.',
      [run.seconds for run in runs],
      '{:.3g}'.format,
    )
  ]
  known = {
    title: [row for row in rows if _is_known(row)]
    for title, rows in groups.items()
  }
  return {title: rows for title, rows in known.items() if rows}


def client_table(run: report_runs.Run) -> tuple[list[str], list[Client]]:
  """The table of the clients and their final scores, the worst client first.

  Args:
    run: The run.

  Returns:
    The names of the columns, and the rows; clients without a score, or without
    training data, come last.
  """
  scores = run.honest['accuracy']
  first = scores.sort_values(kind='stable').index
  clients = run.clients.reindex(
    first.append(run.clients.index.difference(first))
  )
  columns = [
    [_text(value) for value in clients[name].tolist()] for name in clients
  ]
  names = [name.replace('_', ' ') for name in clients]
  lowest = scores.index[scores == scores.min()] if scores.nunique() > 1 else ()
  worst = clients.index.isin(lowest)
  rows = zip(*columns, strict=True)
  return names, [Client(*row) for row in zip(rows, worst, strict=True)]


def settings(runs: Sequence[report_runs.Run]) -> list[Setting]:
  """All flags of the runs, by name.

  Args:
    runs: The runs.

  Returns:
    The flags; a dash means that the method of a run does not read the flag.
  """
  names = sorted({name for run in runs for name in run.settings})
  rows = {n: [run.settings.get(n, MISSING) for run in runs] for n in names}
  return [
    Setting(n, values, len(set(values)) > 1 and n not in _OWN_FLAGS)
    for n, values in rows.items()
  ]


def differences(runs: Sequence[report_runs.Run]) -> list[Setting]:
  """The flags in which the runs differ.

  Args:
    runs: The runs.

  Returns:
    The flags that all runs have, by name, then those that only some have.
  """
  differing = [setting for setting in settings(runs) if setting.differs]
  return sorted(differing, key=lambda setting: MISSING in setting.values)


def command(run: report_runs.Run) -> str:
  """The shell command that repeats a finished run, or resumes another.

  Args:
    run: The run.

  Returns:
    The command; a repeated run gets a directory with another name.
  """
  output_dir = str(run.directory) + ('_again' if run.finished else '')
  return shlex.join(
    [
      *command_names.command('train').split(),
      f'--flagfile={run.directory / settings_lib.FLAGS_FILE}',
      f'--output_dir={output_dir}',
    ]
  )


def _score_rows(runs, name, ranked) -> list[Row]:
  """The rows of the accuracy, or of F1."""
  scores = [run.scores(name) for run in runs]
  variances = _final(runs, f'client_{name}_variance')
  lowest = [fairness.minimum(score) for score in scores]
  highest = [score.max(initial=-math.inf) for score in scores]

  def row(title, note, values, better, names=(), show='{:.4f}'.format):
    plain = _ranked(title, note, values, better, ranked, show)
    cells = [
      dataclasses.replace(cell, detail=detail)
      for cell, detail in itertools.zip_longest(
        plain.cells, names, fillvalue=''
      )
    ]
    return dataclasses.replace(plain, cells=cells)

  return [
    row(
      'Global model',
      'On all test data together; untrained where clients train alone.',
      _final(runs, f'global_{name}'),
      _HIGHER,
    ),
    row(
      'Mean of the clients',
      'All clients have the same weight, each with its final model.',
      _final(runs, f'client_{name}_mean'),
      _HIGHER,
    ),
    row(
      'Median of the clients',
      'Half of the clients have a higher score.',
      _final(runs, f'client_{name}_median'),
      _HIGHER,
    ),
    row(
      'Worst client',
      'The client with the lowest score.',
      lowest,
      _HIGHER,
      _who(runs, name, lowest),
    ),
    row(
      'Worst 10 % of the clients',
      'The mean of their scores; at least one client.',
      [fairness.worst_mean(score) for score in scores],
      _HIGHER,
    ),
    row(
      'Best client',
      'The client with the highest score.',
      highest,
      _HIGHER,
      _who(runs, name, highest),
    ),
    row(
      'Standard deviation',
      'Between clients; the root of the variance.',
      np.sqrt(variances),
      _LOWER,
    ),
    row(
      'Variance',
      'Between clients, population form: FeDABoost’s fairness, equation 2.',
      variances,
      _LOWER,
      show=_small,
    ),
    row(
      'Jain’s index',
      '(Σx)² / (k Σx²): 1 if all scores are equal, 1/k if all but one are 0.',
      [fairness.jain_index(score) for score in scores],
      _HIGHER,
    ),
  ]


def _who(runs, name, scores) -> list[str]:
  """Which clients of each run have a score."""
  return [run.who(name, score) for run, score in zip(runs, scores, strict=True)]


def _collaborative_fairness(runs, ranked) -> list[Row]:
  """CFFL's coefficient, if clients train alone in one of the runs."""
  alone = [run for run in runs if run.algorithm == 'standalone']
  if len(alone) != 1 or not ranked:
    return []
  # Undefined for the standalone run itself.
  values = [
    math.nan if run is alone[0] else _cf_coefficient(alone[0], run)
    for run in runs
  ]
  return [
    _ranked(
      'CF coefficient',
      '100 × correlation of the accuracies with those of clients that train'
      ' alone: CFFL, equation 4.',
      values,
      _HIGHER,
      ranked,
      '{:.2f}'.format,
    )
  ]


def _cf_coefficient(alone, run) -> float:
  accuracies = pd.DataFrame(
    {
      name: r.honest.set_index('client_id')['accuracy']
      for name, r in (('alone', alone), ('run', run))
    }
  )
  return fairness.cf_coefficient(accuracies['alone'], accuracies['run'])


def _window_row(runs) -> Row:
  def cell(window):
    if math.isnan(window.get('mean', math.nan)):
      return Cell(math.nan, MISSING)
    mean, low, high = (window[name] for name in ('mean', 'low', 'high'))
    interval = '' if math.isnan(low) else f'{_small(low)} to {_small(high)}'
    return Cell(mean, _small(mean), interval)

  return Row(
    'Variance, last rounds',
    'Mean over the last ten evaluations at most, with its 95 % interval.',
    [cell(run.window) for run in runs],
  )


def _distance_rows(runs, ranked) -> list[Row]:
  return [
    _ranked(
      f'{title} between {between}',
      f'CoRe-Fed’s distance, in {unit}.',
      _final(runs, f'{space}_{name}'),
      _LOWER,
      ranked,
      '{:.4g}'.format,
    )
    for space, between in distances.SPACES.items()
    for name, (title, unit) in distances.DISTANCES.items()
  ]


def _dropped_rows(runs) -> list[Row]:
  """The numbers of dropped clients and updates, if positive in some run."""
  names = dict.fromkeys(name for run in runs for name in run.dropped)
  return [
    _row(
      round_metrics.DROPPED.get(name, name),
      'Summed over all rounds.',
      [run.dropped.get(name, math.nan) for run in runs],
      '{:.0f}'.format,
    )
    for name in names
    if any(run.dropped.get(name) for run in runs)
  ]


def _final(runs, name) -> list[float]:
  return [run.final.get(name, math.nan) for run in runs]


def _row(title, note, values, show='{:.4f}'.format) -> Row:
  values = [float(v) if math.isfinite(v) else math.nan for v in values]
  texts = [MISSING if math.isnan(v) else show(v) for v in values]
  cells = [Cell(*pair) for pair in zip(values, texts, strict=True)]
  return Row(title, note, cells)


def _ranked(title, note, values, better, ranked, show='{:.4f}'.format) -> Row:
  """A row with the best run marked, if runs are ranked and not all equal."""
  row = _row(f'{title} {_ARROWS[better]}', note, values, show)
  # Numbers that look equal are.
  ranks = [
    math.nan if math.isnan(cell.value) else better * float(cell.text)
    for cell in row.cells
  ]
  known = [rank for rank in ranks if not math.isnan(rank)]
  if not ranked or not known or min(known) == max(known):
    return row
  cells = [
    dataclasses.replace(cell, best=rank == max(known))
    for cell, rank in zip(row.cells, ranks, strict=True)
  ]
  return dataclasses.replace(row, cells=cells)


def _is_known(row) -> bool:
  return not all(math.isnan(cell.value) for cell in row.cells)


def _small(value) -> str:
  """A variance as text; of equal scores it may be a rounding error."""
  return f'{value:.3g}' if abs(value) > _ROUNDING_ERROR else '0'


def _text(value) -> str:
  """A name on one line, or a number: integers in full, others rounded."""
  if isinstance(value, str):
    return client_names.one_line(value, _NAME_WIDTH)
  if pd.isna(value):
    return MISSING
  return str(int(value)) if float(value).is_integer() else f'{value:.4g}'
