"""The loop of a run: sample, train, evaluate, write."""

from collections.abc import Callable, Mapping
import pathlib
import time
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checkpoints
from tff_fair import metrics
from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import stop_metrics
from tff_fair.launchers.runs import code_version
from tff_fair.launchers.runs import contributions
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import early_stopping
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import export
from tff_fair.launchers.runs import failed_rounds
from tff_fair.launchers.runs import flag_sentences
from tff_fair.launchers.runs import graceful_stop
from tff_fair.launchers.runs import last_rounds
from tff_fair.launchers.runs import messages
from tff_fair.launchers.runs import processes
from tff_fair.launchers.runs import round_metrics
from tff_fair.launchers.runs import run_directory
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.runs import tensorboard_files

# Keras warns about a function that its batch normalisation uses.
tf.get_logger().setLevel('ERROR')

# Runtime -> its arguments, each with the flag that sets it.
_RUNTIME_ARGUMENTS = {
  'device': {'device': 'device', 'client_threads': 'client_threads'},
  'native': {},
  'cluster': {
    'num_workers': 'num_workers',
    'cpus_per_worker': 'cpus_per_worker',
    'gpus_per_worker': 'gpus_per_worker',
    'address': 'cluster_address',
    'timeout': 'worker_timeout',
  },
}

# The runtime that the last run has set: kind, options and context.
_runtime: tuple[str, Mapping[str, Any], Any] | None = None

# What a summary says of the process that trained the run, which a later start
# that trains nothing leaves as it is.
_OF_TRAINING = ('version', 'median_seconds_per_round')

# FeDABoost averages the variance of the clients' F1 over about ten rounds.
_WINDOW = 10


class RunError(RuntimeError):
  """The run cannot start or continue; the message is one sentence."""


class DivergedError(RunError):
  """The run trained nothing, or its results are no longer finite."""


# Errors that the user can fix; each message is one sentence.
USER_ERRORS = (
  RunError,
  runtime.WorkerError,
  tasks.DataNotFoundError,
  tasks.DataDamagedError,
  tasks.DataDiffersError,
)


