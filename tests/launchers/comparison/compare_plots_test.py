"""The pictures of a comparison."""

from matplotlib import figure as mpl_figure
from matplotlib import text as mpl_text
import numpy as np
import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.options import methods
from tff_fair.launchers.plots import compare_plots
from tff_fair.launchers.plots import labels
from tff_fair.launchers.plots import method_styles


@pytest.fixture(scope='module', name='large')
def _large(tmp_path_factory):
  """All methods with five seeds, many of them close to each other."""
  rng = np.random.default_rng(0)
  scores = {
    name: np.clip(
      rng.normal(0.85, 0.02) + rng.normal(0, 0.04, (5, 10)), 0, 1
    ).tolist()
    for name in methods.METHODS
  }
  return made_comparison.analyse(
    tmp_path_factory.mktemp('large'),
    made_comparison.rows(range(5), 10, scores=scores),
    made_comparison.facts(range(5), 10),
  )


def test_names_of_the_front_the_papers_the_baseline_and_those_in_turn(
  tmp_path,
):
  # Points (mean, worst client): Ditto and FedDC are on the front, FedProx is
  # below Ditto, and methods in turn are not ranked.
  scores = {
    'fed_avg': [[0.5, 0.7]],
    'fed_prox': [[0.45, 0.95]],
    'ditto': [[0.5, 1.0]],
    'fed_dc': [[0.6, 0.8]],
    'cffl': [[0.4, 0.7]],
    'dssgd': [[0.9, 0.9]],
  }
  found = made_comparison.analyse(
    tmp_path,
    made_comparison.rows([0], 2, scores=scores),
    made_comparison.facts([0], 2),
  )
  columns = (compare_plots.MEAN, compare_plots.WORST10)
  axes = mpl_figure.Figure().subplots()
  front = compare_plots.Front(found, columns)
  front.draw(axes)
  front.label(axes)
  at = {label.get_text(): label.xy for label in axes.texts}
  assert {*at} == {'(DSSGD)', 'Ditto', 'FedDC', 'FedAvg', 'CFFL'}
  assert at['FedDC'] == pytest.approx((0.7, 0.6))


def test_labels_cover_neither_each_other_nor_markers():
  axes = mpl_figure.Figure(figsize=(4, 4)).subplots()
  points = [(x, y) for x in (0.4, 0.45) for y in (0.4, 0.45, 0.5)]
  axes.plot(*zip(*points, strict=True), 'o', markersize=6)
  axes.set(xlim=(0, 1), ylim=(0, 1))
  written = [
    axes.annotate(
      'Method',
      point,
      (0, 0),
      textcoords='offset points',
      arrowprops=labels.LINE,
    )
    for point in points
  ]
  labels.place(written, axes, points)
  boxes = [mpl_text.Text.get_window_extent(label) for label in written]
  for i, box in enumerate(boxes):
    assert not box.count_contains(axes.transData.transform(points))
    assert box.count_overlaps(boxes[:i]) == 0


def test_the_legend_names_all_methods_that_have_no_label(large):
  names = compare_plots.draw_fronts(large).legends[0]
  found = {
    text.get_text(): (key.get_markeredgecolor(), key.get_marker())
    for text, key in zip(names.get_texts(), names.legend_handles, strict=True)
  }
  fronts = [compare_plots.Front(large, c) for c in compare_plots.FRONTS]
  drawn = {method for front in fronts for method in front.drawn}
  named = {method for front in fronts for method in front.named}
  assert len(drawn - named) > 10
  assert found == {
    methods.title(m): method_styles.PROVIDED[m] for m in drawn - named
  }


def test_methods_in_turn_are_pale_and_not_on_the_front(large):
  columns = (compare_plots.MEAN, compare_plots.WORST10)
  axes = mpl_figure.Figure().subplots()
  front = compare_plots.Front(large, columns)
  front.draw(axes)
  markers = [line for line in axes.lines if line.get_linestyle() == 'None']
  drawn = front.drawn
  pale = {
    method
    for method, line in zip(drawn, markers, strict=True)
    if line.get_alpha() < 1
  }
  assert pale == set(large.in_turn) == {'dssgd', 'round_robin_fed_avg'}
  assert not pale & set(large.front(*columns))


def test_long_intervals_do_not_hide_the_markers(tmp_path):
  # Two seeds: the intervals are 12.7 times as long as their standard errors.
  scores = {
    'fed_avg': [[0.5, 0.5], [0.7, 0.7]],
    'ditto': [[0.6, 0.6], [0.9, 0.9]],
  }
  found = made_comparison.analyse(
    tmp_path,
    made_comparison.rows(range(2), scores=scores),
    made_comparison.facts(range(2), 2),
  )
  axes = mpl_figure.Figure().subplots()
  columns = (compare_plots.MEAN, compare_plots.WORST10)
  compare_plots.Front(found, columns).draw(axes)
  assert found.estimates['ditto', compare_plots.MEAN].high > 2
  low, high = axes.get_xlim()
  assert 0.5 < low < 0.6 and 0.75 < high < 0.85


def test_at_most_eight_curves_the_baseline_first(large):
  found = compare_plots.curve_methods(large)
  assert len(found) == 8
  assert found[:2] == ('fed_avg', 'standalone')
  assert large.best('cf') in found


def test_bands_are_intervals(large):
  (axes,) = compare_plots.draw_curves(large).axes
  bands = axes.collections
  for method, band in zip(
    compare_plots.curve_methods(large), bands, strict=True
  ):
    curve = large.curves[method]
    ends = band.get_datalim(axes.transData).get_points()[:, 1]
    assert list(ends) == pytest.approx([min(curve.low), max(curve.high)])


def test_nothing_is_drawn_without_results(tmp_path):
  row = made_comparison.trial_row('fed_avg', 0, 0, 'diverged')
  empty = made_comparison.analyse(tmp_path, [row])
  assert compare_plots.draw(empty) == {}


def test_methods_far_below_the_others_are_outside(tmp_path):
  levels = {
    'fed_avg': 0.9,
    'cffl': 0.91,
    'ditto': 0.92,
    'q_fed_avg': 0.7,  # By less than five times what Ditto is above FedProx.
    'fed_prox': 0.86,
    'moon': 0.5,
    'standalone': 0.2,  # A reference, always drawn.
  }
  found = made_comparison.analyse(
    tmp_path,
    made_comparison.rows(
      range(2), 3, scores={m: [[v] * 3] * 2 for m, v in levels.items()}
    ),
    made_comparison.facts(range(2), 3),
  )
  columns = (compare_plots.MEAN, compare_plots.WORST10)
  front = compare_plots.Front(found, columns)
  assert front.outside == ['moon']
  assert {*front.drawn} == {*levels} - {'moon'}
  axes = mpl_figure.Figure().subplots()
  front.draw(axes)
  assert axes.get_title(loc='left') == 'Far below: MOON'
