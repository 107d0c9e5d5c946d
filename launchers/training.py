"""The loop of a run: sample, train, evaluate, write, and at the end draw."""

import collections
from collections.abc import Mapping
import json
import pathlib
import time
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
import tqdm

from launchers import methods
from launchers import plots
from launchers import run_directory
from launchers import settings as settings_lib
import tasks
from tff_fair import algorithms
from tff_fair import metrics
from tff_fair import runtime

# FeDABoost averages the variance of the clients' F1 over about ten rounds.
_WINDOW = 10
_DROPPED = (
  'num_empty_clients',
  'num_rejected_clients',
  'aggregator_num_excluded',
  'aggregator_num_non_finite',
  'aggregator_fallback',
  'finalizer_update_non_finite',
)
_HEADLINES = ('train_loss', 'global_accuracy', 'client_f1_median')


class RunError(RuntimeError):
  """The run cannot start or go on; the message is one sentence."""


def train(
  settings: Mapping[str, Any], output_dir: pathlib.Path, flags_text: str
) -> None:
  """Trains, from the last checkpoint if there is one.

  Args:
    settings: What `launchers.settings.resolve` returned.
    output_dir: An existing directory.
    flags_text: What goes into the flags file.

  Raises:
    RunError: If a setting does not fit the data, or the run is interrupted.
    tasks.DataNotFoundError: If a data file is nowhere to be found.
    tasks.DataDamagedError: If a data file is damaged.
  """
  # First of all: TFF's default context does not end well if nobody uses it.
  _set_runtime(settings)
  task = _build_task(settings)
  tf.keras.utils.set_random_seed(settings['model_seed'])
  process = _build_process(settings, task)
  run_directory.write_atomically(
    output_dir / settings_lib.FLAGS_FILE, flags_text
  )
  directory = run_directory.RunDirectory(
    output_dir, checkpoints_to_keep=settings['checkpoints_to_keep']
  )
  print(
    f'{settings["algorithm"]} on {settings["task"]}:'
    f' {task.num_clients} clients, {settings["rounds"]} rounds, all settings in'
    f' {output_dir / settings_lib.FLAGS_FILE}'
  )
  state, start = directory.load_checkpoint(process.initialize())
  if start:
    print(f'going on after round {start}')
  directory.start_after(start)
  run = _Run(settings, task, process, directory)
  state = run.train_from(state, start)
  run.finish(state)
  _draw(settings, output_dir)


class _Run:
  """One run: what its rounds need, and what its end reports."""

  def __init__(self, settings, task, process, directory):
    self._settings = settings
    self._task = task
    self._process = process
    self._directory = directory
    self._sample = _client_sampler(settings, task)
    self._evaluator = metrics.Evaluator(
      task.model_fn(),
      [task.examples(i).test for i in range(task.num_clients)],
    )
    self._seconds = []
    self._scores = None  # Of the last evaluation.

  def train_from(self, state, start: int):
    """Trains the rounds after `start`, and returns the last state."""
    rounds = self._settings['rounds']
    progress = tqdm.trange(
      start + 1,
      rounds + 1,
      initial=start,
      total=rounds,
      disable=None,  # Quiet when the output is not a terminal.
      unit='round',
    )
    done = start
    try:
      for round_number in progress:
        new_state, row = self._round(state, round_number)
        state, done = new_state, round_number
        if self._is_due('checkpoint_every', done):
          self._directory.save_checkpoint(state, done)
        shown = {k: f'{row[k]:.3f}' for k in _HEADLINES if k in row}
        progress.set_postfix(shown)
    except KeyboardInterrupt:
      self._directory.save_checkpoint(state, done)
      raise RunError(
        f'stopped after round {done} of {rounds}; the same command goes on.'
      ) from None
    return state

  def finish(self, state) -> None:
    """Writes and prints the result."""
    # A run that was complete at the start has evaluated nothing yet.
    scores = self._scores or self._evaluate(state)
    columns = _client_columns(self._task, scores, state)
    self._directory.write_clients(columns)
    summary = _summarize(self._settings, self._directory, scores, self._seconds)
    self._directory.write_summary(summary)
    _print_summary(summary, self._directory.path)

  def _round(self, state, round_number):
    """One round: the new state, and its row of metrics.csv, already written."""
    began = time.monotonic()
    cohort = [self._task.client_data(i) for i in self._sample(round_number)]
    output = self._process.next(state, cohort)
    self._seconds.append(time.monotonic() - began)
    row, reports = _flatten(output.metrics)
    if self._is_due('eval_every', round_number):
      self._scores = self._evaluate(output.state)
      row.update(_score_columns(self._scores))
    self._directory.write_reports(round_number, reports)
    self._directory.write_round(round_number, row, self._seconds[-1])
    return output.state, row

  def _is_due(self, period: str, round_number: int) -> bool:
    last = round_number == self._settings['rounds']
    return last or round_number % self._settings[period] == 0

  def _evaluate(self, state) -> dict[str, metrics.ClientScores]:
    """Scores the global model and, where there are any, the personal ones."""
    weights = self._process.get_model_weights(state)
    scores = {'global': self._evaluator.evaluate_global(weights)}
    if isinstance(self._process, algorithms.PersonalizedLearningProcess):
      table = self._process.client_model_table(state)
      scores['personal'] = self._evaluator.evaluate_clients(table)
    return scores


