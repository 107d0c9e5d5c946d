"""Tests of the tables' pictures: the data drawn is the data in the files."""

import numpy as np

from tests.launchers import fake_run
from tests.launchers import tiny_table
from tff_fair.launchers import frame
from tff_fair.launchers.plots import embedding_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import embeddings
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_plots
from tff_fair.launchers.tables import table_runs


def _write(folder, accuracy, **options):
  return frame.read_run(fake_run.write(folder, accuracy, **options))


def test_scatter_draws_each_client_in_each_method(tmp_path):
  alone = _write(tmp_path / 'alone', [0.5, 0.6, 0.7])
  # The fourth, a free rider, has no point.
  rider = _write(
    tmp_path / 'fair', [0.6, 0.7, 0.8, 0.1], num_train=[10, 20, 30, 0]
  )
  equal = _write(tmp_path / 'equal', [0.8, 0.8, 0.8])
  runs = {'fair': rider, 'equal': equal}
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
  assert [dot.get_label() for dot in fair.collections] == labels[:3]
  # Panels without a method are blank.
  for number, grid in ((3, 3), (5, 6)):
    runs = {str(i): alone for i in range(number)}
    figure = table_plots.scatter(alone, runs, tmp_path / 'x.png')
    assert len(figure.axes) == grid
    assert sum(axes.axison for axes in figure.axes) == number


def test_more_than_eight_clients_are_colored_by_their_data(tmp_path):
  accuracy = [0.5 + i / 100 for i in range(10)]
  num_train = [10 * (i + 1) for i in range(9)] + [0]
  alone = _write(tmp_path / 'alone', accuracy, num_train=num_train)
  figure = table_plots.scatter(alone, {'x': alone}, tmp_path / 'x.png')
  axes, bar = figure.axes
  (points,) = axes.collections
  np.testing.assert_allclose(points.get_offsets()[:, 0], accuracy[:9])
  assert points.get_array().tolist() == num_train[:9]
  assert bar.get_ylabel() == 'Training examples of the client'
  # Where all have equally many examples, by classes.
  equal = _write(
    tmp_path / 'equal', accuracy, num_train=[5] * 10, num_classes=[*range(10)]
  )
  figure = table_plots.scatter(equal, {'x': equal}, tmp_path / 'x.png')
  assert figure.axes[1].get_ylabel() == 'Classes of the client'


def test_distances_are_drawn_of_all_seeds(tmp_path, monkeypatch):
  table = definitions.TABLES['corefed_ablation']
  planner = tiny_table.planner(table, num_seeds=2, output_dir=tmp_path)
  for run in table_runs.distinct(planner.rows(table.cells)):
    fake_run.write(run.output_dir, [0.5, 0.6])
  drawn = {}
  color, _ = method_styles.PROVIDED['corefed']

  def draw(runs, styles, space, path):
    drawn[space] = runs
    # Variants of one method have its colour.
    assert list(styles) == list(runs)
    assert {style.color for style in styles.values()} == {color}
    path.touch()

  monkeypatch.setattr(run_plots, 'distance_curves', draw)
  paths = table_plots.write_figures(
    'corefed_ablation', planner, table.cells, tmp_path / 'plots'
  )
  assert [path.name for path in paths] == [
    'corefed_ablation_fmnist_parameters_distances.png',
    'corefed_ablation_fmnist_embedding_distances.png',
  ]
  for runs in drawn.values():
    assert list(runs) == ['corefed', 'cofed', 'refed']
    assert [run.directory.name for run in runs['refed']] == ['seed_0', 'seed_1']


def test_figures_of_a_table(tmp_path, monkeypatch):
  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
  planner = tiny_table.planner(output_dir=tmp_path)
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


def test_embeddings_are_drawn_of_all_seeds(tmp_path, monkeypatch):
  """Title -> (directory, round), by the name of the file."""
  drawn = {}

  def embed(settings, output_dir, round_number, **limits):
    assert settings['output_dir'] == str(output_dir)
    assert limits == {'max_classes': 10, 'max_examples': 2000}
    return output_dir, round_number

  def draw(runs, path):
    drawn[path.name] = runs

  monkeypatch.setattr(embeddings, 'of_run', embed)
  monkeypatch.setattr(embedding_plots, 'scatter', draw)
  name = 'fedquad_table1'

  def write(methods):
    drawn.clear()
    table = definitions.TABLES[name].restricted_to(methods)
    planner = tiny_table.planner(
      table, num_seeds=2, scale=0.015, output_dir=tmp_path
    )
    cells = ['cifar10_iid_c10', 'cifar10_centralised']
    return table_plots.write_figures(name, planner, cells, tmp_path / 'plots')

  paths = write(definitions.TABLES[name].methods)
  methods = 'fed_avg', 'fedquad', 'moon'
  methods += 'supcon_fl', 'triplet_fl', 'quadruplet_fl'
  # Centralised training is none of these.
  file = f'{name}_cifar10_iid_c10_embeddings.png'
  assert [path.name for path in paths] == [file]
  preset = tmp_path / 'runs/fedquad_cifar10_iid_c10'
  assert drawn == {
    file: {
      method: [
        (preset / f'{method}-data_fraction=0.015/seed_{seed}', None)
        for seed in (0, 1)
      ]
      for method in methods
    }
  }
  # Only the requested methods.
  write(['fedquad', 'supcon_fl_without_ce'])
  assert [list(runs) for runs in drawn.values()] == [['fedquad']]
  assert write(['supcon_fl_without_ce']) == []
