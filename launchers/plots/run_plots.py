"""Draws learning curves and client scores of runs, from their files.

A run directory is written by `launchers.train`. Its `metrics.csv` has a row per
round and its `clients.csv` a row per client. Runs are an ordered mapping from
label to directory, and their styles from label to `method_styles.Style`.
"""

from collections.abc import Mapping
import dataclasses
import math
import os
import pathlib
import textwrap

from absl import logging
from matplotlib import axes as mpl_axes
from matplotlib import collections
from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import run_files

Runs = Mapping[str, str | os.PathLike[str]]
Styles = Mapping[str, method_styles.Style]

# Characters that fit next to the axes, and below the axes.
_TICK_WIDTH, _LINE_WIDTH = 26, 92
_MAX_COLUMNS = 3


class NoTestDataError(ValueError):
  """No client of any run has test data."""


@dataclasses.dataclass(frozen=True)
class Panel:
  """A panel of the learning curves.

  Attributes:
    column: Its column of metrics.csv.
    title: Its title.
    unit: The label of its vertical axis.
    logarithmic: Whether its axis is, if values span more than a decade.
  """

  column: str
  title: str
  unit: str
  logarithmic: bool = False


CLIENT_ACCURACY = Panel(
  'client_accuracy_mean', 'Clients: mean accuracy ↑', 'Accuracy'
)
# Runs of older versions do not have these.
_NEW_PANELS = (
  Panel('client_accuracy_worst10', 'Clients: worst 10 % ↑', 'Accuracy'),
  Panel('client_accuracy_min', 'Clients: worst client ↑', 'Accuracy'),
  Panel(
    'client_accuracy_jain', 'Clients: fairness of accuracy ↑', "Jain's index"
  ),
)
PANELS = (
  Panel('global_accuracy', 'Global model: accuracy ↑', 'Accuracy'),
  Panel('global_f1', 'Global model: macro-F1 ↑', 'Macro-F1'),
  Panel('global_loss', 'Global model: loss ↓', 'Loss (nats)'),
  CLIENT_ACCURACY,
  *_NEW_PANELS,
  Panel('client_f1_median', 'Clients: median F1 ↑', 'Macro-F1'),
  Panel(
    'client_f1_variance', 'Clients: variance of F1 ↓', 'Variance of macro-F1'
  ),
)
# What the plots read: file -> columns.
_FILES = {
  'metrics.csv': [
    'round',
    *(panel.column for panel in PANELS if panel not in _NEW_PANELS),
  ],
  'clients.csv': ['client_id', 'num_train', 'f1'],
}


def check_files(run: str | os.PathLike[str]) -> None:
  """Reads what the plots of this module read.

  Args:
    run: The run directory.

  Raises:
    FileNotFoundError: If the run lacks one of its files.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  for name in _FILES:
    _read_all({'': run}, name)


@plot_parts.plain_text()
def learning_curves(
  runs: Runs, styles: Styles, path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the scores of the global model and of the clients over the rounds.

  Curves skip rounds without evaluation.

  Args:
    runs: The run directory of each label.
    styles: The style of each label.
    path: The PNG file to write.

  Returns:
    The figure that was written: axes per metric, with a line per run.

  Raises:
    FileNotFoundError: If a run has no `metrics.csv`.
    ValueError: If there is no run, or a file is not as `launchers.train`
      writes it.
  """
  frames = _read_all(runs, 'metrics.csv')
  frames = {
    label: frame.reindex(columns=['round', *(p.column for p in PANELS)])
    for label, frame in frames.items()
  }
  rows = math.ceil(len(PANELS) / _MAX_COLUMNS)
  figure = mpl_figure.Figure(figsize=(12, 3 * rows + 1), layout='constrained')
  panels = figure.subplots(rows, _MAX_COLUMNS).flat
  for panel, axes in zip(PANELS, panels, strict=True):
    draw_panel(axes, panel, frames, styles)
  plot_parts.draw_legend(
    figure,
    panels[0].lines,
    'Learning curves (↑ higher is better, ↓ lower is better)',
  )
  figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
  plot_parts.save(figure, path)
  return figure


