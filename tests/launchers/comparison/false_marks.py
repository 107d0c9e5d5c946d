"""How often a comparison marks a method that is FedAvg itself.

  python -m tests.launchers.comparison.false_marks results/false_marks.csv

All methods of a table are FedAvg on the digits: the same clients for each seed,
and initial weights of their own, so that every mark is an error. Tables draw
their methods from the same runs. The csv has a row for each number of seeds and
measure: the share of tables with a mark, and of marked methods.
"""

from collections.abc import Iterator, Sequence
import sys

import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import algorithms
from tff_fair import fairness
from tff_fair import metrics
from tff_fair import models
from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers import measures
from tff_fair.launchers.comparison import analysis
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import reading

SEEDS = (5, 10)
TABLES, METHODS = 200, 20
RUNS, ROUNDS = 40, 8
"""Runs for each seed, which tables draw from, and their rounds."""


def train(seed: int) -> Iterator[metrics.ClientScores]:
  """Trains FedAvg on the clients of a seed from other weights each time."""
  task = tasks.build_task('digits', seed=seed, dirichlet_alpha=0.3)

  def build_model():
    return models.mlp_fedaboost(task.data.x.shape[1:], task.num_classes)

  process = algorithms.build_fed_avg(
    build_model,
    num_clients=task.num_clients,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
    seed=seed,
  )
  clients = [task.client_data(i) for i in range(task.num_clients)]
  parts = [task.examples(i).test for i in range(task.num_clients)]
  evaluator, start = metrics.Evaluator(build_model(), parts), None
  for run in range(RUNS):
    tf.keras.utils.set_random_seed(1000 * seed + run)
    weights = tff.learning.models.ModelWeights.from_model(build_model())
    start = start or process.initialize()
    state = process.set_model_weights(start, weights)
    for _ in range(ROUNDS):
      state = process.next(state, clients).state
    yield evaluator.evaluate_global(process.get_model_weights(state))


def describe(seed: int, scores: metrics.ClientScores) -> dict[str, object]:
  """Returns what a comparison knows of a run."""
  spread = fairness.client_statistics(scores.accuracy)
  names = ('mean', 'worst10', 'min', 'variance', 'jain')
  mean = float(spread['mean'])
  return {
    **dict.fromkeys(reading.COLUMNS, np.nan),
    **{f'client_accuracy_{name}': spread[name] for name in names},
    'client_f1_mean': scores.f1.mean(),
    'seed': seed,
    'chosen': True,
    'status': 'finished',
    'rounds': ROUNDS,
    'global_accuracy': scores.pooled['accuracy'],
    'client_accuracies': scores.accuracy,
    'groups': None,
    'stage': None,
    'parameters': '',
    'curve': {'rounds': [ROUNDS], 'mean': [mean]},
  }


def make_table(
  runs: Sequence[Sequence[dict]], rng: np.random.Generator
) -> analysis.Analysis:
  """Makes a comparison of methods that are all the baseline.

  Args:
    runs: For each seed, what is known of its runs.
    rng: Draws the runs of the methods, for each seed anew.
  """
  names = [plan.BASELINE, *(f'again {i}' for i in range(METHODS))]
  rows = []
  for of_seed in runs:
    drawn = rng.choice(len(of_seed), len(names), replace=False)
    rows += [
      {**of_seed[i], 'method': name}
      for i, name in zip(drawn, names, strict=True)
    ]
  facts = {
    'num_clients': len(runs[0][0]['client_accuracies']),
    'cohort_size': len(runs[0][0]['client_accuracies']),
    'rounds': ROUNDS,
    'seeds': list(range(len(runs))),
    'baseline': plan.BASELINE,
    'tune': 0,
    'options': {},
    'excluded': {},
  }
  return analysis.analyse(pd.DataFrame(rows), facts)


def count_marks(runs: Sequence[Sequence[dict]]) -> pd.DataFrame:
  """Returns the share of tables with a mark, and of marked methods."""
  rng, rows = np.random.default_rng(0), []
  columns = [m.column for m in measures.OF_METHODS if m.direction]
  for _ in range(TABLES):
    found = make_table(runs, rng)
    for column in columns:
      if found.knows(column):
        marks = sum(found.verdict(m, column) != 0 for m in found.methods)
        rows.append(
          {'measure': column, 'tables': marks > 0, 'methods': marks / METHODS}
        )
  return pd.DataFrame(rows).groupby('measure', sort=False).mean().reset_index()


def main(path: str) -> None:
  """Trains all runs, counts the marks, and writes the csv."""
  runtime.set_execution_context('device')
  runs = []
  for seed in range(max(SEEDS)):
    runs.append([describe(seed, scores) for scores in train(seed)])
    print(f'seed {seed}', flush=True)
  found = pd.concat(
    [
      count_marks(runs[:count]).assign(seeds=count, of=TABLES)
      for count in SEEDS
    ]
  )
  found.to_csv(path, index=False, float_format='%.4f')
  print(found.to_string(index=False))


if __name__ == '__main__':
  main(*sys.argv[1:])
