"""Plots of embeddings, of test examples that a test makes up."""

import collections

from matplotlib import colors as mpl_colors
import numpy as np
import pytest

from tff_fair.launchers.plots import embedding_plots
from tff_fair.launchers.runs import embeddings


@pytest.fixture(name='draw')
def _draw(tmp_path):
  """Draws examples with given classes, as each of some runs embeds them."""

  def draw(vectors, labels, num_classes=10, more=()):
    path = tmp_path / 'x.png'
    labels = np.asarray(labels, np.int32)
    figure = embedding_plots.scatter(
      {
        title: [
          embeddings.Embeddings(
            np.asarray(seed, np.float32), labels, num_classes, 20
          )
          for seed in (array, *more)
        ]
        for title, array in vectors.items()
      },
      path,
    )
    assert path.read_bytes().startswith(b'\x89PNG')
    return figure

  return draw


def _clusters(num_classes, size, spread=0.1):
  """Classes around corners of a simplex, and their labels."""
  rng = np.random.default_rng(0)
  labels = np.repeat(np.arange(num_classes), size)
  noise = spread * rng.standard_normal([len(labels), num_classes])
  return np.eye(num_classes)[labels] + noise, labels


def _points(axes):
  (points,) = axes.collections
  return points.get_offsets().data


def _classes(axes):
  """The class of each point, by its colour."""
  (points,) = axes.collections
  known = {
    mpl_colors.to_rgb(c): i for i, c in enumerate(embedding_plots.COLORS)
  }
  return [known[tuple(color[:3])] for color in points.get_facecolors()]


def _legend(figure):
  (legend,) = figure.legends
  return (
    legend.get_title().get_text(),
    [text.get_text() for text in legend.get_texts()],
  )


def _between(vectors, labels):
  """Per cent: the squares that are left without those within the classes."""
  total = within = 0.0
  for vector, label in zip(vectors, labels, strict=True):
    total += np.sum((vector - vectors.mean(axis=0)) ** 2)
    within += np.sum((vector - vectors[labels == label].mean(axis=0)) ** 2)
  return 100 * (1 - within / total)


def test_a_panel_a_run_with_a_point_an_example(draw):
  vectors, labels = _clusters(3, 20)
  runs = {'apart': vectors, 'mixed': vectors[::-1] * [1, 0.1, 0.1]}
  figure = draw(runs, labels)
  apart, mixed = figure.axes
  for axes, (title, array) in zip(figure.axes, runs.items(), strict=True):
    value = _between(array, labels)
    expected = f'{title}, round 20\n{value:.1f} % of variance between classes'
    assert axes.get_title() == expected
    assert len(_points(axes)) == 60
    counts = collections.Counter(_classes(axes))
    assert counts == {0: 20, 1: 20, 2: 20}
    # Each class has its name among its points.
    for label, text in enumerate(axes.texts):
      assert text.get_text() == str(label)
      own = _points(axes)[labels == label]
      np.testing.assert_allclose(text.get_position(), np.median(own, axis=0))
    assert len(axes.texts) == 3
  assert apart.get_title() != mixed.get_title()
  assert _legend(figure) == ('Class', ['0', '1', '2'])


def test_the_variance_between_classes_by_hand(draw):
  # Means 1 and 5: 4 of the variance, and within the classes 1 and 9.
  vectors, labels = [[0, 3], [2, 3], [2, 3], [8, 3]], [0, 0, 1, 1]
  (axes,) = draw({'run': vectors}, labels).axes
  assert axes.get_title().endswith('44.4 % of variance between classes')
  # Equal means, and classes of one point: (44.4 + 0 + 100) / 3.
  more = [[0, 3], [2, 3], [1, 3], [1, 3]], [[0, 0], [0, 0], [3, 0], [3, 0]]
  (axes,) = draw({'run': vectors}, labels, more=more).axes
  assert axes.get_title() == (
    'run, round 20, first of 3 seeds\n48.1 ± 50.1 % of variance between classes'
  )
  assert len(_points(axes)) == 4


