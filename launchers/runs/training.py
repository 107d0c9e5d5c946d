"""The loop of a run: sample, train, evaluate, write, and at the end draw."""

from collections.abc import Callable, Mapping
import dataclasses
import json
import pathlib
import time
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
import tqdm

from launchers.options import methods
from launchers.options import settings as settings_lib
from launchers.plots import client_plots
from launchers.plots import distance_plots
from launchers.plots import run_plots
from launchers.runs import contributions
from launchers.runs import distances
from launchers.runs import graceful_stop
from launchers.runs import round_metrics
from launchers.runs import run_directory
from launchers.runs import scores as scores_lib
import tasks
from tff_fair import metrics
from tff_fair import runtime

# Keras warns of a function that its own batch normalisation uses.
tf.get_logger().setLevel('ERROR')

# FeDABoost averages the variance of the clients' F1 over about ten rounds.
_WINDOW = 10
_HEADLINES = ('train_loss', 'global_accuracy', 'client_f1_median')


class RunError(RuntimeError):
  """The run cannot start or go on; the message is one sentence."""


# What is not the program's fault; the message is one sentence.
MISTAKES = (
  RunError,
  runtime.WorkerError,
  tasks.DataNotFoundError,
  tasks.DataDamagedError,
)


def train(
  settings: Mapping[str, Any], output_dir: pathlib.Path, flags_text: str
) -> None:
  """Trains, from the last checkpoint if there is one, prints and draws.

  Args:
    settings: What `launchers.options.settings.resolve` returned.
    output_dir: An existing directory.
    flags_text: What goes into the flags file.

  Raises:
    RunError: If a setting does not fit the data, or the run is interrupted.
    runtime.WorkerError: If a worker is gone.
    tasks.DataNotFoundError: If a data file is nowhere to be found.
    tasks.DataDamagedError: If a data file is damaged.
  """
  run = Run(settings, output_dir, flags_text)
  print(
    f'{settings["algorithm"]} on {describe_data(settings)}:'
    f' {run.num_clients} clients, {settings["rounds"]} rounds, all settings in'
    f' {output_dir / settings_lib.FLAGS_FILE}'
  )
  if run.start:
    print(f'going on after round {run.start}')
  with tqdm.tqdm(
    initial=run.start,
    total=settings['rounds'],
    disable=None,  # Quiet when the output is not a terminal.
    unit='round',
  ) as progress:

    def show(row):
      headlines = {k: f'{row[k]:.3f}' for k in _HEADLINES if k in row}
      progress.set_postfix(headlines, refresh=False)
      progress.update()

    run.train(show)
  _print_summary(run.finish(), output_dir)
  _draw(settings, output_dir)


