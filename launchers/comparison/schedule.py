"""Which runs a comparison trains next: the trials, then all other seeds."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import records
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.execution import pool as pool_lib
from tff_fair.launchers.execution import worker
from tff_fair.launchers.options import methods as registry
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import planned_run


class Schedule:
  """Queues the runs of a comparison, and knows how they ended.

  Attributes:
    methods: The methods, the baseline first.
    seeds: The values of all seeds; trials are of the first.
    excluded: Methods that cannot run on the task, or diverged in all trials,
      each with the reason.
  """

  def __init__(
    self, planner: plan.Planner, methods: Sequence[str], seeds: Sequence[int]
  ):
    """Plans all trials, so that mistakes show before anything is trained.

    Raises:
      SettingsError: If the flags do not describe a run of the baseline, or the
        directory holds runs with other flags.
    """
    self._planner = planner
    self.methods, self.seeds = methods, seeds
    self._trials = {}
    self.excluded: dict[str, str] = {}
    for method in methods:
      try:
        self._trials[method] = [
          planner.run(method, trial, seeds[0])
          for trial in range(len(planner.trials(method)))
        ]
      except settings_lib.SettingsError as error:
        if method == plan.BASELINE:
          raise
        self.excluded[method] = str(error)
    for trials in self._trials.values():
      settings_lib.check_same_run(trials[0].output_dir, trials[0].flags_text)
    self._chosen: dict[str, int | None] = {}
    self._planned: dict[tuple[str, int], list[planned_run.PlannedRun]] = {}
    self._queue: deque[pool_lib.Group] = deque()
    self._ended = 0

  @property
  def baseline_runs(self) -> list[planned_run.PlannedRun]:
    """A run of the baseline for each seed."""
    return [self._planner.run(plan.BASELINE, 0, seed) for seed in self.seeds]

  def train(self, pool: pool_lib.Pool) -> None:
    """Trains what has not ended yet, one method after the other."""
    for method, runs in self._trials.items():
      for trial in range(len(runs)):
        self._queue_runs(self._first_runs(method, trial))
      self._choose(method)

    def end(output_dir, report):
      self._end(output_dir.parts[-3], report)
      pool.total = self._count_rounds()

    pool.total = self._count_rounds()
    pool.train(self._queue, end, measure=True)

  def ended(self) -> list[records.Ended]:
    """All runs that have ended, by method, seed and trial."""
    found = []
    for method, runs in self._trials.items():
      if method in self.excluded and self._chosen.get(method, 0) is not None:
        continue  # It cannot run on the task.
      tried, chosen = self._planner.trials(method), self._chosen.get(method)
      planned = list(enumerate(runs))
      if chosen is not None:
        planned += [(chosen, run) for run in self._others(method, chosen)]
      found += [
        records.Ended(method, t, tried[t], t == chosen, run, outcome)
        for t, run in planned
        if (outcome := outcomes.read(run.output_dir))
      ]
    return found

  def left(self) -> list[str]:
    """The method of each run that has not ended."""
    found = []
    for method, trials in self._trials.items():
      if method in self.excluded:
        continue
      runs = list(trials)
      if method in self._chosen or not self._planner.tune:
        runs += self._others(method, self._chosen.get(method, 0))
      else:  # It is not known of which trial.
        found += [method] * (len(self.seeds) - 1)
      found += [method] * len(_open(runs))
    return found

  def _first_runs(self, method, trial) -> list[planned_run.PlannedRun]:
    """The run of a trial; with all seeds, where there is nothing to choose."""
    runs = self._trials[method][trial : trial + 1]
    return runs if self._planner.tune else runs + self._others(method, trial)

  def _others(self, method, trial) -> list[planned_run.PlannedRun]:
    key = method, trial
    if key not in self._planned:  # Flags take a while to resolve.
      self._planned[key] = [self._planner.run(*key, s) for s in self.seeds[1:]]
    return self._planned[key]

  def _queue_runs(self, runs, first=False) -> None:
    """Queues the runs that have not ended."""
    if left := _open(runs):
      (self._queue.appendleft if first else self._queue.append)(left)

  def _count_rounds(self) -> int:
    return (self._ended + len(self.left())) * self._planner.rounds

  def _end(self, method, report) -> None:
    """What follows from the end of a run."""
    if report.kind == worker.CANNOT:
      self._exclude(method, report.sentence)
    elif report.kind in (worker.TRAINED, worker.DIVERGED):
      self._ended += 1
      self._choose(method, first=True)

  def _exclude(self, method, reason) -> None:
    if method in self.excluded:
      return  # By another of its trials, which ran at the same time.
    self.excluded[method] = reason
    for runs in list(self._queue):
      if runs[0].settings['algorithm'] == method:
        self._queue.remove(runs)
    pool_lib.say(f'{registry.title(method)} is left out: {reason}')

  def _choose(self, method, first=False) -> None:
    """Queues the other seeds, as soon as all trials of a method have ended."""
    if method in self._chosen or method in self.excluded:
      return
    found = [outcomes.read(run.output_dir) for run in self._trials[method]]
    if None in found:
      return
    finished = {
      trial: outcome.holdout_accuracy
      for trial, outcome in enumerate(found)
      if outcome.status == outcomes.FINISHED
    }
    if not finished:
      self._chosen[method] = None
      reason = found[0].reason
      self._exclude(
        method,
        f'All of its {len(found)} trials diverged; the first: {reason}'
        if self._planner.tune
        else f'It diverged: {reason}',
      )
      return
    best = self._chosen[method] = max(finished, key=finished.get)
    if self._planner.tune:  # Otherwise they are queued with the first one.
      tried = self._planner.trials(method)[best]
      pool_lib.say(_describe_choice(method, tried, finished[best], found))
      self._queue_runs(self._others(method, best), first)


def describe(
  runs: Sequence[planned_run.PlannedRun],
) -> dict[str, Any] | worker.Report:
  """Builds the tasks of a run for each seed, in a worker, before any training.

  Returns facts of the first one; `has_holdout`, whether all have one; and
  `test_examples`, the size of each client's test part with each seed; or why a
  task cannot be built.
  """
  from tff_fair.launchers.runs import attackers
  from tff_fair.launchers.runs import building
  from tff_fair.launchers.runs import groups
  from tff_fair.launchers.runs import training

  settings = runs[0].settings
  try:
    tasks = [worker.build_task(run.settings) for run in runs]
    found = [
      building.build(attackers.draw, run.settings, task)
      for run, task in zip(runs, tasks, strict=True)
    ]
  except training.USER_ERRORS as error:
    return worker.Report(worker.FAILED, str(error))
  notes = list(tasks[0].notes)
  if found[0]:
    notes.append(attackers.note_of_seeds(settings, tasks[0], found[0]))
  calls = training.build_cohorts(settings, tasks[0])(1)
  return {
    'num_clients': tasks[0].num_clients,
    'cohort_size': sum(map(len, calls)),
    'client_names': list(tasks[0].client_names),
    'notes': notes,
    'positive_class': groups.positive_name(tasks[0]),
    'has_holdout': all(map(worker.has_holdout, tasks)),
    'test_examples': [_test_examples(task) for task in tasks],
  }


def _test_examples(task) -> list[int]:
  """The number of examples by which each client is tested."""
  if task.has_server_test:
    return task.num_clients * [len(task.server.test)]
  return [len(split.test) for split in task.splits]


def _open(runs) -> list[planned_run.PlannedRun]:
  return [run for run in runs if outcomes.read(run.output_dir) is None]


def _describe_choice(method, tried, accuracy, trials) -> str:
  values = ' '.join(f'--{name}={value:g}' for name, value in tried.items())
  diverged = sum(t.status == outcomes.DIVERGED for t in trials)
  also = f'; {diverged} of {len(trials)} trials diverged' if diverged else ''
  return (
    f'{registry.title(method)}: {values} (holdout accuracy'
    f' {accuracy:.3f}{also})'
  )