def test_neighbours_are_of_one_class_and_no_class_covers_the_others(draw):
  vectors, labels = _clusters(4, 25, spread=0.05)
  order = np.random.default_rng(0).permutation(100)
  vectors, labels = vectors[order], labels[order]
  (axes,) = draw({'run': vectors}, labels).axes
  points, classes = _points(axes), np.array(_classes(axes))
  away = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
  np.fill_diagonal(away, np.inf)
  assert (classes[away.argmin(axis=1)] == classes).mean() > 0.95
  # Points are drawn in their order, in which classes take turns.
  assert classes.tolist() == labels.tolist()
  # The same runs give the same picture.
  (again,) = draw({'run': vectors}, labels).axes
  np.testing.assert_array_equal(_points(again), points)


def test_classes_without_test_examples_are_not_in_the_legend(draw):
  vectors, labels = _clusters(3, 20)
  figure = draw({'run': vectors}, 2 * labels + 1, num_classes=12)
  assert _legend(figure) == ('Class\n(of 12)', ['1', '3', '5'])
  assert set(_classes(figure.axes[0])) == {1, 3, 5}


def test_few_examples(draw):
  vectors, labels = _clusters(2, 20)
  for size in (2, 3, 30, 31):
    chosen = np.random.default_rng(1).permutation(40)[:size]
    (axes,) = draw({'run': vectors[chosen]}, labels[chosen]).axes
    assert len(_points(axes)) == size
    assert np.isfinite(_points(axes)).all()


def test_classes_with_few_examples(draw):
  vectors, labels = _clusters(3, 10)
  (axes,) = draw({'run': vectors[:21]}, labels[:21]).axes
  value = _between(vectors[:21], labels[:21])
  assert f'\n{value:.1f} % of' in axes.get_title()
  # One class, or one example of each.
  vectors = np.random.default_rng(0).standard_normal([10, 4])
  for labels in ([3] * 10, range(10)):
    (axes,) = draw({'run': vectors}, labels).axes
    expected = 'run, round 20\nvariance between classes undefined'
    assert axes.get_title() == expected
    assert len(_points(axes)) == 10


def test_a_run_that_diverged_does_not_prevent_the_others(draw):
  vectors, labels = _clusters(3, 20)
  for value in (np.nan, np.inf):
    broken = vectors.copy()
    broken[7, 1] = value
    figure = draw({'broken': broken, 'whole': vectors}, labels)
    first, second = figure.axes
    assert first.get_title().endswith('are all the same, or not finite')
    assert not first.collections
    assert len(_points(second)) == 60
    assert _legend(figure) == ('Class', ['0', '1', '2'])


def test_a_later_seed_that_diverged_is_told(draw):
  vectors, labels = _clusters(3, 20)
  more = [np.full_like(vectors, np.nan)]
  (axes,) = draw({'run': vectors}, labels, more=more).axes
  assert axes.get_title().endswith('are all the same, or not finite')
  assert len(_points(axes)) == 60


def test_embeddings_that_are_all_the_same(draw):
  _, labels = _clusters(2, 10)
  for size in (1, 20):
    (axes,) = draw({'run': np.full([size, 3], 0.7)}, labels[:size]).axes
    assert axes.get_title().endswith('are all the same, or not finite')


def test_the_scale_of_the_embeddings_does_not_matter(draw):
  vectors, labels = _clusters(3, 20)
  usual = draw({'run': vectors}, labels).axes[0].get_title()
  for scale in (1e-30, 1e30):
    (axes,) = draw({'run': scale * vectors}, labels).axes
    assert axes.get_title() == usual
    assert np.isfinite(_points(axes)).all()


def test_panels_without_a_run_are_blank(draw):
  vectors, labels = _clusters(2, 5)
  for number, grid in ((1, 1), (4, 4), (5, 6)):
    figure = draw({str(i): vectors for i in range(number)}, labels)
    assert len(figure.axes) == grid
    assert sum(axes.axison for axes in figure.axes) == number