class Run:
  """One run: what its rounds need, and what its end reports."""

  def __init__(
    self,
    settings: Mapping[str, Any],
    output_dir: pathlib.Path,
    flags_text: str,
  ):
    """Builds the process, and goes to the last checkpoint if there is one.

    Args:
      settings: What `launchers.options.settings.resolve` returned.
      output_dir: An existing directory.
      flags_text: What goes into the flags file.

    Raises:
      RunError: If a setting does not fit the data.
      tasks.DataNotFoundError: If a data file is nowhere to be found.
      tasks.DataDamagedError: If a data file is damaged.
    """
    set_runtime(settings)
    self._settings = settings
    self._task = build_task(settings)
    self.num_clients = self._task.num_clients
    # Before the seed is set, which is for the first weights of the process.
    statistics = _build(methods.gather_statistics, settings, self._task)
    alone = _build(contributions.of_clients, settings, self._task, output_dir)
    tf.keras.utils.set_random_seed(settings['model_seed'])
    self._process = _build(
      methods.build_process, settings, self._task, statistics, alone
    )
    run_directory.write_atomically(
      output_dir / settings_lib.FLAGS_FILE, flags_text
    )
    contributions.keep(alone, output_dir)
    self._directory = run_directory.RunDirectory(
      output_dir, checkpoints_to_keep=settings['checkpoints_to_keep']
    )
    self._cohorts = _build_cohorts(settings, self._task)
    self._evaluator = scores_lib.build_evaluator(self._task, statistics)
    self._centroids = _build(
      methods.build_class_centroids, settings, self._task
    )
    self._num_train = [self._task.num_train(i) for i in range(self.num_clients)]
    self._has_data = np.greater(self._num_train, 0)
    self._seconds = []
    self._scores = None  # Of the last evaluation.
    self._state, self.start = self._directory.load_checkpoint(
      self._process.initialize()
    )
    self._directory.start_after(self.start)

  def train(self, on_round: Callable[[Mapping[str, Any]], None]) -> None:
    """Trains the rounds after `start`.

    Args:
      on_round: Called after each round with its row of metrics.csv.

    Raises:
      RunError: If it is interrupted, or a worker is gone; the state is saved.
    """
    rounds = self._settings['rounds']
    done = self.start
    try:
      with graceful_stop.GracefulStop() as stop:
        for round_number in range(self.start + 1, rounds + 1):
          self._state, row = self._round(round_number)
          done = round_number
          if self._is_due('checkpoint_every', done):
            self._directory.save_checkpoint(self._state, done)
          on_round(row)
          if stop.is_requested:
            raise KeyboardInterrupt
    except (KeyboardInterrupt, runtime.WorkerError) as error:
      self._directory.save_checkpoint(self._state, done)
      reason = f'{error} The run has ' if str(error) else ''
      raise RunError(
        f'{reason}stopped after round {done} of {rounds}; the same command goes'
        ' on.'
      ) from None

  def finish(self) -> dict[str, Any]:
    """Writes clients.csv and summary.json, and returns the latter."""
    # A run that was complete at the start has evaluated nothing yet.
    scores = self._scores or self._evaluate(self._state)
    self._directory.write_clients(self._client_columns(scores))
    evaluated = self._directory.read_metrics()
    summary = {
      'algorithm': self._settings['algorithm'],
      'task': self._settings['task'],
      'rounds': self._settings['rounds'],
      # Distances are of a round, and that may have been before this start.
      'final': {**self._metric_columns(scores), **distances.last(evaluated)},
      **{
        f'{name}_window': _window(evaluated[name])
        for name in ('client_f1_variance', 'client_f1_own_labels_variance')
      },
      'dropped': round_metrics.dropped(evaluated),
      # Of the rounds since the run was last started.
      'median_seconds_per_round': _median(self._seconds),
    }
    self._directory.write_summary(summary)
    return summary

  def _round(self, round_number):
    """One round: the new state, and its row of metrics.csv, already written."""
    began = time.monotonic()
    state, calls = self._state, []
    for cohort in self._cohorts(round_number):
      data = [self._task.client_data(i) for i in cohort]
      output = self._process.next(state, data)
      state = output.state
      calls.append(round_metrics.flatten(output.metrics))
    self._seconds.append(time.monotonic() - began)
    row, reports = round_metrics.merge(calls)
    if self._is_due('eval_every', round_number):
      self._scores = self._evaluate(state)
      row.update(self._metric_columns(self._scores))
      if self._settings['distances']:
        row.update(self._distances(self._state, state, data))
      self._directory.write_client_scores(
        round_number, scores_lib.client_columns(self._scores)
      )
    self._directory.write_reports(round_number, reports)
    self._directory.write_round(round_number, row, self._seconds[-1])
    return state, row

  def _is_due(self, period: str, round_number: int) -> bool:
    last = round_number == self._settings['rounds']
    return last or round_number % self._settings[period] == 0

  def _evaluate(self, state):
    return scores_lib.evaluate(
      self._evaluator, self._process, state, self._centroids
    )

  def _metric_columns(self, scores):
    return scores_lib.metric_columns(scores, self._has_data)

  def _distances(self, before, after, data):
    """Of a round that was just evaluated."""
    accuracies = scores_lib.of_clients(self._scores).accuracy
    return {
      **distances.of_round(self._process, before, after, data),
      **distances.of_accuracies(accuracies, self._has_data),
    }

  def _client_columns(self, scores) -> dict[str, Any]:
    """The columns of clients.csv; scores are those of `client_` columns."""
    client_scores = scores_lib.of_clients(scores)
    labels = [self._task.data.y[s.train] for s in self._task.splits]
    columns = {
      'client_id': range(self.num_clients),
      'num_train': self._num_train,
      'num_classes': [len(np.unique(own)) for own in labels],
      'num_test': client_scores.num_examples,
      'accuracy': client_scores.accuracy,
      'f1': client_scores.f1,
      'f1_own_labels': client_scores.f1_own_labels,
      'loss': client_scores.loss,
    }
    table = self._state.client_work['table'] or {}
    for name, column in table.items():
      if isinstance(column, np.ndarray) and column.ndim == 1:
        columns[name] = column
    # From the file: a run that was complete at the start has had no round.
    reports = self._directory.read_last_reports()
    for name in reports.columns.intersection(_said_of_clients(self._process)):
      columns[name] = reports[name].reindex(columns['client_id']).to_numpy()
    return columns


def describe_data(settings: Mapping[str, Any]) -> str:
  """The task of a run, and whether its data are made up.

  Args:
    settings: What `launchers.options.settings.resolve` returned.
  """
  name = settings['task']
  if tasks.is_synthetic(name, settings['data_dir']):
    return f'{name} (synthetic records, of nobody)'
  return name


