"""The figures of a report, as SVG inside a page.

Nothing here imports TensorFlow.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import io
from xml.etree import ElementTree

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import colors
from matplotlib import figure as mpl_figure
from matplotlib import ticker
import numpy as np
import pandas as pd

from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import distance_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import distances

# In inches of 72 units; on a phone a unit is about a point.
_WIDTH, _HEIGHT, _ROW_HEIGHT = 4.7, 3.1, 0.85
_FONT_SIZE = 11
# More bands would cover each other.
_MAX_BANDS = 4
# More lines than colours cannot be told apart.
_MAX_LINES = 10
# Characters of a label that fit above a row.
_LABEL_WIDTH = 44
_DASHES = {'-': 'none', '--': '7 3', ':': '2 2', '-.': '7 2 2 2'}

_WORST_ACCURACY = run_plots.Panel(
  'client_accuracy_min', 'Clients: worst accuracy ↑', 'Accuracy (fraction)'
)
_MORE_PANELS = (
  run_plots.Panel(
    'client_accuracy_variance',
    'Clients: variance of accuracy ↓',
    'Variance (fraction²)',
  ),
  run_plots.Panel('train_loss', 'Clients: training loss ↓', 'Loss (nats)'),
)
_SCORES = {
  'accuracy': ('Accuracy of the clients', 'Accuracy on test data (fraction)'),
  'f1': ('Macro-F1 of the clients', 'Macro-F1 on test data (fraction)'),
}

# Columns of reports.csv about single clients: title and unit.
_OF_CLIENTS = {
  'reputation': ('Reputation', 'Fraction of all'),
  'contribution': ('Contribution', 'Cosine'),
  'share': ('Share of the aggregate that is returned', 'Fraction'),
  'validation_accuracy': ('Accuracy on the validation data', 'Fraction'),
  'divergence': ('Divergence of the losses', 'Nats'),
  'num_allocated': ('Entries of the aggregate allocated', 'Count'),
  'alpha': ('Alpha, the weight of the upload', 'Coefficient'),
  'weight': ('Weight of the client', 'Number'),
  'gamma': ('Gamma of the focal loss', 'Exponent'),
  'error_before': ('Error of the received model', 'Fraction'),
  'error_after': ('Error after local training', 'Fraction'),
  'frequency': ('Frequency of participation', 'Fraction'),
  'alignment': ('Alignment with the mean embedding', 'Number'),
  'correct_share': ('Examples that teach the global model', 'Fraction'),
  'num_neurons': ('Neurons trained', 'Count'),
  'fisher_trace': ('Trace of the Fisher information', 'Number'),
  'loss_before': ('Loss of the received model', 'Nats'),
  'loss': ('Training loss', 'Nats'),
  'up_loss': ('Training loss of the phase up', 'Nats'),
  'personal_loss': ('Training loss of the personal model', 'Nats'),
  'alignment_loss': ('Training loss of the alignment', 'Nats'),
}


@dataclasses.dataclass(frozen=True)
class Figure:
  """A figure of a page.

  Attributes:
    title: Its title.
    note: How to read it; may be empty.
    svg: An `svg` element with a text alternative, safe to put into a page; its
      ids are unique in the page.
  """

  title: str
  note: str
  svg: str


@dataclasses.dataclass(frozen=True)
class Key:
  """A legend entry: the colour and the dashes of a line."""

  label: str
  color: str
  dashes: str


def legend(runs: Sequence[report_runs.Run]) -> list[Key]:
  """The line style of each run, the same in all figures that compare runs.

  Args:
    runs: The runs.

  Returns:
    A key per run.
  """
  return [
    _key(label, style._asdict()) for label, style in _styles(runs).items()
  ]


def curves(runs: Sequence[report_runs.Run]) -> list[Figure]:
  """The metrics of the runs over the rounds.

  Args:
    runs: The runs.

  Returns:
    A figure per metric that at least one run has.
  """
  first, *others = run_plots.PANELS
  panels = [first, run_plots.CLIENT_ACCURACY, _WORST_ACCURACY, *others]
  panels += _MORE_PANELS
  for space in distances.MODEL_SPACES:
    panels += distance_plots.panels(space)
  return [
    _curve(runs, panel)
    for panel in panels
    if any(_points(run, panel.column).size for run in runs)
  ]


def distributions(runs: Sequence[report_runs.Run]) -> list[Figure]:
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


def of_clients(
  run: report_runs.Run, prefix: str
) -> tuple[list[Figure], list[Key]]:
  """The method's reports of single clients over the rounds.

  Args:
    run: The run.
    prefix: The start of the ids of these figures, unique in the page.

  Returns:
    A figure per quantity, and the line of each client; no lines if there are so
    many clients that the figures have bands.
  """
  names = [
    name
    for name in _OF_CLIENTS
    if name in run.reports and np.isfinite(run.reports[name]).any()
  ]
  clients = _described(run)
  as_lines = len(clients) <= _MAX_LINES
  draw = _client_lines if as_lines else _client_bands
  figures = [
    draw(run, clients, name, f'{prefix}-{name.replace("_", "-")}')
    for name in names
  ]
  keys = [_key(row.label, row.style) for row in clients.itertuples()]
  return figures, keys if figures and as_lines else []


def _styles(runs) -> dict[str, method_styles.Style]:
  """The style of each run, by its label."""
  styles = method_styles.of_runs([run.algorithm for run in runs])
  return {run.label: style for run, style in zip(runs, styles, strict=True)}


def _curve(runs, panel) -> Figure:
  styles = _styles(runs)
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
  return _figure(
    f'curve-{panel.column.replace("_", "-")}',
    panel.title,
    'The band holds the middle half of the clients.' if banded else '',
    f'over the rounds. {"; ".join(ends)}',
    draw,
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


def _distribution(runs, name) -> Figure:
  title, unit = _SCORES[name]
  styles = _styles(runs)

  def draw(axes):
    for index, run in enumerate(runs):
      score, style = run.scores(name), styles[run.label]
      run_plots.draw_scores(axes, index, run.label, score, style)
      axes.text(
        0,
        index - 0.42,
        _shortened(run.label),
        transform=axes.get_yaxis_transform(),
        fontsize=_FONT_SIZE - 1,
      )
    axes.set(xlabel=unit, yticks=[], ylim=(len(runs) - 0.5, -0.65))
    plot_parts.tidy(axes)
    axes.spines['left'].set_visible(False)

  descriptions = [
    run_plots.describe_scores(run.label, run.scores(name)) for run in runs
  ]
  return _figure(
    f'clients-{name}',
    title,
    'A dot is a client, the bar their median, the shape their density.',
    f'after the last evaluation. {"; ".join(descriptions)}',
    draw,
    height=0.7 + _ROW_HEIGHT * len(runs),
  )


def _shortened(label) -> str:
  if len(label) <= _LABEL_WIDTH:
    return label
  return '…' + label[1 - _LABEL_WIDTH :]


def _by_amount(runs, amounts) -> Figure:
  styles = _styles(runs)

  def draw(axes):
    for run in runs:
      axes.scatter(
        run.honest['num_train'],
        run.honest['accuracy'],
        s=20,
        color=styles[run.label].color,
        marker=styles[run.label].marker,
        edgecolors='white',
        linewidths=0.4,
        alpha=0.8,
      )
    axes.set(
      xlabel='Training examples of the client (count)',
      ylabel='Accuracy (fraction)',
    )
    plot_parts.tidy(axes)
    if amounts.max() > 10 * amounts.min():
      axes.set_xscale('log')
      axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
      axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.xaxis.set_major_formatter('{x:,.0f}')

  return _figure(
    'clients-amount',
    'Accuracy by amount of data',
    'A dot is a client: do clients with little data have lower scores?',
    f'after the last evaluation, of {", ".join(run.label for run in runs)}',
    draw,
  )


def _described(run) -> pd.DataFrame:
  """The clients in the method's reports, with their line styles."""
  known = run.clients[run.clients['client_id'].isin(run.reports['client_id'])]
  return client_plots.describe_clients(known.astype({'num_train': int}))


