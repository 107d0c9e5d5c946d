"""Trains runs of a comparison, in a process of its own."""

from collections.abc import Sequence
import contextlib
import itertools
import multiprocessing
import os
import threading
import time
from typing import Any, NamedTuple

from tff_fair import plugins
from tff_fair.launchers.comparison import budget
from tff_fair.launchers.comparison import outcomes
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import run_claim

TRAINED, CANNOT, FAILED, INTERRUPTED = 'trained', 'cannot', 'failed', 'stopped'

_TIMED_ROUNDS = 4
# Each holds a copy of its clients' data.
_MOST_TASKS = 2


class Report(NamedTuple):
  """What a worker says of the runs that it was given.

  Attributes:
    kind: `TRAINED`; `CANNOT` if the method does not fit the task; `FAILED` if
      the whole comparison has to end; `INTERRUPTED`.
    sentence: Why; empty if they are trained.
  """

  kind: str
  sentence: str = ''


class Signals(NamedTuple):
  """What the workers share with the program.

  Attributes:
    rounds: The number of rounds that all workers have done, shared memory.
    stop: Set when workers have to stop after their current round.
  """

  rounds: Any
  stop: Any


def start(signals: Signals, plugin_names: Sequence[str]) -> None:
  """Prepares this process for runs.

  Args:
    signals: What is shared.
    plugin_names: `--plugins`.
  """
  global _signals
  _signals = signals
  # Ctrl-C is for the program, which tells its workers. If the program is
  # killed, nobody does.
  os.setpgrp()
  threading.Thread(target=_end_with_parent, daemon=True).start()
  plugins.load_installed()
  plugins.load(plugin_names)


def warm_up() -> None:
  """Imports what runs need, which takes seconds."""
  from tff_fair.launchers.runs import training

  del training  # Unused.


def describe(runs: Sequence[planned_run.PlannedRun]) -> dict[str, Any] | Report:
  """Builds the tasks of some runs, so that mistakes show before any training.

  Args:
    runs: A run for each seed.

  Returns:
    `num_clients`, `cohort_size`, `client_names` and `notes` of the first one;
    whether all have a holdout, `has_holdout`; and `test_examples`, the size of
    each client's test part with each seed; or why a task cannot be built.
  """
  from tff_fair.launchers.runs import training

  try:
    tasks = [_task(run.settings) for run in runs]
  except training.USER_ERRORS as error:
    return Report(FAILED, str(error))
  calls = training.build_cohorts(runs[0].settings, tasks[0])(1)
  return {
    'num_clients': tasks[0].num_clients,
    'cohort_size': sum(map(len, calls)),
    'client_names': list(tasks[0].client_names),
    'notes': list(tasks[0].notes),
    'has_holdout': all(map(_has_holdout, tasks)),
    'test_examples': [_test_examples(task) for task in tasks],
  }


def train(runs: Sequence[planned_run.PlannedRun]) -> Report:
  """Trains runs of one method that differ in their seeds.

  Args:
    runs: The runs; those that have ended are left out.

  Returns:
    What became of them. The outcome of each run is in its directory.
  """
  from tff_fair.launchers.runs import training

  compiled = []  # The last run, whose rounds the next one takes.
  for run in runs:
    if _signals.stop.is_set():
      return Report(INTERRUPTED)
    try:
      report = _train(run, compiled)
    except (settings_lib.SettingsError, *training.USER_ERRORS) as error:
      return Report(FAILED, str(error))
    except OSError as error:
      where = error.filename or run.output_dir
      return Report(FAILED, f'{where}: {error.strerror or error}.')
    if report.kind != TRAINED:
      return report
  return Report(TRAINED)


