"""Draws the scores of single clients over the rounds, from the files of runs.

Up to `MAX_LINES` clients have a line each, in the same colour and with the same
marker in all plots of the run. More clients are the rows of a heat map.
"""

from collections.abc import Mapping, Sequence
import os
import pathlib

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair.launchers.plots import heat_maps
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import run_files

# More lines than colours cannot be told apart.
MAX_LINES = len(method_styles.COLORS)
_MARKERS = tuple(method_styles.MARKERS)[:MAX_LINES]
# Inches.
_ROW_HEIGHT, _MAX_HEIGHT = 0.2, 6.5
# Characters of a client's name.
_NAME_WIDTH = 24
_FREE_RIDER = {'color': '#000000', 'marker': 'X', 'linestyle': '--'}
_ACCURACY = 'Accuracy on test data'
_REPUTATION = 'Reputation (share of all)'


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
  scores = {
    title: run_files.read(
      pathlib.Path(run) / 'client_scores.csv',
      ['round', 'client_id', 'accuracy'],
    )
    for title, run in runs.items()
  }
  figure, panels = _figure(len(runs), clients)
  if len(clients) <= MAX_LINES:
    for axes, frame in zip(panels, scores.values(), strict=True):
      draw_lines(axes, clients, frame, 'accuracy')
    panels[0].set_ylabel(_ACCURACY)
    draw_legend(figure, panels)
  else:
    scale = heat_maps.scale(pd.concat(scores.values())['accuracy'])
    for axes, frame in zip(panels, scores.values(), strict=True):
      cells = heat_maps.draw(axes, clients, frame, 'accuracy', scale)
    figure.colorbar(cells, ax=panels, label=_ACCURACY)
    heat_maps.label_rows(panels[0], clients)
    _draw_marks(figure, panels)
  for axes, title in zip(panels, runs, strict=True):
    axes.set(title=title, xlabel='Round')
  plot_parts.save(figure, path)
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
  reports = run_files.read_whole(
    run / 'reports.csv', ['round', 'client_id', 'reputation']
  )
  thresholds = None
  if 'reputable' in reports:
    thresholds = run_files.read(
      run / 'metrics.csv', ['round', 'aggregator_threshold']
    )
  figure, (axes,) = _figure(1, clients)
  if len(clients) <= MAX_LINES:
    if thresholds is None:
      draw_lines(axes, clients, reports, 'reputation')
    else:
      draw_isolation(axes, clients, reports, thresholds)
    axes.set(ylim=(0, None), ylabel=_REPUTATION)
    draw_legend(figure, [axes])
  else:
    _draw_reputations(figure, axes, clients, reports, thresholds)
  axes.set(title='Reputation of each client', xlabel='Round')
  plot_parts.save(figure, path)
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
    A frame with the columns `client_id`, `num_train`, `num_classes`, `label`
    (with the client's name, if it has one) and `style` (the arguments of a
    `method_styles.Style`), ordered by the number of examples, then of classes;
    free riders, which have no data, are last.

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
  honest = clients[clients['num_train'] > 0]
  order = honest.sort_values(
    ['num_train', 'num_classes', 'client_id'], kind='stable'
  )
  clients = pd.concat([order, clients[clients['num_train'] == 0]])
  clients['style'] = [
    _style(rank) if rank < len(honest) else _FREE_RIDER
    for rank in range(len(clients))
  ]
  amount = amount_column(clients)
  clients['label'] = [_label(client, amount) for client in clients.itertuples()]
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
    clients: The result of `read_clients`, at most `MAX_LINES`.
    values: A frame with `round`, `client_id` and the column.
    column: The column to draw.
  """
  by_client = dict(list(values.groupby('client_id')))
  for rank, client in enumerate(clients.itertuples()):
    if client.client_id in by_client:
      line = by_client[client.client_id]
      plot_parts.draw_curve(
        axes,
        line['round'],
        line[column],
        client.label,
        method_styles.Style(**client.style),
        rank,
        len(clients),
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
  ends = _isolations(reports)
  shown = _until(reports, ends)
  draw_lines(axes, clients, shown, 'reputation')
  axes.plot(
    metrics['round'],
    metrics['aggregator_threshold'],
    color='gray',
    linestyle=':',
    label='threshold of isolation',
  )
  for client in clients[clients['client_id'].isin(ends.index)].itertuples():
    _mark_isolated(
      axes, [ends[client.client_id]], [0], client.style['color'], zorder=3
    )


def draw_legend(
  figure: mpl_figure.Figure, panels: Sequence[mpl_axes.Axes]
) -> None:
  """Draws the legend of clients next to the panels.

  Args:
    figure: The figure.
    panels: Its axes, with a labelled line, or point, per client.
  """
  figure.legend(
    **_entries(panels),
    loc='outside right upper',
    title='Client',
    frameon=False,
  )


def amount_column(clients: pd.DataFrame) -> str:
  """The column that says how much data a client has.

  Args:
    clients: A frame with `num_train` and `num_classes`.

  Returns:
    `num_train`; or `num_classes`, if it is known and all clients with data have
    equally many examples.
  """
  honest = clients[clients['num_train'] > 0]
  equal = honest['num_train'].nunique() == 1
  by_class = equal and honest['num_classes'].notna().all()
  return 'num_classes' if by_class else 'num_train'


def _draw_reputations(figure, axes, clients, reports, thresholds) -> None:
  """The heat map; `thresholds` is None where nobody is isolated."""
  ends = pd.Series(dtype=float)
  if thresholds is not None:
    ends = _isolations(reports)
    reports = _until(reports, ends)
  limits = [] if thresholds is None else thresholds['aggregator_threshold']
  scale = heat_maps.scale(pd.concat([reports['reputation'], pd.Series(limits)]))
  cells = heat_maps.draw(axes, clients, reports, 'reputation', scale)
  bar = figure.colorbar(cells, ax=axes, label=_REPUTATION)
  for value in set(limits):
    bar.set_label(f'{_REPUTATION}\ndotted: threshold of isolation')
    bar.ax.axhline(value, color='white', linestyle=':')
  row_of = pd.Series(range(len(clients)), index=clients['client_id'])
  if len(ends):
    _mark_isolated(axes, ends, row_of[ends.index], '#d80000')
  heat_maps.label_rows(axes, clients)
  _draw_marks(figure, [axes])


def _isolations(reports) -> pd.Series:
  """The round in which a client is isolated, by client, if it is."""
  isolated = reports[reports['reputable'] == 0]
  return isolated.groupby('client_id')['round'].min()


def _until(reports, ends) -> pd.DataFrame:
  """The reports until clients are isolated."""
  last = reports['client_id'].map(ends).fillna(np.inf)
  return reports[reports['round'] <= last]


def _mark_isolated(axes, x, y, color, **style) -> None:
  known = axes.get_legend_handles_labels()[1]
  axes.plot(
    x,
    y,
    marker='X',
    markersize=10,
    markeredgecolor='white',
    linestyle='',
    color=color,
    clip_on=False,
    # One legend entry for all of them.
    label=None if 'isolated' in known else 'isolated',
    **style,
  )


def _figure(num_panels, clients):
  height = 4.6
  if len(clients) > MAX_LINES:
    height = min(_MAX_HEIGHT, 1.6 + _ROW_HEIGHT * len(clients))
  size = (3.6 + 4 * num_panels, height)
  figure = mpl_figure.Figure(figsize=size, layout='constrained')
  panels = figure.subplots(
    1, num_panels, sharex=True, sharey=True, squeeze=False
  )
  return figure, list(panels[0])


def _entries(panels) -> dict[str, list]:
  """Legend entries for all that is drawn in the panels."""
  entries = {}
  for axes in panels:
    handles, labels = axes.get_legend_handles_labels()
    entries.update(zip(labels, handles, strict=True))
  return {'handles': list(entries.values()), 'labels': list(entries)}


def _draw_marks(figure, panels) -> None:
  """Explains the marks in heat maps, if there are any."""
  marks = _entries(panels)
  if marks['labels']:
    figure.legend(**marks, loc='outside lower center', ncols=2, frameon=False)


def _style(rank: int) -> dict[str, str]:
  index = rank % MAX_LINES  # More clients are not drawn as lines.
  return {
    'color': method_styles.COLORS[index],
    'marker': _MARKERS[index],
    'linestyle': '-',
  }


def _label(client, amount: str) -> str:
  name = client.client if isinstance(client.client, str) else ''
  # Behind the id, as names may be alike in their first characters.
  who = f'{client.client_id} {client_names.one_line(name, _NAME_WIDTH)}'
  who = who.rstrip()
  if client.num_train == 0:
    return f'{who}: free rider'
  count = getattr(client, amount)
  unit = {'num_train': 'examples', 'num_classes': 'classes'}[amount]
  if count == 1:
    unit = {'examples': 'example', 'classes': 'class'}[unit]
  return f'{who}: {count:,} {unit}'
