"""A made-up comparison for tests: the two files that all conclusions need."""

import json

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers.comparison import analysis
from tff_fair.launchers.comparison import reading

# Each method's accuracy before the differences of clients and seeds.
LEVELS = {
  'fed_avg': 0.70,
  'ditto': 0.80,
  'fed_prox': 0.71,
  'q_fed_avg': 0.69,
  'standalone': 0.60,
}
_WEIGHT = 1000  # Bytes of a model.


def facts(seeds=(0, 1, 2), num_clients=4, **changes):
  """The facts of compare.json; `changes` replace some."""
  return {
    'version': '0.3.0',
    'task': 'digits',
    'data': 'digits',
    'num_clients': num_clients,
    'cohort_size': num_clients,
    'client_names': [],
    'rounds': 6,
    'seeds': list(seeds),
    'tune': 2,
    'baseline': 'fed_avg',
    'target_rule': '95 % of FedAvg’s final mean accuracy of the same seed',
    'options': {'partition': 'dirichlet'},
    'notes': [],
    'excluded': {},
    **changes,
  }


def accuracies(method, seed, num_clients=4):
  """The clients' accuracies: a level with differences of clients and seeds.

  Later clients are worse off, and the methods differ in how much. A method's
  lead over another changes a little with the seed.
  """
  spread = {'q_fed_avg': 0.01, 'ditto': 0.02}.get(method, 0.05)
  level = LEVELS.get(method, 0.5 + 0.01 * len(method))
  return [
    round(level - spread * (i % 5) + _wiggle(method, seed, i), 4)
    for i in range(num_clients)
  ]


def rows(
  seeds=(0, 1, 2), num_clients=4, tune=2, scores=None, methods=tuple(LEVELS)
):
  """The rows of compare.csv, as dictionaries.

  `scores` is `{method: [[accuracy of each client] of each seed]}`, by default
  those of `accuracies`; None for a client without test data. The last of the
  `tune` trials of the first seed is chosen.
  """
  if scores is None:
    scores = {
      method: [accuracies(method, seed, num_clients) for seed in seeds]
      for method in methods
    }
  found = []
  for method, of_seeds in scores.items():
    alone = scores.get('standalone')
    for i, (seed, values) in enumerate(zip(seeds, of_seeds, strict=True)):
      trials = tune if i == 0 else 1
      found += [trial_row(method, seed, trial) for trial in range(trials - 1)]
      standalone = alone[i] if alone and method != 'standalone' else None
      found.append(result_row(method, seed, trials - 1, values, standalone))
  return found


def staged_rows(seeds=(0, 1, 2), **options):
  """The rows of a comparison whose trials have two stages.

  Each method has four short trials, the last one beyond the range, and the
  second one diverged. Of the two in full the first was chosen.
  """
  found = []
  for row in rows(seeds, tune=1, **options):
    method = row['method']
    if row['seed'] == seeds[0]:
      rates = (0.01, 0.14, 0.037, 0.0027)
      for trial, rate in enumerate(rates):
        status = 'diverged' if trial == 1 else 'finished'
        found.append(
          {
            **trial_row(method, 100, trial, status),
            'stage': 'screening',
            'learning_rate': rate,
            'widened': trial == 3,
          }
        )
      found += [
        {
          **trial_row(method, seed, trial),
          'stage': 'final',
          'learning_rate': rates[trial],
          'holdout_accuracy': 0.5 + trial / 10 + (seed - 101) / 20,
          'widened': trial == 3,
        }
        for trial in (0, 3)
        for seed in (100, 101, 102)
      ]
    found.append({**row, 'trial': 3, 'stage': 'score', 'learning_rate': 0.0027})
  return [{'widened': row['trial'] == 3, **row} for row in found]


TUNING = {
  'seeds': [100, 101, 102],
  'screened': 4,
  'screening_rounds': 2,
  'most_widened': 1,
  'finalists': 2,
  'client_updates': 4 * (4 * 2 + 2 * 3 * 6),
}
"""The `tuning` of the facts of `staged_rows`."""


def trial_row(method, seed, trial, status='finished'):
  """A row of a trial that was not chosen."""
  finished = status == 'finished'
  return {
    'method': method,
    'seed': seed,
    'trial': trial,
    'chosen': False,
    'status': status,
    'learning_rate': 0.01,
    'parameters': '',
    'rounds': 6 if finished else 2,
    'holdout_accuracy': 0.5 if finished else None,
    'seconds_per_round': _seconds(method) if finished else None,
    'command': f'python -m launchers.train --algorithm={method}',
  }


def result_row(method, seed, trial, values, standalone=None):
  """A row of a result: `values` are the accuracies of the clients."""
  known = np.array([v for v in values if v is not None])
  stats = fairness.client_statistics(known)
  cf = better = None
  if standalone is not None:
    pairs = [
      pair for pair in zip(standalone, values, strict=True) if None not in pair
    ]
    cf = fairness.cf_coefficient(*zip(*pairs, strict=True))
    better = float(np.mean([after > before for before, after in pairs]))
  shares = np.arange(1, 7) / 6
  reached = stats['mean'] >= 0.6
  return {
    **trial_row(method, seed, trial),
    'chosen': True,
    'learning_rate': 0.1,
    'parameters': 'proximal_weight=0.1' if method == 'fed_prox' else '',
    'holdout_accuracy': stats['mean'],
    **{
      f'client_accuracy_{name}': stats[name]
      for name in ('mean', 'worst10', 'min', 'variance', 'jain')
    },
    'client_f1_mean': stats['mean'] - 0.05,
    'global_accuracy': None if method == 'standalone' else stats['mean'] - 0.02,
    'cf': cf,
    'better_off': better,
    'target': 0.6,
    'rounds_to_target': 3 + (len(method) + seed) % 4 if reached else None,
    'bytes_down': 0 if method == 'standalone' else _WEIGHT * len(values),
    'bytes_up': 0 if method == 'standalone' else _WEIGHT * len(values),
    'client_accuracies': json.dumps(list(values)),
    'curve': json.dumps(
      {
        'rounds': list(range(1, 7)),
        'mean': (shares * stats['mean']).tolist(),
        'worst10': (shares * stats['worst10']).tolist(),
      }
    ),
  }


def write(folder, found=None, about=None):
  """Writes compare.csv and compare.json; returns their paths."""
  folder.mkdir(parents=True, exist_ok=True)
  paths = folder / 'compare.csv', folder / 'compare.json'
  found = rows() if found is None else found
  of_all = [result_row('fed_avg', 0, 0, [0.5]), *found]
  columns = dict.fromkeys(name for row in of_all for name in row)
  table = pd.DataFrame(found, columns=columns)
  reading.write(table, facts() if about is None else about, *paths)
  return paths


def analyse(folder, found=None, about=None):
  """Writes a comparison, and analyses its files."""
  return analysis.analyse(*reading.read(*write(folder, found, about)))


def _seconds(method):
  return 0.2 if method == 'ditto' else 0.1


def _wiggle(method, seed, client):
  return 0.004 * ((7 * client + 3 * len(method) + 5 * seed) % 11 - 5)