def time_rounds(run: planned_run.PlannedRun) -> budget.Cost | Report:
  """Times a few rounds of a run, and keeps nothing.

  Args:
    run: The run, in a directory of its own.

  Returns:
    Its seconds; or why it cannot run.
  """
  from tff_fair.launchers.runs import training

  began = time.perf_counter()
  run.output_dir.mkdir(parents=True)
  moments = []

  def on_round(row):
    del row  # Unused.
    moments.append(time.perf_counter())
    if len(moments) == _TIMED_ROUNDS or _signals.stop.is_set():
      raise KeyboardInterrupt

  try:
    task = _task(run.settings)
    started = training.Run(run.settings, run.output_dir, run.flags_text, task)
    with contextlib.suppress(training.RunError):  # What ends it on purpose.
      started.train(on_round)
    if _has_holdout(task):
      started.holdout_accuracy()
  except training.RunError as error:
    return Report(CANNOT, str(error))
  except training.USER_ERRORS as error:
    return Report(FAILED, str(error))
  last = time.perf_counter()
  # The first round compiles.
  laps = [b - a for a, b in itertools.pairwise(moments)]
  lap = min(laps) if laps else moments[0] - began
  return budget.Cost(max(0.0, last - began - len(moments) * lap), lap)


def _train(run, compiled) -> Report:
  import tensorflow as tf

  from tff_fair.launchers.runs import training

  tf.keras.backend.clear_session()  # Frees the previous run.
  with run_claim.claim(run.output_dir):
    if outcomes.read(run.output_dir):
      return Report(TRAINED)
    began = time.perf_counter()
    try:
      task = _task(run.settings)
      started = training.Run(
        run.settings,
        run.output_dir,
        run.flags_text,
        task=task,
        like=compiled.pop() if compiled else None,
      )
    except training.RunError as error:
      return Report(CANNOT, str(error))
    compiled.append(started)
    built = time.perf_counter()
    _add_rounds(started.start)
    try:
      started.train(_count_round)
      summary = started.finish()
    except training.DivergedError as error:
      outcome = outcomes.Outcome(outcomes.DIVERGED, reason=str(error))
    except training.RunError as error:
      if not _signals.stop.is_set():
        raise
      return Report(INTERRUPTED, str(error))
    else:
      outcome = _measured(
        run, started, summary, _has_holdout(task), began, built
      )
    outcomes.write(outcome, run.output_dir)
  return Report(TRAINED)


def _measured(
  run, started, summary, has_holdout, began, built
) -> outcomes.Outcome:
  # Another seed sends the same; to count it takes longer than a round.
  if run.arguments not in _bytes:
    _bytes[run.arguments] = started.bytes_per_round()
  down, up = _bytes[run.arguments]
  accuracy = started.holdout_accuracy() if has_holdout else None
  rounds = started.seconds_of_rounds
  seconds = {
    'building': built - began,
    'rounds': rounds,
    'rest': time.perf_counter() - built - rounds,
  }
  return outcomes.Outcome(
    outcomes.FINISHED,
    holdout_accuracy=accuracy,
    bytes_down=down,
    bytes_up=up,
    seconds_per_round=summary['median_seconds_per_round'],
    seconds=seconds,
  )


def _count_round(row) -> None:
  del row  # Unused.
  _add_rounds(1)
  if _signals.stop.is_set():
    raise KeyboardInterrupt


def _add_rounds(count) -> None:
  with _signals.rounds.get_lock():
    _signals.rounds.value += count


def _task(settings):
  """The task of a run, kept for the next run with the same seed."""
  key = repr(sorted(settings_lib.task_options(settings).items()))
  if key not in _tasks:
    from tff_fair.launchers.runs import training

    while len(_tasks) >= _MOST_TASKS:
      _tasks.pop(next(iter(_tasks)))
    _tasks[key] = training.build_task(settings)
  return _tasks[key]


def _has_holdout(task) -> bool:
  """Whether there are examples to choose between runs."""
  return len(task.validation.y) > 0


def _test_examples(task) -> list[int]:
  """The number of examples by which each client is tested."""
  if task.has_server_test:
    return task.num_clients * [len(task.server.test)]
  return [len(split.test) for split in task.splits]


def _end_with_parent() -> None:
  multiprocessing.parent_process().join()
  os._exit(1)


_signals: Signals
_tasks: dict[str, Any] = {}
_bytes: dict[tuple[str, ...], tuple[int, int]] = {}
