"""Trains a comparison: the trials, then the other seeds of the best one."""

from collections.abc import Sequence
from concurrent import futures
from typing import NamedTuple

from tff_fair.launchers.comparison import outcomes
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import pool as pool_lib
from tff_fair.launchers.comparison import progress as progress_lib
from tff_fair.launchers.comparison import records
from tff_fair.launchers.comparison import worker
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import planned_run


class _Job(NamedTuple):
  """Runs of one trial that are queued together."""

  method: str
  trial: int
  runs: tuple[planned_run.PlannedRun, ...]


class Schedule:
  """Queues the runs of a comparison, and knows how they ended.

  Attributes:
    excluded: Methods that cannot run on the task, or diverged in all trials,
      each with the reason.
  """

  def __init__(
    self, planner: plan.Planner, methods: Sequence[str], seeds: Sequence[int]
  ):
    """Plans all trials, so that mistakes show before anything is trained.

    Args:
      planner: Plans the runs.
      methods: The methods, the baseline first.
      seeds: The values of all seeds; trials are of the first.

    Raises:
      SettingsError: If the flags do not describe a run of the baseline, or the
        directory holds runs with other flags.
    """
    self._planner = planner
    self._seeds = seeds
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
    for run in self.first_runs:
      settings_lib.check_same_run(run.output_dir, run.flags_text)
    self._chosen: dict[str, int | None] = {}
    self._jobs: dict[futures.Future, _Job] = {}

  @property
  def first_runs(self) -> list[planned_run.PlannedRun]:
    """The run of the first trial of each method."""
    return [runs[0] for runs in self._trials.values()]

  @property
  def baseline_runs(self) -> list[planned_run.PlannedRun]:
    """A run of the baseline for each seed."""
    return [self._planner.run(plan.BASELINE, 0, seed) for seed in self._seeds]

  def train(self, pool: pool_lib.Pool, progress: progress_lib.Progress) -> None:
    """Trains what has not ended yet.

    Args:
      pool: The worker processes.
      progress: Shows how far they are.

    Raises:
      PoolError: If a run fails; all others can be resumed.
    """
    others = len(self._seeds) - 1
    progress.expect(
      sum(len(runs) + others for runs in self._trials.values())
      * self._planner.rounds
    )
    pending = set()
    # Trial by trial: what cannot run shows early, and the time that is left is
    # not that of the fastest methods.
    for trial in range(max(map(len, self._trials.values()))):
      for method in self._trials:
        pending |= self._queue(
          pool, method, trial, self._first_job(method, trial)
        )
    for method in self._trials:
      pending |= self._choose(pool, progress, method)
    self._skip(progress)
    pool.follow(
      pending,
      progress.show_rounds,
      lambda future, report: self._end(pool, progress, future, report),
    )

  def ended(self) -> list[records.Ended]:
    """All runs that have ended, by method, seed and trial."""
    found = []
    for method, runs in self._trials.items():
      if method in self.excluded and self._chosen.get(method, 0) is not None:
        continue  # It cannot run on the task.
      tried = self._planner.trials(method)
      chosen = self._chosen.get(method)
      for trial, run in self._of_method(method, runs, chosen):
        outcome = outcomes.read(run.output_dir)
        if outcome:
          found.append(
            records.Ended(
              method, trial, tried[trial], trial == chosen, run, outcome
            )
          )
    return found

  def _first_job(self, method, trial) -> list[planned_run.PlannedRun]:
    """The run of a trial; with all seeds, where there is nothing to choose."""
    runs = self._trials[method][trial : trial + 1]
    return runs if self._planner.tune else runs + self._others(method, trial)

  def _others(self, method, trial) -> list[planned_run.PlannedRun]:
    return [self._planner.run(method, trial, s) for s in self._seeds[1:]]

  def _of_method(self, method, runs, chosen):
    """The trials, then the other seeds of the best one."""
    yield from enumerate(runs)
    if chosen is not None:
      yield from ((chosen, run) for run in self._others(method, chosen))

  def _queue(self, pool, method, trial, runs) -> set[futures.Future]:
    """Queues the runs that have not ended."""
    left = tuple(run for run in runs if not outcomes.read(run.output_dir))
    if not left:
      return set()
    future = pool.submit(left)
    self._jobs[future] = _Job(method, trial, left)
    return {future}

  def _skip(self, progress) -> None:
    """Counts the rounds of runs that had ended before."""
    open_runs = sum(len(job.runs) for job in self._jobs.values())
    if self._planner.tune:
      undecided = [m for m in self._trials if m not in self._chosen]
      open_runs += len(undecided) * (len(self._seeds) - 1)
    progress.skip_but(open_runs * self._planner.rounds)

  def _end(self, pool, progress, future, report) -> set[futures.Future]:
    """What follows from the end of a job."""
    job = self._jobs.pop(future)
    if report.kind == worker.CANNOT:
      self._exclude(progress, job.method, report.sentence)
      return set()
    return self._choose(pool, progress, job.method)

  def _exclude(self, progress, method, reason) -> None:
    if method in self.excluded:
      return  # By another of its trials, which ran at the same time.
    self.excluded[method] = reason
    for future, job in list(self._jobs.items()):
      if job.method == method and future.cancel():
        del self._jobs[future]
    runs = [*self._trials[method], *self._others(method, 0)]
    left = sum(outcomes.read(run.output_dir) is None for run in runs)
    progress.expect_less(left * self._planner.rounds)
    progress.say_excluded(method, reason)

  def _choose(self, pool, progress, method) -> set[futures.Future]:
    """Queues the other seeds, as soon as all trials of a method have ended."""
    if method in self._chosen or method in self.excluded:
      return set()
    found = [outcomes.read(run.output_dir) for run in self._trials[method]]
    if None in found:
      return set()
    finished = {
      trial: outcome.holdout_accuracy
      for trial, outcome in enumerate(found)
      if outcome.status == outcomes.FINISHED
    }
    if not finished:
      self._chosen[method] = None
      reason = found[0].reason
      self._exclude(
        progress,
        method,
        f'All of its {len(found)} trials diverged; the first: {reason}'
        if self._planner.tune
        else f'It diverged: {reason}',
      )
      return set()
    best = self._chosen[method] = max(finished, key=finished.get)
    progress.say_chosen(
      method, self._planner.trials(method)[best], finished[best], found
    )
    return self._queue(pool, method, best, self._others(method, best))