class Run:
  """A run: trains its rounds and writes its files.

  Attributes:
    num_clients: Number of clients.
    notes: What the user should read about the data before training.
    start: The round of the checkpoint from which it resumes; 0 for none.
    done: The number of rounds that are trained.
    stop: Why the run has ended before its last round; None if it has not.
  """

  def __init__(
    self,
    settings: Mapping[str, Any],
    output_dir: pathlib.Path,
    flags_text: str,
    task: tasks.Task | None = None,
    like: 'Run | None' = None,
  ):
    """Builds the process, and loads the last checkpoint if there is one.

    Args:
      settings: The result of `launchers.options.settings.resolve`.
      output_dir: An existing directory.
      flags_text: The content of the flags file.
      task: What `build_task` gives for the settings, if it is built already.
      like: A run that differs in its seeds alone. Its compiled rounds are used
        again, unless they depend on the data.

    Raises:
      RunError: If a setting does not fit the data.
      tasks.DataNotFoundError: If a data file cannot be found.
      tasks.DataDamagedError: If a data file is damaged.
    """
    set_runtime(settings)
    self._settings = settings
    self._task = task or build_task(settings)
    self.num_clients = self._task.num_clients
    self.notes = self._task.notes
    # Before the seed is set: the seed is that of the initial weights.
    statistics = _build(processes.gather_statistics, settings, self._task)
    self._statistics = statistics
    alone = _build(contributions.of_clients, settings, self._task, output_dir)
    tf.keras.utils.set_random_seed(settings['model_seed'])
    self._process = build_process(settings, self._task, statistics, alone)
    self._next = self._process.next
    if like is not None and processes.same_for_all_seeds(settings):
      self._next = like._next
    self._cohorts = build_cohorts(settings, self._task)
    self._evaluator = evaluation.build_evaluator(self._task, statistics)
    self._centroids = _build(
      processes.build_class_centroids, settings, self._task
    )
    self._num_train = [self._task.num_train(i) for i in range(self.num_clients)]
    self._has_data = np.greater(self._num_train, 0)
    initial = self._process.initialize()
    self._check_stop_metric(initial)
    contributions.keep(alone, output_dir)
    self._directory = run_directory.RunDirectory(
      output_dir,
      checkpoints_to_keep=settings['checkpoints_to_keep'],
      settings=_origin(settings, alone),
      names=self._task.client_names,
    )
    self._tensorboard = tensorboard_files.TensorBoardFiles(
      output_dir, settings, flags_text
    )
    self._seconds = []
    self._scores = None  # The result of the last evaluation.
    try:
      self._state, self.start = self._directory.resume(initial)
    except checkpoints.OtherStateError as error:
      raise RunError(str(error)) from error
    self._failed = failed_rounds.FailedRounds(self._directory.read_metrics())
    self.done = self.start
    self.stop = self._find_stop()
    # In this order: a run that goes on after an early stop is not finished.
    if not self._is_over():
      self._directory.remove_summary()
    run_files.write_atomically(output_dir / settings_lib.FLAGS_FILE, flags_text)

  def train(self, on_round: Callable[[Mapping[str, Any]], None]) -> None:
    """Trains the rounds after `start`.

    Args:
      on_round: Called after each round with its row of metrics.csv.

    Raises:
      RunError: If it is interrupted, or a worker fails; the state is saved.
      DivergedError: If the run diverges.
      OSError: If a file cannot be written; the last checkpoint is intact.
    """
    rounds = self._settings['rounds']
    try:
      with graceful_stop.GracefulStop() as interruption:
        while not self._is_over():
          self._state, row = self._round(self.done + 1)
          self.done += 1
          if self._is_evaluated(self.done):
            self._check_finite()  # Before a checkpoint, to resume before it.
          self.stop = self._find_stop()
          if self._is_due('checkpoint_every', self.done) or self.stop:
            self._directory.save_checkpoint(self._state, self.done)
          on_round(row)
          self._check_converges(row, self.done)
          if interruption.is_requested:
            raise KeyboardInterrupt
    except (KeyboardInterrupt, runtime.WorkerError) as error:
      self._directory.save_checkpoint(self._state, self.done)
      reason = f'{error} The run has ' if str(error) else ''
      raise RunError(
        f'{reason}stopped after round {self.done} of {rounds}; run the same'
        ' command again to resume.'
      ) from None

  def finish(self) -> dict[str, Any]:
    """Writes clients.csv and summary.json, and returns the latter.

    Raises:
      DivergedError: If the run, or a client with a model of its own, has
        trained nothing, or a model is of no use.
      OSError: If a file cannot be written.
    """
    evaluated = self._directory.read_metrics()
    if not failed_rounds.any_aggregated(evaluated):
      raise DivergedError(
        "no round has aggregated any client's update, so the model is as it was"
        f' at the start; {self._directory.path / "metrics.csv"} has the'
        ' numbers of clients.'
      )
    # A run that was complete at the start has not evaluated yet.
    self._scores = self._scores or self._evaluate(self._state, self.done)
    self._check_finite()
    self._check_trained()
    self._scores = scores = self._averaged(self._scores)
    self._directory.write_clients(self._client_columns(scores))
    summary = {
      'version': code_version.code_version(),
      'algorithm': self._settings['algorithm'],
      'task': self._settings['task'],
      'rounds': self.done,
      # From the file: the last round may have been before this start.
      'final': {**self._metric_columns(scores), **distances.last(evaluated)},
      **{
        f'{name}_window': _window(evaluated[name])
        for name in ('client_f1_variance', 'client_f1_own_labels_variance')
      },
      'dropped': round_metrics.dropped(evaluated),
      # Only rounds since the last start.
      'median_seconds_per_round': _median(self._seconds),
    }
    if self.done == self.start:
      summary.update(self._directory.read_summary(_OF_TRAINING))
    if self._settings['score_last'] is not None:
      summary['score_last'] = self._settings['score_last']
    if self.stop:
      summary['stopped_early'] = self.stop._asdict()
    if self.notes:
      summary['notes'] = list(self.notes)
    self._directory.write_summary(summary)
    return summary

  def holdout_accuracy(self) -> float:
    """The mean accuracy of the clients on their own holdout parts.

    With the split `server`, where clients have none, on the server's validation
    part. Clients without training data, and without a holdout, are excluded.

    Raises:
      RunError: If there are no such examples.
    """
    try:
      evaluator = evaluation.build_holdout_evaluator(
        self._task, self._statistics
      )
    except ValueError as error:
      raise RunError(flag_sentences.of_task(str(error))) from error
    scores = evaluation.evaluate(
      evaluator, self._process, self._state, self._centroids
    )
    return self._metric_columns(scores)['client_accuracy_mean']

  def bytes_per_round(self) -> tuple[int, int]:
    """The bytes of a round from the server to all clients, and back.

    They include the rows of the client table, although a deployment could keep
    these on the clients. A method without an aggregation rule has zero.
    """
    if methods.METHODS[self._settings['algorithm']].rule == 'none':
      return 0, 0
    calls = self._cohorts(1)
    size = max(map(len, calls))
    sent = messages.count_messages(self._process.next, size)
    number = size * len(calls)
    return number * (sent.broadcast + sent.row), number * sent.upload

  @property
  def seconds_of_rounds(self) -> float:
    """Seconds of the rounds since the start, without evaluation and files."""
    return sum(self._seconds)

  @property
  def worst_client(self) -> str:
    """Describes the client with the lowest accuracy; call after `finish`."""
    return evaluation.worst_client(
      self._scores, self._has_data, self._task.client_names
    )

  def export(self) -> list[str]:
    """Writes the trained models that `--export` selects, after `finish`.

    Returns:
      One sentence for each export written.

    Raises:
      OSError: If a file cannot be written.
    """
    choice = self._settings['export']
    if choice == 'none':
      return []
    weights = self._process.get_model_weights(self._state)
    return export.write(
      self._process,
      self._state,
      self._task,
      self._directory.path,
      clients=choice == 'all',
      centroids=self._centroids and self._centroids(weights),
      statistics=self._statistics,
    )

  def _round(self, round_number):
    """Runs a round and writes it; the new state, and the row of metrics.csv."""
    began = time.monotonic()
    state, calls = self._state, []
    for cohort in self._cohorts(round_number):
      data = [self._task.client_reference(i) for i in cohort]
      output = self._next(state, data)
      state = output.state
      calls.append(round_metrics.flatten(output.metrics))
    self._seconds.append(time.monotonic() - began)
    row, reports = round_metrics.merge(calls)
    accuracies = ()
    if self._is_evaluated(round_number):
      self._scores = self._evaluate(state, round_number)
      row.update(self._metric_columns(self._scores))
      accuracies = evaluation.honest_accuracies(self._scores, self._has_data)
      if self._settings['distances']:
        row.update(self._distances(self._state, state, data))
      self._directory.write_client_scores(
        round_number, evaluation.client_columns(self._scores)
      )
    self._directory.write_reports(round_number, reports)
    self._directory.write_round(round_number, row)
    self._tensorboard.write_round(
      round_number, {**row, 'seconds': self._seconds[-1]}, accuracies
    )
    return state, row

  def _is_over(self) -> bool:
    return self.done == self._settings['rounds'] or self.stop is not None

  def _find_stop(self):
    """Why the run ends after the last round; only an evaluation ends it."""
    wanted = self._settings['stop_after'] is not None
    if not (wanted and self._is_due('eval_every', self.done)):
      return None
    return early_stopping.find(self._directory.read_metrics(), self._settings)

  def _check_stop_metric(self, initial):
    """Refuses a metric that is not defined, before anything is trained."""
    metric = self._settings['stop_metric']
    if self._settings['stop_after'] is None:
      return
    if metric in stop_metrics.OF_TRAINING:
      measured = self._process.next.type_signature.result.metrics.member
      names = tff.structure.name_list(measured['client_work'])
      defined = metric.removeprefix('train_') in names
    else:
      columns = self._metric_columns(self._evaluate(initial, 0))
      defined = not np.isnan(columns[metric])
    if not defined:
      raise RunError(
        '--stop_metric must be a metric that this run measures, found'
        f' {metric!r}, which is not defined for its method and data.'
      )

  def _check_converges(self, row, round_number):
    failure = self._failed.add(row)
    if failure:
      raise self._diverged(f'{failure}, up to round {round_number}')

  def _check_finite(self):
    """Refuses models whose scores would mean nothing."""
    try:
      evaluation.check_finite(
        self._scores,
        self._has_data,
        self._task.client_names,
        has_global_loss=self._centroids is None,
      )
    except evaluation.NotFiniteError as error:
      raise self._diverged(f'{error} after round {self.done}') from None

  def _check_trained(self):
    """Refuses personal models that are as they were at the start."""
    if 'personal' not in self._scores:
      return
    rejected = self._directory.read_always_rejected()
    untrained = [i for i in rejected if self._has_data[i]]
    if untrained:
      who = evaluation.listed(untrained, self._task.client_names)
      raise self._diverged(
        f'no update of {who} was finite in {self.done} rounds, whose model is'
        ' as it was at the start'
      )

  def _diverged(self, failure) -> DivergedError:
    # An earlier version may have written it.
    self._directory.remove_summary()
    return DivergedError(
      f'the run has diverged: {failure}; a lower learning rate may help, in a'
      ' new --output_dir.'
    )

  def _is_due(self, period: str, round_number: int) -> bool:
    last = round_number == self._settings['rounds']
    return last or round_number % self._settings[period] == 0

  def _is_evaluated(self, round_number: int) -> bool:
    averaged = round_number in last_rounds.averaged_rounds(self._settings)
    return averaged or self._is_due('eval_every', round_number)

  def _averaged(self, scores):
    """The scores with the mean accuracies that `--score_last` asks for."""
    if self._settings['score_last'] is None:
      return scores
    # From the file: some of these rounds may have been before this start.
    rounds = last_rounds.averaged_rounds(self._settings)
    accuracies = self._directory.read_mean_accuracies(rounds)
    return last_rounds.with_accuracies(scores, accuracies)

  def _evaluate(self, state, round_number):
    try:
      return evaluation.evaluate(
        self._evaluator, self._process, state, self._centroids
      )
    except evaluation.NotFiniteError as error:
      raise self._diverged(f'{error} after round {round_number}') from None

  def _metric_columns(self, scores):
    return evaluation.metric_columns(scores, self._has_data)

  def _distances(self, before, after, data):
    """The distances of the round that was just evaluated."""
    accuracies = evaluation.of_clients(self._scores).accuracy
    return {
      **distances.of_round(self._process, before, after, data),
      **distances.of_accuracies(accuracies, self._has_data),
    }

  def _client_columns(self, scores) -> dict[str, Any]:
    """The columns of clients.csv."""
    client_scores = evaluation.of_clients(scores)
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
    # From the file: a run that was complete at the start has run no round.
    reports = self._directory.read_last_reports()
    from_server = _names_reported_by_server(self._process)
    for name in reports.columns.intersection(from_server):
      columns[name] = reports[name].reindex(columns['client_id']).to_numpy()
    return columns


