"""The tables of a report: fairness, clients, settings.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import math
import shlex

import numpy as np
import pandas as pd

from launchers.options import settings as settings_lib
from launchers.pages import report_runs
from launchers.runs import distances
from launchers.runs import round_metrics

MISSING = '–'
_HIGHER, _LOWER = 1, -1
_ARROWS = {_HIGHER: '↑', _LOWER: '↓'}
_SCORES = {'accuracy': 'Accuracy', 'f1': 'Macro-F1'}
# Every run has its own, which the report shows elsewhere.
_OWN_FLAGS = ('output_dir',)
_ROUNDING_ERROR = 1e-15


@dataclasses.dataclass(frozen=True)
class Cell:
  """A number of a run.

  Attributes:
    value: The number; NaN where there is none.
    text: How it is shown.
    detail: What is shown below it.
    best: Whether no comparable run has a better one, and some have a worse.
  """

  value: float
  text: str
  detail: str = ''
  best: bool = False


@dataclasses.dataclass(frozen=True)
class Row:
  """A measure: what it is called, what it says, and a cell a run."""

  title: str
  note: str
  cells: Sequence[Cell]


@dataclasses.dataclass(frozen=True)
class Setting:
  """A flag with its value in each run, and whether these differ."""

  name: str
  values: Sequence[str]
  differs: bool


def fairness(runs: Sequence[report_runs.Run]) -> dict[str, list[Row]]:
  """How the runs compare, from their last evaluations.

  Best values are marked among finished runs, if all runs have the same data.

  Args:
    runs: The runs.

  Returns:
    Heading -> rows, without rows that no run has a number for.
  """
  comparable = not report_runs.data_differences(runs)
  eligible = [comparable and run.finished for run in runs]
  groups = {
    title: _score_rows(runs, name, eligible) for name, title in _SCORES.items()
  }
  groups['Accuracy'] += _collaborative_fairness(runs, eligible)
  groups['Macro-F1'].append(_window_row(runs))
  groups['Loss and distances'] = [
    _ranked(
      'Loss of the global model',
      'Cross-entropy on all test data together, in nats.',
      _final(runs, 'global_loss'),
      _LOWER,
      eligible,
    ),
    *_distance_rows(runs, eligible),
  ]
  groups['What did not count'] = _dropped_rows(runs)
  groups['Cost'] = [
    _row(
      'Seconds a round',
      'Median since the run was last started, whatever else the machine did.',
      [run.seconds for run in runs],
      '{:.3g}'.format,
    )
  ]
  known = {
    title: [row for row in rows if _is_known(row)]
    for title, rows in groups.items()
  }
  return {title: rows for title, rows in known.items() if rows}


def jain_index(scores: Iterable[float]) -> float:
  """Jain's fairness index, `(sum x)^2 / (k sum x^2)`.

  Args:
    scores: float [k], not negative.

  Returns:
    1 if all are equal, 1 / k if one has everything; NaN without a positive
    score.
  """
  scores = np.asarray(scores, np.float64)
  squares = scores.size * np.square(scores).sum()
  return float(scores.sum() ** 2 / squares) if squares else math.nan


def client_table(run: report_runs.Run) -> tuple[list[str], list[list[str]]]:
  """All that is known of each client at the end.

  Args:
    run: The run.

  Returns:
    The names of the columns, and the rows.
  """
  clients = run.clients
  columns = [
    [_number(value) for value in clients[name].tolist()] for name in clients
  ]
  names = [name.replace('_', ' ') for name in clients]
  return names, [list(row) for row in zip(*columns, strict=True)]


def settings(runs: Sequence[report_runs.Run]) -> list[Setting]:
  """All flags of the runs, by name.

  Args:
    runs: The runs.

  Returns:
    The flags; a run without one, which its method does not read, has a dash.
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
  """The line for the shell that repeats a run, or goes on with it.

  Args:
    run: The run.

  Returns:
    The line; a finished run is repeated in a directory beside its own.
  """
  output_dir = str(run.directory) + ('_again' if run.finished else '')
  return shlex.join(
    [
      'python',
      '-m',
      'launchers.train',
      f'--flagfile={run.directory / settings_lib.FLAGS_FILE}',
      f'--output_dir={output_dir}',
    ]
  )


