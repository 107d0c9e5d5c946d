"""Draws the scores of single clients over the rounds.

Up to `MAX_LINES` clients have a line each, in the same colour and with the same
marker in all plots of the run. More clients are the rows of a heat map.
"""

from collections.abc import Mapping, Sequence
import os

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair.launchers import frame
from tff_fair.launchers.plots import heat_maps
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import client_names

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
  runs: Mapping[str, frame.Run], path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the test accuracy of each client over the rounds, a panel per run."""
  clients = max(map(describe_clients, runs.values()), key=len)
  scores = [run.scores_by_round('accuracy') for run in runs.values()]
  figure, panels = _figure(len(runs), clients)
  if len(clients) <= MAX_LINES:
    for axes, values in zip(panels, scores, strict=True):
      draw_lines(axes, clients, values, 'accuracy')
    panels[0].set_ylabel(_ACCURACY)
    draw_legend(figure, panels)
  else:
    scale = heat_maps.scale(pd.concat(scores)['accuracy'])
    for axes, values in zip(panels, scores, strict=True):
      cells = heat_maps.draw(axes, clients, values, 'accuracy', scale)
    figure.colorbar(cells, ax=panels, label=_ACCURACY)
    heat_maps.label_rows(panels[0], clients)
    _draw_marks(figure, panels)
  for axes, title in zip(panels, runs, strict=True):
    axes.set(title=title, xlabel='Round')
  plot_parts.save(figure, path)
  return figure


@plot_parts.plain_text()
def reputation(
  run: frame.Run, path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the reputation of each client over the rounds, and isolations.

  Args:
    run: A run of CFFL, or of CGSV or FedAVE, whose servers compute reputations
      and isolate no client.
    path: The PNG file to write.
  """
  clients = describe_clients(run)
  figure, (axes,) = _figure(1, clients)
  if len(clients) <= MAX_LINES:
    draw_reputations(axes, clients, run)
    axes.set(ylim=(0, None), ylabel=_REPUTATION)
    draw_legend(figure, [axes])
  else:
    _map_reputations(figure, axes, clients, run)
  axes.set(title='Reputation of each client', xlabel='Round')
  plot_parts.save(figure, path)
  return figure


def describe_clients(run: frame.Run) -> pd.DataFrame:
  """Orders the clients of a run, and gives them labels and line styles.

  Args:
    run: The run.

  Returns:
    A frame with the columns `client_id`, `num_train`, `num_classes`, `label`
    (with the client's name, if it has one) and `style` (the arguments of a
    `method_styles.Style`), ordered by the number of examples, then of classes;
    free riders, which have no data, are last.
  """
  clients = run.clients.rename_axis('client_id').reset_index()
  clients = clients.reindex(columns=['client_id', 'num_train', 'num_classes'])
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
  clients['label'] = [
    _label(client, run.names.get(client.client_id, ''), amount)
    for client in clients.itertuples()
  ]
  return clients


def draw_lines(
  axes: mpl_axes.Axes,
  clients: pd.DataFrame,
  values: pd.DataFrame,
  column: str,
) -> None:
  """Draws a line per client over the rounds."""
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


def draw_reputations(
  axes: mpl_axes.Axes, clients: pd.DataFrame, run: frame.Run
) -> bool:
  """Draws a line per client, until the server isolates it.

  Args:
    axes: Where to draw.
    clients: The result of `describe_clients`, at most `MAX_LINES`.
    run: A run that reports reputations.

  Returns:
    Whether the server isolates clients: CFFL's does.
  """
  thresholds, ends = _isolations(run)
  draw_lines(axes, clients, _until(run.reports, ends), 'reputation')
  if thresholds.empty:
    return False
  axes.plot(
    thresholds.index,
    thresholds,
    color='gray',
    linestyle=':',
    label='threshold of isolation',
  )
  for client in clients[clients['client_id'].isin(ends.index)].itertuples():
    _mark_isolated(
      axes, [ends[client.client_id]], [0], client.style['color'], zorder=3
    )
  return True


def draw_legend(
  figure: mpl_figure.Figure, panels: Sequence[mpl_axes.Axes]
) -> None:
  """Draws the legend of clients next to the panels."""
  figure.legend(
    **_entries(panels),
    loc='outside right upper',
    title='Client',
    frameon=False,
  )


def amount_column(clients: pd.DataFrame) -> str:
  """The column that says how much data a client has."""
  honest = clients[clients['num_train'] > 0]
  equal = honest['num_train'].nunique() == 1
  by_class = equal and honest['num_classes'].notna().all()
  return 'num_classes' if by_class else 'num_train'


def _map_reputations(figure, axes, clients, run) -> None:
  """The heat map of many clients."""
  thresholds, ends = _isolations(run)
  reports = _until(run.reports, ends)
  scale = heat_maps.scale(pd.concat([reports['reputation'], thresholds]))
  cells = heat_maps.draw(axes, clients, reports, 'reputation', scale)
  bar = figure.colorbar(cells, ax=axes, label=_REPUTATION)
  for value in set(thresholds):
    bar.set_label(f'{_REPUTATION}\ndotted: threshold of isolation')
    bar.ax.axhline(value, color='white', linestyle=':')
  row_of = pd.Series(range(len(clients)), index=clients['client_id'])
  if len(ends):
    _mark_isolated(axes, ends, row_of[ends.index], '#d80000')
  heat_maps.label_rows(axes, clients)
  _draw_marks(figure, [axes])


def _isolations(run) -> tuple[pd.Series, pd.Series]:
  """The threshold by round, and the round of isolation by client, if any."""
  if 'reputable' not in run.reports:
    return pd.Series(dtype=float), pd.Series(dtype=float)
  isolated = run.reports[run.reports['reputable'] == 0]
  ends = isolated.groupby('client_id')['round'].min()
  return run.curve('aggregator_threshold'), ends


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


def _label(client, name, amount) -> str:
  # Behind the id, as names may be alike in their first characters.
  who = f'{client.client_id} {client_names.one_line(name, _NAME_WIDTH)}'
  who = who.rstrip()
  if client.num_train == 0:
    return f'{who}: free rider'
  count = int(getattr(client, amount))
  unit = {'num_train': 'examples', 'num_classes': 'classes'}[amount]
  if count == 1:
    unit = {'examples': 'example', 'classes': 'class'}[unit]
  return f'{who}: {count:,} {unit}'
