"""The trials of one method: which runs its outcomes ask for, and the choice.

Everything follows from the outcomes of runs, whatever their order was, so that
a comparison that was stopped goes on to the same result.
"""

from collections.abc import Sequence
import pathlib
from typing import NamedTuple

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import tuning
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.runs import planned_run


class Step(NamedTuple):
  """Runs of a trial that differ in their seeds alone, in a stage."""

  trial: int
  stage: str
  runs: Sequence[planned_run.PlannedRun]


class Search:
  """The trials of a method, by `tuning`, and the runs of the chosen one.

  Attributes:
    trials: The trials that are known by now.
    steps: The runs that are known by now, in the order of the stages.
    chosen: The number of the trial that was chosen; None before.
    failed: Why there is nothing to choose from; empty if there is, or may be.
  """

  def __init__(self, planner: plan.Planner, method: str, seeds: Sequence[int]):
    """Plans the first runs, so that mistakes show before anything is trained.

    Raises:
      SettingsError: If the method cannot have the flags.
    """
    self._planner, self._method, self._seeds = planner, method, seeds
    self._protocol = planner.protocol
    self._planned_trials = planner.trials(method)
    self._runs: dict[tuple, planned_run.PlannedRun] = {}
    self._outcomes: dict[pathlib.Path, outcomes.Outcome] = {}
    self.update()

  def update(self) -> None:
    """Reads the outcomes, and finds what they ask for."""
    last = self._protocol.most_widened  # They come one after the other.
    first = self._planned_trials[: len(self._planned_trials) - last]
    self.trials = [tuning.Trial(tried) for tried in first]
    self.steps, self.chosen, self.failed = [], None, ''
    if not self._planner.tune:
      self._score(0)
      return
    finalists = list(range(len(self.trials)))
    if self._protocol.screened:
      finalists = self._screen()
    if finalists:
      self._decide(finalists)

  def outcome(self, run: planned_run.PlannedRun) -> outcomes.Outcome | None:
    """How a run ended; None if it has not."""
    path = run.output_dir
    if path not in self._outcomes:
      found = outcomes.read(path)
      if found is None:
        return None
      self._outcomes[path] = found
    return self._outcomes[path]

  def open(self) -> list[Step]:
    """Returns those of the known runs that have not ended."""
    steps = []
    for step in self.steps:
      left = [run for run in step.runs if self.outcome(run) is None]
      if left:
        steps.append(step._replace(runs=left))
    return steps

  def left(self) -> list[int]:
    """The rounds of each run that has not ended, also of those to come.

    Of trials that are not known yet there are as many as if none diverged.
    """
    if self.failed:
      return []
    known = [run for step in self.open() for run in step.runs]
    rounds = [run.settings['rounds'] for run in known]
    expected = {
      **self._protocol.sizes(),
      tuning.SCORE: (len(self._seeds), self._planner.rounds),
    }
    for stage, (count, length) in expected.items():
      there = sum(len(s.runs) for s in self.steps if s.stage == stage)
      if not there or stage == tuning.SCREENING:
        rounds += [length] * (count - there)
    return rounds

  def _screen(self) -> list[int]:
    """The trials for the final; none before all short ones have ended."""
    for trial in range(len(self.trials)):
      self._add(trial, tuning.SCREENING, tuning.SEEDS[:1])
    while (accuracies := self._accuracies(tuning.SCREENING)) is not None:
      best = [row[0] for row in accuracies]
      if len(self.trials) == self._protocol.tune:
        ranked = tuning.rank(best)
        if not ranked:
          self._fail()
        return sorted(ranked[: self._protocol.finalists])
      self.trials.append(
        tuning.next_trial(self._planned_trials, self.trials, best)
      )
      self._add(len(self.trials) - 1, tuning.SCREENING, tuning.SEEDS[:1])
    return []

  def _decide(self, finalists) -> None:
    """Trains the finalists in full, then the chosen one with all seeds."""
    for trial in finalists:
      self._add(trial, tuning.FINAL, tuning.SEEDS)
    accuracies = self._accuracies(tuning.FINAL)
    if accuracies is None:
      return
    rates = [self.trials[t].tried[tuning.RATE] for t in finalists]
    best = tuning.choose(rates, accuracies, self._planner.middle_rate())
    if best is None:
      self._fail()
    else:
      self._score(finalists[best])

  def _score(self, trial) -> None:
    self.chosen = trial
    self._add(trial, tuning.SCORE, self._seeds)

  def _fail(self) -> None:
    """All trials of the last stage have diverged, each with some seed."""
    stage = self.steps[-1].stage
    steps = [step for step in self.steps if step.stage == stage]
    found = [self.outcome(run) for step in steps for run in step.runs]
    reason = next(o.reason for o in found if o.status == outcomes.DIVERGED)
    long = ' with all rounds' if self._protocol.screened else ''
    where = long if stage == tuning.FINAL else ''
    self.failed = (
      f'All of its {len(steps)} trials{where} diverged; the first: {reason}'
    )

  def _accuracies(self, stage) -> list[list[float | None]] | None:
    """Of each trial and seed of a stage; None before all have ended."""
    rows = []
    for step in self.steps:
      if step.stage == stage:
        found = [self.outcome(run) for run in step.runs]
        if None in found:
          return None
        rows.append(
          [
            o.holdout_accuracy if o.status == outcomes.FINISHED else None
            for o in found
          ]
        )
    return rows

  def _add(self, trial, stage, seeds) -> None:
    tried = self.trials[trial].tried
    runs = [self._run(tried, seed, stage) for seed in seeds]
    self.steps.append(Step(trial, stage, runs))

  def _run(self, tried, seed, stage) -> planned_run.PlannedRun:
    is_short = stage == tuning.SCREENING
    key = *tried.values(), seed, is_short
    if key not in self._runs:  # Flags take a while to resolve.
      self._runs[key] = self._planner.run_with(
        self._method, tried, seed, is_short
      )
    return self._runs[key]