def set_runtime(settings: Mapping[str, Any]) -> None:
  """Sets the runtime of a run in place of the current one, if that differs.

  A new runtime would compile again what the last one has compiled.

  Args:
    settings: The result of `launchers.options.settings.resolve`.

  Raises:
    RunError: If there is no such device, or Ray is not installed.
    runtime.WorkerError: If no worker can be had.
  """
  global _runtime
  kind = settings['runtime']
  flags = _RUNTIME_ARGUMENTS[kind]
  options = {argument: settings[flag] for argument, flag in flags.items()}
  contexts = tff.framework.get_context_stack()
  if _runtime and _runtime == (kind, options, contexts.current):
    return
  # First, even if the other fails: TFF's default context, if it is never used,
  # prints an exception when Python exits.
  runtime.set_execution_context('native')
  try:
    runtime.set_execution_context(kind, **options)
  except ValueError as error:
    raise RunError(flag_sentences.with_flags(str(error), flags)) from error
  except ImportError as error:
    raise RunError(str(error)) from error
  _runtime = kind, options, contexts.current


def build_task(settings: Mapping[str, Any]) -> tasks.Task:
  """Builds the task of a run.

  Args:
    settings: The result of `launchers.options.settings.resolve`.

  Returns:
    The task.

  Raises:
    RunError: If a setting does not fit the data.
    tasks.DataNotFoundError: If a data file cannot be found.
    tasks.DataDamagedError: If a data file is damaged.
  """
  try:
    return tasks.build_task(
      settings['task'], **settings_lib.task_options(settings)
    )
  except tasks.DataDamagedError:
    raise
  except (TypeError, ValueError) as error:
    raise RunError(flag_sentences.of_task(str(error))) from error


