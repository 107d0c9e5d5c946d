"""All plots of a run, alone and next to others."""

import json

import pandas as pd

from launchers.plots import all_plots
from launchers.plots import client_plots
from launchers.plots import distance_plots
from launchers.plots import run_plots
from tests.launchers import fake_run


def _write(folder, algorithm):
  fake_run.write(folder, [0.5, 0.6])
  metrics = pd.read_csv(folder / 'metrics.csv')
  for panel in run_plots.PANELS:
    metrics[panel.column] = 0.5
  metrics.to_csv(folder / 'metrics.csv', index=False)
  clients = pd.read_csv(folder / 'clients.csv').assign(f1=0.4)
  clients.to_csv(folder / 'clients.csv', index=False)
  summary = folder / 'summary.json'
  content = {**json.loads(summary.read_text()), 'algorithm': algorithm}
  summary.write_text(json.dumps(content))
  return folder


def test_all_plots_of_a_run_are_written(tmp_path):
  run = _write(tmp_path / 'run', 'cffl')
  paths = all_plots.write(run, [])
  assert [path.name for path in paths] == [
    'learning_curves.png',
    'client_f1.png',
    'parameters_distances.png',
    'embedding_distances.png',
    'client_accuracy.png',
    'reputation.png',
  ]
  assert sorted(paths) == sorted((run / 'plots').iterdir())


def test_runs_are_labelled_by_method_and_if_need_be_by_directory(
  tmp_path, monkeypatch
):
  drawn = []
  for module in (run_plots, distance_plots):
    monkeypatch.setattr(
      module, 'write_plots', lambda runs, folder: drawn.append(runs) or []
    )
  monkeypatch.setattr(client_plots, 'write_plots', lambda run, folder: [run])
  a, b, c = (
    _write(tmp_path / name, algorithm)
    for name, algorithm in (('a', 'fed_avg'), ('b', 'cffl'), ('c', 'fed_avg'))
  )
  # Clients are only those of the run itself.
  assert all_plots.write(a, [str(b), str(c)]) == [a]
  expected = {f'fed_avg ({a})': a, 'cffl': b, f'fed_avg ({c})': c}
  assert drawn == [expected, expected]
  assert list(drawn[0]) == list(expected)
