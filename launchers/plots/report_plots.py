"""The figures of a report on runs.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
import math

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers import frame
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.plots import svg

# In inches: what each run needs, and what the axis needs.
_ROW_HEIGHT, _SHORT_ROW_HEIGHT, _AXIS_HEIGHT = 0.85, 0.55, 0.7
# More bands would cover each other, and more points cannot be told apart.
_MAX_BANDS, _MAX_POINTS = 4, 80
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
# Columns of reports.csv about single clients: title and unit, if there is one.
_OF_CLIENTS = {
  'reputation': ('Reputation', 'Fraction of all'),
  'contribution': ('Contribution', 'Cosine'),
  'share': ('Share of the aggregate that is returned', 'Fraction'),
  'validation_accuracy': ('Accuracy on the validation data', 'Fraction'),
  'divergence': ('Divergence of the losses', 'Nats'),
  'num_allocated': ('Entries of the aggregate allocated', ''),
  'alpha': ('Alpha, the weight of the upload', ''),
  'weight': ('Weight of the client', ''),
  'gamma': ('Gamma of the focal loss', ''),
  'error_before': ('Error of the received model', 'Fraction'),
  'error_after': ('Error after local training', 'Fraction'),
  'frequency': ('Frequency of participation', 'Fraction'),
  'alignment': ('Alignment with the mean embedding', ''),
  'correct_share': ('Examples that teach the global model', 'Fraction'),
  'num_neurons': ('Neurons trained', ''),
  'fisher_trace': ('Trace of the Fisher information', ''),
  'loss_before': ('Loss of the received model', 'Nats'),
  'loss': ('Training loss', 'Nats'),
  'up_loss': ('Training loss of the phase up', 'Nats'),
  'personal_loss': ('Training loss of the personal model', 'Nats'),
  'alignment_loss': ('Training loss of the alignment', 'Nats'),
}

Runs = Sequence[frame.Run]


def find_styles(runs: Runs) -> dict[str, method_styles.Style]:
  """Finds the style of each run by its label, the same in all figures."""
  found = method_styles.of_runs([run.algorithm for run in runs])
  return {run.label: style for run, style in zip(runs, found, strict=True)}


def draw_overview(runs: Runs) -> list[svg.Figure]:
  """Draws how far the clients of each run lie apart; nothing without scores."""
  scored = [run for run in runs if run.scores('accuracy').size]
  if not scored:
    return []
  styles = find_styles(runs)
  scores = [run.scores('accuracy') for run in scored]
  told = [
    f'{run.label}: {s.min():.3f}, {s.mean():.3f}, {s.max():.3f}'
    for run, s in zip(scored, scores, strict=True)
  ]

  def draw(axes):
    for index, run in enumerate(scored):
      _draw_range(axes, index, scores[index], styles[run.label])
      _draw_label(axes, index - 0.32, run)
    axes.set(xlabel='Accuracy', yticks=[], ylim=(len(scored) - 0.6, -0.75))
    plot_parts.tidy(axes)
    axes.spines['left'].set_visible(False)

  return [
    svg.draw(
      'overview',
      'Accuracy of the clients',
      'Bar: worst client; marker: mean; thick line: middle half; end of the'
      ' thin line: best client.',
      f'(worst, mean, best). {"; ".join(told)}',
      draw,
      height=_AXIS_HEIGHT + _SHORT_ROW_HEIGHT * len(scored),
    )
  ]


def draw_curves(runs: Runs) -> list[svg.Figure]:
  """Draws each metric that at least one run has over the rounds."""
  panels = [*run_plots.PANELS, *_MORE_PANELS]
  panels += [p for space in run_plots.DISTANCES.values() for p in space]
  # Of few clients the worst 10 % are the worst client.
  sizes = [run.scores('accuracy').size for run in runs]
  if max(map(fairness.worst_count, sizes)) <= 1:
    panels = [p for p in panels if p.column != 'client_accuracy_worst10']
  # What the clients have comes first.
  panels.sort(key=lambda panel: not panel.column.startswith('client_accuracy'))
  return [
    _draw_curve(runs, panel)
    for panel in panels
    if any(np.isfinite(run.curve(panel.column)).any() for run in runs)
  ]


def draw_distributions(runs: Runs) -> list[svg.Figure]:
  """Draws the clients' last scores, and by the amount of data if it varies."""
  figures = [
    _draw_distribution(runs, name)
    for name in _SCORES
    if any(run.scores(name).size for run in runs)
  ]
  amounts = pd.concat([run.honest['num_train'] for run in runs])
  if figures and amounts.nunique() > 1:
    figures.append(_draw_by_amount(runs, amounts))
  return figures


def draw_reports(
  run: frame.Run, prefix: str
) -> tuple[list[svg.Figure], list[svg.Key]]:
  """Draws what the method reports of single clients over the rounds.

  Args:
    run: The run.
    prefix: The start of the ids of these figures, unique in the page.

  Returns:
    A figure per quantity, and the line of each client; no lines if there are so
    many clients that the figures have bands.
  """
  reports = run.reports
  names = [
    name
    for name in _OF_CLIENTS
    if name in reports and np.isfinite(reports[name]).any()
  ]
  clients = client_plots.describe_clients(run)
  clients = clients[clients['client_id'].isin(reports['client_id'])]
  as_lines = len(clients) <= client_plots.MAX_LINES
  draw = _draw_lines if as_lines else _draw_bands
  figures = [
    draw(run, clients, name, f'{prefix}-{name.replace("_", "-")}')
    for name in names
  ]
  keys = [
    svg.make_key(row.label, method_styles.Style(**row.style))
    for row in clients.itertuples()
  ]
  return figures, keys if figures and as_lines else []


