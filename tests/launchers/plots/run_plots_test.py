"""Tests of the plots of runs: the data drawn is the data in the files."""

from matplotlib import colors
from matplotlib import image
import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.plots import run_plots

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


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  path = tmp_path_factory.mktemp('runs')
  second = _run(path / 'b', _metrics(6, 0.1), _clients([0.2, 0.4]))
  return {'FedAvg': _run(path / 'a'), 'FeDABoost': second}


@pytest.fixture(scope='module', name='curves')
def _drawn_curves(runs, tmp_path_factory):
  """The figure of the learning curves, and its file."""
  path = tmp_path_factory.mktemp('curves') / 'x.png'
  return run_plots.learning_curves(runs, path), path


@pytest.fixture(scope='module', name='distribution')
def _drawn_distribution(runs, tmp_path_factory):
  """The figure of the clients' F1, and its file."""
  path = tmp_path_factory.mktemp('clients') / 'x.png'
  return run_plots.client_f1_distribution(runs, path), path


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


def test_curves_equal_the_csv(runs, curves):
  figure, path = curves
  assert _pixels(path) == (1800, 990)
  *panels, last = figure.axes
  for column, axes in zip(_CURVES, panels, strict=True):
    for label, folder in runs.items():
      frame = pd.read_csv(folder / 'metrics.csv')
      line = _curve(axes, label)
      np.testing.assert_array_equal(line.get_xdata(), frame['round'])
      np.testing.assert_array_equal(line.get_ydata(), frame[column])
  assert all(axes.get_xlabel() == 'Round (count)' for axes in panels)
  assert all('(' in axes.get_ylabel() for axes in panels)
  assert [text.get_text() for text in last.get_legend().texts] == list(runs)
  assert not last.lines


def test_distribution_draws_the_f1_of_each_client(distribution):
  figure, path = distribution
  assert _pixels(path) == (1200, 645)
  # Variances by hand: (0.04 + 0 + 0.04) / 3 and (0.01 + 0.01) / 2.
  assert _dots(figure) == [
    ([0.5, 0.7, 0.9], 'FedAvg: median 0.700, variance 0.027, 3 clients'),
    ([0.2, 0.4], 'FeDABoost: median 0.300, variance 0.01, 2 clients'),
  ]
  medians = [line.get_xdata() for line in figure.axes[0].lines]
  np.testing.assert_allclose(medians, [[0.7, 0.7], [0.3, 0.3]])


def test_a_run_has_the_same_color_in_both_plots(curves, distribution):
  dots = [
    dots.get_facecolor()[0, :3]
    for dots in distribution[0].axes[0].collections
    if not dots.get_label().startswith('_')
  ]
  for line, color in zip(curves[0].axes[0].lines, dots, strict=True):
    np.testing.assert_allclose(colors.to_rgb(line.get_color()), color)


def test_many_runs_differ_in_line_style_and_their_labels_fit(runs, tmp_path):
  (folder, *_) = runs.values()
  many = {
    f'method {i} with quite a long label, seed 3': folder for i in range(12)
  }
  figure = run_plots.learning_curves(many, tmp_path / 'x.png')
  looks = {
    (line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines
  }
  assert len(looks) == 12
  figure.draw_without_rendering()
  box = figure.axes[-1].get_legend().get_window_extent()
  cell = figure.axes[-1].get_window_extent()
  assert cell.x0 <= box.x0 and box.x1 <= cell.x1
  assert cell.y0 <= box.y0 and box.y1 <= cell.y1


def test_rounds_without_evaluation_are_not_drawn(tmp_path):
  metrics = _metrics(4)
  metrics.loc[[0, 2], list(_CURVES)] = np.nan
  metrics.loc[1, 'global_loss'] = np.inf
  metrics['global_f1'] = np.nan
  runs = {'x': _run(tmp_path / 'x', metrics)}
  figure = run_plots.learning_curves(runs, tmp_path / 'x.png')
  assert list(_curve(figure.axes[0], 'x').get_xdata()) == [2, 4]
  assert list(_curve(figure.axes[2], 'x').get_xdata()) == [4]
  # A column without any number says so.
  texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
  assert texts[:3] == [[], ['not measured'], []]


def test_one_round_and_one_client_are_drawn(tmp_path):
  runs = {'x': _run(tmp_path / 'x', _metrics(1), _clients([0.5]))}
  clients = tmp_path / 'y.png'
  run_plots.client_f1_distribution(runs, clients)
  assert _pixels(clients) == (1200, 502)
  axes = run_plots.learning_curves(runs, tmp_path / 'x.png').axes[0]
  assert _curve(axes, 'x').get_marker() == 'o'
  assert all(tick == int(tick) for tick in axes.get_xticks())


def test_only_clients_with_data_are_drawn(tmp_path):
  clients = _clients([0.5, 0.7, 0.1])
  clients.loc[2, 'num_train'] = 0
  runs = {
    name: _run(tmp_path / name, clients=frame)
    for name, frame in {
      'some': _clients([np.nan, 0.25]),
      'none': _clients([np.nan, np.nan]),
      'rider': clients,
      'equal': _clients([1.0, 1.0, 1.0]),
    }.items()
  }
  figure = run_plots.client_f1_distribution(runs, tmp_path / 'x.png')
  assert _dots(figure) == [
    ([0.25], 'some: median 0.250, variance 0, 1 client'),
    ([], 'none: no client with test data'),
    ([0.5, 0.7], 'rider: median 0.600, variance 0.01, 2 clients'),
    ([1.0, 1.0, 1.0], 'equal: median 1.000, variance 0, 3 clients'),
  ]


def test_without_test_data_only_curves_are_drawn(tmp_path):
  runs = {'x': _run(tmp_path / 'x', clients=_clients([np.nan]))}
  with pytest.raises(
    run_plots.NoTestDataError, match=r'needs a client .* none in'
  ):
    run_plots.client_f1_distribution(runs, tmp_path / 'x.png')
  with pytest.raises(ValueError, match='At least one run .* found none'):
    run_plots.write_plots({}, tmp_path)
  paths = run_plots.write_plots(runs, tmp_path / 'new' / 'plots')
  assert [path.name for path in paths] == ['learning_curves.png']
  assert paths[0].is_file()


def test_missing_and_malformed_files_are_named_in_one_sentence(tmp_path):
  folder = _run(tmp_path / 'x')
  header = ','.join(('round', *_CURVES))
  for text, message in (
    ('', 'must be a csv file, found in'),
    ('round\n"1', 'must be a csv file, found in'),
    (
      'round\n1\n',
      'must have the columns round, global_accuracy, .* 1 rows of',
    ),
    (header, 'must have .* and a row, found 0 rows'),
    (f'{header}\n1,x,1,1,1,1', 'must hold numbers in'),
  ):
    (folder / 'metrics.csv').write_text(text)
    with pytest.raises(ValueError, match=f'^metrics.csv {message}') as error:
      run_plots.learning_curves({'x': folder}, tmp_path / 'x.png')
    assert str(folder / 'metrics.csv') in str(error.value), text
    assert '\n' not in str(error.value)
  for name, draw in (
    ('metrics.csv', run_plots.learning_curves),
    ('clients.csv', run_plots.client_f1_distribution),
  ):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f'must hold {name}, found no'):
      draw({'x': folder}, tmp_path / 'x.png')
