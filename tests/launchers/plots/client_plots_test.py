"""Tests of the clients' plots: the data drawn is the data in the files."""

from matplotlib import colors
from matplotlib import image
import numpy as np

from tests.launchers import fake_run
from tests.launchers import nasty_names
from tff_fair.launchers.plots import client_plots


def _lines(axes):
  return {
    line.get_label(): line.get_ydata().tolist()
    for line in axes.lines
    if not line.get_label().startswith('_')
  }


def _legend(figure):
  return [text.get_text() for text in figure.legends[0].get_texts()]


def test_accuracy_of_each_client_over_the_rounds(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.3, 0.6], num_train=[1000, 1])
  path = tmp_path / 'x.png'
  figure = client_plots.client_accuracy({'Alone': run}, path)
  (axes,) = figure.axes
  found = _lines(axes)
  # By amount, not by id.
  assert list(found) == ['1: 1 example', '0: 1,000 examples']
  np.testing.assert_allclose(found['0: 1,000 examples'], [0.1, 0.2, 0.3])
  np.testing.assert_allclose(found['1: 1 example'], [0.2, 0.4, 0.6])
  assert axes.get_title() == 'Alone'
  assert '(' in axes.get_xlabel() and '(' in axes.get_ylabel()
  assert _legend(figure) == list(found)
  assert image.imread(path).shape[:2] == (690, 1080)


def test_two_runs_share_scales_and_colors(tmp_path):
  runs = {
    'a': fake_run.write(tmp_path / 'a', [0.1, 0.2]),
    'b': fake_run.write(tmp_path / 'b', [0.8, 0.9, 0], num_train=[10, 20, 0]),
  }
  figure = client_plots.client_accuracy(runs, tmp_path / 'x.png')
  first, second = figure.axes
  assert first.get_ylim() == second.get_ylim()
  for left, right in zip(first.lines, second.lines, strict=False):
    assert left.get_color() == right.get_color()
  assert _legend(figure)[-1] == '2: free rider'


def test_equal_sizes_are_labelled_by_classes(tmp_path):
  run = fake_run.write(
    tmp_path / 'x', [0.3, 0.6], num_train=[600, 600], num_classes=[3, 1]
  )
  clients = client_plots.read_clients(run)
  assert clients['label'].tolist() == ['1: 1 class', '0: 3 classes']


def test_names_stand_behind_the_ids(tmp_path):
  names = list(nasty_names.NAMES)
  run = fake_run.write(tmp_path / 'x', [0.5] * len(names), names=names)
  expected = [
    '0 North, "Main" Hospital …: 10 examples',
    '1 <script>alert(1)</scrip…: 20 examples',
    f'2 _hidden{16 * "x"}…: 30 examples',
    '3 NA: 40 examples',
    '4 1e5: 50 examples',
    '5: 60 examples',
    '6 Zürich [31m 東京 | 😀: 70 examples',
  ]
  figure = client_plots.client_accuracy({'x': run}, tmp_path / 'x.png')
  assert _legend(figure) == expected
  names[0] = '$\\frac$'  # No markup.
  run = fake_run.write(tmp_path / 'y', [0.5] * len(names), names=names)
  figure = client_plots.reputation(run, tmp_path / 'y.png')
  assert _legend(figure)[0] == '0 $\\frac$: 10 examples'


def test_many_clients_go_from_dark_to_light(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.5] * 20)
  figure = client_plots.client_accuracy({'x': run}, tmp_path / 'x.png')
  shades = [
    np.dot(colors.to_rgb(line.get_color()), [0.2126, 0.7152, 0.0722])
    for line in figure.axes[0].lines
  ]
  assert len(set(shades)) == 20 and shades == sorted(shades)
  figure.draw_without_rendering()
  box, whole = figure.legends[0].get_window_extent(), figure.bbox
  assert whole.y0 <= box.y0 and box.y1 <= whole.y1
  assert figure.axes[0].get_window_extent().x1 <= box.x0
  # More clients have a colour scale in place of a legend.
  run = fake_run.write(tmp_path / 'y', [0.5] * 30)
  figure = client_plots.client_accuracy({'x': run}, tmp_path / 'x.png')
  assert not figure.legends
  assert 'rank' in figure.axes[1].get_ylabel()


def test_reputation_ends_where_a_client_is_isolated(tmp_path):
  run = fake_run.write(
    tmp_path / 'x', [0.5, 0.6, 0], num_train=[10, 20, 0], isolated={2: 2}
  )
  figure = client_plots.reputation(run, tmp_path / 'x.png')
  found = _lines(figure.axes[0])
  np.testing.assert_allclose(found['0: 10 examples'], [0.1] * 3)
  np.testing.assert_allclose(found['2: free rider'], [0.3, 0])
  assert found['threshold of isolation'] == [0.05] * 3
  (mark,) = (
    line for line in figure.axes[0].lines if line.get_label() == 'isolated'
  )
  assert (mark.get_xdata().item(), mark.get_ydata().item()) == (2, 0)
  assert mark.get_color() == 'black'
  assert 'isolated' in _legend(figure)
  # Without isolation there is no mark.
  run = fake_run.write(tmp_path / 'y', [0.5, 0.6])
  figure = client_plots.reputation(run, tmp_path / 'y.png')
  assert 'isolated' not in _lines(figure.axes[0])


def test_only_what_a_run_has_is_drawn(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.5, 0.6])
  (run / 'metrics.csv').write_text('round,aggregator_threshold\n1,0.05\n')
  paths = client_plots.write_plots(run, tmp_path)
  assert [p.name for p in paths] == ['reputation.png']
  (run / 'reports.csv').write_text('round,client_id,loss\n1,0,0.5\n')
  assert client_plots.write_plots(run, tmp_path) == []
