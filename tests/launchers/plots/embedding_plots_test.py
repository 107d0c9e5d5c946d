"""Pictures of embeddings, of test examples that a test makes up."""

import collections
import types

from matplotlib import colors as mpl_colors
import numpy as np
import pytest

from launchers.plots import embedding_plots
from launchers.plots import plot_parts
from launchers.runs import training
import tasks
from tff_fair import metrics


@pytest.fixture(name='draw')
def _draw(tmp_path, monkeypatch):
  """Draws examples with given classes, as each of some runs embeds them."""

  def embed(model, weights, x):
    assert model == 'model'
    return weights[x[:, 0].astype(int)]

  def draw(vectors, labels, num_classes=10, round_number=None):
    labels = np.asarray(labels, np.int32)
    x = np.arange(len(labels), dtype=np.float32)[:, np.newaxis]
    task = types.SimpleNamespace(
      global_test=tasks.Examples(x, labels),
      num_classes=num_classes,
      model_fn=lambda: 'model',
    )
    loaded = []

    def load(settings, task_of_run, output_dir, number):
      assert task_of_run is task
      loaded.append((output_dir, number))
      return np.asarray(settings['vectors'], np.float32)

    monkeypatch.setattr(training, 'build_task', lambda settings: task)
    monkeypatch.setattr(training, 'load_global_model', load)
    monkeypatch.setattr(metrics, 'embeddings', embed)
    runs = {
      title: (tmp_path / title, {'rounds': 20, 'vectors': array})
      for title, array in vectors.items()
    }
    path = tmp_path / 'x.png'
    figure = embedding_plots.embeddings(runs, round_number, path)
    assert path.read_bytes().startswith(b'\x89PNG')
    number = round_number or 20
    assert loaded == [(tmp_path / title, number) for title in vectors]
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
  known = {mpl_colors.to_rgb(c): i for i, c in enumerate(plot_parts.COLORS)}
  return [known[tuple(color[:3])] for color in points.get_facecolors()]


def _legend(figure):
  (legend,) = figure.legends
  return (
    legend.get_title().get_text(),
    [text.get_text() for text in legend.get_texts()],
  )


def _silhouette(vectors, labels):
  """By its definition, one example after the other."""
  each = []
  for vector, label in zip(vectors, labels, strict=True):
    distances = np.linalg.norm(vectors - vector, axis=1)
    means = {c: distances[labels == c].mean() for c in np.unique(labels)}
    size = np.count_nonzero(labels == label)
    if size == 1:
      each.append(0.0)
      continue
    # Without the distance of the example from itself.
    own = means.pop(label) * size / (size - 1)
    nearest = min(means.values())
    each.append((nearest - own) / max(nearest, own))
  return np.mean(each)


def test_a_panel_a_run_with_a_point_an_example(draw):
  vectors, labels = _clusters(3, 20)
  runs = {'apart': vectors, 'mixed': vectors[::-1] * [1, 0.1, 0.1]}
  figure = draw(runs, labels)
  apart, mixed = figure.axes
  for axes, (title, array) in zip(figure.axes, runs.items(), strict=True):
    value = _silhouette(array, labels)
    assert axes.get_title() == f'{title}, round 20\nsilhouette {value:.3f}'
    assert len(_points(axes)) == 60
    counts = collections.Counter(_classes(axes))
    assert counts == {0: 20, 1: 20, 2: 20}
  assert apart.get_title() != mixed.get_title()
  assert _legend(figure) == ('Class', ['0', '1', '2'])


def test_neighbours_in_the_picture_are_of_one_class(draw):
  vectors, labels = _clusters(4, 25, spread=0.05)
  (axes,) = draw({'run': vectors}, labels).axes
  points, classes = _points(axes), np.array(_classes(axes))
  away = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
  np.fill_diagonal(away, np.inf)
  assert (classes[away.argmin(axis=1)] == classes).mean() > 0.95


def test_no_class_lies_on_top_of_the_others(draw):
  vectors, labels = _clusters(4, 25)
  (axes,) = draw({'run': vectors}, labels).axes
  # Points are drawn in their order, in which classes take turns.
  changes = np.count_nonzero(np.diff(_classes(axes)))
  assert changes > 50


def test_the_same_runs_give_the_same_picture(draw):
  vectors, labels = _clusters(3, 20)
  first, second = (draw({'run': vectors}, labels).axes[0] for _ in range(2))
  np.testing.assert_array_equal(_points(first), _points(second))


def test_more_than_ten_classes_have_their_first_ten_drawn(draw):
  vectors, labels = _clusters(12, 5)
  figure = draw({'run': vectors}, labels, num_classes=12)
  (axes,) = figure.axes
  assert collections.Counter(_classes(axes)) == {i: 5 for i in range(10)}
  assert _legend(figure) == ('Class\n(of 12)', [str(i) for i in range(10)])
  value = _silhouette(vectors[labels < 10], labels[labels < 10])
  assert axes.get_title().endswith(f'silhouette {value:.3f}')


