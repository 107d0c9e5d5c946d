"""Chooses the next runs of a comparison: trials, then the seeds of scores."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
import pathlib
from typing import Any

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import records
from tff_fair.launchers.comparison import search
from tff_fair.launchers.comparison import tuning
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
    seeds: The values of all seeds of the scores.
    excluded: Methods that cannot run on the task, or diverged in all trials,
      each with the reason.
  """

  def __init__(
    self, planner: plan.Planner, methods: Sequence[str], seeds: Sequence[int]
  ):
    """Plans the first trials, so that mistakes show before any training.

    Raises:
      SettingsError: If the flags do not describe a run of the baseline, or the
        directory holds runs with other flags.
    """
    self._planner = planner
    self.methods, self.seeds = methods, seeds
    self._searches: dict[str, search.Search] = {}
    self.excluded: dict[str, str] = {}
    for method in methods:
      try:
        self._searches[method] = search.Search(planner, method, seeds)
        runs = self._searches[method].steps[0].runs
        first = [*runs, planner.run(method, 0, seeds[0])]
      except settings_lib.SettingsError as error:
        if method == plan.BASELINE:
          raise
        self._searches.pop(method, None)
        self.excluded[method] = str(error)
        continue
      for run in first:
        settings_lib.check_same_run(run.output_dir, run.flags_text)
    self._told: set[str] = set()
    self._queued: set[pathlib.Path] = set()
    self._queue: deque[pool_lib.Group] = deque()
    self._rounds_ended = 0

  @property
  def baseline_runs(self) -> list[planned_run.PlannedRun]:
    """A run of the baseline for each seed."""
    return [self._planner.run(plan.BASELINE, 0, seed) for seed in self.seeds]

  def leave_out(self, methods: Iterable[str], excluded: Mapping[str, str]):
    """Trains nothing of these methods; some of them may have no result."""
    for method in methods:
      self._searches.pop(method, None)
    self.excluded.update(excluded)

  def train(self, pool: pool_lib.Pool) -> None:
    """Trains what has not ended yet, one method after the other."""
    for method in self._searches:
      self._go_on(method)

    def end(output_dir, report):
      self._end(output_dir, report)
      pool.total = self._count_rounds()

    pool.total = self._count_rounds()
    pool.train(self._queue, end, measure=True)

  def ended(self) -> list[records.Ended]:
    """All runs that have ended, by method, stage, trial and seed."""
    found = []
    for method, trials in self._searches.items():
      if method in self.excluded and not trials.failed:
        continue  # It cannot run on the task.
      for step in trials.steps:
        trial = trials.trials[step.trial]
        found += [
          records.Ended(method, step.trial, trial, step.stage, run, outcome)
          for run in step.runs
          if (outcome := trials.outcome(run))
        ]
    return found

  def left(self) -> list[str]:
    """The method of each run that has not ended."""
    return [method for method, _ in self._left()]

  def _left(self) -> list[tuple[str, int]]:
    return [
      (method, rounds)
      for method, trials in self._searches.items()
      if method not in self.excluded
      for rounds in trials.left()
    ]

  def _count_rounds(self) -> int:
    return self._rounds_ended + sum(rounds for _, rounds in self._left())

  def _end(self, output_dir, report) -> None:
    """Queues the runs that follow from the end of a run."""
    method = output_dir.parts[-3]
    if report.kind == worker.CANNOT:
      self._exclude(method, report.sentence)
    elif report.kind in (worker.TRAINED, worker.DIVERGED):
      is_short = output_dir.name.endswith(plan.SHORT)
      protocol = self._planner.protocol
      self._rounds_ended += (
        protocol.screening_rounds if is_short else protocol.rounds
      )
      self._go_on(method, first=True)

  def _exclude(self, method, reason) -> None:
    if method in self.excluded:
      return  # By another of its trials, which ran at the same time.
    self.excluded[method] = reason
    for runs in list(self._queue):
      if runs[0].settings['algorithm'] == method:
        self._queue.remove(runs)
    pool_lib.say(f'{registry.title(method)} is left out: {reason}')

  def _go_on(self, method, first=False) -> None:
    """Queues what the outcomes of a method ask for, and was not queued."""
    if method in self.excluded:
      return
    trials = self._searches[method]
    trials.update()
    if trials.failed:
      self._exclude(method, trials.failed)
      return
    is_new = trials.chosen is not None and method not in self._told
    if self._planner.tune and is_new:
      self._told.add(method)
      pool_lib.say(_describe_choice(method, trials))
    groups = []
    for step in trials.open():
      runs = [run for run in step.runs if run.output_dir not in self._queued]
      if runs:
        groups.append(runs)
        self._queued.update(run.output_dir for run in runs)
    if first:
      self._queue.extendleft(reversed(groups))
    else:
      self._queue.extend(groups)


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


def _describe_choice(method, trials) -> str:
  """Says what was chosen, after how many trials."""
  tried = trials.trials[trials.chosen].tried
  values = ' '.join(f'--{name}={value:g}' for name, value in tried.items())
  finals = [step for step in trials.steps if step.stage == tuning.FINAL]
  (runs,) = [step.runs for step in finals if step.trial == trials.chosen]
  found = [trials.outcome(run).holdout_accuracy for run in runs]
  lost = {
    step.trial
    for step in trials.steps
    if step.stage != tuning.SCORE
    for run in step.runs
    if trials.outcome(run).status == outcomes.DIVERGED
  }
  counts = {
    'diverged': len(lost),
    'beyond the range': sum(t.is_widened for t in trials.trials),
  }
  also = ''.join(
    f'; {count} of {len(trials.trials)} trials {what}'
    for what, count in counts.items()
    if count
  )
  return (
    f'{registry.title(method)}: {values} (holdout accuracy'
    f' {sum(found) / len(found):.3f}{also})'
  )