def _client_lines(run, clients, name, figure_id) -> Figure:
  title, unit = _OF_CLIENTS[name]
  isolates = (
    name == 'reputation'
    and 'reputable' in run.reports
    and 'aggregator_threshold' in run.metrics
  )

  def draw(axes):
    if isolates:
      client_plots.draw_isolation(axes, clients, run.reports, run.metrics)
    else:
      client_plots.draw_lines(axes, clients, run.reports, name)
    axes.set(xlabel='Round (count)', ylabel=unit)

  note = ''
  if isolates:
    note = 'Dotted: the threshold; a cross: the server isolates the client.'
  return _figure(
    figure_id,
    title,
    note,
    f'of each of {len(clients)} clients over the rounds',
    draw,
  )


def _client_bands(run, clients, name, figure_id) -> Figure:
  title, unit = _OF_CLIENTS[name]
  by_round = run.reports.groupby('round')[name]
  levels = [by_round.quantile(q) for q in (0, 0.25, 0.5, 0.75, 1)]
  color = plot_parts.style(0)['color']

  def draw(axes):
    low, lower, middle, upper, high = levels
    band = dict(color=color, linewidth=0)
    axes.fill_between(low.index, low, high, alpha=0.15, **band)
    axes.fill_between(low.index, lower, upper, alpha=0.3, **band)
    axes.plot(
      middle.index, middle, color=color, marker=plot_parts.marker(len(middle))
    )
    axes.set(xlabel='Round (count)', ylabel=unit)
    axes.xaxis.set_major_locator(plot_parts.round_locator())
    plot_parts.tidy(axes)

  return _figure(
    figure_id,
    title,
    'Line: the median client. Bands: the middle half, and all.',
    f'of {len(clients)} clients over the rounds; the median is'
    f' {levels[2].iloc[-1]:.4g} at the end',
    draw,
  )


