"""Reads the runs of a report from their directories, finished or not.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import math
import pathlib
from typing import Any

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import round_metrics
from tff_fair.launchers.runs import run_files

_REQUIRED_FLAGS = ('algorithm', 'rounds', 'task')
_PRESET = '# Preset: '
# The columns that identify a row, and those that are counts.
_KEYS = ('round', 'client_id')
_COUNTS = ('num_train', 'num_examples')
_SCORES = ('accuracy', 'f1', 'loss')
# Clients that are named together; characters of a name.
_MAX_NAMED = 2
_NAME_WIDTH = 32
# How the accuracies of the honest clients are spread, by column.
_SPREAD = {
  'client_accuracy_min': fairness.minimum,
  'client_accuracy_worst10': fairness.worst_mean,
  'client_accuracy_jain': fairness.jain_index,
  'client_accuracy_low': lambda scores: np.quantile(scores, 0.25),
  'client_accuracy_high': lambda scores: np.quantile(scores, 0.75),
}
# Prefixes of the columns of an evaluation in metrics.csv.
_EVALUATION = ('global_', 'personal_', 'client_')


class ReportError(ValueError):
  """A directory does not hold a run; the message is one sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """The content of the files of a run.

  Attributes:
    directory: The run's directory.
    label: Its name in the report.
    settings: Flag name -> value, as in flags.txt.
    preset: The preset of these settings.
    finished: Whether it has a summary.
    metrics: metrics.csv. How the accuracies of the clients with training data
      are spread is computed from client_scores.csv, since runs of older
      versions lack these columns: `client_accuracy_min`, `..._worst10`,
      `..._jain`, and the quartiles `..._low` and `..._high`.
    clients: A row per client with `client_id`, `num_train`, the last scores
      and, if clients have names, `client`: clients.csv, or the part of it that
      is known in an unfinished run; unknown numbers are NaN.
    reports: reports.csv.
    final: The scores of the last evaluation by the names of summary.json.
    dropped: Dropped clients and updates, summed over the rounds.
    window: The mean variance of client F1 over the last `evaluations`, `low`
      and `high`; empty in an unfinished run.
    seconds: The median time of a round; NaN if unknown.
    notes: Sentences about the data; none in an unfinished run.
    version: The version of tff-fair that wrote it; empty if unknown.
  """

  directory: pathlib.Path
  label: str
  settings: Mapping[str, str]
  preset: str
  finished: bool
  metrics: pd.DataFrame
  clients: pd.DataFrame
  reports: pd.DataFrame
  final: Mapping[str, float]
  dropped: Mapping[str, int]
  window: Mapping[str, float]
  seconds: float
  notes: Sequence[str]
  version: str

  @property
  def algorithm(self) -> str:
    """The method."""
    return self.settings['algorithm']

  @property
  def round(self) -> int:
    """The last round."""
    return int(self.metrics['round'].max())

  @property
  def stopped_early(self) -> bool:
    """Whether it has finished before the last round that was allowed."""
    return self.finished and self.round < int(self.settings['rounds'])

  @property
  def evaluated(self) -> int | None:
    """The round of the last evaluation; None before the first."""
    rounds = _evaluations(self.metrics)['round']
    return int(rounds.max()) if len(rounds) else None

  @property
  def data(self) -> str:
    """The task, and whether its records are synthetic."""
    return data_description.describe(self.settings)

  @property
  def honest(self) -> pd.DataFrame:
    """The clients with training data; the others are free riders."""
    return self.clients[self.clients['num_train'] != 0]

  def scores(self, name: str) -> np.ndarray:
    """The last scores of the honest clients with test data, float64 [k]."""
    values = self.honest[name].to_numpy(float)
    return values[np.isfinite(values)]

  def who(self, name: str, score: float) -> str:
    """The honest clients that have a score, in words.

    Args:
      name: The score's name.
      score: Its value.

    Returns:
      The id of each client, with its name if it has one; the number of clients
      if they are more than two; empty if all clients, or none, have this
      score.
    """
    known = self.honest.dropna(subset=name)
    clients = known[known[name] == score]
    if clients.empty or 1 < len(clients) == len(known):
      return ''
    if len(clients) > _MAX_NAMED:
      return f'{len(clients)} clients'
    names = clients.get(client_names.COLUMN, pd.Series('', clients.index))
    described = [
      f'{client_id:.0f} {client_names.one_line(text, _NAME_WIDTH)}'.rstrip()
      for client_id, text in zip(clients['client_id'], names, strict=True)
    ]
    plural = 's' if len(clients) > 1 else ''
    return f'client{plural}\u00a0{" and ".join(described)}'


