"""Draws how the global models of runs embed the same test examples.

t-SNE (van der Maaten and Hinton, 2008) of scikit-learn lays the embeddings out
in the plane. It shows which examples are near each other; the distances between
its clusters, and its axes, have no meaning.
"""

from collections.abc import Mapping
import math
import os
import pathlib
from typing import Any, NamedTuple

from matplotlib import figure as mpl_figure
from matplotlib import lines as mpl_lines
import numpy as np

from launchers.plots import plot_parts

# Examples drawn; t-SNE takes seconds for so many.
_NUM_EXAMPLES = 2000
_MAX_COLUMNS = 3
_SEED = 0

# A run's directory, and its settings.
_Run = tuple[pathlib.Path, Mapping[str, Any]]


def embeddings(
  runs: Mapping[str, _Run],
  round_number: int | None,
  path: str | os.PathLike[str],
) -> mpl_figure.Figure:
  """Draws a panel for each run, of as many classes as there are colours.

  Above a panel is the mean silhouette (Rousseeuw, 1987) of the embeddings
  themselves: 1 for classes that are compact and apart, 0 for classes that
  overlap.

  Args:
    runs: Title -> the directory of a finished run and its settings; they must
      be of the same data.
    round_number: The round of the models; None for the last.
    path: The PNG file to write.

  Returns:
    The figure that was written.

  Raises:
    launchers.runs.training.RunError: If a run has no checkpoint of that round.
    ValueError: If a model has no embedding.
  """
  lines = math.ceil(len(runs) / _MAX_COLUMNS)
  columns = math.ceil(len(runs) / lines)
  figure = mpl_figure.Figure(
    figsize=(1.2 + 4.2 * columns, 4.6 * lines), layout='constrained'
  )
  panels = list(figure.subplots(lines, columns, squeeze=False).flat)
  for axes, (title, run) in zip(panels, runs.items(), strict=False):
    embedded = _embed(run, round_number)
    shown = round_number or run[1]['rounds']
    axes.set_title(f'{title}, round {shown}\n{_silhouette(embedded)}')
    axes.set(xticks=[], yticks=[])
    _draw_points(axes, embedded)
  for axes in panels[len(runs) :]:
    axes.set_axis_off()
  _draw_legend(figure, embedded)
  figure.savefig(path, dpi=plot_parts.DPI)
  return figure


class _Embedded(NamedTuple):
  """Test examples under a global model.

  Attributes:
    vectors: float64 [n, p], their embeddings, centred and at most 1.
    labels: int32 [n], their classes.
    num_classes: How many classes the data have, with those that are not drawn.
  """

  vectors: np.ndarray
  labels: np.ndarray
  num_classes: int

  @property
  def lack(self) -> str | None:
    """What keeps them from being drawn, if anything does."""
    if not np.isfinite(self.vectors).all():
      return 'embeddings that\nare not finite'
    if not self.vectors.any():
      return 'all embeddings\nare the same'
    return None


def _embed(run: _Run, round_number) -> _Embedded:
  from launchers.runs import training
  from tff_fair import metrics

  output_dir, settings = run
  task = training.build_task(settings)
  try:
    weights = training.load_global_model(
      settings, task, output_dir, round_number or settings['rounds']
    )
  except FileNotFoundError as error:
    raise training.RunError(str(error)) from error
  x, labels = task.global_test
  shown = np.flatnonzero(labels < len(plot_parts.COLORS))
  drawn = np.random.default_rng(_SEED).permutation(shown)[:_NUM_EXAMPLES]
  vectors = metrics.embeddings(task.model_fn(), weights, x[drawn])
  return _Embedded(_scaled(vectors), labels[drawn], task.num_classes)


def _scaled(vectors) -> np.ndarray:
  """On which nothing depends here, but that large numbers overflow."""
  vectors = vectors.astype(np.float64)
  with np.errstate(invalid='ignore'):  # Infinite numbers become NaN.
    centred = vectors - vectors.mean(axis=0)
  largest = np.abs(centred).max(initial=0.0)
  return centred / largest if largest > 0 else centred


def _silhouette(embedded) -> str:
  """The coefficient as text."""
  # It takes seconds to import, for which --help should not wait.
  from sklearn import metrics

  num_labels = len(np.unique(embedded.labels))
  if embedded.lack or not 1 < num_labels < len(embedded.labels):
    return 'silhouette undefined'
  value = metrics.silhouette_score(embedded.vectors, embedded.labels)
  return f'silhouette {value:.3f}'


def _draw_points(axes, embedded) -> None:
  """Draws the layout, or says why there is none."""
  if embedded.lack:
    # A run that diverged must not take the table's other pictures with it.
    centre = {'ha': 'center', 'va': 'center', 'transform': axes.transAxes}
    axes.text(0.5, 0.5, embedded.lack, **centre)
    return
  # All classes at once, in the random order of the examples: no class lies on
  # top of the others.
  axes.scatter(
    *_layout(embedded.vectors).T,
    s=np.clip(8000 / len(embedded.labels), 6, 24),
    linewidths=0,
    alpha=0.8,
    c=[plot_parts.COLORS[label] for label in embedded.labels],
  )


def _layout(vectors) -> np.ndarray:
  """Points of the plane, float [n, 2]."""
  from sklearn import manifold
  import threadpoolctl

  # It needs fewer neighbours than there are points.
  perplexity = min(30.0, (len(vectors) - 1) / 3)
  tsne = manifold.TSNE(init='pca', perplexity=perplexity, random_state=_SEED)
  # Its threads wait for each other without rest: where others use the machine,
  # too, several take many times as long as one.
  with threadpoolctl.threadpool_limits(1, 'openmp'):
    return tsne.fit_transform(vectors)


def _draw_legend(figure, embedded) -> None:
  """The colours of the classes, which all panels share."""
  handles = [
    mpl_lines.Line2D(
      [],
      [],
      linestyle='',
      marker='o',
      color=plot_parts.COLORS[label],
      label=str(label),
    )
    for label in np.unique(embedded.labels)
  ]
  title = 'Class'
  if embedded.num_classes > len(plot_parts.COLORS):
    title = f'Class\n(of {embedded.num_classes})'
  figure.legend(handles=handles, loc='outside right center', title=title)
