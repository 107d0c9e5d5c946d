"""Tests of the plots of runs: the data drawn is the data in the files."""

import sys

from matplotlib import colors
from matplotlib import image
import numpy as np
import pandas as pd
import pytest

from tests.launchers import report_run
from tff_fair.launchers import frame
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots

# Of few clients the worst 10 % are the worst client.
_COLUMNS = tuple(
  panel.column
  for panel in run_plots.PANELS
  if panel.column != 'client_accuracy_worst10'
)


def _metrics(rounds, offset=0.0):
  """A made-up metrics.csv whose every column differs from the others."""
  index = np.arange(1, rounds + 1)
  table = pd.DataFrame({'round': index})
  for order, column in enumerate(_COLUMNS):
    table[column] = offset + order + 1.0 / index
  return table


def _run(folder, metrics=None, f1=(0.5, 0.7, 0.9), num_train=None):
  """A run; the defaults are four rounds and three clients."""
  folder = report_run.write(
    folder, [2 * score for score in f1], num_train=num_train or [9] * len(f1)
  )
  metrics = _metrics(4) if metrics is None else metrics
  metrics.to_csv(folder / 'metrics.csv', index=False)
  return frame.read_run(folder)


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  path = tmp_path_factory.mktemp('runs')
  second = _run(path / 'b', _metrics(6, 0.1), [0.2, 0.4])
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
  figure = run_plots.learning_curves(runs, _styles(runs))
  plot_parts.save(figure, path)
  return figure


def _distribution(runs, path):
  figure = run_plots.client_scores(runs, _styles(runs), 'f1')
  if figure:
    plot_parts.save(figure, path)
  return figure


def _curve(axes, label):
  (line,) = (line for line in axes.lines if line.get_label() == label)
  return line


def _dots(figure):
  """The F1 drawn in each row, top to bottom, and its legend entry."""
  return [
    (
      pytest.approx(list(dots.get_offsets()[:, 0])),
      dots.get_label().replace('\n', ' '),
    )
    for dots in figure.axes[0].collections
    if not dots.get_label().startswith('_')
  ]


def _pixels(path):
  assert path.read_bytes().startswith(b'\x89PNG')
  height, width, _ = image.imread(path).shape
  return width, height


def test_curves_equal_the_csv(runs, curves):
  figure, path = curves
  assert _pixels(path)[0] == 1512
  assert path.stat().st_size < 250_000
  for column, axes in zip(_COLUMNS, figure.axes, strict=True):
    for label, run in runs.items():
      table = pd.read_csv(run.directory / 'metrics.csv')
      line = _curve(axes, label)
      np.testing.assert_array_equal(line.get_xdata(), table['round'])
      np.testing.assert_array_equal(line.get_ydata(), table[column])
  assert {axes.get_xlabel() for axes in figure.axes} == {'Round'}
  units = [axes.get_ylabel() for axes in figure.axes]
  assert 'Loss (nats)' in units and "Jain's index" in units
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.texts] == list(runs)


def test_a_band_holds_the_middle_half_of_the_clients(tmp_path):
  runs = {'x': _run(tmp_path / 'x', f1=(0.1, 0.2, 0.4, 0.45))}
  (band,) = run_plots.learning_curves(runs, _styles(runs)).axes[0].collections
  low, high = band.get_datalim(band.axes.transData).get_points()[:, 1]
  # Accuracies of the third round, and of the first, a third of these.
  assert high == pytest.approx(np.quantile([0.2, 0.4, 0.8, 0.9], 0.75))
  assert low == pytest.approx(np.quantile([0.2, 0.4, 0.8, 0.9], 0.25) / 3)


def test_the_bar_is_the_median(tmp_path):
  runs = {'x': _run(tmp_path / 'x', f1=(0.1, 0.2, 0.45))}
  figure = run_plots.client_scores(runs, _styles(runs), 'f1')
  (bar,) = figure.axes[0].lines
  assert list(bar.get_xdata()) == pytest.approx([0.2, 0.2])


