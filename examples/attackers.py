"""Trains methods on digits with attackers, and writes how the others fare.

  python examples/attackers.py runs/attackers results/attackers.csv

A row of the csv is a run. `mean` and `worst` are the mean accuracy of the
honest clients and that of the worst one; of a run without an attack they are
of the same clients. They are empty if the run diverged. The same command goes
on where it was interrupted.
"""

import pathlib
import re
import sys
import warnings

import numpy as np
import pandas as pd
import tensorflow as tf
import tqdm

from tff_fair import client
from tff_fair.launchers import frame
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import training

SEEDS = (0, 1, 2)
_TASK = {
  'task': 'digits',
  'num_clients': 10,
  'partition': 'dirichlet',
  'dirichlet_alpha': 1.0,
  'client_learning_rate': 0.1,
  'local_epochs': 2,
  'rounds': 30,
  'eval_every': 30,
  'export': 'none',
}
# Title of a row -> its flags.
_ROWS = {
  'FedAvg': {'algorithm': 'fed_avg'},
  'FedAvg, `--robust`': {'algorithm': 'fed_avg', 'robust': True},
  'FedAvg, `--max_update_norm=1`': {
    'algorithm': 'fed_avg',
    'max_update_norm': 1.0,
  },
  'FeDABoost': {'algorithm': 'fedaboost'},
  'CoRe-Fed': {'algorithm': 'corefed'},
  'CFFL': {'algorithm': 'cffl'},
  'Ditto': {'algorithm': 'ditto', 'personal_learning_rate': 0.1},
  'q-FedAvg': {'algorithm': 'q_fed_avg'},
  'AFL': {'algorithm': 'afl'},
  'TERM': {'algorithm': 'term'},
  'FedFV': {'algorithm': 'fed_fv'},
}
_ATTACKS = (None, *client.ATTACKS)
# With the default of 1, two of ten sign flips hardly slow the training down.
_STRENGTHS = {'sign_flip': 10.0}


def plan(
  folder: pathlib.Path,
) -> dict[tuple[str, str, int], planned_run.PlannedRun]:
  """All runs, by row, attack and seed."""
  found = {}
  for title, flags in _ROWS.items():
    name = '_'.join(re.findall(r'\w+', title)).lower()
    for attack in _ATTACKS:
      for seed in SEEDS:
        path = folder / name / f'{attack}_{seed}'
        values = {
          **_TASK,
          **flags,
          'attack': attack,
          'attack_strength': _STRENGTHS.get(attack),
        }
        run = planned_run.plan(values, seed, path)
        found[title, attack or 'none', seed] = run
  return found


def train(run: planned_run.PlannedRun) -> bool:
  """Trains a run unless it is finished; returns whether it has a result."""
  diverged = run.output_dir / 'diverged.txt'
  if run.is_finished() or diverged.exists():
    return not diverged.exists()
  run.output_dir.mkdir(parents=True, exist_ok=True)
  try:
    trained = training.Run(run.settings, run.output_dir, run.flags_text)
    trained.train()
    trained.finish()
  except training.DivergedError as error:
    diverged.write_text(str(error))
    return False
  finally:
    tf.keras.backend.clear_session()
  return True


def scores(
  run: planned_run.PlannedRun, like: planned_run.PlannedRun
) -> dict[str, float]:
  """A run's scores over the clients that are honest in another one."""
  honest = frame.read_run(like.output_dir).honest.index
  accuracy = frame.read_run(run.output_dir).clients['accuracy'][honest]
  return {'mean': np.nanmean(accuracy), 'worst': np.nanmin(accuracy)}


def main(folder: pathlib.Path, table: pathlib.Path) -> None:
  """Trains all runs, and writes the table."""
  runs, rows = plan(folder), []
  has_result = {key: train(run) for key, run in tqdm.tqdm(runs.items())}
  for (title, attack, seed), run in runs.items():
    row = {'method': title, 'attack': attack, 'seed': seed}
    # The attackers are a function of the seed and the data.
    like = next(
      other
      for (_, name, s), other in runs.items()
      if (name, s) == (client.ATTACKS[0], seed)
    )
    if has_result[title, attack, seed]:
      row |= scores(run, like)
    command = [
      *run.arguments,
      *(f'--{n}={seed}' for n in planned_run.SEED_FLAGS),
    ]
    row['command'] = ' '.join(['python -m launchers.train', *command])
    rows.append(row)
  pd.DataFrame(rows).to_csv(table, index=False, float_format='%.6f')


if __name__ == '__main__':
  warnings.simplefilter('ignore')
  main(*map(pathlib.Path, sys.argv[1:]))