def _draw_curve(runs, panel) -> svg.Figure:
  styles = find_styles(runs)
  curves = {run.label: run.curve(panel.column) for run in runs}
  banded = panel is run_plots.CLIENT_ACCURACY and len(runs) <= _MAX_BANDS

  def draw(axes):
    run_plots.draw_panel(axes, panel, curves, styles)
    for run in runs if banded else ():
      low, high = (
        run.curve(f'client_accuracy_{end}') for end in ('low', 'high')
      )
      color = styles[run.label].color
      axes.fill_between(
        low.index, low, high, color=color, alpha=0.18, linewidth=0
      )

  ends = []
  for label, curve in curves.items():
    known = curve[np.isfinite(curve)]
    last = f'{known.iloc[-1]:.4g} at the end' if len(known) else 'not measured'
    ends.append(f'{label}: {last}')
  return svg.draw(
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


def _draw_label(axes, height, run) -> None:
  """Writes the label of a run above its row, at least its end."""
  label = run.label
  if len(label) > _LABEL_WIDTH:
    label = '…' + label[1 - _LABEL_WIDTH :]
  axes.text(
    0,
    height,
    label,
    transform=axes.get_yaxis_transform(),
    fontsize=svg.FONT_SIZE - 1,
  )


def _draw_distribution(runs, name) -> svg.Figure:
  title, unit = _SCORES[name]
  styles = find_styles(runs)

  def draw(axes):
    for index, run in enumerate(runs):
      score, style = run.scores(name), styles[run.label]
      run_plots.draw_scores(axes, index, run.label, score, style)
      _draw_label(axes, index - 0.42, run)
    axes.set(xlabel=unit, yticks=[], ylim=(len(runs) - 0.5, -0.65))
    plot_parts.tidy(axes)
    axes.spines['left'].set_visible(False)

  told = [
    run_plots.describe_scores(run.label, run.scores(name)) for run in runs
  ]
  return svg.draw(
    f'clients-{name}',
    title,
    'A dot is a client, the bar their median, the shape their density.',
    f'after the last evaluation. {"; ".join(told)}',
    draw,
    height=_AXIS_HEIGHT + _ROW_HEIGHT * len(runs),
  )


def _draw_by_amount(runs, amounts) -> svg.Figure:
  styles = find_styles(runs)

  def draw(axes):
    for run in runs:
      axes.scatter(
        run.honest['num_train'],
        run.honest['accuracy'],
        s=20,
        alpha=0.8,
        **plot_parts.dots(styles[run.label]),
      )
    axes.set(xlabel='Training examples of the client', ylabel='Accuracy')
    plot_parts.tidy(axes)
    if amounts.max() > 10 * amounts.min():
      axes.set_xscale('log')
      plot_parts.set_log_ticks(axes.xaxis, _COUNT)
    axes.xaxis.set_major_formatter(_COUNT)

  return svg.draw(
    'clients-amount',
    'Accuracy by amount of data',
    'A dot is a client: do clients with little data have lower scores?',
    f'after the last evaluation, of {", ".join(run.label for run in runs)}',
    draw,
  )


def _draw_lines(run, clients, name, figure_id) -> svg.Figure:
  title, unit = _OF_CLIENTS[name]
  notes = []

  def draw(axes):
    if name != 'reputation':
      client_plots.draw_lines(axes, clients, run.reports, name)
    elif client_plots.draw_reputations(axes, clients, run):
      notes.append(
        'Dotted: the threshold; a cross: the server isolates the client.'
      )
    axes.set(xlabel='Round', ylabel=unit)

  words = f'of each of {len(clients)} clients over the rounds'
  figure = svg.draw(figure_id, title, '', words, draw)
  return figure._replace(note=' '.join(notes))


def _draw_bands(run, clients, name, figure_id) -> svg.Figure:
  title, unit = _OF_CLIENTS[name]
  rounds, values = run.reports['round'], run.reports[name]
  width = math.ceil(rounds.nunique() / _MAX_POINTS)
  by_point = values.groupby(rounds - (rounds - 1) % width)
  low, lower, middle, upper, high = [
    by_point.quantile(q) for q in (0, 0.25, 0.5, 0.75, 1)
  ]
  end = values[rounds == rounds.max()].median()
  color = find_styles([run])[run.label].color

  def draw(axes):
    for ends, alpha in (((low, high), 0.15), ((lower, upper), 0.3)):
      axes.fill_between(low.index, *ends, alpha=alpha, color=color, linewidth=0)
    marker = 'o' if len(middle) == 1 else None
    axes.plot(middle.index, middle, color=color, marker=marker)
    axes.set(xlabel='Round', ylabel=unit)
    axes.xaxis.set_major_locator(plot_parts.round_locator())
    plot_parts.tidy(axes)

  note = 'Line: the median client. Bands: the middle half, and all.'
  if width > 1:
    note += f' A point holds {width} rounds.'
  return svg.draw(
    figure_id,
    title,
    note,
    f'of {len(clients)} clients over the rounds; the median is {end:.4g} at the'
    ' end',
    draw,
  )
