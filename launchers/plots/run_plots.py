"""Draws learning curves and client scores of runs.

Runs are an ordered mapping from label to run, and their styles from label to
`method_styles.Style`. Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import os
import textwrap
from typing import NamedTuple

from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers import frame
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import distances
from tff_fair.launchers.show import words

Runs = Mapping[str, frame.Run]
Styles = Mapping[str, method_styles.Style]

# Characters that fit next to the axes, and below the axes.
_TICK_WIDTH, _LINE_WIDTH = 26, 92
_MAX_COLUMNS = 3
# More bands would cover each other.
_MAX_BANDS = 4
_COUNT = '{x:,.0f}'
_DIRECTIONS = '(↑ higher is better, ↓ lower is better)'


class Panel(NamedTuple):
  """A measure over the rounds.

  Its vertical axis is logarithmic, if it may be, where values span more than a
  decade.
  """

  column: str
  title: str
  unit: str
  logarithmic: bool = False


CLIENT_ACCURACY = Panel(
  'client_accuracy_mean', 'Clients: mean accuracy ↑', 'Accuracy'
)
PANELS = (
  CLIENT_ACCURACY,
  Panel('client_accuracy_worst10', 'Clients: worst 10 % ↑', 'Accuracy'),
  Panel('client_accuracy_min', 'Clients: worst client ↑', 'Accuracy'),
  Panel(
    'client_accuracy_jain', 'Clients: fairness of accuracy ↑', "Jain's index"
  ),
  Panel(
    'client_accuracy_variance',
    'Clients: variance of accuracy ↓',
    'Variance of accuracy',
  ),
  Panel('global_accuracy', 'Global model: accuracy ↑', 'Accuracy'),
  Panel('global_f1', 'Global model: macro-F1 ↑', 'Macro-F1'),
  Panel('global_loss', 'Global model: loss ↓', 'Loss (nats)'),
  Panel('client_f1_median', 'Clients: median F1 ↑', 'Macro-F1'),
  Panel(
    'client_f1_variance', 'Clients: variance of F1 ↓', 'Variance of macro-F1'
  ),
  Panel('train_loss', 'Clients: training loss ↓', 'Loss (nats)'),
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


def find_styles(runs: Runs) -> Styles:
  """Finds the style of each run, the same in all figures."""
  found = method_styles.of_runs([run.algorithm for run in runs.values()])
  return dict(zip(runs, found, strict=True))


@plot_parts.plain_text()
def learning_curves(runs: Runs, styles: Styles) -> mpl_figure.Figure | None:
  """Draws what at least one run has measured over the rounds.

  Curves skip rounds without evaluation. A band around the mean accuracy holds
  the middle half of the clients.
  """
  # Of few clients the worst 10 % are the worst client.
  sizes = [run.scores('accuracy').size for run in runs.values()]
  few = max(map(fairness.worst_count, sizes)) <= 1
  drawn = [
    panel
    for panel in PANELS
    if any(np.isfinite(r.curve(panel.column)).any() for r in runs.values())
    and not (few and panel.column == 'client_accuracy_worst10')
  ]
  if not drawn:
    return None
  figure, panels = plot_parts.make_panels(len(drawn), _MAX_COLUMNS)
  for panel, axes in zip(drawn, panels, strict=True):
    curves = {label: run.curve(panel.column) for label, run in runs.items()}
    _draw_panel(axes, panel, curves, styles)
  if CLIENT_ACCURACY in drawn and len(runs) <= _MAX_BANDS:
    for label, run in runs.items():
      low, high = (
        run.curve(f'client_accuracy_{end}') for end in ('low', 'high')
      )
      _fill(panels[0], low, high, styles[label])
  plot_parts.draw_legend(
    figure, panels[0].lines, f'Learning curves {_DIRECTIONS}'
  )
  return figure


@plot_parts.plain_text()
def distance_curves(
  runs: Mapping[str, Sequence[frame.Run]],
  styles: Styles,
  space: str,
  path: str | os.PathLike[str] | None = None,
) -> mpl_figure.Figure:
  """Draws the clients' mean accuracy and the distances of a space of models.

  A line is the mean over the runs of a label, which differ in their seeds, and
  its band the mean plus and minus one standard deviation. The line is empty if
  a run has no distances.
  """
  shown = [CLIENT_ACCURACY, *DISTANCES[space]]
  tables = {label: _evaluations(of, shown) for label, of in runs.items()}
  figure, panels = plot_parts.make_panels(len(shown), len(shown))
  for panel, axes in zip(shown, panels, strict=True):
    by_round = {
      label: table.groupby(level=0)[panel.column]
      for label, table in tables.items()
    }
    means = {label: groups.mean() for label, groups in by_round.items()}
    _draw_panel(axes, panel, means, styles)
    for label, groups in by_round.items():
      mean, sd = means[label], groups.std()
      if sd.notna().any():  # With several runs.
        _fill(axes, mean - sd, mean + sd, styles[label])
  plot_parts.draw_legend(
    figure, panels[0].lines, f'Accuracy and distances {_DIRECTIONS}'
  )
  plot_parts.save(figure, path)
  return figure


@plot_parts.plain_text()
def client_scores(
  runs: Runs, styles: Styles, score: str
) -> mpl_figure.Figure | None:
  """Draws the distribution of the clients' accuracy, or F1, at the end.

  The shape is the estimated density, each dot is a client, and the bar is the
  median. Clients without test data, which have no score, and free riders, which
  have no training data, are excluded. The variance is the population variance,
  as in `metrics.csv`. Nothing is drawn if no client has test data.
  """
  scores = {label: run.scores(score) for label, run in runs.items()}
  if not any(values.size for values in scores.values()):
    return None
  name = {'accuracy': 'Accuracy', 'f1': 'Macro-F1'}[score]
  height = 2.4 + 0.95 * len(scores)
  figure = mpl_figure.Figure(figsize=(8, height), layout='constrained')
  axes = figure.subplots()
  dots = [
    _draw_scores(axes, index, label, values, styles[label])
    for index, (label, values) in enumerate(scores.items())
  ]
  axes.set(
    title=f'{name} of the clients at the last evaluation\n'
    '(dot: a client, bar: their median, shape: their density)',
    xlabel=f'{name} on test data',
    yticks=range(len(scores)),
    yticklabels=[textwrap.fill(label, _TICK_WIDTH) for label in scores],
    ylim=(len(scores) - 0.5, -0.5),
  )
  plot_parts.tidy(axes)
  figure.legend(handles=dots, loc='outside lower center', frameon=False)
  return figure


@plot_parts.plain_text()
def accuracy_by_amount(runs: Runs, styles: Styles) -> mpl_figure.Figure | None:
  """Draws accuracies by the amount of data; nothing if all have the same."""
  amounts = pd.concat([run.honest['num_train'] for run in runs.values()])
  if amounts.nunique() < 2:
    return None
  figure = mpl_figure.Figure(figsize=(8, 4.2), layout='constrained')
  axes = figure.subplots()
  for label, run in runs.items():
    x, y = run.honest['num_train'], run.honest['accuracy']
    axes.scatter(
      x, y, s=20, alpha=0.8, label=label, **plot_parts.dots(styles[label])
    )
  axes.set(
    title='Accuracy by amount of data (dot: a client)',
    xlabel='Training examples of the client',
    ylabel='Accuracy on test data',
  )
  plot_parts.tidy(axes)
  if amounts.max() > 10 * amounts.min():
    axes.set_xscale('log')
    plot_parts.set_log_ticks(axes.xaxis, _COUNT)
  axes.xaxis.set_major_formatter(_COUNT)
  figure.legend(loc='outside lower center', frameon=False)
  return figure


def _draw_panel(axes, panel, curves, styles) -> None:
  """Draws a metric of all runs, each a series by round."""
  for rank, (label, curve) in enumerate(curves.items()):
    drawn = curve[np.isfinite(curve)]
    plot_parts.draw_curve(
      axes, drawn.index, drawn, label, styles[label], rank, len(curves)
    )
  plot_parts.mark_rounds(axes)
  axes.set(ylabel=panel.unit)
  axes.set_title(panel.title, fontsize=11)
  plot_parts.tidy(axes)
  values = np.concatenate([line.get_ydata() for line in axes.lines])
  is_wide = values.size and values.max() > 10 * values.min() > 0
  if panel.logarithmic and is_wide:
    axes.set_yscale('log')
    plot_parts.set_log_ticks(axes.yaxis, '{x:g}')


def _fill(axes, low, high, style) -> None:
  axes.fill_between(
    low.index, low, high, color=style.color, alpha=0.2, linewidth=0
  )


def _draw_scores(axes, index, label, score, style):
  """Draws the clients of a run in a row; returns the dots, with a label."""
  told = f'{label}: no client with test data'
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
    told = (
      f'{label}: median {np.median(score):.3f}, variance {np.var(score):.2g},'
      f' {words.format_count(score.size, "client")}'
    )
  # Dots at equal heights would hide each other.
  jitter = np.random.default_rng(0).uniform(-0.14, 0.14, score.size)
  return axes.scatter(
    score,
    index + jitter,
    s=22 * style.scale**2,
    zorder=3,
    label=textwrap.fill(told, _LINE_WIDTH),
    **plot_parts.dots(style),
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