def _score_rows(runs, name, eligible) -> list[Row]:
  """The rows of accuracy, or of F1."""
  scores = [run.scores(name) for run in runs]
  variances = _final(runs, f'client_{name}_variance')

  def row(title, note, values, better, show='{:.4f}'.format):
    return _ranked(title, note, values, better, eligible, show)

  return [
    row(
      'Global model',
      'On all test data together; untrained where clients train alone.',
      _final(runs, f'global_{name}'),
      _HIGHER,
    ),
    row(
      'Mean of the clients',
      'Every client counts the same, with the model it ends up with.',
      _final(runs, f'client_{name}_mean'),
      _HIGHER,
    ),
    row(
      'Median of the clients',
      'Half of the clients do better.',
      _final(runs, f'client_{name}_median'),
      _HIGHER,
    ),
    row(
      'Worst client',
      'Whom the federation serves least.',
      [score.min(initial=math.inf) for score in scores],
      _HIGHER,
    ),
    row(
      'Best client',
      'Whom it serves most.',
      _final(runs, f'client_{name}_max'),
      _HIGHER,
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
      _small,
    ),
    row(
      'Jain’s index',
      '(Σx)² / (k Σx²): 1 if all clients are equal, 1/k if one has it all.',
      [jain_index(score) for score in scores],
      _HIGHER,
    ),
  ]


def _collaborative_fairness(runs, eligible) -> list[Row]:
  """CFFL's coefficient, where clients trained alone in one of the runs."""
  alone = [run for run in runs if run.algorithm == 'standalone']
  if len(alone) != 1 or not all(eligible):
    return []
  # NaN for the run itself, which says nothing.
  values = [
    math.nan if run is alone[0] else _cf_coefficient(alone[0], run)
    for run in runs
  ]
  return [
    _ranked(
      'CF coefficient',
      '100 × correlation of what clients reach with what they reach alone:'
      ' CFFL, equation 4.',
      values,
      _HIGHER,
      eligible,
      '{:.2f}'.format,
    )
  ]


def _cf_coefficient(alone, run) -> float:
  accuracies = pd.DataFrame(
    {
      name: r.honest.set_index('client_id')['accuracy']
      for name, r in (('alone', alone), ('run', run))
    }
  ).dropna()
  if (accuracies.nunique() < 2).any():
    return math.nan
  return 100 * accuracies['alone'].corr(accuracies['run'])


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


def _distance_rows(runs, eligible) -> list[Row]:
  return [
    _ranked(
      f'{title} between {between}',
      f'CoRe-Fed’s distance of the clients from what they share, in {unit}.',
      _final(runs, f'{space}_{name}'),
      _LOWER,
      eligible,
      '{:.4g}'.format,
    )
    for space, between in distances.SPACES.items()
    for name, (title, unit) in distances.DISTANCES.items()
  ]


def _dropped_rows(runs) -> list[Row]:
  """What was dropped in at least one run."""
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


def _ranked(title, note, values, better, eligible, show='{:.4f}'.format) -> Row:
  """A row with the best of the eligible runs marked, unless all are equal."""
  row = _row(f'{title} {_ARROWS[better]}', note, values, show)
  ranks = [
    better * cell.value if may else math.nan
    for cell, may in zip(row.cells, eligible, strict=True)
  ]
  known = [rank for rank in ranks if not math.isnan(rank)]
  if not known or min(known) == max(known):
    return row
  cells = [
    dataclasses.replace(cell, best=rank == max(known))
    for cell, rank in zip(row.cells, ranks, strict=True)
  ]
  return dataclasses.replace(row, cells=cells)


def _is_known(row) -> bool:
  return not all(math.isnan(cell.value) for cell in row.cells)


def _small(value) -> str:
  """A variance; that of equal scores may be a rounding error."""
  return f'{value:.3g}' if abs(value) > _ROUNDING_ERROR else '0'


def _number(value) -> str:
  """A number of unknown kind: whole ones in full, others rounded."""
  if pd.isna(value):
    return MISSING
  return str(int(value)) if float(value).is_integer() else f'{value:.4g}'
