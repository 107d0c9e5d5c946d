"""Draws how the global models of runs embed the same test examples.

t-SNE (van der Maaten and Hinton, 2008) of scikit-learn lays the embeddings out
in the plane. It shows which examples are near each other; the distances between
its clusters, and its axes, have no meaning.
"""

from collections.abc import Mapping
import math
import os
import pathlib
from typing import Any

from matplotlib import figure as mpl_figure
import numpy as np

from launchers import plot_parts

# Examples drawn; t-SNE takes seconds for so many.
_NUM_EXAMPLES = 2000
_NUM_CLASSES = len(plot_parts.COLORS)
_MAX_COLUMNS = 3
_SEED = 0

# A run's directory, and its settings.
_Run = tuple[pathlib.Path, Mapping[str, Any]]


def embeddings(
  runs: Mapping[str, _Run],
  round_number: int | None,
  path: str | os.PathLike[str],
) -> mpl_figure.Figure:
  """Draws a panel for each run, of the first ten classes.

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
    FileNotFoundError: If a run has no checkpoint of that round.
    ValueError: If a model has no embedding.
  """
  # They take seconds to import, for which --help should not wait.
  from sklearn import manifold
  from sklearn import metrics as sklearn_metrics

  lines = math.ceil(len(runs) / _MAX_COLUMNS)
  columns = math.ceil(len(runs) / lines)
  figure = mpl_figure.Figure(
    figsize=(1.6 + 4.2 * columns, 0.4 + 4.4 * lines), layout='constrained'
  )
  panels = figure.subplots(lines, columns, squeeze=False)
  for axes, (title, run) in zip(panels.flat, runs.items(), strict=False):
    vectors, labels = _embedded(run, round_number)
    # It needs fewer neighbours than there are points.
    perplexity = min(30.0, (len(labels) - 1) / 3)
    points = manifold.TSNE(
      init='pca', perplexity=perplexity, random_state=_SEED
    ).fit_transform(vectors)
    for label in np.unique(labels):
      axes.scatter(
        *points[labels == label].T,
        s=6,
        linewidths=0,
        color=plot_parts.COLORS[label],
        label=str(label),
      )
    silhouette = sklearn_metrics.silhouette_score(vectors, labels)
    shown = round_number or run[1]['rounds']
    axes.set_title(f'{title}, round {shown}\nsilhouette {silhouette:.3f}')
    axes.set_xticks([])
    axes.set_yticks([])
  for axes in list(panels.flat)[len(runs) :]:
    axes.set_axis_off()
  handles, names = panels[0, 0].get_legend_handles_labels()
  figure.legend(
    handles, names, loc='outside right center', title='Class', markerscale=3
  )
  figure.savefig(path, dpi=plot_parts.DPI)
  return figure


def _embedded(run: _Run, round_number) -> tuple[np.ndarray, np.ndarray]:
  """Embeddings of test examples under the global model, and their classes."""
  from launchers import training
  from tff_fair import metrics

  output_dir, settings = run
  task = training.build_task(settings)
  weights = training.load_global_model(
    settings, task, output_dir, round_number or settings['rounds']
  )
  x, labels = task.global_test
  shown = np.flatnonzero(labels < _NUM_CLASSES)
  drawn = np.random.default_rng(_SEED).permutation(shown)[:_NUM_EXAMPLES]
  return metrics.embeddings(task.model_fn(), weights, x[drawn]), labels[drawn]
