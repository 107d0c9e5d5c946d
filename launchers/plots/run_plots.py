"""Draws learning curves and client scores of runs.

Runs are an ordered mapping from label to run, and their styles from label to
`method_styles.Style`. Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import math
import os
import textwrap
from typing import NamedTuple

from matplotlib import axes as mpl_axes
from matplotlib import collections
from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair.launchers import frame
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import distances
from tff_fair.launchers.show import words

Runs = Mapping[str, frame.Run]
Styles = Mapping[str, method_styles.Style]
_Path = str | os.PathLike[str]

# Characters that fit next to the axes, and below the axes.
_TICK_WIDTH, _LINE_WIDTH = 26, 92
_MAX_COLUMNS = 3
_DIRECTIONS = '(↑ higher is better, ↓ lower is better)'


class Panel(NamedTuple):
  """A panel of the learning curves.

  Attributes:
    column: Its measure.
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
PANELS = (
  Panel('global_accuracy', 'Global model: accuracy ↑', 'Accuracy'),
  Panel('global_f1', 'Global model: macro-F1 ↑', 'Macro-F1'),
  Panel('global_loss', 'Global model: loss ↓', 'Loss (nats)'),
  CLIENT_ACCURACY,
  Panel('client_accuracy_worst10', 'Clients: worst 10 % ↑', 'Accuracy'),
  Panel('client_accuracy_min', 'Clients: worst client ↑', 'Accuracy'),
  Panel(
    'client_accuracy_jain', 'Clients: fairness of accuracy ↑', "Jain's index"
  ),
  Panel('client_f1_median', 'Clients: median F1 ↑', 'Macro-F1'),
  Panel(
    'client_f1_variance', 'Clients: variance of F1 ↓', 'Variance of macro-F1'
  ),
)
DISTANCES = {
  space: tuple(
    Panel(
      f'{space}_{name}',
      f'{title} between {between} ↓',
      f'{title} ({unit})',
      logarithmic=True,
    )
    for name, (title, unit) in distances.DISTANCES.items()
  )
  for space, between in distances.MODEL_SPACES.items()
}
"""Space of models -> a panel for each of CoRe-Fed's distances."""


@plot_parts.plain_text()
def learning_curves(
  runs: Runs, styles: Styles, path: _Path
) -> mpl_figure.Figure:
  """Draws the scores of the global model and of the clients over the rounds.

  Curves skip rounds without evaluation.
  """
  rows = math.ceil(len(PANELS) / _MAX_COLUMNS)
  figure = mpl_figure.Figure(figsize=(12, 3 * rows + 1), layout='constrained')
  panels = figure.subplots(rows, _MAX_COLUMNS).flat
  for panel, axes in zip(PANELS, panels, strict=True):
    curves = {label: run.curve(panel.column) for label, run in runs.items()}
    draw_panel(axes, panel, curves, styles)
  plot_parts.draw_legend(
    figure, panels[0].lines, f'Learning curves {_DIRECTIONS}'
  )
  figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
  plot_parts.save(figure, path)
  return figure


@plot_parts.plain_text()
def distance_curves(
  runs: Mapping[str, Sequence[frame.Run]],
  styles: Styles,
  space: str,
  path: _Path,
) -> mpl_figure.Figure:
  """Draws the clients' mean accuracy and both distances over the rounds.

  A line is the mean over the runs of a label, and its band the mean plus and
  minus one standard deviation. The line is empty if a run has no distances.

  Args:
    runs: The runs of each label, which differ in their seeds.
    styles: The style of each label.
    space: One of `DISTANCES`.
    path: The PNG file to write.
  """
  shown = [CLIENT_ACCURACY, *DISTANCES[space]]
  tables = {label: _evaluations(of, shown) for label, of in runs.items()}
  figure = mpl_figure.Figure(figsize=(14, 4), layout='constrained')
  all_axes = figure.subplots(1, len(shown))
  for panel, axes in zip(shown, all_axes, strict=True):
    by_round = {
      label: table.groupby(level=0)[panel.column]
      for label, table in tables.items()
    }
    means = {label: groups.mean() for label, groups in by_round.items()}
    draw_panel(axes, panel, means, styles)
    axes.set_title(panel.title, fontsize=11)
    for label, groups in by_round.items():
      mean, sd = means[label], groups.std()
      if sd.notna().any():  # With several runs.
        color = styles[label].color
        axes.fill_between(
          mean.index, mean - sd, mean + sd, color=color, alpha=0.2, linewidth=0
        )
  plot_parts.draw_legend(
    figure, all_axes[0].lines, f'Accuracy and distances {_DIRECTIONS}'
  )
  figure.get_layout_engine().set(wspace=0.05)
  plot_parts.save(figure, path)
  return figure


@plot_parts.plain_text()
def client_f1_distribution(
  runs: Runs, styles: Styles, path: _Path
) -> mpl_figure.Figure | None:
  """Draws the distribution of the clients' F1 in the last evaluation.

  The shape is the estimated density, each dot is a client, and the bar is the
  median. Clients without test data, which have no F1, and free riders, which
  have no training data, are excluded. The variance is the population variance,
  as in `metrics.csv`.

  Args:
    runs: The runs.
    styles: The style of each label.
    path: The PNG file to write.

  Returns:
    The figure that was written; None if no client of any run has test data.
  """
  scores = {label: run.scores('f1') for label, run in runs.items()}
  if not any(score.size for score in scores.values()):
    return None
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
  plot_parts.save(figure, path)
  return figure


def draw_panel(
  axes: mpl_axes.Axes,
  panel: Panel,
  curves: Mapping[str, pd.Series],
  styles: Styles,
) -> None:
  """Draws a metric of all runs, each a series by round."""
  for rank, (label, curve) in enumerate(curves.items()):
    drawn = curve[np.isfinite(curve)]
    plot_parts.draw_curve(
      axes, drawn.index, drawn, label, styles[label], rank, len(curves)
    )
  axes.set(title=panel.title, xlabel='Round', ylabel=panel.unit)
  axes.xaxis.set_major_locator(plot_parts.round_locator())
  plot_parts.tidy(axes)
  values = np.concatenate([line.get_ydata() for line in axes.lines])
  if not values.size:
    axes.set(xticks=[], yticks=[])
    middle = {'ha': 'center', 'va': 'center', 'transform': axes.transAxes}
    axes.text(0.5, 0.5, 'not measured', **middle)
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
    (body,) = axes.violinplot(
      [score],
      positions=[index],
      widths=0.8,
      orientation='horizontal',
      showextrema=False,
    )['bodies']
    body.set(facecolor=style.color, alpha=0.25)
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
  """Describes in words what `draw_scores` draws."""
  if not score.size:
    return f'{label}: no client with test data'
  return (
    f'{label}: median {np.median(score):.3f}, variance {np.var(score):.2g},'
    f' {words.format_count(score.size, "client")}'
  )


def _evaluations(runs, panels) -> pd.DataFrame:
  """The rounds of all runs with all panels; none if a run lacks one of them."""
  curves = [
    pd.DataFrame({p.column: run.curve(p.column) for p in panels}).dropna()
    for run in runs
  ]
  if not all(map(len, curves)):
    curves = [curve.head(0) for curve in curves]
  return pd.concat(curves)
