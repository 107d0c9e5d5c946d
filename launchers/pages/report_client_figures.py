"""The figures of a report on single clients: what the method says of them.

Nothing here imports TensorFlow.
"""

import math

import numpy as np
import pandas as pd

from tff_fair.launchers.pages import report_keys
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.pages import report_svg
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts

# More points of the bands cannot be told apart, and make a page heavy.
_MAX_POINTS = 80

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


def of_clients(
  run: report_runs.Run, prefix: str
) -> tuple[list[report_svg.Figure], list[report_keys.Key]]:
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
  as_lines = len(clients) <= client_plots.MAX_LINES
  draw = _client_lines if as_lines else _client_bands
  figures = [
    draw(run, clients, name, f'{prefix}-{name.replace("_", "-")}')
    for name in names
  ]
  keys = [
    report_keys.of_style(row.label, method_styles.Style(**row.style))
    for row in clients.itertuples()
  ]
  return figures, keys if figures and as_lines else []


def _described(run) -> pd.DataFrame:
  """The clients in the method's reports, with their line styles."""
  known = run.clients[run.clients['client_id'].isin(run.reports['client_id'])]
  return client_plots.describe_clients(known.astype({'num_train': int}))


def _client_lines(run, clients, name, figure_id) -> report_svg.Figure:
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
    axes.set(xlabel='Round', ylabel=unit)

  note = ''
  if isolates:
    note = 'Dotted: the threshold; a cross: the server isolates the client.'
  return report_svg.draw_figure(
    figure_id,
    title,
    note,
    f'of each of {len(clients)} clients over the rounds',
    draw,
  )


def _client_bands(run, clients, name, figure_id) -> report_svg.Figure:
  title, unit = _OF_CLIENTS[name]
  rounds, values = run.reports['round'], run.reports[name]
  width = math.ceil(rounds.nunique() / _MAX_POINTS)
  by_point = values.groupby(rounds - (rounds - 1) % width)
  levels = [by_point.quantile(q) for q in (0, 0.25, 0.5, 0.75, 1)]
  end = values[rounds == rounds.max()].median()
  color = report_keys.styles([run])[run.label].color

  def draw(axes):
    low, lower, middle, upper, high = levels
    band = dict(color=color, linewidth=0)
    axes.fill_between(low.index, low, high, alpha=0.15, **band)
    axes.fill_between(low.index, lower, upper, alpha=0.3, **band)
    axes.plot(
      middle.index,
      middle,
      color=color,
      marker='o' if len(middle) == 1 else None,
    )
    axes.set(xlabel='Round', ylabel=unit)
    axes.xaxis.set_major_locator(plot_parts.round_locator())
    plot_parts.tidy(axes)

  return report_svg.draw_figure(
    figure_id,
    title,
    'Line: the median client. Bands: the middle half, and all.'
    + (f' A point holds {width} rounds.' if width > 1 else ''),
    f'of {len(clients)} clients over the rounds; the median is {end:.4g} at the'
    ' end',
    draw,
  )
