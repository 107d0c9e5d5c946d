"""Draws how the global models of runs embed the same test examples.

The plane is the t-SNE (van der Maaten and Hinton, 2008) of scikit-learn. It
shows which examples are near each other; its axes, and the distances between
clusters, have no meaning.
"""

from collections.abc import Mapping, Sequence
import math
import os

import matplotlib
from matplotlib import figure as mpl_figure
from matplotlib import patches
from matplotlib import patheffects
import numpy as np
import pandas as pd

from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import embeddings
from tff_fair.launchers.show import numbers

# One class per colour; t-SNE takes seconds for so many examples.
COLORS = matplotlib.color_sequences['petroff10']
MAX_CLASSES = len(COLORS)
MAX_EXAMPLES = 2000

_MAX_COLUMNS = 3
_SEED = 0


@plot_parts.plain_text()
def scatter(
  runs: Mapping[str, Sequence[embeddings.Embeddings]],
  path: str | os.PathLike[str],
) -> mpl_figure.Figure:
  """Draws a panel for each method, of the same at most `MAX_CLASSES` classes.

  A method has an item for each seed; the first is drawn. Above a panel is the
  share of the embeddings' variance that lies between the classes, as mean and
  standard deviation over the seeds: 100 % if all examples of a class have the
  same embedding, 0 if all classes have the same mean.
  """
  rows = math.ceil(len(runs) / _MAX_COLUMNS)
  columns = math.ceil(len(runs) / rows)
  figure = mpl_figure.Figure(
    figsize=(1.2 + 4.2 * columns, 4.6 * rows), layout='constrained'
  )
  panels = list(figure.subplots(rows, columns, squeeze=False).flat)
  for axes in panels:
    axes.set_axis_off()
  for axes, (title, seeds) in zip(panels, runs.items(), strict=False):
    run = seeds[0]
    axes.set_axis_on()
    axes.set(xticks=[], yticks=[])
    number = f'round {run.round_number}'
    if len(seeds) > 1:
      number += f', first of {len(seeds)} seeds'
    axes.set_title(f'{title}, {number}\n{_describe(seeds)}')
    if _is_drawable(run):
      _draw(axes, run)
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


def _is_drawable(run) -> bool:
  """Whether embeddings are finite and differ."""
  return bool(
    np.isfinite(run.vectors).all() and np.ptp(run.vectors, axis=0).any()
  )


def _scaled(run) -> np.ndarray:
  """The embeddings, at most 1: large numbers overflow, scale has no effect."""
  vectors = run.vectors.astype(np.float64)
  return vectors / np.abs(vectors).max()


def _describe(seeds) -> str:
  """The share of the variance that lies between the classes."""
  if not all(_is_drawable(run) for run in seeds):
    # One diverged run must not prevent the plots of the others.
    return 'embeddings that are all the same, or not finite'
  if not all(1 < len(set(r.labels)) < len(r.labels) for r in seeds):
    return 'variance between classes undefined'
  shares = pd.Series([_between_classes(_scaled(r), r.labels) for r in seeds])
  shown = numbers.format_number(100 * shares.mean(), '.1f')
  if len(seeds) > 1:
    shown += f' ± {numbers.format_number(100 * shares.std(), ".1f")}'
  return f'{shown} % of variance between classes'


def _between_classes(vectors, labels) -> float:
  """The share of the variance that the means of the classes have."""
  means = pd.DataFrame(vectors).groupby(labels).transform('mean')
  return np.var(means.to_numpy(), axis=0).sum() / np.var(vectors, axis=0).sum()


def _draw(axes, run) -> None:
  """Draws the examples."""
  vectors, labels = _scaled(run), run.labels
  # It takes seconds to import, which would delay --help.
  from sklearn import manifold
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