def build_process(
  settings: Mapping[str, Any], task: tasks.Task, *prepared: Any
) -> Any:
  """Builds the learning process of a run.

  Args:
    settings: The result of `launchers.options.settings.resolve`.
    task: The task of the run.
    *prepared: Other arguments of `processes.build_process`.

  Returns:
    A `tff.learning.templates.LearningProcess`.

  Raises:
    RunError: If a setting does not fit the data.
  """
  return _build(processes.build_process, settings, task, *prepared)


def build_cohorts(
  settings: Mapping[str, Any], task: tasks.Task
) -> Callable[[int], list[list[int]]]:
  """The clients of each round, a function of the client seed and the round.

  Args:
    settings: The result of `launchers.options.settings.resolve`.
    task: The task of the run.

  Returns:
    From the number of a round to the client ids of each call of `next`.
  """
  clients = range(task.num_clients)
  if methods.takes_turns(settings['algorithm']):
    turns = [[i] for i in clients]
    return lambda round_number: turns
  # A free rider has no data and still takes part.
  server = settings['split'] == 'server'
  eligible = [i for i in clients if server or task.num_train(i) > 0]
  size = max(1, int(settings['client_fraction'] * task.num_clients + 0.5))
  size = min(size, len(eligible))
  sample = tff.simulation.build_uniform_sampling_fn(
    eligible, random_seed=settings['client_seed']
  )
  return lambda round_number: [sample(round_number, size)]


