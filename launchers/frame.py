"""Run directories as one tidy table: a row a run, round, client and measure.

`report`, `compare` and the papers' tables start from it. The measures are the
columns of a run's files:

  file               round  client  measures
  metrics.csv        yes    none    its columns
  client_scores.csv  yes    yes     its columns
  reports.csv        yes    yes     its columns, after `report_`
  clients.csv        none   yes     its columns
  summary.json       none   none    `final`; `dropped_...`, totals of the run;
                                    `..._window_mean`, `..._low`, `..._high`;
                                    `seconds_per_round`, the median

So what has no round is of the run as a whole, at its end. Nothing here imports
TensorFlow.
"""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import json
import math
import os
import pathlib
import re

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair import files
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import private
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import groups
from tff_fair.launchers.runs import round_metrics
from tff_fair.launchers.runs import run_files

COLUMNS = ('run', 'round', 'client', 'measure', 'value')
"""Those of the table; `round` and `client` are NA where there is none."""

_Path = str | os.PathLike[str]
_REPORT, _DROPPED = 'report_', 'dropped_'
# The columns that identify a row, and those that are counts.
_KEYS = ('round', 'client_id')
_COUNTS = ('num_train', 'num_examples')
_SCORES = ('accuracy', 'f1', 'loss')
_ATTACKER = 'attacker'
_MEAN = 'client_accuracy_mean'
# How the accuracies of the honest clients are spread, where metrics.csv lacks
# it: always the quartiles, in runs of older versions all.
_SPREAD = {
  'client_accuracy_min': fairness.minimum,
  'client_accuracy_worst10': fairness.worst_mean,
  'client_accuracy_jain': fairness.jain_index,
  'client_accuracy_low': lambda scores: np.quantile(scores, 0.25),
  'client_accuracy_high': lambda scores: np.quantile(scores, 0.75),
}
# Prefixes of the columns of an evaluation in metrics.csv.
_EVALUATION = ('global_', 'personal_', 'client_', 'unseen_', 'fine_tuned_')


