"""Tests of the clients' plots: the data drawn is the data in the files."""

from matplotlib import image
import numpy as np
import pandas as pd
import pytest

from tests.launchers import fake_run
from tests.launchers import nasty_names
from tff_fair.launchers import frame
from tff_fair.launchers.plots import client_plots


def _write(folder, accuracy, **options):
  return frame.read_run(fake_run.write(folder, accuracy, **options))


def _lines(axes):
  return {
    line.get_label(): line.get_ydata().tolist()
    for line in axes.lines
    if not line.get_label().startswith('_')
  }


def _legend(figure):
  return [text.get_text() for text in figure.legends[0].get_texts()]


def test_accuracy_of_each_client_over_the_rounds(tmp_path):
  run = _write(tmp_path / 'x', [0.3, 0.6], num_train=[1000, 1])
  path = tmp_path / 'x.png'
  figure = client_plots.client_accuracy({'Alone': run}, path)
  (axes,) = figure.axes
  found = _lines(axes)
  # By amount, not by id.
  assert list(found) == ['1: 1 example', '0: 1,000 examples']
  np.testing.assert_allclose(found['0: 1,000 examples'], [0.1, 0.2, 0.3])
  np.testing.assert_allclose(found['1: 1 example'], [0.2, 0.4, 0.6])
  assert axes.get_title() == 'Alone'
  assert axes.get_xlabel() == 'Round'
  assert axes.get_ylabel() == 'Accuracy on test data'
  assert _legend(figure) == list(found)
  assert image.imread(path).shape[:2] == (552, 912)


def test_two_runs_share_scales_and_colors(tmp_path):
  runs = {
    'a': _write(tmp_path / 'a', [0.1, 0.2]),
    'b': _write(tmp_path / 'b', [0.8, 0.9, 0], num_train=[10, 20, 0]),
  }
  figure = client_plots.client_accuracy(runs, tmp_path / 'x.png')
  first, second = figure.axes
  assert first.get_ylim() == second.get_ylim()
  for left, right in zip(first.lines, second.lines, strict=False):
    assert left.get_color() == right.get_color()
    assert left.get_marker() == right.get_marker()
  assert _legend(figure)[-1] == '2: free rider'


def test_equal_sizes_are_labelled_by_classes(tmp_path):
  run = _write(
    tmp_path / 'x', [0.3, 0.6], num_train=[600, 600], num_classes=[3, 1]
  )
  clients = client_plots.describe_clients(run)
  assert clients['label'].tolist() == ['1: 1 class', '0: 3 classes']


def test_names_stand_behind_the_ids(tmp_path):
  names = list(nasty_names.NAMES)
  run = _write(tmp_path / 'x', [0.5] * len(names), names=names)
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
  run = _write(tmp_path / 'y', [0.5] * len(names), names=names)
  figure = client_plots.reputation(run, tmp_path / 'y.png')
  assert _legend(figure)[0] == '0 $\\frac$: 10 examples'


def test_eight_clients_are_lines_that_differ_in_color_and_marker(tmp_path):
  run = _write(tmp_path / 'x', [0.5] * 8)
  figure = client_plots.client_accuracy({'x': run}, tmp_path / 'x.png')
  (axes,) = figure.axes
  for looks in (
    {line.get_color() for line in axes.lines},
    {line.get_marker() for line in axes.lines},
  ):
    assert len(looks) == 8


def test_more_clients_are_rows_of_a_heat_map(tmp_path):
  accuracy = [0.9 - i / 20 for i in range(9)]
  runs = {
    # Most data first.
    'a': _write(
      tmp_path / 'a', accuracy, num_train=[90 - 10 * i for i in range(8)] + [0]
    ),
    'b': _write(tmp_path / 'b', accuracy[:5]),
  }
  path = runs['a'].directory / 'client_scores.csv'
  scores = pd.read_csv(path)
  scores.loc[(scores['round'] == 2) & (scores['client_id'] < 8), 'accuracy'] = (
    np.nan
  )
  scores[scores['round'] != 1].to_csv(path, index=False)
  runs['a'] = frame.read_run(runs['a'].directory)
  figure = client_plots.client_accuracy(runs, tmp_path / 'x.png')
  first, second, bar = figure.axes
  (cells,) = first.collections
  values = cells.get_array()
  assert values.shape == (9, 2)  # Rounds 2 and 3.
  # From least to most data, then the free rider.
  expected = [*accuracy[7::-1], accuracy[8]]
  np.testing.assert_allclose(values[:, 1], expected)
  assert values.mask[:8, 0].all() and not values.mask[:, 1].any()
  labels = [text.get_text() for text in first.get_yticklabels()]
  assert labels[0] == '7: 20 examples' and labels[-1] == '8: free rider'
  assert first.get_ylim() == (8.5, -0.5)
  (line,) = first.lines
  assert set(line.get_ydata()) == {7.5}  # Above the free rider.
  # Both runs have the same rows and the same colours.
  (others,) = second.collections
  assert others.get_array().mask[:, 0].sum() == 4
  assert others.norm is cells.norm
  assert (cells.norm.vmin, cells.norm.vmax) == (
    pytest.approx(0.7 / 3),
    pytest.approx(0.9),
  )
  assert bar.get_ylabel() == 'Accuracy on test data'
  assert _legend(figure) == ['no value']


def test_hundreds_of_clients_are_readable(tmp_path):
  run = _write(tmp_path / 'x', [0.5] * 299 + [0.9])
  path = tmp_path / 'x.png'
  figure = client_plots.client_accuracy({'x': run}, path)
  labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
  assert 8 <= len(labels) <= 15
  assert labels[0] == '0: 10 examples' and labels[-1] == '299: 3,000 examples'
  assert path.stat().st_size < 250_000
  height, width, _ = image.imread(path).shape
  assert height < width


def test_reputation_ends_where_a_client_is_isolated(tmp_path):
  run = _write(
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
  assert 'isolated' in _legend(figure)
  # Without isolation there is no mark.
  run = _write(tmp_path / 'y', [0.5, 0.6])
  figure = client_plots.reputation(run, tmp_path / 'y.png')
  assert 'isolated' not in _lines(figure.axes[0])


def test_isolations_are_marked_in_a_heat_map(tmp_path):
  num_train = [10 * (i + 1) for i in range(11)] + [0]
  run = _write(
    tmp_path / 'x',
    [0.5] * 12,
    num_train=num_train,
    rounds=5,
    isolated={11: 2, 3: 4},
  )
  figure = client_plots.reputation(run, tmp_path / 'x.png')
  axes, _ = figure.axes
  (marks,) = (line for line in axes.lines if line.get_label() == 'isolated')
  assert sorted(marks.get_xydata().tolist()) == [[2, 11], [4, 3]]
  values = axes.collections[0].get_array()
  assert values.mask[11].tolist() == [False, False, True, True, True]
  assert values.mask[3].tolist() == [False] * 4 + [True]
  assert not values.mask[0].any()
  assert _legend(figure) == ['no value', 'isolated']
