"""Tests of the plots of runs: the data drawn is the data in the files."""

from matplotlib import colors
from matplotlib import image
import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots

_CURVES = (
  'global_accuracy',
  'global_f1',
  'global_loss',
  'client_accuracy_mean',
  'client_accuracy_worst10',
  'client_accuracy_min',
  'client_accuracy_jain',
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
  return {'fed_avg': _run(path / 'a'), 'fedaboost': second}


@pytest.fixture(scope='module', name='curves')
def _drawn_curves(runs, tmp_path_factory):
  """The figure of the learning curves, and its file."""
  path = tmp_path_factory.mktemp('curves') / 'x.png'
  return _curves(runs, path), path


@pytest.fixture(scope='module', name='distribution')
def _drawn_distribution(runs, tmp_path_factory):
  """The figure of the clients' F1, and its file."""
  path = tmp_path_factory.mktemp('clients') / 'x.png'
  return _distribution(runs, path), path


@pytest.fixture(name='unsaved')
def _unsaved(monkeypatch):
  """Figures are not rendered, which takes most of the time."""
  monkeypatch.setattr(plot_parts, 'save', lambda figure, path: None)


def _styles(runs):
  return dict(zip(runs, method_styles.of_runs(list(runs)), strict=True))


def _curves(runs, path):
  return run_plots.learning_curves(runs, _styles(runs), path)


def _distribution(runs, path):
  return run_plots.client_f1_distribution(runs, _styles(runs), path)


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
  assert _pixels(path)[0] == 1440
  assert path.stat().st_size < 250_000
  for column, axes in zip(_CURVES, figure.axes, strict=True):
    for label, folder in runs.items():
      frame = pd.read_csv(folder / 'metrics.csv')
      line = _curve(axes, label)
      np.testing.assert_array_equal(line.get_xdata(), frame['round'])
      np.testing.assert_array_equal(line.get_ydata(), frame[column])
  assert {axes.get_xlabel() for axes in figure.axes} == {'Round'}
  units = [axes.get_ylabel() for axes in figure.axes]
  assert 'Loss (nats)' in units and "Jain's index" in units
  assert not any('fraction' in unit or 'count' in unit for unit in units)
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.texts] == list(runs)


def test_distribution_draws_the_f1_of_each_client(distribution):
  figure, path = distribution
  assert _pixels(path) == (960, 516)
  # Variances by hand: (0.04 + 0 + 0.04) / 3 and (0.01 + 0.01) / 2.
  assert _dots(figure) == [
    ([0.5, 0.7, 0.9], 'fed_avg: median 0.700, variance 0.027, 3 clients'),
    ([0.2, 0.4], 'fedaboost: median 0.300, variance 0.01, 2 clients'),
  ]
  medians = [line.get_xdata() for line in figure.axes[0].lines]
  np.testing.assert_allclose(medians, [[0.7, 0.7], [0.3, 0.3]])


def test_a_run_has_the_color_of_its_method_in_both_plots(curves, distribution):
  dots = [
    colors.to_hex(dots.get_facecolor()[0])
    for dots in distribution[0].axes[0].collections
    if not dots.get_label().startswith('_')
  ]
  expected = [method_styles.PROVIDED[name] for name in ('fed_avg', 'fedaboost')]
  assert dots == [color for color, _ in expected]
  for axes in curves[0].axes:
    assert [(x.get_color(), x.get_marker()) for x in axes.lines] == expected


@pytest.mark.usefixtures('unsaved')
def test_curves_that_coincide_are_all_seen(tmp_path):
  folder = _run(tmp_path / 'x', _metrics(30))
  runs = dict.fromkeys(('corefed', 'ditto', 'fed_avg', 'q_fed_avg'), folder)
  lines = _curves(runs, tmp_path / 'x.png').axes[0].lines
  # The line below is wider, and no round has markers of two runs.
  widths = [line.get_linewidth() for line in lines]
  assert widths == sorted(widths, reverse=True) and len(set(widths)) == 4
  marked = [
    number
    for start, step in (line.get_markevery() for line in lines)
    for number in range(30)[start::step]
  ]
  assert len(marked) == len(set(marked)) > 12