def load_global_model(
  settings: Mapping[str, Any],
  task: tasks.Task,
  output_dir: pathlib.Path,
  round_number: int,
) -> tff.learning.models.ModelWeights:
  """Loads the global model of a run after a round, from its checkpoint.

  Args:
    settings: The result of `launchers.options.settings.resolve`.
    task: The task of the run.
    output_dir: The run's directory.
    round_number: The round.

  Returns:
    The weights.

  Raises:
    FileNotFoundError: If there is no such checkpoint.
    ValueError: If it is damaged, or belongs to another run.
  """
  statistics = processes.gather_statistics(settings, task)
  alone = contributions.of_clients(settings, task, output_dir)
  process = processes.build_process(settings, task, statistics, alone)
  state = run_directory.load_state(
    output_dir, process.initialize(), round_number, _origin(settings, alone)
  )
  return process.get_model_weights(state)


def _origin(settings, alone) -> dict[str, str]:
  """The settings and data that a checkpoint of a run belongs to."""
  origin = settings_lib.relevant(settings_lib.to_text(settings, None))
  if alone is not None:
    origin['contributions'] = str(alone)
  if settings.get('data_file') is not None:
    # A file of one's own may change between two starts of a run.
    origin['the content of --data_file'] = tasks.fingerprint(
      settings['data_file']
    )
  return origin


def _build(build_fn, settings, *arguments):
  """Calls a builder, and raises a `RunError` if it rejects the settings."""
  try:
    return build_fn(settings, *arguments)
  except (TypeError, ValueError) as error:
    # TensorFlow's message about an error in a graph ends with the error.
    sentence = str(error).strip().splitlines()[-1].strip()
    raise RunError(flag_sentences.of_builder(sentence, settings)) from error


def _names_reported_by_server(process) -> list[str]:
  """The names of the numbers that the aggregator reports of each client."""
  measured = process.next.type_signature.result.metrics.member['aggregator']
  if not hasattr(measured, 'clients'):
    return []
  return tff.structure.name_list(measured.clients)


def _window(column) -> dict[str, float]:
  """The mean of the last evaluations, with its confidence interval."""
  values = column.dropna()[-_WINDOW:]
  interval = metrics.mean_with_interval(values)
  return {'evaluations': len(values), **interval._asdict()}


def _median(seconds) -> float | None:
  return float(np.median(seconds)) if seconds else None
