"""A run: a loop of rounds, and callbacks that do all else."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import pathlib
import time
from typing import Any

import tensorflow as tf

from tff_fair import checkpoints
from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import callbacks as callbacks_lib
from tff_fair.launchers.runs import contributions
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import divergence
from tff_fair.launchers.runs import early_stopping
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import file_callbacks
from tff_fair.launchers.runs import graceful_stop
from tff_fair.launchers.runs import round_metrics
from tff_fair.launchers.runs import run_directory
from tff_fair.launchers.runs import run_parts
from tff_fair.launchers.runs import run_summary
from tff_fair.launchers.runs import tensorboard_files
from tff_fair.launchers.runs import user_callbacks

# What other programs need.
DivergedError = errors.DivergedError
RunError = errors.RunError
USER_ERRORS = errors.USER_ERRORS
build_cohorts = building.build_cohorts
build_process = building.build_process
build_task = building.build_task
load_global_model = building.load_global_model
set_runtime = building.set_runtime

_STOPPED = (runtime.WorkerError, user_callbacks.CallbackError)

# Keras warns about a function that its batch normalisation uses.
tf.get_logger().setLevel('ERROR')


class Run(run_parts.RunParts):
  """A run: trains its rounds, and calls its callbacks.

  Attributes:
    notes: What the user should read about the data before training.
    directory: The files of the run; `directory.path` is its folder.
    start: The round of the checkpoint from which it resumes; 0 for none.
    done: The number of rounds that are trained.
    state: The state of the process after them.
    scores: Those of the last evaluation since the start; None before it.
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
        used again.
      callbacks: They are called after those that write the run's files.
      only_last_distances: Whether `--distances` measures the last round alone.

    Raises:
      One of `USER_ERRORS`: If a setting or a file does not fit.
    """
    set_runtime(settings)
    super().__init__(settings, task or build_task(settings), output_dir, like)
    self.notes = self.task.notes
    initial = self.process.initialize()
    early_stopping.check_metric(self, initial)
    contributions.keep(self.alone, output_dir)
    self.directory = run_directory.RunDirectory(
      output_dir,
      checkpoints_to_keep=settings['checkpoints_to_keep'],
      settings=building.origin(settings, self.alone),
      names=self.task.client_names,
    )
    try:
      self.state, self.start = self.directory.resume(initial)
    except checkpoints.OtherStateError as error:
      raise RunError(str(error)) from error
    self.done = self.start
    self.scores = None
    self.seconds = []
    self.cpu_seconds = 0.0
    self.stop = early_stopping.find(
      self.directory.read_metrics(), settings
    ) or user_callbacks.find_stop(
      self.directory.read_summary(['stopped_early']), settings, self.start
    )
    # Those that add to a round's row, write and check it, and see it whole.
    self._measures = [distances.Distances(only_last=only_last_distances)]
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

  @property
  def seconds_of_rounds(self) -> float:
    """The sum of `seconds`."""
    return sum(self.seconds)

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
        with graceful_stop.GracefulStop() as interruption:
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
      if self.settings['score_last'] is not None and not self.stop:
        # From the file: some of these rounds may have been before this start.
        accuracies = self.directory.read_mean_accuracies(
          evaluation.averaged_rounds(self.settings)
        )
        self.scores = evaluation.with_accuracies(self.scores, accuracies)
      summary = run_summary.summarize(self)
    user_callbacks.end(self._callbacks, self, summary)
    return summary

  def holdout_accuracy(self) -> float:
    """Returns the mean accuracy of the clients on what is held out.

    Their own holdout parts, or with the split `server` its validation part.
    Clients without training data, and without a holdout, are excluded.

    Raises:
      RunError: If there are no such examples.
    """
    return self._holdout_accuracy(self.state)

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
      output = self._next(state, data)
      state = output.state
      calls.append(round_metrics.flatten(output.metrics))
    self.cpu_seconds += time.process_time() - cpu_began
    self.seconds.append(time.monotonic() - began)
    row, reports = round_metrics.merge(calls)
    scores = None
    if self._is_evaluated(number):
      self.scores = scores = self.evaluate(state, number)
      row.update(self.metric_columns(scores))
    return callbacks_lib.RoundResult(
      number, row, reports, scores, self.state, state, data, self.seconds[-1]
    )

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
