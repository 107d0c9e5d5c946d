"""Tests of the tables' pictures: the data drawn is the data in the files."""

import numpy as np
import pytest

from launchers.plots import distance_plots
from launchers.plots import embedding_plots
from launchers.tables import definitions
from launchers.tables import table_plots
from launchers.tables import table_runs
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
  table = definitions.TABLES['corefed_ablation']
  planner = table_runs.Planner(
    table,
    num_seeds=2,
    rounds=None,
    scale=1.0,
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
  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
  planner = table_runs.Planner(
    tiny_table.TABLE,
    num_seeds=1,
    rounds=None,
    scale=1.0,
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


def _fedquad_planner(output_dir, figure_round=None, methods=None):
  table = definitions.TABLES['fedquad_table1']
  return table_runs.Planner(
    table if methods is None else table.restricted_to(methods),
    num_seeds=2,
    rounds=None,
    scale=0.015,
    dataset=None,
    data_dir=None,
    output_dir=output_dir,
    figure_round=figure_round,
  )


@pytest.fixture(name='drawn')
def _drawn(monkeypatch):
  """What was asked to be drawn: file name -> (titles, directories, round)."""
  drawn = {}

  def draw(runs, round_number, path):
    folders = [folder for folder, _ in runs.values()]
    for folder, settings in runs.values():
      assert settings['output_dir'] == str(folder)
    drawn[path.name] = (list(runs), folders, round_number)

  monkeypatch.setattr(embedding_plots, 'embeddings', draw)
  return drawn


_EMBEDDINGS = 'fedquad_table1_cifar10_iid_c10_embeddings.png'


@pytest.mark.parametrize('figure_round', [None, 5])
def test_embeddings_are_drawn_of_the_first_seed(tmp_path, drawn, figure_round):
  planner = _fedquad_planner(tmp_path, figure_round)
  paths = table_plots.write_figures(
    'fedquad_table1', planner, ['cifar10_iid_c10'], tmp_path / 'plots'
  )
  assert [path.name for path in paths] == [_EMBEDDINGS] == list(drawn)
  titles, folders, number = drawn[_EMBEDDINGS]
  assert titles == ['fed_avg', 'fedquad']
  assert number == figure_round
  preset = tmp_path / 'runs/fedquad_cifar10_iid_c10'
  assert folders == [
    preset / f'{method}-data_fraction=0.015/seed_0' for method in titles
  ]


def test_cells_without_a_method_of_the_picture_have_none(tmp_path, drawn):
  planner = _fedquad_planner(tmp_path)
  cells = planner.table.cells
  table_plots.write_figures('fedquad_table1', planner, cells, tmp_path)
  # Centralised training is neither FedAvg nor FedQuad.
  assert list(drawn) == [
    f'fedquad_table1_cifar10_{setting}_embeddings.png'
    for setting in ('iid_c10', 'a03_c10', 'a05_c10')
  ]


@pytest.mark.parametrize(
  ('methods', 'expected'),
  [(['moon'], []), (['fedquad', 'moon'], [['fedquad']])],
)
def test_only_the_methods_that_are_wanted_are_drawn(
  tmp_path, drawn, methods, expected
):
  planner = _fedquad_planner(tmp_path, methods=methods)
  cells = ['cifar10_iid_c10']
  table_plots.write_figures('fedquad_table1', planner, cells, tmp_path)
  assert [titles for titles, *_ in drawn.values()] == expected
