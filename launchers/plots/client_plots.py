"""Draws the scores of single clients over the rounds, from the files of runs.

A client has the same colour in all panels and plots of its run.
"""

from collections.abc import Mapping
import os
import pathlib

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import cm
from matplotlib import colors
from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import run_files

# For more clients than colours. The lightest colours are hard to see.
_COLOR_MAP = matplotlib.colormaps['viridis'].resampled(256)
_LIGHTEST = 0.92
# A longer legend would be higher than the figure.
_MAX_LEGEND = 24
# Characters of a client's name in a legend.
_NAME_WIDTH = 24
_FREE_RIDER = {'color': 'black', 'linestyle': '--'}


@plot_parts.plain_text()
def client_accuracy(
  runs: Mapping[str, str | os.PathLike[str]], path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the test accuracy of each client over the rounds, a panel per run.

  Args:
    runs: The run directory of each title. Clients with the same id have the
      same data in all runs.
    path: The PNG file to write.

  Returns:
    The figure that was written.

  Raises:
    FileNotFoundError: If a run lacks one of its files.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  clients = max(map(read_clients, runs.values()), key=len)
  figure, panels = _figure(len(runs))
  for (title, run), axes in zip(runs.items(), panels, strict=True):
    scores = run_files.read(
      pathlib.Path(run) / 'client_scores.csv',
      ['round', 'client_id', 'accuracy'],
    )
    draw_lines(axes, clients, scores, 'accuracy')
    axes.set(title=title, xlabel='Round (count)')
  panels[0].set_ylabel('Accuracy on test data (fraction)')
  draw_legend(figure, panels, clients)
  figure.savefig(path, dpi=plot_parts.DPI)
  return figure


@plot_parts.plain_text()
def reputation(
  run: str | os.PathLike[str], path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the reputation of each client over the rounds, and isolations.

  Args:
    run: The directory of a run of CFFL, or of CGSV or FedAVE, whose servers
      compute reputations and isolate no client.
    path: The PNG file to write.

  Returns:
    The figure that was written.

  Raises:
    FileNotFoundError: If the run lacks one of its files.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  run = pathlib.Path(run)
  clients = read_clients(run)
  columns = ['round', 'client_id', 'reputation']
  figure, (axes,) = _figure(1)
  if not run_files.has_columns(run / 'reports.csv', ['reputable']):
    reports = run_files.read(run / 'reports.csv', columns)
    draw_lines(axes, clients, reports, 'reputation')
  else:
    reports = run_files.read(run / 'reports.csv', [*columns, 'reputable'])
    metrics = run_files.read(
      run / 'metrics.csv', ['round', 'aggregator_threshold']
    )
    draw_isolation(axes, clients, reports, metrics)
  axes.set(
    title='Reputation of each client', xlabel='Round (count)', ylim=(0, None)
  )
  axes.set_ylabel('Reputation (fraction of all)')
  draw_legend(figure, [axes], clients)
  figure.savefig(path, dpi=plot_parts.DPI)
  return figure


def write_plots(
  run: str | os.PathLike[str], plots_dir: str | os.PathLike[str]
) -> list[pathlib.Path]:
  """Draws client accuracies and reputations, if the run has them.

  Args:
    run: The run directory.
    plots_dir: The folder to write to, which exists.

  Returns:
    The files written; it may be none.

  Raises:
    FileNotFoundError: If the run lacks one of its files.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  run, folder = pathlib.Path(run), pathlib.Path(plots_dir)
  written = []
  if run_files.has_columns(run / 'metrics.csv', ['personal_accuracy']):
    written.append(folder / 'client_accuracy.png')
    client_accuracy({'Accuracy of each client’s model': run}, written[-1])
  if run_files.has_columns(run / 'reports.csv', ['reputation']):
    written.append(folder / 'reputation.png')
    reputation(run, written[-1])
  return written


def read_clients(run: str | os.PathLike[str]) -> pd.DataFrame:
  """Reads the clients of a run, and gives them labels and line styles.

  Args:
    run: The run directory.

  Returns:
    A frame with the columns `client_id`, `num_train`, `label` (with the
    client's name, if it has one) and `style`, ordered by the number of
    examples, then of classes.

  Raises:
    FileNotFoundError: If the run lacks clients.csv.
    ValueError: If it is not as `launchers.train` writes it.
  """
  clients = run_files.read_whole(
    pathlib.Path(run) / 'clients.csv', ['client_id', 'num_train', 'num_classes']
  )
  return describe_clients(clients)


def describe_clients(clients: pd.DataFrame) -> pd.DataFrame:
  """Orders clients by their amount of data, and gives them labels and styles.

  Args:
    clients: A frame with `client_id`, `num_train` and, where they are known,
      `num_classes` and the clients' names, `client`.

  Returns:
    The frame that `read_clients` returns.
  """
  clients = clients.reindex(
    columns=['client_id', 'num_train', 'num_classes', client_names.COLUMN]
  )
  # Free riders, which have no data, come last.
  honest = clients[clients['num_train'] > 0]
  order = honest.sort_values(
    ['num_train', 'num_classes', 'client_id'], kind='stable'
  )
  clients = pd.concat([order, clients[clients['num_train'] == 0]])
  clients['style'] = [_style(rank, len(honest)) for rank in range(len(clients))]
  by_class = (
    honest['num_train'].nunique() == 1 and honest['num_classes'].notna().all()
  )
  clients['label'] = [
    _label(client, by_class) for client in clients.itertuples()
  ]
  return clients


def draw_lines(
  axes: mpl_axes.Axes,
  clients: pd.DataFrame,
  values: pd.DataFrame,
  column: str,
) -> None:
  """Draws a line per client over the rounds.

  Args:
    axes: Where to draw.
    clients: The result of `read_clients`.
    values: A frame with `round`, `client_id` and the column.
    column: The column to draw.
  """
  by_client = dict(list(values.groupby('client_id')))
  for client in clients.itertuples():
    if client.client_id not in by_client:
      continue
    line = by_client[client.client_id]
    marker = 'o' if len(line) == 1 else None
    axes.plot(
      line['round'],
      line[column],
      label=client.label,
      marker=marker,
      linewidth=1.4,
      **client.style,
    )
  axes.xaxis.set_major_locator(plot_parts.round_locator())
  plot_parts.tidy(axes)


def draw_isolation(
  axes: mpl_axes.Axes,
  clients: pd.DataFrame,
  reports: pd.DataFrame,
  metrics: pd.DataFrame,
) -> None:
  """Draws the reputations in a run of CFFL, and when clients are isolated.

  Args:
    axes: Where to draw.
    clients: The result of `read_clients`.
    reports: A frame with `round`, `client_id`, `reputation` and `reputable`.
    metrics: A frame with `round` and `aggregator_threshold`.
  """
  isolated = reports[reports['reputable'] == 0]
  ends = isolated.groupby('client_id')['round'].min()
  shown = reports[
    reports['round'] <= reports['client_id'].map(ends).fillna(np.inf)
  ]
  draw_lines(axes, clients, shown, 'reputation')
  axes.plot(
    metrics['round'],
    metrics['aggregator_threshold'],
    color='gray',
    linestyle=':',
    label='threshold of isolation',
  )
  _mark_isolated(axes, clients, ends)


def draw_legend(
  figure: mpl_figure.Figure,
  panels: list[mpl_axes.Axes],
  clients: pd.DataFrame,
) -> None:
  """Draws the legend of the clients next to the panels.

  Args:
    figure: The figure.
    panels: Its axes, with labelled lines.
    clients: The result of `read_clients`.
  """
  if len(clients) > _MAX_LEGEND:
    scale = colors.Normalize(0, len(clients) - 1)
    map_ = colors.ListedColormap(_COLOR_MAP(np.linspace(0, _LIGHTEST, 256)))
    figure.colorbar(
      cm.ScalarMappable(scale, map_),
      ax=panels,
      label='Client, from least to most data (rank)',
    )
    return
  handles = {}
  for axes in panels:
    drawn, labels = axes.get_legend_handles_labels()
    handles.update(zip(labels, drawn, strict=True))
  figure.legend(
    handles.values(),
    handles,
    loc='outside right upper',
    title='Client',
    frameon=False,
  )


def _figure(num_panels):
  size = (3 + 4.2 * num_panels, 4.6)
  figure = mpl_figure.Figure(figsize=size, layout='constrained')
  panels = figure.subplots(
    1, num_panels, sharex=True, sharey=True, squeeze=False
  )
  return figure, list(panels[0])


def _mark_isolated(axes, clients, ends):
  label = 'isolated'
  for client in clients.itertuples():
    if client.client_id in ends:
      axes.plot(
        ends[client.client_id],
        0,
        marker='X',
        markersize=10,
        linestyle='',
        color=client.style['color'],
        clip_on=False,
        zorder=3,
        label=label,
      )
      label = None  # One legend entry for all of them.


def _style(rank: int, num_honest: int) -> dict[str, object]:
  if rank >= num_honest:
    return _FREE_RIDER
  if num_honest <= len(plot_parts.COLORS):
    return plot_parts.style(rank)
  return {'color': _COLOR_MAP(_LIGHTEST * rank / (num_honest - 1))}


def _label(client, by_class: bool) -> str:
  name = client.client if isinstance(client.client, str) else ''
  # Behind the id, as names may be alike in their first characters.
  who = f'{client.client_id} {client_names.one_line(name, _NAME_WIDTH)}'
  who = who.rstrip()
  if client.num_train == 0:
    return f'{who}: free rider'
  count, unit = client.num_train, 'example'
  if by_class:
    count, unit = client.num_classes, 'class'
  plural = {'example': 'examples', 'class': 'classes'}[unit]
  return f'{who}: {count:,} {unit if count == 1 else plural}'
