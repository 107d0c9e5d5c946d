"""Tests of the pictures: the data drawn is the data in the files."""

import subprocess
import sys

from matplotlib import colors
from matplotlib import image
import numpy as np
import pandas as pd
import pytest

from launchers.plots import run_plots

_CURVES = (
  'global_accuracy',
  'global_f1',
  'global_loss',
  'client_f1_median',
  'client_f1_variance',
)


def _metrics(rounds, offset=0.0):
  """A made-up metrics.csv whose every column differs from the others."""
  index = np.arange(1, rounds + 1)
  frame = pd.DataFrame({'round': index, 'train_loss': 1.0 / index})
  for order, column in enumerate(_CURVES):
    frame[column] = offset + order + 1.0 / index
  return frame


def _clients(f1):
  return pd.DataFrame({'client_id': range(len(f1)), 'num_train': 9, 'f1': f1})


def _run(folder, metrics=None, clients=None):
  """Writes a run directory; the defaults are four rounds and three clients."""
  folder.mkdir()
  metrics = _metrics(4) if metrics is None else metrics
  clients = _clients([0.5, 0.7, 0.9]) if clients is None else clients
  metrics.to_csv(folder / 'metrics.csv', index=False)
  clients.to_csv(folder / 'clients.csv', index=False)
  return folder


@pytest.fixture(name='runs')
def _runs(tmp_path):
  second = _run(tmp_path / 'b', _metrics(6, 0.1), _clients([0.2, 0.4]))
  return {'FedAvg': _run(tmp_path / 'a'), 'FeDABoost': second}


def _curve(axes, label):
  (line,) = (line for line in axes.lines if line.get_label() == label)
  return line


def _dots(figure):
  """The F1 drawn in each row, top to bottom, and its legend entry."""
  return [
    (list(dots.get_offsets()[:, 0]), dots.get_label().replace('\n', ' '))
    for dots in figure.axes[0].collections
    if not dots.get_label().startswith('_')
  ]


def _pixels(path):
  assert path.read_bytes().startswith(b'\x89PNG')
  height, width, _ = image.imread(path).shape
  return width, height


def _texts(axes):
  return [text.get_text() for text in axes.texts]


def test_import_leaves_tensorflow_alone():
  code = (
    'import sys, launchers.plots.run_plots;'
    ' sys.exit("tensorflow" in sys.modules)'
  )
  subprocess.run([sys.executable, '-c', code], check=True)


def test_write_plots_writes_pngs_of_the_expected_size(runs, tmp_path):
  paths = run_plots.write_plots(runs, tmp_path / 'new' / 'plots')
  assert [path.name for path in paths] == [
    'learning_curves.png',
    'client_f1.png',
  ]
  assert _pixels(paths[0]) == (1800, 990)
  assert _pixels(paths[1]) == (1200, 645)


def test_curves_equal_the_csv(runs, tmp_path):
  figure = run_plots.learning_curves(runs, tmp_path / 'x.png')
  for column, axes in zip(_CURVES, figure.axes, strict=False):
    for label, folder in runs.items():
      frame = pd.read_csv(folder / 'metrics.csv')
      line = _curve(axes, label)
      np.testing.assert_array_equal(line.get_xdata(), frame['round'])
      np.testing.assert_array_equal(line.get_ydata(), frame[column])


def test_curves_have_labels_and_a_legend_of_all_runs(runs, tmp_path):
  figure = run_plots.learning_curves(runs, tmp_path / 'x.png')
  *panels, last = figure.axes
  assert all(axes.get_xlabel() == 'Round (count)' for axes in panels)
  assert all('(' in axes.get_ylabel() for axes in panels)
  assert [text.get_text() for text in last.get_legend().texts] == list(runs)
  assert not last.lines


def test_a_run_keeps_its_color_in_both_pictures(runs, tmp_path):
  curves = run_plots.learning_curves(runs, tmp_path / 'x.png')
  clients = run_plots.client_f1_distribution(runs, tmp_path / 'y.png')
  dots = [
    dots.get_facecolor()[0, :3]
    for dots in clients.axes[0].collections
    if not dots.get_label().startswith('_')
  ]
  for line, color in zip(curves.axes[0].lines, dots, strict=True):
    np.testing.assert_allclose(colors.to_rgb(line.get_color()), color)


