"""Tests of the tables' pictures: the data drawn is the data in the files."""

import numpy as np
import pytest

from launchers import distance_plots
from launchers import table_plots
from launchers import table_runs
from launchers import tables
from tests.launchers import fake_run
from tests.launchers import tiny_table


def test_scatter_draws_each_client_in_each_method(tmp_path):
  alone = fake_run.write(tmp_path / 'alone', [0.5, 0.6, 0.7])
  runs = {
    'fair': fake_run.write(tmp_path / 'fair', [0.6, 0.7, 0.8]),
    'equal': fake_run.write(tmp_path / 'equal', [0.8, 0.8, 0.8]),
  }
  figure = table_plots.scatter(alone, runs, tmp_path / 'x.png')
  fair, equal = figure.axes
  assert fair.get_title() == 'fair\nCF coefficient 100.00'
  assert equal.get_title() == 'equal\nCF coefficient undefined'
  points = [dot.get_offsets()[0].tolist() for dot in fair.collections]
  np.testing.assert_allclose(points, [[0.5, 0.6], [0.6, 0.7], [0.7, 0.8]])
  assert fair.get_ylim() == equal.get_ylim()
  for axes in (fair, equal):
    low, high = axes.get_ylim()
    assert low < 0.6 and high > 0.8
  labels = [text.get_text() for text in figure.legends[0].get_texts()]
  assert labels[0] == '0: 10 examples' and 'as good as alone' in labels


def test_free_riders_have_no_point(tmp_path):
  alone = fake_run.write(tmp_path / 'alone', [0.5, 0.6])
  run = fake_run.write(tmp_path / 'run', [0.6, 0.7, 0.1], num_train=[1, 2, 0])
  figure = table_plots.scatter(alone, {'x': run}, tmp_path / 'x.png')
  assert len(figure.axes[0].collections) == 2


@pytest.mark.parametrize(('number', 'grid'), [(1, 1), (3, 3), (4, 4), (5, 6)])
def test_panels_without_a_method_are_blank(tmp_path, number, grid):
  alone = fake_run.write(tmp_path / 'alone', [0.5, 0.6])
  runs = {str(i): alone for i in range(number)}
  figure = table_plots.scatter(alone, runs, tmp_path / 'x.png')
  assert len(figure.axes) == grid
  assert sum(axes.axison for axes in figure.axes) == number


def test_distances_are_drawn_of_all_seeds(tmp_path, monkeypatch):
  table = tables.TABLES['corefed_ablation']
  planner = table_runs.Planner(
    table,
    num_seeds=2,
    rounds=None,
    dataset=None,
    data_dir=None,
    output_dir=tmp_path,
  )
  for run in table_runs.distinct(planner.rows(table.cells)):
    fake_run.write(run.output_dir, [0.5, 0.6])
  drawn = {}

  def draw(runs, space, path):
    drawn[space] = runs
    path.touch()

  monkeypatch.setattr(distance_plots, 'distance_curves', draw)
  paths = table_plots.write_figures(
    'corefed_ablation', planner, table.cells, tmp_path / 'plots'
  )
  assert [path.name for path in paths] == [
    'corefed_ablation_fmnist_parameters_distances.png',
    'corefed_ablation_fmnist_embedding_distances.png',
  ]
  for runs in drawn.values():
    assert list(runs) == ['corefed', 'cofed', 'refed']
    assert [run.name for run in runs['refed']] == ['seed_0', 'seed_1']


def test_figures_of_a_table(tmp_path, monkeypatch):
  monkeypatch.setitem(tables.TABLES, 'tiny', tiny_table.TABLE)
  planner = table_runs.Planner(
    tiny_table.TABLE,
    num_seeds=1,
    rounds=None,
    dataset=None,
    data_dir=None,
    output_dir=tmp_path,
  )
  for run in table_runs.distinct(planner.rows(['digits'])):
    fake_run.write(run.output_dir, [0.5, 0.6, 0.7])
  paths = table_plots.write_figures(
    'tiny', planner, ['digits'], tmp_path / 'plots'
  )
  assert [path.name for path in paths] == [
    'tiny_digits_cffl_client_accuracy.png',
    'tiny_digits_scatter.png',
    'tiny_digits_cffl_reputation.png',
  ]
  assert sorted(paths) == sorted((tmp_path / 'plots').iterdir())
