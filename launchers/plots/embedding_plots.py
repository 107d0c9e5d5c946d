"""Draws how the global models of runs embed the same test examples.

The plane is the t-SNE (van der Maaten and Hinton, 2008) of scikit-learn. It
shows which examples are near each other; its axes, and the distances between
clusters, have no meaning.
"""

from collections.abc import Mapping
import math
import os

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
from matplotlib import lines as mpl_lines
from matplotlib import patheffects
import numpy as np

from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import embeddings

# One class per colour; t-SNE takes seconds for so many examples.
MAX_CLASSES = len(plot_parts.COLORS)
MAX_EXAMPLES = 2000

_MAX_COLUMNS = 3
_SEED = 0


@plot_parts.plain_text()
def scatter(
  runs: Mapping[str, embeddings.Embeddings], path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws a panel for each run.

  Above a panel is the mean silhouette (Rousseeuw, 1987) of the embeddings
  themselves: 1 for compact and separate classes, 0 for overlapping ones.

  Args:
    runs: Title -> embeddings of the same examples, of at most `MAX_CLASSES`
      classes.
    path: The PNG file to write.

  Returns:
    The figure that was written.
  """
  lines = math.ceil(len(runs) / _MAX_COLUMNS)
  columns = math.ceil(len(runs) / lines)
  figure = mpl_figure.Figure(
    figsize=(1.2 + 4.2 * columns, 4.6 * lines), layout='constrained'
  )
  panels = list(figure.subplots(lines, columns, squeeze=False).flat)
  for axes, (title, run) in zip(panels, runs.items(), strict=False):
    vectors = _scaled(run.vectors)
    silhouette = _silhouette(vectors, run.labels)
    axes.set_title(f'{title}, round {run.round_number}\n{silhouette}')
    axes.set(xticks=[], yticks=[])
    _draw_points(axes, vectors, run.labels)
  for axes in panels[len(runs) :]:
    axes.set_axis_off()
  _draw_legend(figure, run)
  plot_parts.save(figure, path)
  return figure


def _problem(vectors: np.ndarray) -> str | None:
  """The reason why the vectors cannot be plotted, or None."""
  if not np.isfinite(vectors).all():
    return 'embeddings that\nare not finite'
  if not vectors.any():
    return 'all embeddings\nare the same'
  return None


def _scaled(vectors) -> np.ndarray:
  """Centred, and at most 1: large numbers overflow, and scale has no effect."""
  vectors = vectors.astype(np.float64)
  with np.errstate(invalid='ignore'):  # Infinite numbers become NaN.
    centred = vectors - vectors.mean(axis=0)
  largest = np.abs(centred).max(initial=0.0)
  return centred / largest if largest > 0 else centred


def _silhouette(vectors: np.ndarray, labels: np.ndarray) -> str:
  """The coefficient as text."""
  # It takes seconds to import, which would delay --help.
  from sklearn import metrics

  if _problem(vectors) or not 1 < len(np.unique(labels)) < len(labels):
    return 'silhouette undefined'
  return f'silhouette {metrics.silhouette_score(vectors, labels):.3f}'


def _draw_points(
  axes: mpl_axes.Axes, vectors: np.ndarray, labels: np.ndarray
) -> None:
  """Draws the examples, or says why there is nothing to draw."""
  problem = _problem(vectors)
  if problem:
    # One diverged run must not prevent the plots of the others.
    centre = {'ha': 'center', 'va': 'center', 'transform': axes.transAxes}
    axes.text(0.5, 0.5, problem, **centre)
    return
  points = _layout(vectors)
  # All classes at once, in the random order of the examples: no class covers
  # the others.
  axes.scatter(
    *points.T,
    s=np.clip(8000 / len(labels), 6, 24),
    linewidths=0,
    alpha=0.8,
    c=[plot_parts.COLORS[label] for label in labels],
  )
  # Ten classes are too many to be told apart by colour alone.
  for label in np.unique(labels):
    axes.text(
      *np.median(points[labels == label], axis=0),
      str(label),
      ha='center',
      va='center',
      weight='bold',
      path_effects=[patheffects.withStroke(linewidth=3, foreground='white')],
    )


def _layout(vectors) -> np.ndarray:
  """Points of the plane, float [n, 2]."""
  from sklearn import manifold
  import threadpoolctl

  # t-SNE needs fewer neighbours than there are points.
  perplexity = min(30.0, (len(vectors) - 1) / 3)
  tsne = manifold.TSNE(init='pca', perplexity=perplexity, random_state=_SEED)
  # Its threads busy-wait for each other: on a machine that others use as well,
  # several threads take many times as long as one.
  with threadpoolctl.threadpool_limits(1, 'openmp'):
    return tsne.fit_transform(vectors)


def _draw_legend(figure, run) -> None:
  """The colours of the classes, the same in all panels."""
  handles = [
    mpl_lines.Line2D(
      [],
      [],
      linestyle='',
      marker='o',
      color=plot_parts.COLORS[label],
      label=str(label),
    )
    for label in np.unique(run.labels)
  ]
  title = 'Class'
  if run.num_classes > len(plot_parts.COLORS):
    title = f'Class\n(of {run.num_classes})'
  figure.legend(handles=handles, loc='outside right center', title=title)