class FrameError(ValueError):
  """A directory does not hold a run; the message is one sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Run:
  """The content of the files of a run, finished or not.

  Attributes:
    directory: The run's directory.
    label: Its name beside other runs.
    settings: Flag name -> value, as in flags.txt.
    preset: The preset of these settings.
    finished: Whether it has a summary.
    version: The version of tff-fair that wrote it; empty if unknown.
    processor: Where it was trained last; empty if unknown.
    notes: Sentences about the data; none in an unfinished run.
    last_round: The last round.
    names: Client -> its name; empty if clients have no names.
    values: Its rows of the table, without `run`. The accuracies of clients with
      training data add `client_accuracy_min`, `..._worst10`, `..._jain`, and
      the quartiles `..._low` and `..._high` of every evaluation. In an
      unfinished run, what belongs to the end is that of the last evaluation.
    positive_class: The class that the rates of groups of people are of; None
      without groups, and before the end.
    groups: groups.csv; empty without groups of people, and before the end.
    group_differences: group_differences.csv, likewise.
  """

  directory: pathlib.Path
  label: str
  settings: Mapping[str, str]
  preset: str
  finished: bool
  version: str
  processor: str
  notes: Sequence[str]
  last_round: int
  names: Mapping[int, str]
  values: pd.DataFrame
  positive_class: str | None = None
  groups: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
  group_differences: pd.DataFrame = dataclasses.field(
    default_factory=pd.DataFrame
  )

  @property
  def algorithm(self) -> str:
    """The method."""
    return self.settings['algorithm']

  @property
  def data(self) -> str:
    """The task, and whether its records are synthetic."""
    return data_description.describe(self.settings)

  @property
  def stopped_early(self) -> bool:
    """Whether it has finished before the last round that was allowed."""
    return self.finished and self.last_round < int(self.settings['rounds'])

  @property
  def evaluated(self) -> int | None:
    """The round of the last evaluation; None before the first."""
    rounds = self.curve(_MEAN).index
    return int(rounds.max()) if len(rounds) else None

  @functools.cached_property
  def end(self) -> dict[str, float]:
    """The run's measures at its end."""
    rows = self._rows(has_round=False, has_client=False)
    return dict(zip(rows['measure'], rows['value'], strict=True))

  @property
  def dropped(self) -> dict[str, float]:
    """Dropped clients and updates, summed over the rounds."""
    return {
      name.removeprefix(_DROPPED): value
      for name, value in self.end.items()
      if name.startswith(_DROPPED)
    }

  @functools.cached_property
  def clients(self) -> pd.DataFrame:
    """A row per client, by id, at the end; a column per measure."""
    rows = self._rows(has_round=False, has_client=True)
    return _wide(rows, ['client']).set_index('client')

  @property
  def honest(self) -> pd.DataFrame:
    """The clients that follow the protocol: no free riders, no attackers.

    Free riders have no training data.
    """
    return self.clients[is_honest(self.clients)]

  @property
  def test_sizes(self) -> pd.Series:
    """The clients' numbers of test examples; 0 in an unfinished run."""
    known = self.clients.get('num_test', pd.Series(0, self.clients.index))
    return known.fillna(0).astype(int)

  @functools.cached_property
  def reports(self) -> pd.DataFrame:
    """The method's own measures: `round`, `client_id`, a column per measure."""
    return self._by_client(lambda name: name.str.startswith(_REPORT))

  def curve(self, measure: str) -> pd.Series:
    """Returns a measure of the run by round, where it is defined."""
    return self._curves.get(measure, pd.Series(dtype=float)).dropna()

  def scores_by_round(self, measure: str) -> pd.DataFrame:
    """Returns `round`, `client_id` and the measure of every evaluation."""
    return self._by_client(lambda name: name == measure)

  def scores(self, measure: str) -> np.ndarray:
    """The last scores of the honest clients with test data, `float[k]`."""
    values = self.honest[measure].to_numpy(float)
    return values[np.isfinite(values)]

  @functools.cached_property
  def _curves(self) -> pd.DataFrame:
    """A column a measure of the run, by round."""
    rows = self._rows(has_round=True, has_client=False)
    return _wide(rows, ['round']).set_index('round')

  def _by_client(self, is_chosen) -> pd.DataFrame:
    """Some measures of clients by round: `round`, `client_id`, the measures."""
    rows = self._rows(has_round=True, has_client=True)
    table = _wide(rows[is_chosen(rows['measure'])], ['round', 'client'])
    names = {name: name.removeprefix(_REPORT) for name in table}
    return table.rename(columns={**names, 'client': 'client_id'})

  def _rows(self, has_round: bool, has_client: bool) -> pd.DataFrame:
    chosen = self.values['round'].notna() == has_round
    return self.values[chosen & (self.values['client'].notna() == has_client)]


def load(directories: Iterable[_Path]) -> pd.DataFrame:
  """Reads runs as one table with `COLUMNS`; as `read_runs` otherwise."""
  frames = [run.values.assign(run=run.label) for run in read_runs(directories)]
  return pd.concat(frames, ignore_index=True)[[*COLUMNS]]


def read_runs(directories: Iterable[_Path]) -> list[Run]:
  """Reads runs, and gives them unique labels.

  A label is the method; runs of the same method also have their directory,
  without the part that all runs share.

  Raises:
    FrameError: If a directory does not hold a run, holds one without a round,
      is given twice, or has a file that is not as `launchers.train` writes it.
  """
  paths = [pathlib.Path(directory) for directory in directories]
  if len({path.resolve() for path in paths}) < len(paths):
    raise FrameError('Every run must be given once, found one again.')
  runs = [read_run(path) for path in paths]
  labels = run_files.labels([run.label for run in runs], paths)
  return [
    dataclasses.replace(run, label=label)
    for run, label in zip(runs, labels, strict=True)
  ]


def is_honest(clients: pd.DataFrame) -> pd.Series:
  """Returns which clients, rows as of clients.csv, follow the protocol.

  Free riders have no training data, and attackers are marked.
  """
  return (clients['num_train'] != 0) & ~is_attacker(clients)


def is_attacker(clients: pd.DataFrame) -> pd.Series:
  """Returns which clients, rows as of clients.csv, are marked as attackers."""
  return clients.get(_ATTACKER, pd.Series(0, clients.index)) == 1


def check_finished(directories: Iterable[_Path]) -> None:
  """Checks the runs of `--compare_with`.

  Raises:
    SettingsError: If one of them is not the directory of a finished run.
  """
  for directory in directories:
    found = 'found no summary.json in it.'
    try:
      if read_run(directory).finished:
        continue
    except FrameError as error:
      found = str(error)
    raise settings_lib.SettingsError(
      f'--compare_with={directory} must be the directory of a finished run:'
      f' {found}'
    )