def test_amounts_are_those_of_honest_clients(tmp_path):
  run = _run(tmp_path / 'x', f1=(0.1, 0.2, 0.3), num_train=[0, 5, 7])
  figure = run_plots.accuracy_by_amount({'x': run}, _styles(['x']))
  (dots,) = figure.axes[0].collections
  assert dots.get_offsets().tolist() == [[5, 0.4], [7, 0.6]]


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
  run = _run(tmp_path / 'x', _metrics(30))
  runs = dict.fromkeys(('corefed', 'ditto', 'fed_avg', 'q_fed_avg'), run)
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
  (run, *_) = runs.values()
  many = {
    f'method {i} with quite a long label, seed 3 {i * "x"}': run
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


def test_the_same_runs_give_the_same_bytes(runs, curves, tmp_path):
  again = tmp_path / 'x.png'
  _curves(runs, again)
  assert again.read_bytes() == curves[1].read_bytes()


@pytest.mark.usefixtures('unsaved')
def test_rounds_without_evaluation_are_not_drawn(tmp_path):
  metrics = _metrics(4)
  metrics.loc[[0, 2], list(_COLUMNS)] = np.nan
  metrics.loc[1, 'global_loss'] = np.inf
  metrics['global_f1'] = np.nan
  runs = {'x': _run(tmp_path / 'x', metrics), 'y': _run(tmp_path / 'y')}
  figure = _curves({'x': runs['x']}, tmp_path / 'x.png')
  drawn = {axes.get_title(): axes for axes in figure.axes}
  shown = _curve(drawn['Clients: mean accuracy ↑'], 'x')
  assert list(shown.get_xdata()) == [2, 4]
  loss = _curve(drawn['Global model: loss ↓'], 'x')
  assert list(loss.get_xdata()) == [4]
  # A column without any number has no panel; beside another run no line.
  title = 'Global model: macro-F1 ↑'
  assert title not in drawn
  figure = _curves(runs, tmp_path / 'x.png')
  (axes,) = (a for a in figure.axes if a.get_title() == title)
  assert len(_curve(axes, 'x').get_xdata()) == 0
  assert len(_curve(axes, 'y').get_xdata()) == 4


def test_one_round_and_one_client_are_drawn(tmp_path):
  runs = {'x': _run(tmp_path / 'x', _metrics(1), [0.5])}
  clients = tmp_path / 'y.png'
  _distribution(runs, clients)
  # Matplotlib of Python 3.10 rounds otherwise.
  height = 402 if sys.version_info >= (3, 11) else 401
  assert _pixels(clients) == (960, height)
  axes = _curves(runs, tmp_path / 'x.png').axes[0]
  assert all(tick == int(tick) for tick in axes.get_xticks())


@pytest.mark.usefixtures('unsaved')
def test_only_clients_with_data_are_drawn(tmp_path):
  runs = {
    'some': _run(tmp_path / 'some', f1=[np.nan, 0.25]),
    'none': _run(tmp_path / 'none', f1=[np.nan, np.nan]),
    'rider': _run(tmp_path / 'r', f1=[0.5, 0.7, 0.1], num_train=[9, 9, 0]),
    'equal': _run(tmp_path / 'equal', f1=[1.0, 1.0, 1.0]),
  }
  figure = _distribution(runs, tmp_path / 'x.png')
  assert _dots(figure) == [
    ([0.25], 'some: median 0.250, variance 0, 1 client'),
    ([], 'none: no client with test data'),
    ([0.5, 0.7], 'rider: median 0.600, variance 0.01, 2 clients'),
    ([1.0, 1.0, 1.0], 'equal: median 1.000, variance 0, 3 clients'),
  ]
  assert _distribution({'none': runs['none']}, tmp_path / 'x.png') is None


class TestDistances:
  _SHOWN = (
    'client_accuracy_mean',
    'embedding_d_cosine',
    'embedding_d_manhattan',
  )

  def _run(self, folder, offset=0.0, columns=_SHOWN, **changes):
    """A run that evaluates every other round."""
    table = pd.DataFrame({'round': np.arange(1, 5)})
    for order, column in enumerate(columns):
      table[column] = offset + order + table['round'] / 10
      table.loc[table['round'] % 2 == 1, column] = np.nan
    return _run(folder, table.assign(**changes))

  def _draw(self, runs, path):
    return run_plots.distance_curves(runs, _styles(runs), 'embedding', path)

  def test_lines_are_means_over_seeds_and_bands_their_deviations(
    self, tmp_path
  ):
    runs = {
      'corefed': [
        self._run(tmp_path / 'a0'),
        self._run(tmp_path / 'a1', 0.2),
      ],
      'fed_avg': [self._run(tmp_path / 'b')],
    }
    figure = self._draw(runs, tmp_path / 'x.png')
    for order, axes in enumerate(figure.axes):
      for label, start in (('fed_avg', 0.2), ('corefed', 0.3)):
        expected = [[2, order + start], [4, order + start + 0.2]]
        found = _curve(axes, label).get_xydata()
        np.testing.assert_allclose(found, expected)
      (band,) = axes.collections  # One seed has none.
      low, high = band.get_datalim(axes.transData).get_points()
      # Two values of distance .2 deviate by .2 / sqrt(2).
      spread = 0.2 / np.sqrt(2)
      assert low[1] == pytest.approx(order + 0.3 - spread)
      assert high[1] == pytest.approx(order + 0.5 + spread)
    accuracy, cosine, manhattan = figure.axes
    assert cosine.get_title() == 'D_cosine between mean embeddings ↓'
    assert manhattan.get_title() == 'D_manhattan between mean embeddings ↓'
    assert accuracy.get_ylabel() == 'Accuracy'
    assert cosine.get_ylabel() == 'D_cosine (radians)'

  @pytest.mark.usefixtures('unsaved')
  def test_a_run_without_distances_has_no_line(self, tmp_path):
    runs = {
      'standalone': [self._run(tmp_path / 'a', columns=self._SHOWN[:1])],
      'fed_avg': [self._run(tmp_path / 'b')],
    }
    for axes in self._draw(runs, tmp_path / 'x.png').axes:
      assert not _curve(axes, 'standalone').get_xdata().size
      assert _curve(axes, 'fed_avg').get_xdata().size

  @pytest.mark.usefixtures('unsaved')
  def test_more_than_a_decade_has_a_logarithmic_axis(self, tmp_path):
    run = self._run(
      tmp_path / 'a', embedding_d_cosine=[np.nan, 0.01, np.nan, 0.2]
    )
    figure = self._draw({'ditto': [run]}, tmp_path / 'x.png')
    scales = [axes.get_yscale() for axes in figure.axes]
    assert scales == ['linear', 'log', 'linear']
    figure.draw_without_rendering()
    ticks = [text.get_text() for text in figure.axes[1].get_yticklabels()]
    # No markup, which would be drawn as it is.
    assert '0.1' in ticks and not any('$' in tick for tick in ticks)