def _set_runtime(settings) -> None:
  options = {}
  if settings['runtime'] == 'device':
    options = {n: settings[n] for n in ('device', 'client_threads')}
  try:
    runtime.set_execution_context(settings['runtime'], **options)
  except ValueError as error:
    raise RunError(f'--{error}') from error


def _build_task(settings):
  try:
    return tasks.build_task(
      settings['task'],
      seed=settings['data_seed'],
      **{
        name: settings[name]
        for name in (
          'data_dir',
          'num_clients',
          'partition',
          'dirichlet_alpha',
          'holdout_fraction',
          'test_fraction',
        )
      },
    )
  except tasks.DataDamagedError:
    raise
  except ValueError as error:
    raise RunError(str(error)) from error


def _build_process(settings, task):
  try:
    return methods.build_process(settings, task)
  except (TypeError, ValueError) as error:
    raise RunError(str(error)) from error


def _client_sampler(settings, task):
  """`round -> client ids`, a function of the seed and the round alone."""
  eligible = [i for i in range(task.num_clients) if task.num_train(i) > 0]
  size = max(1, int(settings['client_fraction'] * task.num_clients + 0.5))
  size = min(size, len(eligible))
  sample = tff.simulation.build_uniform_sampling_fn(
    eligible, random_seed=settings['client_seed']
  )
  return lambda round_number: sample(round_number, size)


def _flatten(round_metrics):
  """The scalars of a round by flat names, and the clients' reports."""
  row, reports = collections.OrderedDict(), {}
  for name, value in round_metrics['client_work'].items():
    if name == 'clients':
      reports = value
    else:
      prefix = '' if name.startswith('num_') else 'train_'
      row[prefix + name] = value
  for part in ('aggregator', 'finalizer'):
    for name, value in round_metrics[part].items():
      if not isinstance(value, Mapping) and np.ndim(value) == 0:
        row[f'{part}_{name}'] = value
  return row, reports


def _score_columns(scores) -> dict[str, float]:
  """The evaluation's columns of metrics.csv.

  The `client_` columns are of each client's own model where it has one.
  """
  columns = {}
  for model, model_scores in scores.items():
    for name, value in model_scores.pooled.items():
      columns[f'{model}_{name}'] = value
  client_scores = list(scores.values())[-1]
  for name in ('accuracy', 'f1', 'f1_own_labels'):
    statistics = metrics.client_statistics(getattr(client_scores, name))
    for statistic, value in statistics.items():
      columns[f'client_{name}_{statistic}'] = value
  return columns


def _client_columns(task, scores, state) -> dict[str, Any]:
  """The columns of clients.csv; scores are those of `client_` columns."""
  client_scores = list(scores.values())[-1]
  columns = {
    'client_id': range(task.num_clients),
    'num_train': [task.num_train(i) for i in range(task.num_clients)],
    'num_test': client_scores.num_examples,
    'accuracy': client_scores.accuracy,
    'f1': client_scores.f1,
    'f1_own_labels': client_scores.f1_own_labels,
    'loss': client_scores.loss,
  }
  table = state.client_work['table'] or {}
  for name, column in table.items():
    if isinstance(column, np.ndarray) and column.ndim == 1:
      columns[name] = column
  return columns


def _summarize(settings, directory, scores, times) -> dict[str, Any]:
  evaluated = directory.read_metrics()
  windows = {
    f'{name}_window': _window(evaluated[name])
    for name in ('client_f1_variance', 'client_f1_own_labels_variance')
  }
  return {
    'algorithm': settings['algorithm'],
    'task': settings['task'],
    'rounds': settings['rounds'],
    'final': _score_columns(scores),
    **windows,
    'dropped': _dropped(evaluated),
    # Of the rounds since the run was last started.
    'median_seconds_per_round': float(np.median(times)) if times else None,
  }


def _dropped(rounds) -> dict[str, int]:
  """What did not count, summed over the rounds: clients, rounds, updates."""
  return {name: int(rounds[name].sum()) for name in _DROPPED if name in rounds}


def _window(column) -> dict[str, float]:
  """The mean of the last evaluations, with its interval."""
  values = column.dropna()[-_WINDOW:]
  interval = metrics.mean_with_interval(values)
  return {'evaluations': len(values), **interval._asdict()}


def _draw(settings, output_dir) -> None:
  """Draws this run, beside those it is compared with."""
  directories = [output_dir, *map(pathlib.Path, settings['compare_with'])]
  runs = {_label(path, directories): path for path in directories}
  for path in plots.write_plots(runs, output_dir / 'plots'):
    print(f'drawn: {path}')


def _label(path, others) -> str:
  """The algorithm of a run, with its directory where that is ambiguous."""
  algorithms_found = [_algorithm(other) for other in others]
  name = _algorithm(path)
  return f'{name} ({path})' if algorithms_found.count(name) > 1 else name


def _algorithm(path) -> str:
  return json.loads((path / 'summary.json').read_text())['algorithm']


def _print_summary(summary, output_dir) -> None:
  """The result in a few lines."""
  final = summary['final']
  print(f'after {summary["rounds"]} rounds:')
  for name in (
    'global_accuracy',
    'global_f1',
    'client_accuracy_mean',
    'client_f1_median',
    'client_f1_variance',
  ):
    print(f'  {name:22} {final[name]:.4f}')
  for name, count in summary['dropped'].items():
    if count:
      print(f'  {name:22} {count} in all rounds')
  print(f'results: {output_dir}')