def read_runs(directories: Sequence[str]) -> list[Run]:
  """Reads runs, and gives them unique labels.

  Args:
    directories: The directories of the runs.

  Returns:
    The runs. Their label is the method; runs of the same method also have
    their directory, without the part that all runs share.

  Raises:
    ReportError: If a directory does not hold a run, holds one without a round,
      is given twice, or has a file that is not as `launchers.train` writes it.
  """
  runs = [_read_run(path) for path in _paths(directories)]
  labels = run_files.labels(
    [run.label for run in runs], [run.directory for run in runs]
  )
  return [
    dataclasses.replace(run, label=label)
    for run, label in zip(runs, labels, strict=True)
  ]


def _paths(directories) -> list[pathlib.Path]:
  """The directories, each of them once."""
  paths = [pathlib.Path(directory) for directory in directories]
  resolved = [path.resolve() for path in paths]
  for path in paths:
    if resolved.count(path.resolve()) > 1:
      raise ReportError(f'Every run must be given once, found {path} again.')
  return paths


def _read_run(path: pathlib.Path) -> Run:
  try:
    return _read_files(path)
  except ReportError:
    raise
  except (OSError, ValueError) as error:
    raise ReportError(str(error)) from error


def _read_files(path) -> Run:
  settings, preset = _read_flags(path)
  summary = _read_summary(path / 'summary.json')

  def read(name, columns):
    frame = run_files.read_whole(
      path / name, list(columns), growing=summary is None
    )
    known = [column for column in (*_KEYS, *_COUNTS) if column in columns]
    if not np.isfinite(frame[known]).all(axis=None):
      raise ReportError(
        f'{name} must have a number in each row of {", ".join(known)}, found'
        f' none in a row of {path / name}.'
      )
    return frame.sort_values(known, kind='stable')

  if summary is None:
    _check_started(path)
  metrics = read('metrics.csv', ['round'])
  reports = read('reports.csv', [*_KEYS, 'num_examples'])
  # A run that has not evaluated yet has no scores.
  scores = pd.DataFrame(columns=[*_KEYS, *_SCORES], dtype=float)
  exists = _has_row if summary is None else pathlib.Path.exists
  if exists(path / 'client_scores.csv'):
    scores = read('client_scores.csv', [*_KEYS, *_SCORES])
  if summary is None:
    clients = _clients_so_far(scores, reports)
    summary = _summary_so_far(metrics)
    finished = False
  else:
    clients = read('clients.csv', ['client_id', 'num_train', *_SCORES])
    finished = True
  run = Run(
    directory=path,
    label=methods.title(settings['algorithm']),
    settings=settings,
    preset=preset,
    finished=finished,
    metrics=metrics,
    clients=clients,
    reports=reports,
    **summary,
  )
  return dataclasses.replace(run, metrics=_with_spread(run, scores))


def _check_started(path) -> None:
  for name in ('metrics.csv', 'reports.csv'):
    if not _has_row(path / name):
      raise ReportError(
        f'{path} must be the directory of a run with at least one round, found'
        f' no row in {name}.'
      )


def _has_row(file) -> bool:
  """Whether a csv file has a whole row below its header."""
  if not file.is_file():
    return False
  with open(file, 'rb') as lines:
    return sum(line.endswith(b'\n') for line in lines) > 1


