"""Measures what the runs of a comparison take, to fit them into a budget."""

from collections.abc import Sequence
import dataclasses
import json
import shutil
import time

from tff_fair.launchers.comparison import budget as budget_lib
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import pool as pool_lib
from tff_fair.launchers.comparison import schedule as schedule_lib
from tff_fair.launchers.runs import run_files

_FILE = 'budget.json'


def fit(
  pool: pool_lib.Pool,
  planner: plan.Planner,
  methods: Sequence[str],
  asked: budget_lib.Size,
  budget: float,
  workers: int,
) -> budget_lib.Size:
  """The size of a comparison within a budget, measured once.

  The same command decides the same again, from a file: a time measured anew
  would be another one.

  Args:
    pool: Times a few rounds of each method.
    planner: Plans the runs.
    methods: The methods.
    asked: The size without a budget.
    budget: In seconds.
    workers: Number of processes.

  Returns:
    The size.

  Raises:
    BudgetError: If one round of each method does not fit.
    PoolError: If a run fails.
  """
  known = decided(planner, methods, asked, budget)
  if known:
    return known
  scratch = planner.output_dir / 'budget'
  shutil.rmtree(scratch, ignore_errors=True)  # Of a program that was killed.
  trial = dataclasses.replace(planner, output_dir=scratch)
  runs = schedule_lib.Schedule(trial, methods, [0]).first_runs
  print(f'Timing a few rounds of {len(runs)} methods.', flush=True)
  began = time.monotonic()
  try:
    costs = pool.time(runs)
  finally:
    shutil.rmtree(scratch, ignore_errors=True)
  spent = time.monotonic() - began
  used = budget_lib.fit(asked, costs, workers, budget, spent)
  text = json.dumps({'key': _key(methods, asked, budget), 'used': list(used)})
  run_files.write_atomically(planner.output_dir / _FILE, f'{text}\n')
  return used


def decided(
  planner: plan.Planner,
  methods: Sequence[str],
  asked: budget_lib.Size,
  budget: float,
) -> budget_lib.Size | None:
  """The size that the same command has decided before.

  Args:
    planner: Plans the runs.
    methods: The methods.
    asked: The size without a budget.
    budget: In seconds.

  Returns:
    The size; None if it has decided none.
  """
  try:
    found = json.loads((planner.output_dir / _FILE).read_text())
    if found['key'] == _key(methods, asked, budget):
      return budget_lib.Size(*found['used'])
  except (OSError, KeyError, TypeError, ValueError):
    pass
  return None


def _key(methods, asked, budget):
  return {'asked': list(asked), 'budget': budget, 'methods': list(methods)}
