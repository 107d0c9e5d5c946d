"""All plots of a run, alone and next to others."""

import json
import shutil

import pandas as pd

from tests import refusals
from tests.launchers import fake_run
from tff_fair.launchers.options import settings
from tff_fair.launchers.plots import all_plots
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import distance_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import run_plots


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
      module,
      'write_plots',
      lambda runs, styles, folder: drawn.append((runs, styles)) or [],
    )
  monkeypatch.setattr(client_plots, 'write_plots', lambda run, folder: [run])
  a, b, c = (
    _write(tmp_path / name, algorithm)
    for name, algorithm in (('a', 'fed_avg'), ('b', 'cffl'), ('c', 'fed_avg'))
  )
  # Clients are only those of the run itself.
  assert all_plots.write(a, [str(b), str(c)]) == [a]
  expected = {'FedAvg (a)': a, 'CFFL': b, 'FedAvg (c)': c}
  looks = method_styles.of_runs(['fed_avg', 'cffl', 'fed_avg'])
  styles = dict(zip(expected, looks, strict=True))
  assert drawn == [(expected, styles)] * 2
  assert list(drawn[0][0]) == list(expected)


def test_runs_to_compare_with_are_read_at_once(tmp_path):
  run = _write(tmp_path / 'run', 'cffl')
  settings.check_finished([str(run)])
  cut = '\n'.join((run / 'metrics.csv').read_text().splitlines()[:1])
  rows = (
    ('summary.json', None, 'found no summary.json in it'),
    ('summary.json', b'[1]', "must have the name of the run's algorithm"),
    ('summary.json', b'{"algorithm": 1}', 'must have the name'),
    ('summary.json', b'{"algo', 'must have the name'),
    ('summary.json', b'[' * 200_000, 'must have the name'),
    ('summary.json', b'\xff\xfe', 'must have the name'),
    ('metrics.csv', None, 'must hold metrics.csv, found no file'),
    ('metrics.csv', b'', 'metrics.csv must be a csv file, found in'),
    ('metrics.csv', cut.encode(), 'global_f1.* and a row, found 0 rows'),
    ('metrics.csv', b'round\n1\n', 'must have the columns round, global_acc'),
    ('clients.csv', None, 'must hold clients.csv, found no file'),
    ('clients.csv', b'\xff\xfe\x00', 'clients.csv must be a csv file'),
    ('clients.csv', b'client_id,num_train,f1\n0,1,x\n', 'must hold numbers'),
  )
  for name, content, message in rows:
    other = shutil.copytree(run, tmp_path / 'other')
    (other / name).unlink()
    if content is not None:
      (other / name).write_bytes(content)
    message = rf'^--compare_with={other} must be the directory of .*{message}'
    refusals.check(
      settings.check_finished,
      [({'directories': [str(other)]}, settings.SettingsError, message)],
    )
    shutil.rmtree(other)
  # A column of the distances, which are drawn if there are any.
  metrics = pd.read_csv(run / 'metrics.csv')
  metrics.assign(embedding_d_cosine='x').to_csv(
    run / 'metrics.csv', index=False
  )
  refusals.check(
    settings.check_finished,
    [({'directories': [str(run)]}, settings.SettingsError, 'hold numbers')],
  )


# Not markup, and not too few for a legend.
_NAMES = ('$x$ _a_ \\d', '$\\frac$ {%', '_b', '\\$', '$', 'a_b^c')


def test_names_are_drawn_as_they_are(tmp_path):
  runs = {
    name: _write(tmp_path / str(i), name) for i, name in enumerate(_NAMES)
  }
  styles = dict(zip(runs, method_styles.of_runs(_NAMES), strict=True))
  path = tmp_path / 'x.png'
  curves = run_plots.learning_curves(runs, styles, path)
  scores = run_plots.client_f1_distribution(runs, styles, path)
  distances = distance_plots.distance_curves(
    {name: [run] for name, run in runs.items()}, styles, 'parameters', path
  )
  panels = client_plots.client_accuracy(runs, path)
  drawn = [
    curves.legends[0].get_texts(),
    scores.axes[0].get_yticklabels(),
    distances.legends[0].get_texts(),
    [axes.title for axes in panels.axes],
  ]
  for texts in drawn:
    assert [text.get_text() for text in texts] == list(_NAMES)
    assert not any(text.get_parse_math() for text in texts)
  entries = scores.legends[0].get_texts()
  for name, text in zip(_NAMES, entries, strict=True):
    assert text.get_text().startswith(f'{name}: median')