def test_classes_without_test_examples_are_not_in_the_legend(draw):
  vectors, labels = _clusters(3, 20)
  figure = draw({'run': vectors}, 2 * labels + 1)
  assert _legend(figure) == ('Class', ['1', '3', '5'])
  assert set(_classes(figure.axes[0])) == {1, 3, 5}


def test_of_many_examples_all_runs_show_the_same(draw, monkeypatch):
  monkeypatch.setattr(embedding_plots, '_NUM_EXAMPLES', 40)
  rng = np.random.default_rng(0)
  vectors, labels = _clusters(10, 20)
  first, second = draw(
    {'a': vectors, 'b': rng.standard_normal([200, 3])}, labels
  ).axes
  assert _classes(first) == _classes(second)
  assert len(_classes(first)) == 40
  # A random part of them, and not the first.
  assert len(set(_classes(first))) > 5


@pytest.mark.parametrize('size', [2, 3, 30, 31])
def test_few_examples(draw, size):
  vectors, labels = _clusters(2, 20)
  chosen = np.random.default_rng(1).permutation(40)[:size]
  (axes,) = draw({'run': vectors[chosen]}, labels[chosen]).axes
  assert len(_points(axes)) == size
  assert np.isfinite(_points(axes)).all()


def test_a_class_with_one_example(draw):
  vectors, labels = _clusters(3, 10)
  vectors, labels = vectors[:21], labels[:21]
  figure = draw({'run': vectors}, labels)
  (axes,) = figure.axes
  assert collections.Counter(_classes(axes)) == {0: 10, 1: 10, 2: 1}
  value = _silhouette(vectors, labels)
  assert axes.get_title().endswith(f'silhouette {value:.3f}')
  assert _legend(figure) == ('Class', ['0', '1', '2'])


@pytest.mark.parametrize('labels', [[3] * 10, range(10)])
def test_one_class_or_one_example_of_each_has_no_silhouette(draw, labels):
  vectors = np.random.default_rng(0).standard_normal([10, 4])
  (axes,) = draw({'run': vectors}, labels).axes
  assert axes.get_title() == 'run, round 20\nsilhouette undefined'
  assert len(_points(axes)) == 10


@pytest.mark.parametrize(
  ('value', 'said'),
  [
    (np.nan, 'embeddings that\nare not finite'),
    (np.inf, 'embeddings that\nare not finite'),
  ],
)
def test_a_run_that_diverged_leaves_the_others_their_pictures(
  draw, value, said
):
  vectors, labels = _clusters(3, 20)
  broken = vectors.copy()
  broken[7, 1] = value
  figure = draw({'broken': broken, 'whole': vectors}, labels)
  first, second = figure.axes
  assert first.get_title() == 'broken, round 20\nsilhouette undefined'
  assert [text.get_text() for text in first.texts] == [said]
  assert not first.collections
  assert len(_points(second)) == 60 and not second.texts
  assert _legend(figure) == ('Class', ['0', '1', '2'])


@pytest.mark.parametrize('size', [1, 20])
def test_embeddings_that_are_all_the_same(draw, size):
  _, labels = _clusters(2, 10)
  (axes,) = draw({'run': np.full([size, 3], 0.7)}, labels[:size]).axes
  assert axes.get_title() == 'run, round 20\nsilhouette undefined'
  said = ['all embeddings\nare the same']
  assert [text.get_text() for text in axes.texts] == said


@pytest.mark.parametrize('scale', [1e-30, 1e30])
def test_the_scale_of_the_embeddings_does_not_matter(draw, scale):
  vectors, labels = _clusters(3, 20)
  usual = draw({'run': vectors}, labels).axes[0].get_title()
  (axes,) = draw({'run': scale * vectors}, labels).axes
  assert axes.get_title() == usual
  assert np.isfinite(_points(axes)).all()


@pytest.mark.parametrize(('number', 'grid'), [(1, 1), (3, 3), (4, 4), (5, 6)])
def test_panels_without_a_run_are_blank(draw, number, grid):
  vectors, labels = _clusters(2, 5)
  figure = draw({str(i): vectors for i in range(number)}, labels)
  assert len(figure.axes) == grid
  assert sum(axes.axison for axes in figure.axes) == number


def test_the_round_that_is_asked_for(draw):
  vectors, labels = _clusters(2, 5)
  (axes,) = draw({'run': vectors}, labels, round_number=5).axes
  assert axes.get_title().startswith('run, round 5\n')


def test_a_run_without_that_checkpoint_is_one_sentence(draw, monkeypatch):
  vectors, labels = _clusters(2, 5)
  draw({'run': vectors}, labels)

  def load(*_):
    raise FileNotFoundError('x must hold a checkpoint of round 5, found none.')

  monkeypatch.setattr(training, 'load_global_model', load)
  with pytest.raises(
    training.RunError, match=r'^x must hold a checkpoint of round 5, found no'
  ):
    embedding_plots.embeddings({'run': ('x', {'rounds': 20})}, 5, 'x.png')