@pytest.mark.usefixtures('unsaved')
def test_labels_of_many_runs_fit_above_the_panels(runs, tmp_path):
  (folder, *_) = runs.values()
  many = {
    f'method {i} with quite a long label, seed 3 {i * "x"}': folder
    for i in range(12)
  }
  figure = _curves(many, tmp_path / 'x.png')
  figure.draw_without_rendering()
  box = figure.legends[0].get_window_extent()
  assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
  assert box.y1 <= figure.bbox.y1
  for axes in figure.axes:
    assert axes.get_window_extent().y1 <= box.y0
    assert axes.get_window_extent().height > 150


def test_the_same_runs_give_the_same_bytes(
  runs, curves, distribution, tmp_path
):
  again = tmp_path / 'x.png'
  for draw, (_, path) in ((_curves, curves), (_distribution, distribution)):
    draw(runs, again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.usefixtures('unsaved')
def test_runs_of_older_versions_lack_the_worst_clients(tmp_path):
  new = ['client_accuracy_worst10', 'client_accuracy_min']
  new.append('client_accuracy_jain')
  old = _run(tmp_path / 'old', _metrics(3).drop(columns=new))
  panels = [_CURVES.index(column) for column in new]
  figure = _curves({'ditto': old}, tmp_path / 'x.png')
  said = [[text.get_text() for text in axes.texts] for axes in figure.axes]
  assert [i for i, texts in enumerate(said) if texts] == panels
  assert said[panels[0]] == ['not measured']
  # Beside a newer run a line is missing.
  both = {'ditto': old, 'fed_avg': _run(tmp_path / 'new')}
  figure = _curves(both, tmp_path / 'x.png')
  for i, axes in enumerate(figure.axes):
    assert _curve(axes, 'ditto').get_xdata().size == (0 if i in panels else 3)
    assert _curve(axes, 'fed_avg').get_xdata().size == 4


@pytest.mark.usefixtures('unsaved')
def test_rounds_without_evaluation_are_not_drawn(tmp_path):
  metrics = _metrics(4)
  metrics.loc[[0, 2], list(_CURVES)] = np.nan
  metrics.loc[1, 'global_loss'] = np.inf
  metrics['global_f1'] = np.nan
  runs = {'x': _run(tmp_path / 'x', metrics)}
  figure = _curves(runs, tmp_path / 'x.png')
  assert list(_curve(figure.axes[0], 'x').get_xdata()) == [2, 4]
  assert list(_curve(figure.axes[2], 'x').get_xdata()) == [4]
  # A column without any number says so.
  texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
  assert texts == [[], ['not measured'], *[[]] * 7]


def test_one_round_and_one_client_are_drawn(tmp_path):
  runs = {'x': _run(tmp_path / 'x', _metrics(1), _clients([0.5]))}
  clients = tmp_path / 'y.png'
  _distribution(runs, clients)
  assert _pixels(clients) == (960, 402)
  axes = _curves(runs, tmp_path / 'x.png').axes[0]
  assert _curve(axes, 'x').get_marker() in method_styles.MARKERS
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
  figure = _distribution(runs, tmp_path / 'x.png')
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
    _distribution(runs, tmp_path / 'x.png')
  with pytest.raises(ValueError, match='At least one run .* found none'):
    run_plots.write_plots({}, {}, tmp_path)
  paths = run_plots.write_plots(runs, _styles(runs), tmp_path / 'new' / 'plots')
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
    (f'{header}\n1,x{8 * ",1"}', 'must hold numbers in'),
  ):
    (folder / 'metrics.csv').write_text(text)
    with pytest.raises(ValueError, match=f'^metrics.csv {message}') as error:
      _curves({'x': folder}, tmp_path / 'x.png')
    assert str(folder / 'metrics.csv') in str(error.value), text
    assert '\n' not in str(error.value)
  for name, draw in (
    ('metrics.csv', _curves),
    ('clients.csv', _distribution),
  ):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f'must hold {name}, found no'):
      draw({'x': folder}, tmp_path / 'x.png')