def _read_flags(path) -> tuple[dict[str, str], str]:
  """The settings, and the preset."""
  if not path.is_dir():
    raise ReportError(
      f'{path} must be the directory of a run, found no such directory.'
    )
  file = path / settings_lib.FLAGS_FILE
  if not file.is_file():
    raise ReportError(
      f'{path} must be the directory of a run, found no {file.name} in it.'
    )
  text = file.read_text(errors='replace')
  lines = text.splitlines()
  settings = settings_lib.parse_text(text)
  missing = [name for name in _REQUIRED_FLAGS if name not in settings]
  if missing or not settings['rounds'].isdecimal():
    raise ReportError(
      f'{file} must have {", ".join(_REQUIRED_FLAGS)} and a number of rounds,'
      f' found {", ".join(lines) or "nothing"}.'
    )
  presets = [line for line in lines if line.startswith(_PRESET)]
  preset = presets[0].removeprefix(_PRESET).rstrip('.') if presets else 'none'
  return settings, preset


def _read_summary(file) -> dict[str, Any] | None:
  """The content of summary.json by the names of `Run`; None if missing."""
  if not file.exists():
    return None
  try:
    summary = json.loads(file.read_text())
    window = summary['client_f1_variance_window']
    return {
      'final': {k: _number(v) for k, v in summary['final'].items()},
      'dropped': {k: int(v) for k, v in summary['dropped'].items()},
      'window': {k: _number(v) for k, v in window.items()},
      'seconds': _number(summary['median_seconds_per_round']),
      'notes': [str(note) for note in summary.get('notes', [])],
      'version': str(summary.get('version') or ''),
    }
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise ReportError(
      f'{file.name} must be as a training run writes it, found in {file}:'
      f' {" ".join(repr(error).split())}.'
    ) from error


def _number(value) -> float:
  return math.nan if value is None else float(value)


def _summary_so_far(metrics) -> dict[str, Any]:
  """The part of a summary that is known in an unfinished run."""
  names = [
    name
    for name in metrics
    if name.startswith(_EVALUATION) or name in distances.COLUMNS
  ]
  last = _evaluations(metrics)[names].tail(1)
  return {
    'final': {name: float(last[name].iloc[0]) for name in last if len(last)},
    'dropped': round_metrics.dropped(metrics),
    'window': {},
    'seconds': math.nan,
    'notes': [],
    'version': '',
  }


def _evaluations(metrics) -> pd.DataFrame:
  """The rows of metrics.csv with an evaluation."""
  if 'client_accuracy_mean' not in metrics:
    return metrics.head(0)
  return metrics.dropna(subset='client_accuracy_mean')


def _clients_so_far(scores, reports) -> pd.DataFrame:
  """The clients in scores or reports, without their number of classes."""
  amounts = reports.groupby('client_id')['num_examples'].max()
  last = scores[scores['round'] == scores['round'].max()]
  clients = last.drop(columns='round').set_index('client_id')
  clients = clients.join(amounts.rename('num_train'), how='outer')
  clients.index = clients.index.astype(int)
  clients = clients.rename_axis('client_id').reset_index()
  clients = clients[['client_id', 'num_train', *_SCORES]]
  if client_names.COLUMN in reports:
    named = pd.concat([scores, reports]).drop_duplicates('client_id')
    names = named.set_index('client_id')[client_names.COLUMN]
    clients.insert(1, client_names.COLUMN, clients['client_id'].map(names))
  return clients


def _with_spread(run, scores) -> pd.DataFrame:
  """metrics.csv with the spread of the honest clients' accuracy."""
  honest = scores[scores['client_id'].isin(run.honest['client_id'])]
  by_round = honest.dropna(subset='accuracy').groupby('round')['accuracy']
  spread = pd.DataFrame(
    {name: by_round.agg(measure) for name, measure in _SPREAD.items()}
  )
  metrics = run.metrics.drop(columns=[*_SPREAD], errors='ignore')
  return metrics.join(spread, on='round')
