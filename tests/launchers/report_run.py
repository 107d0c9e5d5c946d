"""Made-up runs for tests of the report, with all that it reads."""

import json

import numpy as np
import pandas as pd

_EVALUATED = ('global_accuracy', 'global_f1', 'global_loss')


def write(
  folder,
  accuracy=(0.5, 0.7, 0.9),
  *,
  num_train=(10, 20, 200),
  num_test=None,
  rounds=3,
  finished=True,
  eval_every=1,
  reports=None,
  dropped=0,
  names=None,
  notes=(),
  version=None,
  **settings,
):
  """Writes a run of three rounds, in which each client's accuracy grows evenly.

  Args:
    folder: The directory to make.
    accuracy: Each client's accuracy in the third round; F1 is half of it.
    num_train: Each client's number of examples.
    num_test: Each client's number of test examples; by default not written.
    rounds: Rounds that are written.
    finished: Whether the run has a summary.
    eval_every: Rounds between evaluations.
    reports: Column -> values in reports.csv; by default `alpha`.
    dropped: Rejected clients in each round.
    names: Each client's name; by default clients have none.
    notes: Of the summary.
    version: Of the summary; by default it has none.
    **settings: Of the flags file.

  Returns:
    The directory.
  """
  folder.mkdir(parents=True)
  settings = {
    'algorithm': 'fed_avg',
    'num_clients': len(accuracy),
    'output_dir': folder,
    'rounds': 3,
    'task': 'digits',
    **settings,
  }
  (folder / 'flags.txt').write_text(
    '# Preset: fedaboost_digits.\n'
    + ''.join(f'--{name}={value}\n' for name, value in settings.items())
  )
  ids = np.arange(len(accuracy))
  num_train, accuracy = np.array(num_train), np.array(accuracy)
  honest = num_train > 0
  metrics, scores, rows = [], [], []
  for number in range(1, rounds + 1):
    share = number / 3
    row = {'round': number, 'num_rejected_clients': dropped}
    if number % eval_every == 0:
      row.update({n: share / (i + 1) for i, n in enumerate(_EVALUATED)})
      for name, factor in (('accuracy', share), ('f1', share / 2)):
        values = pd.Series(factor * accuracy[honest])
        row[f'client_{name}_mean'] = values.mean()
        row[f'client_{name}_median'] = values.median()
        row[f'client_{name}_max'] = values.max()
        row[f'client_{name}_variance'] = values.var(ddof=0)
      columns = {
        'accuracy': share * accuracy,
        'f1': share / 2 * accuracy,
        'loss': 1.0,
      }
      scores.append(pd.DataFrame(dict(round=number, client_id=ids, **columns)))
    metrics.append(row)
    columns = {
      'num_examples': num_train,
      **(reports or {'alpha': number * accuracy}),
    }
    rows.append(pd.DataFrame(dict(round=number, client_id=ids, **columns)))
  if names:
    for frame in (*scores, *rows):
      frame.insert(2, 'client', names)
  pd.DataFrame(metrics).to_csv(folder / 'metrics.csv', index=False)
  pd.concat(rows).to_csv(folder / 'reports.csv', index=False)
  if scores:
    pd.concat(scores).to_csv(folder / 'client_scores.csv', index=False)
  if finished:
    clients = pd.concat(scores)[-len(ids) :].drop(columns='round')
    clients.insert(clients.columns.get_loc('accuracy'), 'num_train', num_train)
    clients.insert(clients.columns.get_loc('accuracy'), 'num_classes', 10)
    if num_test is not None:
      clients['num_test'] = num_test
    clients.to_csv(folder / 'clients.csv', index=False)
    summary = {**_summary(metrics), 'notes': notes, 'version': version}
    (folder / 'summary.json').write_text(json.dumps(summary))
  return folder


def _summary(metrics):
  final = metrics[-1]
  return {
    'final': {n: v for n, v in final.items() if n[:6] in ('client', 'global')},
    'client_f1_variance_window': {
      'evaluations': 3,
      'mean': 0.0123,
      'low': 0.01,
      'high': 0.0146,
    },
    'dropped': {
      'num_rejected_clients': sum(m['num_rejected_clients'] for m in metrics)
    },
    'median_seconds_per_round': 0.25,
  }
