"""The figures of a report that compare runs.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers.pages import report_keys
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.pages import report_svg
from tff_fair.launchers.plots import distance_plots
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import distances

# In inches: what each run needs, and what the axis needs.
_ROW_HEIGHT, _SHORT_ROW_HEIGHT, _AXIS_HEIGHT = 0.85, 0.55, 0.7
# More bands would cover each other.
_MAX_BANDS = 4
# Characters of a label that fit above a row.
_LABEL_WIDTH = 44
_COUNT = '{x:,.0f}'

_MORE_PANELS = (
  run_plots.Panel(
    'client_accuracy_variance',
    'Clients: variance of accuracy ↓',
    'Variance of accuracy',
  ),
  run_plots.Panel('train_loss', 'Clients: training loss ↓', 'Loss (nats)'),
)
_SCORES = {
  'accuracy': ('Accuracy of the clients', 'Accuracy on test data'),
  'f1': ('Macro-F1 of the clients', 'Macro-F1 on test data'),
}


def overview(runs: Sequence[report_runs.Run]) -> list[report_svg.Figure]:
  """The answer in one picture: how far the clients of each run lie apart.

  Args:
    runs: The runs.

  Returns:
    One figure; none if no run has scores.
  """
  scored = [run for run in runs if run.scores('accuracy').size]
  if not scored:
    return []
  styles = report_keys.styles(runs)

  def draw(axes):
    for index, run in enumerate(scored):
      _draw_range(axes, index, run.scores('accuracy'), styles[run.label])
      _draw_label(axes, index - 0.32, run)
    axes.set(xlabel='Accuracy', yticks=[], ylim=(len(scored) - 0.6, -0.75))
    plot_parts.tidy(axes)
    axes.spines['left'].set_visible(False)

  return [
    report_svg.draw_figure(
      'overview',
      'Accuracy of the clients',
      'Bar: worst client; marker: mean; thick line: middle half; end of the'
      ' thin line: best client.',
      f'(worst, mean, best). {"; ".join(map(_range_in_words, scored))}',
      draw,
      height=_AXIS_HEIGHT + _SHORT_ROW_HEIGHT * len(scored),
    )
  ]


def curves(runs: Sequence[report_runs.Run]) -> list[report_svg.Figure]:
  """The metrics of the runs over the rounds.

  Args:
    runs: The runs.

  Returns:
    A figure per metric that at least one run has.
  """
  panels = [*run_plots.PANELS, *_MORE_PANELS]
  for space in distances.MODEL_SPACES:
    panels += distance_plots.panels(space)
  # Of few clients the worst 10 % are the worst client.
  sizes = [run.scores('accuracy').size for run in runs]
  if max(map(fairness.worst_count, sizes)) <= 1:
    panels = [p for p in panels if p.column != 'client_accuracy_worst10']
  # What the clients have comes first.
  panels.sort(key=lambda panel: not panel.column.startswith('client_accuracy'))
  return [
    _curve(runs, panel)
    for panel in panels
    if any(_points(run, panel.column).size for run in runs)
  ]


def distributions(runs: Sequence[report_runs.Run]) -> list[report_svg.Figure]:
  """The distributions of the clients' last scores.

  Args:
    runs: The runs.

  Returns:
    A figure per score that at least one run has; and the accuracy by the amount
    of data, if this amount varies.
  """
  figures = [
    _distribution(runs, name)
    for name in _SCORES
    if any(run.scores(name).size for run in runs)
  ]
  amounts = pd.concat([run.honest['num_train'] for run in runs])
  if figures and amounts.nunique() > 1:
    figures.append(_by_amount(runs, amounts))
  return figures


def _curve(runs, panel) -> report_svg.Figure:
  styles = report_keys.styles(runs)
  frames = {
    run.label: run.metrics.reindex(columns=['round', panel.column])
    for run in runs
  }
  banded = panel is run_plots.CLIENT_ACCURACY and len(runs) <= _MAX_BANDS

  def draw(axes):
    run_plots.draw_panel(axes, panel, frames, styles)
    if banded:
      for run in runs:
        _draw_band(axes, run, styles[run.label])

  ends = [_end(run, panel.column) for run in runs]
  return report_svg.draw_figure(
    f'curve-{panel.column.replace("_", "-")}',
    panel.title,
    'The band holds the middle half of the clients.' if banded else '',
    f'over the rounds. {"; ".join(ends)}',
    draw,
  )


def _draw_range(axes, height, scores, style) -> None:
  low, lower, upper, high = np.quantile(scores, (0, 0.25, 0.75, 1))
  axes.plot([low, high], [height] * 2, color=style.color, lw=1.5)
  axes.plot(
    [lower, upper],
    [height] * 2,
    color=style.color,
    lw=7,
    alpha=0.35,
    solid_capstyle='butt',
  )
  axes.plot(low, height, marker='|', ms=15, mew=3, color=style.color)
  axes.plot(
    scores.mean(),
    height,
    marker=style.marker,
    ms=9 * style.scale,
    color=style.color,
    markerfacecolor='white' if style.hollow else style.color,
  )


def _range_in_words(run) -> str:
  scores = run.scores('accuracy')
  low, mean, high = scores.min(), scores.mean(), scores.max()
  return f'{run.label}: {low:.3f}, {mean:.3f}, {high:.3f}'


def _draw_label(axes, height, run) -> None:
  """Writes the label of a run above its row."""
  axes.text(
    0,
    height,
    _shortened(run.label),
    transform=axes.get_yaxis_transform(),
    fontsize=report_svg.FONT_SIZE - 1,
  )


def _points(run, column) -> np.ndarray:
  if column not in run.metrics:
    return np.empty(0)
  values = run.metrics[column].to_numpy(float)
  return values[np.isfinite(values)]


def _end(run, column) -> str:
  """The last value of a curve in words."""
  values = _points(run, column)
  last = f'{values[-1]:.4g} at the end' if values.size else 'not measured'
  return f'{run.label}: {last}'


def _draw_band(axes, run, style) -> None:
  drawn = run.metrics.dropna(subset=['client_accuracy_low'])
  axes.fill_between(
    drawn['round'],
    drawn['client_accuracy_low'],
    drawn['client_accuracy_high'],
    color=style.color,
    alpha=0.18,
    linewidth=0,
  )


def _distribution(runs, name) -> report_svg.Figure:
  title, unit = _SCORES[name]
  styles = report_keys.styles(runs)

  def draw(axes):
    for index, run in enumerate(runs):
      score, style = run.scores(name), styles[run.label]
      run_plots.draw_scores(axes, index, run.label, score, style)
      _draw_label(axes, index - 0.42, run)
    axes.set(xlabel=unit, yticks=[], ylim=(len(runs) - 0.5, -0.65))
    plot_parts.tidy(axes)
    axes.spines['left'].set_visible(False)

  descriptions = [
    run_plots.describe_scores(run.label, run.scores(name)) for run in runs
  ]
  return report_svg.draw_figure(
    f'clients-{name}',
    title,
    'A dot is a client, the bar their median, the shape their density.',
    f'after the last evaluation. {"; ".join(descriptions)}',
    draw,
    height=_AXIS_HEIGHT + _ROW_HEIGHT * len(runs),
  )


def _shortened(label) -> str:
  if len(label) <= _LABEL_WIDTH:
    return label
  return '…' + label[1 - _LABEL_WIDTH :]


def _by_amount(runs, amounts) -> report_svg.Figure:
  styles = report_keys.styles(runs)

  def draw(axes):
    for run in runs:
      axes.scatter(
        run.honest['num_train'],
        run.honest['accuracy'],
        s=20,
        alpha=0.8,
        **plot_parts.dots(styles[run.label]),
      )
    axes.set(
      xlabel='Training examples of the client',
      ylabel='Accuracy',
    )
    plot_parts.tidy(axes)
    if amounts.max() > 10 * amounts.min():
      axes.set_xscale('log')
      plot_parts.set_log_ticks(axes.xaxis, _COUNT)
    axes.xaxis.set_major_formatter(_COUNT)

  return report_svg.draw_figure(
    'clients-amount',
    'Accuracy by amount of data',
    'A dot is a client: do clients with little data have lower scores?',
    f'after the last evaluation, of {", ".join(run.label for run in runs)}',
    draw,
  )
