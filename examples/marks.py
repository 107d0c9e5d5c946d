"""How often a comparison marks a method that is FedAvg itself.

  python examples/marks.py runs/marks results/marks.csv

All methods of a table are FedAvg on digits, with the same data for each seed
and with initial weights and orders of examples of their own, so that every mark
is an error. Tables draw their methods from the same runs. The csv has a row for
each number of seeds and measure: the tables with a mark, and the marked ones of
all methods. The same command goes on where it was interrupted.
"""

from collections.abc import Sequence
import pathlib
import sys

import numpy as np
import pandas as pd
import tqdm

from tff_fair.launchers import frame
from tff_fair.launchers import measures
from tff_fair.launchers.comparison import analysis
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.execution import train_all
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.tables import table_runs

SEEDS = (5, 10)
"""Numbers of seeds that tables have."""
TABLES, METHODS = 200, 20
"""Tables of each number of seeds, and methods of each beside the baseline."""
REPEATS = 40
"""Runs for each seed of the data, which tables draw from."""
_FLAGS = {
  'task': 'digits',
  'num_clients': 20,
  'partition': 'dirichlet',
  'dirichlet_alpha': 0.3,
  'algorithm': 'fed_avg',
  'client_learning_rate': 0.1,
  'rounds': 20,
  'eval_every': 10,
  'export': 'none',
}
# Measured against Standalone, or equal for all methods here.
_LEFT_OUT = {*measures.AGAINST_ALONE, *measures.FURTHER_SCORES}


def plan_runs(
  folder: pathlib.Path,
) -> dict[tuple[int, int], planned_run.PlannedRun]:
  """The runs by the seed of the data and their number."""
  found = {}
  for seed in range(max(SEEDS)):
    for number in range(REPEATS):
      path = folder / f'data_{seed}' / f'run_{number}'
      seeds = {'data_seed': seed, 'model_seed': number, 'client_seed': number}
      flags = {**_FLAGS, **seeds}
      found[seed, number] = planned_run.PlannedRun(
        preset=None,
        arguments=planned_run.as_arguments(flags),
        seed=seed,
        output_dir=path,
        settings=planned_run.resolve({**flags, 'output_dir': path}),
      )
  return found


def read_result(run: planned_run.PlannedRun) -> dict[str, object]:
  """What a comparison knows of a finished run."""
  ended = frame.read_run(run.output_dir)
  curve = ended.curve('client_accuracy_mean').dropna()
  return {
    **dict.fromkeys(reading.COLUMNS, np.nan),
    **{name: ended.end[name] for name in reading.SCORES},
    'seed': run.seed,
    'chosen': True,
    'status': 'finished',
    'rounds': run.settings['rounds'],
    'global_accuracy': ended.end['global_accuracy'],
    'client_accuracies': ended.clients['accuracy'].to_numpy(),
    'groups': None,
    'stage': None,
    'parameters': '',
    'curve': {'rounds': curve.index.to_list(), 'mean': curve.to_list()},
  }


def make_table(
  results: Sequence[Sequence[dict]], rng: np.random.Generator
) -> analysis.Analysis:
  """A comparison of methods that are all the baseline.

  Args:
    results: For each seed, what is known of its runs.
    rng: Draws the runs of the methods, for each seed anew.
  """
  names = [plan.BASELINE, *(f'again {i}' for i in range(METHODS))]
  rows = []
  for of_seed in results:
    drawn = rng.choice(len(of_seed), len(names), replace=False)
    rows += [
      {**of_seed[i], 'method': name}
      for i, name in zip(drawn, names, strict=True)
    ]
  facts = {
    'num_clients': _FLAGS['num_clients'],
    'cohort_size': _FLAGS['num_clients'],
    'rounds': _FLAGS['rounds'],
    'seeds': list(range(len(results))),
    'baseline': plan.BASELINE,
    'tune': 0,
    'options': {},
    'excluded': {},
  }
  return analysis.analyse(pd.DataFrame(rows), facts)


def count_marks(results: Sequence[Sequence[dict]]) -> pd.DataFrame:
  """The share of tables with a mark, and of marked methods, by measure."""
  rng, rows = np.random.default_rng(0), []
  columns = [
    m.column
    for m in measures.OF_METHODS
    if m.direction and m.column not in _LEFT_OUT
  ]
  for _ in tqdm.tqdm(range(TABLES)):
    found = make_table(results, rng)
    for column in columns:
      if found.knows(column):
        marks = sum(found.verdict(m, column) != 0 for m in found.methods)
        rows.append({'measure': column, 'tables': marks > 0, 'methods': marks})
  counted = pd.DataFrame(rows).groupby('measure', sort=False).mean()
  counted['methods'] /= METHODS
  return counted.reset_index()


def main(folder: pathlib.Path, table: pathlib.Path) -> None:
  """Trains all runs, counts the marks, and writes the table."""
  runs = plan_runs(folder)
  left = [run for run in runs.values() if not run.is_finished()]
  if left:
    train_all.train_all(
      left, 1, None, check=table_runs.check_data, on_trained=lambda: None
    )
  results = [
    [read_result(runs[seed, number]) for number in range(REPEATS)]
    for seed in range(max(SEEDS))
  ]
  found = [
    count_marks(results[:count]).assign(seeds=count, number=TABLES)
    for count in SEEDS
  ]
  shown = pd.concat(found)[['seeds', 'number', 'measure', 'tables', 'methods']]
  shown.to_csv(table, index=False, float_format='%.4f')
  print(shown.to_string(index=False))


if __name__ == '__main__':
  main(*map(pathlib.Path, sys.argv[1:]))
