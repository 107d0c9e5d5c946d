"""A run: a loop of rounds, and callbacks that do all else."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import functools
import pathlib
import time
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair import checkpoints
from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers import interrupts
from tff_fair.launchers.options import methods
from tff_fair.launchers.runs import attackers
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import callbacks as callbacks_lib
from tff_fair.launchers.runs import contributions
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import divergence
from tff_fair.launchers.runs import early_stopping
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import file_callbacks
from tff_fair.launchers.runs import further_scores
from tff_fair.launchers.runs import groups
from tff_fair.launchers.runs import messages
from tff_fair.launchers.runs import private_training
from tff_fair.launchers.runs import round_metrics
from tff_fair.launchers.runs import run_directory
from tff_fair.launchers.runs import run_summary
from tff_fair.launchers.runs import tensorboard_files
from tff_fair.launchers.runs import user_callbacks

# What other programs need.
DivergedError = errors.DivergedError
RunError = errors.RunError
USER_ERRORS = errors.USER_ERRORS
build_cohorts = building.build_cohorts
build_task = building.build_task
set_runtime = building.set_runtime

_STOPPED = (runtime.WorkerError, user_callbacks.CallbackError)

# Keras warns about a function that its batch normalisation uses.
tf.get_logger().setLevel('ERROR')


class Run:
  """A run: trains its rounds, and calls its callbacks.

  Attributes:
    settings: Flag name -> value.
    task: The data, and how they are divided.
    notes: What the user should read about the data before training.
    num_clients: Number of clients.
    num_train: Number of training examples of each client.
    attackers: The ids of the clients that are attackers.
    is_scored: Whether the scores of each client count, bool[k]: it has training
      data, and is no attacker.
    statistics: The channel statistics of the clients' data, if the method needs
      them; else None.
    process: The learning process of the method.
    centroids: From global weights to class centroids, if the nearest one
      classifies; else None.
    accounting: The privacy of its rounds; None without noise.
    directory: The files of the run; `directory.path` is its folder.
    start: The round of the checkpoint from which it resumes; 0 for none.
    done: The number of rounds that are trained.
    state: The state of the process after them.
    scores: Those of the last evaluation since the start; None before it.
    groups: How groups of people are served; None before the end, and without
      sensitive columns.
    seconds: Those of each round since the start, without evaluation and files.
    cpu_seconds: Processor time of these rounds in this process.
    stop: Why the run has ended before its last round; None if it has not.
  """

  def __init__(
    self,
    settings: Mapping[str, Any],
    output_dir: pathlib.Path,
    flags_text: str,
    task: tasks.Task | None = None,
    like: 'Run | None' = None,
    callbacks: Sequence[callbacks_lib.Callback] = (),
    only_last_distances: bool = False,
  ):
    """Builds the process, and loads the last checkpoint if there is one.

    Args:
      settings: The result of `launchers.options.settings.resolve`.
      output_dir: An existing directory.
      flags_text: The content of the flags file.
      task: What `build_task` gives for the settings, if it is built already.
      like: A run that differs in its seeds alone, whose compiled rounds are
        used again if it has as many clients.
      callbacks: They are called after those that write the run's files.
      only_last_distances: Whether `--distances` measures the last round alone.

    Raises:
      One of `USER_ERRORS`: If a setting or a file does not fit.
    """
    set_runtime(settings)
    self.settings = settings
    task = task or build_task(settings)
    self.task = task = building.build(building.with_groups, settings, task)
    self.notes = list(task.notes)
    self.num_clients = task.num_clients
    self.num_train = [task.num_train(i) for i in range(task.num_clients)]
    self.attackers = self._build(attackers.draw)
    self.is_scored = np.greater(self.num_train, 0)
    self.is_scored[[*self.attackers]] = False
    if self.attackers:
      self.notes.append(attackers.note(settings, task, self.attackers))
    few = evaluation.note_of_few_examples(task, self.is_scored)
    if few:
      self.notes.append(few)
    # Before the seed is set: the seed is that of the initial weights.
    self.statistics = self._build(building.gather_statistics)
    alone = self._build(contributions.of_clients, output_dir)
    tf.keras.utils.set_random_seed(settings['model_seed'])
    self.process = self._build(building.build_process, self.statistics, alone)
    self._next = self.process.next
    if (
      like is not None
      and building.same_for_all_seeds(settings)
      # The draw decides how many are left of clients that may be left out.
      and like.num_clients == self.num_clients
    ):
      self._next = like._next
    self._cohorts = build_cohorts(settings, task)
    self._evaluator = evaluation.build_evaluator(task, self.statistics)
    self._further_scores = self._build(
      further_scores.build, self.statistics, self._evaluator
    )
    self._holdout = None
    if settings['score_holdout']:
      self._holdout = self._build(_holdout_evaluator, self.statistics)
    self.centroids = self._build(building.build_class_centroids)
    self.accounting = self._build(private_training.build_accounting)
    if self.accounting is not None:
      self.notes.append(private_training.note(self.accounting))
    initial = self.process.initialize()
    early_stopping.check_metric(self, initial)
    contributions.keep(alone, output_dir)
    self.directory = run_directory.RunDirectory(
      output_dir,
      checkpoint_every=settings['checkpoint_every'],
      checkpoints_to_keep=settings['checkpoints_to_keep'],
      settings=building.origin(settings, alone),
      names=task.client_names,
    )
    try:
      self.state, self.start = self.directory.resume(initial)
    except checkpoints.OtherStateError as error:
      raise RunError(str(error)) from error
    self.done = self.start
    self.scores = None
    self.groups = None
    self.seconds = []
    self.cpu_seconds = 0.0
    self.stop = early_stopping.find(
      self.directory.read_metrics(), settings
    ) or user_callbacks.find_stop(
      self.directory.read_summary(['stopped_early']), settings, self.start
    )
    # Those that add to a round's row, write and check it, and see it whole.
    self._measures = [
      distances.Distances(only_last=only_last_distances),
      private_training.Privacy(),
    ]
    self._recorders = [
      file_callbacks.RunFiles(flags_text),
      tensorboard_files.TensorBoard(flags_text),
      divergence.Divergence(),
    ]
    self._others = [
      early_stopping.EarlyStopping(),
      *callbacks,
      file_callbacks.Checkpoints(),
    ]
    self._callbacks = [*self._measures, *self._recorders, *self._others]

  @property
  def is_over(self) -> bool:
    """Whether there is no round left to train."""
    return self.done == self.settings['rounds'] or self.stop is not None

  def train(
    self, on_round: Callable[[Mapping[str, Any]], None] = lambda row: None
  ) -> None:
    """Trains the rounds after `start`.

    `on_round` is called after each round with its row of metrics.csv.

    Raises:
      RunError: If it is interrupted, or a worker or a callback fails; the state
        is saved.
      DivergedError: If the run diverges.
      OSError: If a file cannot be written; the last checkpoint is intact.
    """
    with self._ending_if_it_fails():
      try:
        with interrupts.GracefulStop() as interruption:
          for callback in self._callbacks:
            callback.on_start(self)
          while not self.is_over:
            on_round(self._train_round(interruption))
            if interruption.is_requested:
              raise KeyboardInterrupt
      except (KeyboardInterrupt, *_STOPPED) as error:
        self.directory.save_checkpoint(self.state, self.done)
        reason = f'{error} The run has ' if str(error) else ''
        raise RunError(
          f'{reason}stopped after round {self.done} of'
          f' {self.settings["rounds"]}; run the same command again to resume.'
        ) from None

  def finish(self) -> dict[str, Any]:
    """Evaluates, writes clients.csv and summary.json, and returns the latter.

    Raises:
      DivergedError: If the run, or a client with a model of its own, has
        trained nothing, or a model is of no use.
      CallbackError: If a callback fails; all files are written.
      OSError: If a file cannot be written.
    """
    with self._ending_if_it_fails():
      divergence.check_aggregated(self)
      # A run that was complete at the start has not evaluated yet.
      if self.scores is None:
        self.scores = self.evaluate(self.state, self.done)
        divergence.check_scores(self, self.scores, self.done)
      divergence.check_trained(self)
      self.groups = groups.measure(
        self.task, evaluation.of_clients(self.scores), self.is_scored
      )
      if self.settings['score_last'] is not None and not self.stop:
        # From the file: some of these rounds may have been before this start.
        accuracies = self.directory.read_mean_accuracies(
          evaluation.averaged_rounds(self.settings)
        )
        self.scores = evaluation.with_accuracies(self.scores, accuracies)
      summary = run_summary.summarize(self)
    user_callbacks.end(self._callbacks, self, summary)
    return summary

  def evaluate(self, state: Any, number: int) -> evaluation.Scores:
    """Scores the models of a state after `number` rounds on the test examples.

    Raises:
      DivergedError: If the nearest centroid classifies, and there is none.
    """
    return evaluation.evaluate(
      self._evaluator,
      self.process,
      state,
      self.centroids,
      functools.partial(self._further_scores, number=number),
      self._holdout,
    )

  def holdout_accuracy(self) -> float:
    """Returns the mean accuracy of the clients on what is held out.

    Their own holdout parts, or with the split `server` its validation part.
    Attackers, and clients without training data or a holdout, are excluded.

    Raises:
      RunError: If there are no such examples.
      DivergedError: If a model is of no use for them.
    """
    evaluator = self._holdout or self._build(
      _holdout_evaluator, self.statistics
    )
    scores = evaluation.evaluate(
      evaluator, self.process, self.state, self.centroids
    )
    divergence.check_scores(self, scores, self.done)
    columns = evaluation.metric_columns(scores, self.is_scored)
    return columns['client_accuracy_mean']

  def bytes_per_round(self) -> tuple[int, int]:
    """Returns the bytes of a round from the server to all clients, and back.

    They include the rows of the client table, although a deployment could keep
    these on the clients. A method without an aggregation rule has zero.
    """
    if methods.METHODS[self.settings['algorithm']].rule == 'none':
      return 0, 0
    calls = self._cohorts(1)
    size = max(map(len, calls))
    sent = messages.count_messages(self.process.next, size)
    number = size * len(calls)
    return number * sent.down, number * sent.up

  def _build(self, build_fn, *arguments):
    return building.build(build_fn, self.settings, self.task, *arguments)

  def _train_round(self, interruption) -> dict[str, Any]:
    """Trains a round, calls the callbacks, and returns the row."""
    result = self._compute_round(self.done + 1)
    self._call(self._measures, result)
    with interruption.postponed():  # The rows and the state belong together.
      self._call(self._recorders, result)
      self.state, self.done = result.state, result.number
    self._call(self._others, result)
    return result.row

  def _compute_round(self, number) -> callbacks_lib.RoundResult:
    began, cpu_began = time.monotonic(), time.process_time()
    state, calls = self.state, []
    for cohort in self._cohorts(number):
      data = [self.task.client_reference(i) for i in cohort]
      output = self._call_next(state, data)
      state = output.state
      calls.append(round_metrics.flatten(output.metrics))
    self.cpu_seconds += time.process_time() - cpu_began
    self.seconds.append(time.monotonic() - began)
    row, reports = round_metrics.merge(calls)
    scores = None
    if self._is_evaluated(number):
      self.scores = scores = self.evaluate(state, number)
      row.update(evaluation.metric_columns(scores, self.is_scored))
    return callbacks_lib.RoundResult(
      number, row, reports, scores, self.state, state, data, self.seconds[-1]
    )

  def _call_next(self, state, data) -> Any:
    """Calls `next`; what a model raises in it is an error of the run."""
    try:
      return self._next(state, data)
    except _STOPPED:
      raise
    except RuntimeError as error:
      found = ' '.join(str(error).split()).rstrip('.')
      raise RunError(f'round {self.done + 1} failed: {found}.') from error

  def _is_evaluated(self, number) -> bool:
    periodic = number % self.settings['eval_every'] == 0
    return periodic or number in evaluation.averaged_rounds(self.settings)

  def _call(self, callbacks, result) -> None:
    """Calls callbacks after a round; the first that stops the run says why."""
    for callback in callbacks:
      stop = callback.after_round(self, result)
      self.stop = self.stop or stop or None

  @contextlib.contextmanager
  def _ending_if_it_fails(self):
    try:
      yield
    except BaseException as error:
      if isinstance(error, DivergedError):
        self.directory.remove_summary()  # Of an earlier version.
      user_callbacks.end(self._callbacks, self, None)
      raise


def _holdout_evaluator(settings, task, statistics) -> evaluation.Evaluator:
  """Scores models on what is held out of training."""
  del settings  # Unused.
  return evaluation.build_evaluator(task, statistics, 'holdout')
