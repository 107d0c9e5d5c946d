"""Draws how the global models of runs embed the same test examples.

The plane is the t-SNE (van der Maaten and Hinton, 2008) of scikit-learn. It
shows which examples are near each other; its axes, and the distances between
clusters, have no meaning.
"""

from collections.abc import Mapping
import math
import os

import matplotlib
from matplotlib import figure as mpl_figure
from matplotlib import patches
from matplotlib import patheffects
import numpy as np

from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import embeddings

# One class per colour; t-SNE takes seconds for so many examples.
COLORS = matplotlib.color_sequences['petroff10']
MAX_CLASSES = len(COLORS)
MAX_EXAMPLES = 2000

_MAX_COLUMNS = 3
_SEED = 0


@plot_parts.plain_text()
def scatter(
  runs: Mapping[str, embeddings.Embeddings], path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws a panel for each run, of the same at most `MAX_CLASSES` classes.

  Above a panel is the mean silhouette (Rousseeuw, 1987) of the embeddings
  themselves: 1 for compact and separate classes, 0 for overlapping ones.
  """
  rows = math.ceil(len(runs) / _MAX_COLUMNS)
  columns = math.ceil(len(runs) / rows)
  figure = mpl_figure.Figure(
    figsize=(1.2 + 4.2 * columns, 4.6 * rows), layout='constrained'
  )
  panels = list(figure.subplots(rows, columns, squeeze=False).flat)
  for axes in panels:
    axes.set_axis_off()
  for axes, (title, run) in zip(panels, runs.items(), strict=False):
    axes.set_axis_on()
    axes.set(xticks=[], yticks=[])
    axes.set_title(f'{title}, round {run.round_number}\n{_draw(axes, run)}')
  title = 'Class'
  if run.num_classes > MAX_CLASSES:
    title += f'\n(of {run.num_classes})'
  figure.legend(
    handles=[
      patches.Patch(color=COLORS[label], label=str(label))
      for label in np.unique(run.labels)
    ],
    loc='outside right center',
    title=title,
  )
  plot_parts.save(figure, path)
  return figure


def _draw(axes, run) -> str:
  """Draws the examples; returns the silhouette as text."""
  vectors, labels = run.vectors.astype(np.float64), run.labels
  if not np.isfinite(vectors).all() or not np.ptp(vectors, axis=0).any():
    # One diverged run must not prevent the plots of the others.
    return 'embeddings that are all the same, or not finite'
  # Large numbers overflow, and scale has no effect.
  vectors = vectors / np.abs(vectors).max()
  # They take seconds to import, which would delay --help.
  from sklearn import manifold
  from sklearn import metrics
  import threadpoolctl

  # t-SNE needs fewer neighbours than there are points.
  perplexity = min(30.0, (len(vectors) - 1) / 3)
  tsne = manifold.TSNE(init='pca', perplexity=perplexity, random_state=_SEED)
  # Its threads busy-wait for each other: on a machine that others use as well,
  # several threads take many times as long as one.
  with threadpoolctl.threadpool_limits(1, 'openmp'):
    points = tsne.fit_transform(vectors)
  # All classes at once, in the random order of the examples: no class covers
  # the others.
  axes.scatter(
    *points.T,
    s=np.clip(8000 / len(labels), 6, 24),
    linewidths=0,
    alpha=0.8,
    c=[COLORS[label] for label in labels],
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
  if not 1 < len(np.unique(labels)) < len(labels):
    return 'silhouette undefined'
  return f'silhouette {metrics.silhouette_score(vectors, labels):.3f}'
