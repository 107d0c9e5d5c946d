"""Trains runs in a process of its own."""

from collections.abc import Iterator, Mapping, Sequence
import multiprocessing
import os
import threading
import time
from typing import Any, NamedTuple

from tff_fair import plugins
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import run_files

TRAINED, DIVERGED, CANNOT = 'trained', 'diverged', 'cannot'
FAILED, INTERRUPTED, NOT_STARTED = 'failed', 'stopped', 'not started'

# Each holds a copy of its clients' data.
_MOST_TASKS = 2


class Report(NamedTuple):
  """A worker's answer about a run; `sentence` says why it is not trained.

  It is `CANNOT` if the method does not fit the task, `FAILED` if all runs have
  to end, `NOT_STARTED` after the deadline.
  """

  kind: str
  sentence: str = ''
  seconds: float = 0.0


class Signals(NamedTuple):
  """The objects that the workers share with the program.

  Attributes:
    rounds: The number of rounds that all workers have done, shared memory.
    stop: Set when workers have to stop after their current round.
    reports: A queue of `(directory of a run, its report)`.
    deadline: No run is started after it, on the clock `time.monotonic`, which
      all processes share; None for no deadline.
  """

  rounds: Any
  stop: Any
  reports: Any
  deadline: float | None = None


def start(signals: Signals, plugin_names: Sequence[str], threads: int) -> None:
  """Prepares this process for runs; `threads` are for those that name none."""
  global _signals, _threads
  _signals, _threads = signals, threads
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


def train(runs: Sequence[planned_run.PlannedRun], measure: bool) -> None:
  """Trains runs one after the other, and reports each.

  Args:
    runs: Runs that differ in their seeds alone, and share compiled rounds.
      Those that have ended are left out; after one that cannot run, all are.
    measure: Whether each run's outcome is written into its directory.
  """
  for run, report in _reports(runs, measure):
    _signals.reports.put((run.output_dir, report))


def build_task(settings: Mapping[str, Any]) -> Any:
  """Returns the task of a run, kept for the next run with the same data."""
  options = settings_lib.task_options(settings)
  key = repr((settings['task'], sorted(options.items())))
  if key not in _tasks:
    from tff_fair.launchers.runs import training

    while len(_tasks) >= _MOST_TASKS:
      _tasks.pop(next(iter(_tasks)))
    _tasks[key] = training.build_task(settings)
  return _tasks[key]


def has_holdout(task: Any) -> bool:
  """Returns whether there are examples to choose between runs."""
  return len(task.validation.y) > 0


def _reports(runs, measure) -> Iterator[tuple[planned_run.PlannedRun, Report]]:
  from tff_fair.launchers.runs import training

  compiled = []  # The last run, whose rounds the next one takes.
  for run in runs:
    if _signals.stop.is_set():
      return
    if _signals.deadline is not None and time.monotonic() > _signals.deadline:
      yield run, Report(NOT_STARTED)
      continue
    try:
      report = _train(run, compiled, measure)
    except (settings_lib.SettingsError, *training.USER_ERRORS) as error:
      report = Report(FAILED, str(error))
    except OSError as error:
      where = error.filename or run.output_dir
      report = Report(FAILED, f'{where}: {error.strerror or error}.')
    yield run, report
    if report.kind not in (TRAINED, DIVERGED):
      return


def _train(run, compiled, measure) -> Report:
  import tensorflow as tf

  from tff_fair.launchers.runs import training

  tf.keras.backend.clear_session()  # Frees the previous run.
  with run_files.claim(run.output_dir):
    if outcomes.read(run.output_dir) if measure else run.is_finished():
      return Report(TRAINED)
    began = time.perf_counter()
    started = None
    try:
      task = build_task(run.settings)
      started = training.Run(
        _with_threads(run.settings),
        run.output_dir,
        run.flags_text,
        task=task,
        like=compiled.pop() if compiled else None,
        only_last_distances=run.only_last_distances,
      )
      compiled.append(started)
      built = time.perf_counter()
      _add_rounds(started.start)
      started.train(_count_round)
      summary = started.finish()
      outcome = measure and _measured(run, started, summary, task, began, built)
    # Also of clients alone, which FedSAC trains while it is built.
    except training.DivergedError as error:
      if measure:
        outcome = outcomes.Outcome(outcomes.DIVERGED, reason=str(error))
        outcomes.write(outcome, run.output_dir)
      return Report(DIVERGED, str(error))
    except training.RunError as error:
      if started is None:
        return Report(CANNOT, str(error))
      if not _signals.stop.is_set():
        raise
      return Report(INTERRUPTED, str(error))
    if measure:
      outcomes.write(outcome, run.output_dir)
  return Report(TRAINED, seconds=time.perf_counter() - began)


def _measured(run, started, summary, task, began, built) -> outcomes.Outcome:
  # Another seed sends the same; to count it takes longer than a round.
  if run.arguments not in _bytes:
    _bytes[run.arguments] = started.bytes_per_round()
  down, up = _bytes[run.arguments]
  accuracy = started.holdout_accuracy() if has_holdout(task) else None
  rounds = sum(started.seconds)
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


def _with_threads(settings) -> dict[str, Any]:
  """Runs at the same time share the cores; no number depends on it."""
  if settings['client_threads'] is not None:
    return settings
  return {**settings, 'client_threads': _threads}


def _count_round(row) -> None:
  del row  # Unused.
  _add_rounds(1)
  if _signals.stop.is_set():
    raise KeyboardInterrupt


def _add_rounds(count) -> None:
  with _signals.rounds.get_lock():
    _signals.rounds.value += count


def _end_with_parent() -> None:
  multiprocessing.parent_process().join()
  os._exit(1)


_signals: Signals
_threads: int | None = None
_tasks: dict[str, Any] = {}
_bytes: dict[tuple[str, ...], tuple[int, int]] = {}