def test_runs_beyond_the_colors_differ_in_line_style(runs, tmp_path):
  (folder, *_) = runs.values()
  many = {f'run {index}': folder for index in range(12)}
  figure = run_plots.learning_curves(many, tmp_path / 'x.png')
  looks = {
    (line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines
  }
  assert len(looks) == 12


def test_rounds_without_evaluation_are_left_out(tmp_path):
  metrics = _metrics(4)
  metrics.loc[[0, 2], list(_CURVES)] = np.nan
  metrics.loc[1, 'global_loss'] = np.inf
  runs = {'x': _run(tmp_path / 'x', metrics)}
  figure = run_plots.learning_curves(runs, tmp_path / 'x.png')
  assert list(_curve(figure.axes[0], 'x').get_xdata()) == [2, 4]
  assert list(_curve(figure.axes[2], 'x').get_xdata()) == [4]


def test_a_column_that_is_empty_says_so(tmp_path):
  metrics = _metrics(4)
  metrics['global_f1'] = np.nan
  runs = {'x': _run(tmp_path / 'x', metrics)}
  figure = run_plots.learning_curves(runs, tmp_path / 'x.png')
  assert _texts(figure.axes[1]) == ['not measured']
  assert not _texts(figure.axes[0])


def test_one_round_and_one_client_still_draw(tmp_path):
  runs = {'x': _run(tmp_path / 'x', _metrics(1), _clients([0.5]))}
  curves, clients = run_plots.write_plots(runs, tmp_path)
  assert _pixels(curves) == (1800, 990)
  assert _pixels(clients) == (1200, 502)


def test_one_round_is_seen_and_has_one_whole_tick(tmp_path):
  runs = {'x': _run(tmp_path / 'x', _metrics(1))}
  axes = run_plots.learning_curves(runs, tmp_path / 'x.png').axes[0]
  assert _curve(axes, 'x').get_marker() == 'o'
  assert all(tick == int(tick) for tick in axes.get_xticks())


def test_distribution_draws_the_f1_of_each_client(runs, tmp_path):
  figure = run_plots.client_f1_distribution(runs, tmp_path / 'x.png')
  # Variances by hand: (0.04 + 0 + 0.04) / 3 and (0.01 + 0.01) / 2.
  assert _dots(figure) == [
    ([0.5, 0.7, 0.9], 'FedAvg: median 0.700, variance 0.027, 3 clients'),
    ([0.2, 0.4], 'FeDABoost: median 0.300, variance 0.01, 2 clients'),
  ]


def test_distribution_draws_the_medians(runs, tmp_path):
  axes = run_plots.client_f1_distribution(runs, tmp_path / 'x.png').axes[0]
  medians = [line.get_xdata() for line in axes.lines]
  np.testing.assert_allclose(medians, [[0.7, 0.7], [0.3, 0.3]])


def test_equal_clients_still_draw(tmp_path):
  runs = {'x': _run(tmp_path / 'x', clients=_clients([1.0, 1.0, 1.0]))}
  figure = run_plots.client_f1_distribution(runs, tmp_path / 'x.png')
  assert _dots(figure) == [
    ([1.0, 1.0, 1.0], 'x: median 1.000, variance 0, 3 clients')
  ]


def test_clients_without_test_data_are_left_out(tmp_path):
  runs = {
    'some': _run(tmp_path / 'some', clients=_clients([np.nan, 0.25])),
    'none': _run(tmp_path / 'none', clients=_clients([np.nan, np.nan])),
  }
  figure = run_plots.client_f1_distribution(runs, tmp_path / 'x.png')
  assert _dots(figure) == [
    ([0.25], 'some: median 0.250, variance 0, 1 client'),
    ([], 'none: no client with test data'),
  ]


def test_free_riders_are_left_out(tmp_path):
  clients = _clients([0.5, 0.7, 0.1])
  clients.loc[2, 'num_train'] = 0
  runs = {'x': _run(tmp_path / 'x', clients=clients)}
  figure = run_plots.client_f1_distribution(runs, tmp_path / 'x.png')
  assert _dots(figure) == [
    ([0.5, 0.7], 'x: median 0.600, variance 0.01, 2 clients')
  ]


def test_no_test_data_at_all_is_one_sentence(tmp_path):
  runs = {'x': _run(tmp_path / 'x', clients=_clients([np.nan]))}
  with pytest.raises(
    run_plots.NoTestDataError, match=r'needs a client .* none in'
  ):
    run_plots.client_f1_distribution(runs, tmp_path / 'x.png')


def test_write_plots_goes_without_test_data(tmp_path):
  runs = {'x': _run(tmp_path / 'x', clients=_clients([np.nan]))}
  paths = run_plots.write_plots(runs, tmp_path)
  assert [path.name for path in paths] == ['learning_curves.png']


def test_long_labels_stay_inside_the_picture(runs, tmp_path):
  (folder, *_) = runs.values()
  many = {
    f'method {i} with quite a long label, seed 3': folder for i in range(9)
  }
  figure = run_plots.learning_curves(many, tmp_path / 'x.png')
  figure.draw_without_rendering()
  box = figure.axes[-1].get_legend().get_window_extent()
  cell = figure.axes[-1].get_window_extent()
  assert cell.x0 <= box.x0 and box.x1 <= cell.x1
  assert cell.y0 <= box.y0 and box.y1 <= cell.y1


def test_no_run_is_refused(tmp_path):
  with pytest.raises(ValueError, match='At least one run .* found none'):
    run_plots.write_plots({}, tmp_path)


@pytest.mark.parametrize('name', ['metrics.csv', 'clients.csv'])
def test_missing_file_is_named(runs, tmp_path, name):
  path = runs['FeDABoost'] / name
  path.unlink()
  with pytest.raises(FileNotFoundError, match=f'must hold {name}, found no'):
    run_plots.write_plots(runs, tmp_path)


@pytest.mark.parametrize(
  'text, message',
  [
    ('', 'must be a csv file, found in'),
    ('round\n"1', 'must be a csv file, found in'),
    (
      'round\n1\n',
      'must have the columns round, global_accuracy, .* 1 rows of',
    ),
    (','.join(('round', *_CURVES)), 'must have .* and a row, found 0 rows'),
    (f'{",".join(("round", *_CURVES))}\n1,x,1,1,1,1', 'must hold numbers in'),
  ],
  ids=['empty', 'broken_quote', 'missing_columns', 'no_rows', 'words'],
)
def test_malformed_file_is_named_in_one_sentence(tmp_path, text, message):
  folder = _run(tmp_path / 'x')
  (folder / 'metrics.csv').write_text(text)
  with pytest.raises(ValueError, match=f'^metrics.csv {message}') as error:
    run_plots.learning_curves({'x': folder}, tmp_path / 'x.png')
  assert str(folder / 'metrics.csv') in str(error.value)
  assert '\n' not in str(error.value)