def _figure(
  figure_id: str,
  title: str,
  note: str,
  words: str,
  draw: Callable[[mpl_axes.Axes], None],
  height: float = _HEIGHT,
) -> Figure:
  """Draws a figure with a single axes; the page shows the title.

  Args:
    figure_id: The start of its ids.
    title: Its title.
    note: How to read it.
    words: The text alternative after the title.
    draw: Draws into the axes.
    height: In inches.

  Returns:
    The figure.
  """
  style = {
    'font.size': _FONT_SIZE,
    # Text that can be searched, in the colour of the page.
    'svg.fonttype': 'none',
    'svg.hashsalt': figure_id,
  }
  with matplotlib.rc_context(style), plot_parts.plain_text():
    figure = mpl_figure.Figure(figsize=(_WIDTH, height), layout='constrained')
    axes = figure.subplots()
    draw(axes)
    axes.set_title('')
    file = io.StringIO()
    figure.savefig(file, format='svg', transparent=True)
  label = f'{title} {words}.'
  return Figure(title, note, _inline(file.getvalue(), figure_id, label))


def _inline(svg: str, figure_id: str, label: str) -> str:
  """An SVG file as an element of a page, with unique ids."""
  root = ElementTree.fromstring(svg)
  for parent in list(root.iter()):
    for child in list(parent):
      # Styles would apply to the whole page; metadata have the time.
      if _local(child.tag) in ('metadata', 'style'):
        parent.remove(child)
  for element in root.iter():
    element.tag = _local(element.tag)
    element.attrib = {
      _local(name): _renamed(_local(name), value, figure_id)
      for name, value in element.attrib.items()
    }
  root.attrib = {
    'viewBox': root.attrib['viewBox'],
    'role': 'img',
    'aria-label': label,
  }
  return ElementTree.tostring(root, encoding='unicode')


def _local(name: str) -> str:
  """A name without its namespace, which HTML implies."""
  return name.rpartition('}')[2]


def _renamed(name: str, value: str, figure_id: str) -> str:
  if name == 'id':
    return f'{figure_id}-{value}'
  if name == 'href':
    return value.replace('#', f'#{figure_id}-', 1)
  return value.replace('url(#', f'url(#{figure_id}-')


def _key(label: str, style: Mapping[str, object]) -> Key:
  dashes = _DASHES[style.get('linestyle', '-')]
  return Key(label, colors.to_hex(style['color']), dashes)