@plot_parts.plain_text()
def client_f1_distribution(
  runs: Runs, styles: Styles, path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the distribution of the clients' F1 in the last evaluation.

  The shape is the estimated density, each dot is a client, and the bar is the
  median. Clients without test data, which have no F1, and free riders, which
  have no training data, are excluded. The variance is the population variance,
  as in `metrics.csv`.

  Args:
    runs: The run directory of each label.
    styles: The style of each label.
    path: The PNG file to write.

  Returns:
    The figure that was written.

  Raises:
    FileNotFoundError: If a run has no `clients.csv`.
    NoTestDataError: If no client of any run has test data.
    ValueError: If there is no run, or a file is not as `launchers.train`
      writes it.
  """
  frames = _read_all(runs, 'clients.csv')
  scores = {
    label: _finite(frame['f1'][frame['num_train'] > 0])
    for label, frame in frames.items()
  }
  if not any(score.size for score in scores.values()):
    raise NoTestDataError(
      'The distribution of client F1 needs a client with test data, found none'
      f' in clients.csv of {", ".join(map(str, runs.values()))}.'
    )
  figure = _draw_distribution(scores, styles)
  plot_parts.save(figure, path)
  return figure


def write_plots(
  runs: Runs, styles: Styles, plots_dir: str | os.PathLike[str]
) -> list[pathlib.Path]:
  """Writes all plots of this module into one folder.

  Args:
    runs: The run directory of each label.
    styles: The style of each label.
    plots_dir: The folder to write to; made if it is missing.

  Returns:
    The files written. If no client has test data, a warning is logged and the
    distribution is not drawn.

  Raises:
    FileNotFoundError: If a run lacks one of its files.
    ValueError: If there is no run, or a file is not as `launchers.train`
      writes it.
  """
  folder = pathlib.Path(plots_dir)
  folder.mkdir(parents=True, exist_ok=True)
  curves, clients = folder / 'learning_curves.png', folder / 'client_f1.png'
  learning_curves(runs, styles, curves)
  try:
    client_f1_distribution(runs, styles, clients)
  except NoTestDataError as error:
    # Training without test data is legitimate, and has curves.
    logging.warning('%s', error)
    return [curves]
  return [curves, clients]


def draw_panel(
  axes: mpl_axes.Axes,
  panel: Panel,
  frames: Mapping[str, pd.DataFrame],
  styles: Styles,
) -> None:
  """Draws one metric of all runs over the rounds.

  Args:
    axes: Where to draw.
    panel: The metric.
    frames: For each label the columns `round` and that of the panel.
    styles: The style of each label.
  """
  for rank, (label, frame) in enumerate(frames.items()):
    drawn = frame[np.isfinite(frame[panel.column])]
    plot_parts.draw_curve(
      axes,
      drawn['round'],
      drawn[panel.column],
      label,
      styles[label],
      rank,
      len(frames),
    )
  axes.set(title=panel.title, xlabel='Round', ylabel=panel.unit)
  axes.xaxis.set_major_locator(plot_parts.round_locator())
  plot_parts.tidy(axes)
  values = np.concatenate([line.get_ydata() for line in axes.lines])
  if not values.size:
    _say_not_measured(axes)
  elif panel.logarithmic and values.max() > 10 * values.min() > 0:
    axes.set_yscale('log')
    plot_parts.set_log_ticks(axes.yaxis, '{x:g}')


def draw_scores(
  axes: mpl_axes.Axes,
  index: int,
  label: str,
  score: np.ndarray,
  style: method_styles.Style,
) -> collections.PathCollection:
  """Draws the clients of a run: density, dots and median.

  Args:
    axes: Where to draw; the run is at the height `index`.
    index: The index of the run.
    label: The label of the run.
    score: float64 [k], the score of each client, all finite.
    style: The style of the run.

  Returns:
    The dots, whose label is for a legend.
  """
  if score.size:
    _draw_density(axes, index, score, style.color)
    axes.plot(
      [np.median(score)] * 2,
      [index - 0.3, index + 0.3],
      color='black',
      linewidth=2,
      zorder=4,  # Above the dots.
    )
  # Dots at equal heights would hide each other.
  jitter = np.random.default_rng(0).uniform(-0.14, 0.14, score.size)
  return axes.scatter(
    score,
    index + jitter,
    s=22 * style.scale**2,
    zorder=3,
    label=textwrap.fill(describe_scores(label, score), _LINE_WIDTH),
    **plot_parts.dots(style),
  )


def describe_scores(label: str, score: np.ndarray) -> str:
  """Describes in words what `draw_scores` draws.

  Args:
    label: The label of the run.
    score: float64 [k], the score of each client, all finite.

  Returns:
    One line: label, median, variance, number of clients.
  """
  if not score.size:
    return f'{label}: no client with test data'
  clients = '1 client' if score.size == 1 else f'{score.size} clients'
  return (
    f'{label}: median {np.median(score):.3f}, variance {np.var(score):.2g},'
    f' {clients}'
  )


def _read_all(runs: Runs, name: str) -> dict[str, pd.DataFrame]:
  if not runs:
    raise ValueError('At least one run is required, found none.')
  return {
    label: run_files.read_whole(pathlib.Path(directory) / name, _FILES[name])
    for label, directory in runs.items()
  }


def _say_not_measured(axes: mpl_axes.Axes) -> None:
  axes.set(xticks=[], yticks=[])
  axes.text(
    0.5, 0.5, 'not measured', transform=axes.transAxes, ha='center', va='center'
  )


def _draw_distribution(
  scores: Mapping[str, np.ndarray], styles: Styles
) -> mpl_figure.Figure:
  height = 2.4 + 0.95 * len(scores)
  figure = mpl_figure.Figure(figsize=(8, height), layout='constrained')
  axes = figure.subplots()
  dots = [
    draw_scores(axes, index, label, score, styles[label])
    for index, (label, score) in enumerate(scores.items())
  ]
  axes.set(
    title='Macro-F1 of the clients at the last evaluation\n'
    '(dot: a client, bar: their median, shape: their density)',
    xlabel='Macro-F1 on test data',
    yticks=range(len(scores)),
    yticklabels=[textwrap.fill(label, _TICK_WIDTH) for label in scores],
    ylim=(len(scores) - 0.5, -0.5),
  )
  plot_parts.tidy(axes)
  figure.legend(
    dots,
    [x.get_label() for x in dots],
    loc='outside lower center',
    frameon=False,
  )
  return figure


def _draw_density(
  axes: mpl_axes.Axes, index: int, score: np.ndarray, color: str
) -> None:
  bodies = axes.violinplot(
    [score],
    positions=[index],
    widths=0.8,
    orientation='horizontal',
    showextrema=False,
  )['bodies']
  for body in bodies:
    body.set(facecolor=color, alpha=0.25)


def _finite(column: pd.Series) -> np.ndarray:
  values = column.to_numpy(float)
  return values[np.isfinite(values)]
