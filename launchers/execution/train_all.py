"""Trains runs that are all known at the start, and tells how they ended."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tff_fair.launchers.execution import options
from tff_fair.launchers.execution import pool as pool_lib
from tff_fair.launchers.execution import worker
from tff_fair.launchers.runs import planned_run


def train_all(
  runs: Sequence[planned_run.PlannedRun],
  parallel: int,
  budget: float | None,
  check: Callable[[Sequence[planned_run.PlannedRun]], Any],
  on_trained: Callable[[], object],
  num_before: int = 0,
) -> None:
  """Trains runs, and prints a line for each.

  Args:
    runs: The runs, each in a directory of its own.
    parallel: Number of runs at the same time.
    budget: Seconds after which no run is started; None for any time.
    check: Called with the runs, in a worker, before any training; returns a
      `worker.Report` to end the program.
    on_trained: Called in this process as soon as a run is finished.
    num_before: Number of runs that were finished before, for the lines.

  Raises:
    PoolError: If a run fails, which ends all others; at the end, if runs have
      diverged or were not started within the budget.
  """
  by_directory = {run.output_dir: run for run in runs}
  diverged, not_started = [], []
  total = num_before + len(runs)
  number = num_before

  def end(output_dir, report):
    nonlocal number
    name = '/'.join(output_dir.parts[-3:])
    if report.kind == worker.NOT_STARTED:
      not_started.append(by_directory[output_dir].settings['algorithm'])
      return
    number += 1
    if report.kind == worker.TRAINED:
      pool_lib.say(f'{number}/{total} {name}: {report.seconds:.0f} s')
      on_trained()
    elif report.kind == worker.DIVERGED:
      diverged.append(f'{name}: {report.sentence}')
      pool_lib.say(diverged[-1])
    else:
      raise pool_lib.PoolError(report.sentence)

  with pool_lib.Pool(parallel, budget=budget) as pool:
    pool.warm_up()
    pool.call(check, runs)
    pool.total = sum(run.settings['rounds'] for run in runs)
    pool.train(_queue(runs, parallel), end)
  if diverged:
    raise pool_lib.PoolError(
      f'{len(diverged)} of {len(runs)} runs diverged, and all others are'
      f' trained: {" ".join(diverged)}'
    )
  if not_started:
    raise pool_lib.PoolError(f'{options.not_started(budget, not_started)}.')


def _queue(runs, parallel) -> deque[pool_lib.Group]:
  """Groups that share compiled rounds, unless processes would have no run."""
  groups = planned_run.group(runs)
  return deque(groups if len(groups) >= parallel else ([run] for run in runs))