def set_runtime(settings: Mapping[str, Any]) -> None:
  """Sets the runtime of a run, and forgets that of the run before.

  Args:
    settings: What `launchers.options.settings.resolve` returned.

  Raises:
    RunError: If there is no such device.
    runtime.WorkerError: If a worker does not answer.
  """
  kind, options = settings['runtime'], {}
  if kind == 'device':
    options = {n: settings[n] for n in ('device', 'client_threads')}
  elif kind == 'remote':
    options = {'workers': (settings['workers'] or '').split(',')}
  # First of all, even if the other fails: TFF's own default context prints an
  # exception when Python ends, if nobody has used it.
  runtime.set_execution_context('native')
  try:
    runtime.set_execution_context(kind, **options)
  except ValueError as error:
    raise RunError(f'--{error}') from error


def build_task(settings: Mapping[str, Any]) -> tasks.Task:
  """Builds the task of a run.

  Args:
    settings: What `launchers.options.settings.resolve` returned.

  Returns:
    The task.

  Raises:
    RunError: If a setting does not fit the data.
    tasks.DataNotFoundError: If a data file is nowhere to be found.
    tasks.DataDamagedError: If a data file is damaged.
  """
  names = {field.name for field in dataclasses.fields(tasks.TaskOptions)}
  try:
    return tasks.build_task(
      settings['task'],
      seed=settings['data_seed'],
      **{name: value for name, value in settings.items() if name in names},
    )
  except tasks.DataDamagedError:
    raise
  except ValueError as error:
    raise RunError(str(error)) from error


def load_global_model(
  settings: Mapping[str, Any],
  task: tasks.Task,
  output_dir: pathlib.Path,
  round_number: int,
) -> tff.learning.models.ModelWeights:
  """The global model of a run after a round of which it kept a checkpoint.

  Args:
    settings: What `launchers.options.settings.resolve` returned.
    task: The task of the run.
    output_dir: The run's directory.
    round_number: The round.

  Returns:
    The weights.

  Raises:
    FileNotFoundError: If there is no such checkpoint.
  """
  statistics = methods.gather_statistics(settings, task)
  alone = contributions.of_clients(settings, task, output_dir)
  process = methods.build_process(settings, task, statistics, alone)
  state = run_directory.load_state(
    output_dir, process.initialize(), round_number
  )
  return process.get_model_weights(state)


def _build(build_fn, *arguments):
  """What a builder makes of the settings, which it may refuse."""
  try:
    return build_fn(*arguments)
  except (TypeError, ValueError) as error:
    # What TensorFlow says of an error within a graph ends with the error.
    sentence = str(error).strip().splitlines()[-1].strip()
    raise RunError(sentence) from error


def _build_cohorts(settings, task):
  """`round -> the client ids of each call`, a function of seed and round."""
  clients = range(task.num_clients)
  if settings['algorithm'] in methods.SEQUENTIAL:
    turns = [[i] for i in clients]
    return lambda round_number: turns
  # A free rider has no data, and takes part.
  server = settings['split'] == 'server'
  eligible = [i for i in clients if server or task.num_train(i) > 0]
  size = max(1, int(settings['client_fraction'] * task.num_clients + 0.5))
  size = min(size, len(eligible))
  sample = tff.simulation.build_uniform_sampling_fn(
    eligible, random_seed=settings['client_seed']
  )
  return lambda round_number: [sample(round_number, size)]


def _said_of_clients(process) -> list[str]:
  """What the aggregator reports of each client."""
  measured = process.next.type_signature.result.metrics.member['aggregator']
  if not hasattr(measured, 'clients'):
    return []
  return tff.structure.name_list(measured.clients)


def _window(column) -> dict[str, float]:
  """The mean of the last evaluations, with its interval."""
  values = column.dropna()[-_WINDOW:]
  interval = metrics.mean_with_interval(values)
  return {'evaluations': len(values), **interval._asdict()}


def _median(seconds) -> float | None:
  return float(np.median(seconds)) if seconds else None


def _draw(settings, output_dir) -> None:
  """Draws this run, beside those it is compared with."""
  directories = [output_dir, *map(pathlib.Path, settings['compare_with'])]
  runs = {_label(path, directories): path for path in directories}
  folder = output_dir / 'plots'
  paths = run_plots.write_plots(runs, folder)
  paths += distance_plots.write_plots(runs, folder)
  paths += client_plots.write_plots(output_dir, folder)
  for path in paths:
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
    'client_accuracy_max',
    'client_f1_median',
    'client_f1_variance',
  ):
    print(f'  {name:22} {final[name]:.4f}')
  for name, count in summary['dropped'].items():
    if count:
      print(f'  {name:22} {count} in all rounds')
  print(f'results: {output_dir}')
