"""Times a comparison of methods next to its bare rounds."""

from collections.abc import Mapping
import pathlib
import tempfile
import time
from typing import Any

import pandas as pd
import tqdm

from benchmarks import programs
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import training

METHODS = (
  *('fed_avg', 'standalone'),
  *('corefed', 'fedaboost', 'fedakd', 'fedquad'),
)
ROUNDS, SEEDS = 100, 3
_TASK = 'digits'


def time_comparison(options: Mapping[str, Any]) -> pd.DataFrame:
  """Times `launchers.compare`, and the rounds of its runs by themselves.

  The bare rounds are those of the same runs, one after the other in this
  process, each client on its own thread: `process.next` alone, without
  building, compiling, evaluation and files. The comparison is a process of its
  own, from the start of Python to the end of its pages.

  Returns:
    A row for each part, `part` and `seconds`: the bare rounds, the comparison,
    and where the workers' time went, summed over all of them.
  """
  with tempfile.TemporaryDirectory() as folder:
    output_dir = pathlib.Path(folder)
    seconds = _time_command(output_dir)
    parts = _worker_parts(output_dir)
    bare = _time_rounds(output_dir, options)
  rows = {'bare rounds': bare, 'comparison': seconds, **parts}
  return pd.DataFrame({'part': rows.keys(), 'seconds': rows.values()})


def to_text(table: pd.DataFrame) -> str:
  """The table of `time_comparison` for printing, with the ratio."""
  seconds = dict(zip(table['part'], table['seconds'], strict=True))
  ratio = seconds['comparison'] / seconds['bare rounds']
  lines = table.to_string(
    index=False, header=False, float_format='{:.1f}'.format
  )
  return f'{lines}\ncomparison / bare rounds: {ratio:.2f}'


def _time_command(output_dir) -> float:
  began = time.perf_counter()
  programs.run(
    'launchers.compare',
    'tff_fair.launchers.compare',
    *(f'--task={_TASK}', f'--methods={",".join(METHODS)}', '--tune=0'),
    *(f'--rounds={ROUNDS}', f'--seeds={SEEDS}', f'--output_dir={output_dir}'),
  )
  return time.perf_counter() - began


def _runs(output_dir):
  planner = plan.Planner(
    shared={'task': _TASK}, rounds=ROUNDS, tune=0, output_dir=output_dir
  )
  return [
    planner.run(method, 0, seed) for method in METHODS for seed in range(SEEDS)
  ]


def _worker_parts(output_dir) -> dict[str, float]:
  """Part -> seconds of all runs together, as the workers measured them."""
  found = [outcomes.read(run.output_dir).seconds for run in _runs(output_dir)]
  return {f'workers: {part}': sum(s[part] for s in found) for part in found[0]}


def _time_rounds(output_dir, options) -> float:
  runs = _runs(output_dir)
  return sum(
    _time_run(run, options)
    for run in tqdm.tqdm(runs, desc='bare rounds', unit='run', disable=None)
  )


def _time_run(run: planned_run.PlannedRun, options) -> float:
  settings = {**run.settings, **options}
  training.set_runtime(settings)
  task = training.build_task(settings)
  process = building.build_process(settings, task)
  cohorts = training.build_cohorts(settings, task)

  def next_round(state, number):
    for cohort in cohorts(number):
      clients = [task.client_reference(i) for i in cohort]
      state = process.next(state, clients).state
    return state

  state = next_round(process.initialize(), 1)  # Compiles.
  began = time.perf_counter()
  for number in range(1, ROUNDS + 1):
    state = next_round(state, number)
  return time.perf_counter() - began
