"""Run directories with made-up numbers, in the form of the real ones."""

import json

import numpy as np
import pandas as pd

from tff_fair.launchers.runs import distances


def final_distances():
  """CoRe-Fed's distances in the last round, all different."""
  return {name: 0.1 * (i + 1) for i, name in enumerate(distances.COLUMNS)}


def write(
  folder,
  accuracy,
  *,
  num_train=None,
  num_classes=None,
  rounds=3,
  isolated=None,
  names=None,
  algorithm='cffl',
):
  """Writes a run.

  Args:
    folder: The directory to make.
    accuracy: The last accuracy of each client.
    num_train: Each client's number of examples; by default 10, 20, ...
    num_classes: Each client's number of classes; by default 10.
    rounds: Rounds, each client's accuracy growing evenly from 0.
    isolated: Client -> the round in which it is isolated.
    names: Each client's name; by default clients have none.
    algorithm: The method.

  Returns:
    The directory.
  """
  folder.mkdir(parents=True)
  ids = range(len(accuracy))
  num_train = num_train or [10 * (i + 1) for i in ids]
  clients = pd.DataFrame(
    {
      'client_id': ids,
      'num_train': num_train,
      'num_classes': num_classes or [10] * len(accuracy),
      'accuracy': accuracy,
      'f1': accuracy,
      'loss': 1.0,
    }
  )
  if names:
    clients.insert(1, 'client', names)
  clients.to_csv(folder / 'clients.csv', index=False)
  scores, reports = [], []
  for number in range(1, rounds + 1):
    for i in ids:
      share = number / rounds
      scores.append((number, i, share * accuracy[i]))
      reputable = number < (isolated or {}).get(i, rounds + 1)
      reputation = (0.1 + i / 10) * reputable
      reports.append((number, i, 9, reputation, int(reputable)))
  pd.DataFrame(scores, columns=['round', 'client_id', 'accuracy']).to_csv(
    folder / 'client_scores.csv', index=False
  )
  pd.DataFrame(
    reports,
    columns=['round', 'client_id', 'num_examples', 'reputation', 'reputable'],
  ).to_csv(folder / 'reports.csv', index=False)
  honest = clients['accuracy'][clients['num_train'] > 0]
  index = np.arange(1, rounds + 1)
  metrics = {
    'round': index,
    'personal_accuracy': 0.5,
    'aggregator_threshold': 0.05,
    'client_accuracy_mean': index / rounds * honest.mean(),
    **{n: value * rounds / index for n, value in final_distances().items()},
  }
  pd.DataFrame(metrics).to_csv(folder / 'metrics.csv', index=False)
  final = {
    'client_accuracy_mean': honest.mean(),
    'client_accuracy_max': honest.max(),
    'global_f1': None,
    **final_distances(),
  }
  summary = {
    'final': final,
    'client_f1_variance_window': {},
    'dropped': {},
    'median_seconds_per_round': 0.1,
  }
  (folder / 'summary.json').write_text(json.dumps(summary))
  (folder / 'flags.txt').write_text(
    f'--algorithm={algorithm}\n--rounds={rounds}\n--task=digits\n'
  )
  return folder
