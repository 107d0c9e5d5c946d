"""All plots of a run, alone and next to others."""

import shutil

import numpy as np
import pandas as pd
import pytest

from tests import refusals
from tests.launchers import fake_run
from tff_fair.launchers import frame
from tff_fair.launchers.options import settings
from tff_fair.launchers.plots import all_plots
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import run_plots


def _names(paths):
  return [path.name for path in paths]


def _change(run, name, **columns):
  table = pd.read_csv(run / name).assign(**columns)
  table.to_csv(run / name, index=False)


def test_all_plots_that_a_run_has_numbers_for_are_written(tmp_path):
  run = fake_run.write(tmp_path / 'run', [0.5, 0.6])
  paths = all_plots.write(run, [])
  assert _names(paths) == [
    'learning_curves.png',
    'client_f1.png',
    'parameters_distances.png',
    'embedding_distances.png',
    'client_accuracy.png',
    'reputation.png',
  ]
  assert sorted(paths) == sorted((run / 'plots').iterdir())
  nothing = dict.fromkeys(fake_run.final_distances(), np.nan)
  _change(run, 'metrics.csv', personal_accuracy=np.nan, **nothing)
  _change(run, 'clients.csv', f1=np.nan)
  _change(run, 'reports.csv', reputation=np.nan)
  assert _names(all_plots.write(run, [])) == ['learning_curves.png']


def test_runs_are_labelled_by_method_and_if_need_be_by_directory(tmp_path):
  folders = [
    fake_run.write(tmp_path / name, [0.5], algorithm=algorithm)
    for name, algorithm in (('a', 'fed_avg'), ('b', 'cffl'), ('c', 'fed_avg'))
  ]
  figure = all_plots.draw(frame.read_runs(folders))['learning_curves']
  (legend,) = figure.legends
  labels = [text.get_text() for text in legend.get_texts()]
  assert labels == ['FedAvg (a)', 'CFFL', 'FedAvg (c)']
  looks = method_styles.of_runs(['fed_avg', 'cffl', 'fed_avg'])
  found = [line.get_color() for line in figure.axes[0].lines]
  assert found == [look.color for look in looks]


@pytest.mark.parametrize(
  ('name', 'content', 'message'),
  [
    ('summary.json', None, 'found no summary.json in it'),
    ('summary.json', b'[' * 200_000, 'summary.json must be as a training run'),
    ('metrics.csv', None, 'must hold metrics.csv, found no file'),
    (
      'clients.csv',
      b'client_id,num_train,f1\n0,1,x\n',
      'must have the columns',
    ),
  ],
)
def test_runs_to_compare_with_are_read_at_once(
  tmp_path, name, content, message
):
  run = fake_run.write(tmp_path / 'run', [0.5, 0.6])
  frame.check_finished([str(run)])
  other = shutil.copytree(run, tmp_path / 'other')
  (other / name).unlink()
  if content is not None:
    (other / name).write_bytes(content)
  message = f'^--compare_with={other} must be the directory of .*{message}'
  refusals.check(
    frame.check_finished,
    [({'directories': [str(other)]}, settings.SettingsError, message)],
  )


# Not markup, and not too few for a legend.
_NAMES = ('$x$ _a_ \\d', '$\\frac$ {%', '_b', '\\$', '$', 'a_b^c')


def test_names_are_drawn_as_they_are(tmp_path):
  runs = {
    name: frame.read_run(fake_run.write(tmp_path / str(i), [0.5, 0.6]))
    for i, name in enumerate(_NAMES)
  }
  styles = dict(zip(runs, method_styles.of_runs(_NAMES), strict=True))
  path = tmp_path / 'x.png'
  curves = run_plots.learning_curves(runs, styles)
  scores = run_plots.client_scores(runs, styles, 'f1')
  distances = run_plots.distance_curves(
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