def read_run(directory: _Path) -> Run:
  """Reads a run; its label is its method.

  Raises:
    FrameError: As `read_runs`.
  """
  path = pathlib.Path(directory)
  try:
    if not path.is_dir():
      raise FrameError(
        f'{path} must be the directory of a run, found no such directory.'
      )
    return _read_files(path)
  except (OSError, ValueError) as error:
    raise FrameError(str(error)) from error


def _naming(file) -> contextlib.AbstractContextManager[None]:
  """Makes any error about a file name it."""
  return files.reading(
    file,
    lambda found: FrameError(
      f'{file.name} must be as a training run writes it, found in {file}:'
      f' {found}.'
    ),
  )


def _read_files(path) -> Run:
  file = path / settings_lib.FLAGS_FILE
  with _naming(file):
    text = file.read_text(errors='replace')
    settings = settings_lib.parse_text(text)
    label = methods.title(settings['algorithm'])
    int(settings['rounds'])  # A number.
  presets = re.findall(r'^# Preset: (\w+)', text, re.MULTILINE)
  finished = (path / 'summary.json').exists()
  metrics = _read(path / 'metrics.csv', ['round'], finished)
  amount = [] if finished else ['num_examples']
  reports = _read(path / 'reports.csv', [*_KEYS, *amount], finished)
  # A run that has not evaluated yet has no scores.
  scores = pd.DataFrame(columns=[*_KEYS, *_SCORES], dtype=float)
  file = path / 'client_scores.csv'
  if file.exists():
    files.check_regular(file)
  if file.exists() and (finished or file.read_bytes().count(b'\n') > 1):
    scores = _read(file, [*_KEYS, 'accuracy'], finished)
  if finished:
    with _naming(path / 'summary.json'):
      summary = json.loads((path / 'summary.json').read_text())
      end = _read_end(summary)
    required = ['client_id', 'num_train', *_SCORES]
    clients = _read(path / 'clients.csv', required, finished)
    _check_complete(path, summary, metrics, scores, clients)
  else:
    summary = {}
    end = _end_so_far(metrics)
    clients = _clients_so_far(scores, reports)
  return Run(
    directory=path,
    label=label,
    settings=settings,
    preset=presets[0] if presets else 'none',
    finished=finished,
    version=str(summary.get('version') or ''),
    processor=str(summary.get('processor') or ''),
    notes=[str(note) for note in summary.get('notes', [])],
    last_round=int(metrics['round'].max()),
    names=_names(clients, scores, reports),
    positive_class=summary.get('groups', {}).get('positive_class'),
    groups=_read_groups(path / groups.FILE, finished),
    group_differences=_read_groups(path / groups.DIFFERENCES_FILE, finished),
    values=pd.concat(
      [
        _tidy(_with_spread(metrics, scores, clients)),
        _tidy(scores),
        _tidy(reports, _REPORT),
        _tidy(clients),
        _tidy(pd.DataFrame([end])),
      ],
      ignore_index=True,
    ),
  )


def _check_complete(path, summary, metrics, scores, clients) -> None:
  """Refuses files of a finished run that lack rounds or clients."""
  last = int(metrics['round'].max())
  rounds = summary.get('rounds', last)  # Older runs do not say.
  if last != rounds:
    raise ValueError(
      f'metrics.csv must end with round {rounds}, found {last} in'
      f' {path / "metrics.csv"}, as if it was cut.'
    )
  count = scores['client_id'].nunique()
  sizes = scores.groupby('round').size()
  if count and (len(clients) != count or (sizes != count).any()):
    raise ValueError(
      'clients.csv and each round of client_scores.csv must have a row for each'
      f' client, found {len(clients)} and {sizes.min()} to {sizes.max()} in'
      f' {path}, as if one was cut.'
    )


def _read(file, columns, finished) -> pd.DataFrame:
  """Reads a csv file, in the order of its rounds and clients."""
  frame = run_files.read_whole(file, columns, growing=not finished)
  known = [name for name in (*_KEYS, *_COUNTS) if name in columns]
  keys = [name for name in _KEYS if name in columns]
  # Not for NaN and infinity.
  whole = (frame[known] % 1 == 0).all(axis=None)
  if not whole or frame.duplicated(keys).any():
    raise ValueError(
      f'{file.name} must have one row for each {" and ".join(keys)}, and whole'
      f' numbers as {", ".join(known)}, found otherwise in {file}.'
    )
  return frame.sort_values(keys, kind='stable')


