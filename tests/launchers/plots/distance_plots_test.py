"""Tests of the distances' pictures: the data drawn is the data in the files."""

from matplotlib import colors
from matplotlib import image
import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.plots import distance_plots
from tff_fair.launchers.plots import method_styles

_COLUMNS = (
  'client_accuracy_mean',
  'embedding_d_cosine',
  'embedding_d_manhattan',
)


def _run(folder, offset=0.0, rounds=4, columns=_COLUMNS):
  """Writes a run that evaluates every other round."""
  folder.mkdir()
  frame = pd.DataFrame({'round': np.arange(1, rounds + 1)})
  for order, column in enumerate(columns):
    frame[column] = offset + order + frame['round'] / 10
    frame.loc[frame['round'] % 2 == 1, column] = np.nan
  frame.to_csv(folder / 'metrics.csv', index=False)
  return folder


def _draw(runs, path):
  styles = dict(zip(runs, method_styles.of_runs(list(runs)), strict=True))
  return distance_plots.distance_curves(runs, styles, 'embedding', path)


def _lines(axes):
  return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_lines_are_means_over_seeds_and_bands_their_deviations(tmp_path):
  runs = {
    'corefed': [_run(tmp_path / 'a0'), _run(tmp_path / 'a1', 0.2)],
    'fed_avg': [_run(tmp_path / 'b')],
  }
  path = tmp_path / 'x.png'
  figure = _draw(runs, path)
  assert len(figure.axes) == 3
  for order, axes in enumerate(figure.axes):
    lines = _lines(axes)
    expected = [[2, order + 0.2], [4, order + 0.4]]
    np.testing.assert_allclose(lines['fed_avg'], expected)
    expected = [[2, order + 0.3], [4, order + 0.5]]
    np.testing.assert_allclose(lines['corefed'], expected)
    (band,) = axes.collections  # One seed has none.
    low, high = band.get_datalim(axes.transData).get_points()
    # Two values of distance .2 deviate by .2 / sqrt(2).
    spread = 0.2 / np.sqrt(2)
    assert low[1] == pytest.approx(order + 0.3 - spread)
    assert high[1] == pytest.approx(order + 0.5 + spread)
    np.testing.assert_allclose(
      band.get_facecolor()[0, :3], colors.to_rgb(axes.lines[0].get_color())
    )
    assert axes.get_xlabel() == 'Round'
    assert axes.get_yscale() == 'linear'
  accuracy, cosine, manhattan = figure.axes
  assert cosine.get_title() == 'D_cosine between mean embeddings ↓'
  assert manhattan.get_title() == 'D_manhattan between mean embeddings ↓'
  assert accuracy.get_ylabel() == 'Accuracy'
  assert cosine.get_ylabel() == 'D_cosine (radians)'
  labels = [text.get_text() for text in figure.legends[0].get_texts()]
  assert labels == list(runs)
  assert image.imread(path).shape[:2][1] == 1680


def test_a_run_without_distances_has_no_line_and_keeps_its_color(tmp_path):
  runs = {
    'standalone': _run(tmp_path / 'a', columns=('client_accuracy_mean',)),
    'fed_avg': _run(tmp_path / 'b'),
  }
  styles = dict(zip(runs, method_styles.of_runs(list(runs)), strict=True))
  alone = {'standalone': runs['standalone']}
  assert distance_plots.write_plots(alone, styles, tmp_path) == []
  paths = distance_plots.write_plots(runs, styles, tmp_path)
  assert [path.name for path in paths] == ['embedding_distances.png']
  assert paths[0].is_file()
  figure = _draw({label: [run] for label, run in runs.items()}, paths[0])
  for axes in figure.axes:
    standalone, fed_avg = axes.lines
    assert not standalone.get_xdata().size and fed_avg.get_xdata().size
    for line in axes.lines:
      color, marker = method_styles.PROVIDED[line.get_label()]
      assert (line.get_color(), line.get_marker()) == (color, marker)


def test_long_labels_leave_room_for_the_panels(tmp_path):
  label = 'corefed (runs/corefed_fmnist_full_01/corefed/with/a/long/path)'
  runs = {label: [_run(tmp_path / 'x')]}
  figure = _draw(runs, tmp_path / 'x.png')
  figure.draw_without_rendering()
  for axes in figure.axes:
    assert axes.get_window_extent().width > figure.bbox.width / 5
  box = figure.legends[0].get_window_extent()
  assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
  assert all(axes.get_window_extent().y1 <= box.y0 for axes in figure.axes)


def test_distances_over_more_than_a_decade_have_a_logarithmic_axis(tmp_path):
  runs = {'ditto': [_run(tmp_path / 'a')]}
  file = runs['ditto'][0] / 'metrics.csv'
  frame = pd.read_csv(file)
  frame['embedding_d_cosine'] = [np.nan, 0.01, np.nan, 0.2]
  frame.to_csv(file, index=False)
  figure = _draw(runs, tmp_path / 'x.png')
  assert [axes.get_yscale() for axes in figure.axes] == [
    'linear',
    'log',
    'linear',
  ]
  figure.draw_without_rendering()
  ticks = [text.get_text() for text in figure.axes[1].get_yticklabels()]
  # No markup, which would be drawn as it is.
  assert '0.1' in ticks and not any('$' in tick for tick in ticks)