def _read_groups(file, finished) -> pd.DataFrame:
  """A table of groups of people, whose names are texts; empty without one."""
  if not finished or not file.exists():
    return pd.DataFrame()
  names = ('client_id', client_names.COLUMN, 'column', 'group')
  with _naming(file):
    table = pd.read_csv(file, converters=dict.fromkeys(names, str))
    required = groups.TABLES[file.name]
    if missing := [name for name in required if name not in table]:
      raise ValueError(f'no column {missing[0]!r}')
    numbers = table[[name for name in required if name not in names]]
    return table.assign(**numbers.apply(pd.to_numeric))


def _tidy(frame, prefix='') -> pd.DataFrame:
  """A row a value; undefined ones are left out where they have a round."""
  frame = frame.drop(columns=client_names.COLUMN, errors='ignore')
  keys = [name for name in _KEYS if name in frame]
  rows = frame.melt(keys, var_name='measure')
  rows = rows.reindex(columns=[*_KEYS, 'measure', 'value'])
  if 'round' in keys:
    rows = rows.dropna(subset='value')
  return pd.DataFrame(
    {
      'round': rows['round'].astype('Int64'),
      'client': rows['client_id'].astype('Int64'),
      'measure': prefix + rows['measure'].astype(str),
      'value': rows['value'].astype(float),
    }
  )


def _wide(rows, keys) -> pd.DataFrame:
  """A column a key, and one a measure in the order of the rows."""
  order = rows['measure'].unique()
  table = rows.pivot(index=keys, columns='measure', values='value')[order]
  table = table.rename_axis(columns=None).reset_index()
  return table.astype(dict.fromkeys(keys, int))


def _names(*frames) -> dict[int, str]:
  """The names of clients, from all files that have them."""
  found = {}
  for frame in frames:
    if client_names.COLUMN in frame:
      ids, names = frame['client_id'], frame[client_names.COLUMN]
      found |= dict(zip(ids.astype(int), names, strict=True))
  return found


def _read_end(summary) -> dict[str, float]:
  """The measures of summary.json."""
  windows = {
    f'{name}_{part}': value
    for name, window in summary.items()
    if name.endswith('_window')
    for part, value in window.items()
  }
  dropped = {_DROPPED + n: int(v) for n, v in summary['dropped'].items()}
  seconds = {'seconds_per_round': summary['median_seconds_per_round']}
  end = {**summary['final'], **windows, **dropped, **seconds}
  return {n: math.nan if v is None else float(v) for n, v in end.items()}


def _end_so_far(metrics) -> dict[str, float]:
  """The facts that are known of an unfinished run."""
  names = [
    name
    for name in metrics
    if name.startswith(_EVALUATION)
    or name in distances.COLUMNS
    or name in private.COLUMNS
  ]
  dropped = round_metrics.dropped(metrics)
  found = {_DROPPED + name: count for name, count in dropped.items()}
  if _MEAN in metrics:
    last = metrics.dropna(subset=_MEAN)[names].tail(1)
    found |= {name: last[name].iloc[0] for name in names if len(last)}
  return found


def _clients_so_far(scores, reports) -> pd.DataFrame:
  """The clients in scores or reports, without their number of classes."""
  by_client = reports.groupby('client_id')
  amounts = by_client['num_examples'].max()
  last = scores[scores['round'] == scores['round'].max()]
  clients = last.set_index('client_id').reindex(columns=[*_SCORES])
  clients = clients.join(amounts.rename('num_train'), how='outer')
  columns = ['client_id', 'num_train', *_SCORES]
  if _ATTACKER in reports:
    clients = clients.join(by_client[_ATTACKER].max())
    columns.append(_ATTACKER)
  return clients.reset_index()[columns]


def _with_spread(metrics, scores, clients) -> pd.DataFrame:
  """metrics.csv with the spread of the honest clients' accuracy."""
  honest = clients['client_id'][is_honest(clients)]
  known = scores[scores['client_id'].isin(honest)].dropna(subset='accuracy')
  by_round = known.groupby('round')['accuracy']
  spread = pd.DataFrame(
    {name: by_round.agg(measure) for name, measure in _SPREAD.items()}
  )
  return metrics.join(spread.drop(columns=metrics, errors='ignore'), on='round')
