"""Draws the scores of single clients over the rounds.

Up to `MAX_LINES` clients have a line each, in the same colour and with the same
marker in all plots of the run. More clients are the rows of a heat map.
"""

from collections.abc import Mapping, Sequence
import os
import pathlib

from matplotlib import axes as mpl_axes
from matplotlib import colors as mpl_colors
from matplotlib import figure as mpl_figure
import numpy as np
import pandas as pd

from tff_fair.launchers import frame
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import client_names

# More lines than colours cannot be told apart.
MAX_LINES = len(method_styles.COLORS)
COLOR_MAP = 'viridis'
_MARKERS = tuple(method_styles.MARKERS)[:MAX_LINES]
# Of heat maps: inches; rows that all have a label, and labels of more rows.
_ROW_HEIGHT, _MAX_HEIGHT = 0.2, 6.5
_MAX_LABELS, _FEW_LABELS = 30, 12
_NO_VALUE, _ISOLATED = '#d9d9d9', '#d80000'
# Characters of a client's name.
_NAME_WIDTH = 24
_Path = str | os.PathLike[str]
_MAX_COLUMNS = 3
# What methods report of single clients: columns of reports.csv.
_REPORTED = pd.read_csv(
  pathlib.Path(__file__).with_name('reports.csv'), keep_default_na=False
)
_FREE_RIDER = method_styles.Style('#000000', 'X', '--')


@plot_parts.plain_text()
def client_accuracy(
  runs: Mapping[str, frame.Run], path: _Path | None = None
) -> mpl_figure.Figure:
  """Draws the test accuracy of each client over the rounds, a panel per run."""
  clients = max(map(describe_clients, runs.values()), key=len)
  scores = [run.scores_by_round('accuracy') for run in runs.values()]
  norm = _find_scale(pd.concat(scores)['accuracy'])
  figure, panels = _figure(len(runs), clients)
  for axes, title, values in zip(panels, runs, scores, strict=True):
    draw_clients(axes, clients, values, 'accuracy', norm)
    axes.set_title(title)
  return _finish(figure, panels, clients, 'Accuracy on test data', path)


@plot_parts.plain_text()
def reputation(run: frame.Run, path: _Path | None = None) -> mpl_figure.Figure:
  """Draws the reputation of each client over the rounds, and isolations.

  The run is one of CFFL, or of CGSV or FedAVE, whose servers compute
  reputations and isolate no client.
  """
  clients = describe_clients(run)
  figure, panels = _figure(1, clients)
  draw_reputations(panels[0], clients, run)
  panels[0].set_title('Reputation of each client')
  return _finish(figure, panels, clients, 'Reputation (share of all)', path)


@plot_parts.plain_text()
def reports(run: frame.Run) -> mpl_figure.Figure | None:
  """Draws what the method reports of single clients, a panel per quantity."""
  clients = describe_clients(run)
  clients = clients[clients['client_id'].isin(run.reports['client_id'])]
  drawn = [
    row
    for row in _REPORTED.itertuples(index=False)
    if np.isfinite(run.reports.get(row.column, np.nan)).any()
  ]
  if not drawn:
    return None
  figure, panels = plot_parts.make_panels(len(drawn), _MAX_COLUMNS)
  for axes, (column, title, unit) in zip(panels, drawn, strict=True):
    if column == 'reputation':
      draw_reputations(axes, clients, run)
    else:
      draw_clients(axes, clients, run.reports, column)
    axes.set(title=title, ylabel=unit)
    if len(clients) > MAX_LINES:
      name_rows(axes, clients)
      figure.colorbar(axes.collections[0], ax=axes, label=unit)
  if len(clients) <= MAX_LINES:
    draw_legend(figure, panels)
  return figure


def describe_clients(run: frame.Run) -> pd.DataFrame:
  """Orders the clients of a run, and gives them labels and line styles.

  Returns:
    A frame with the columns `client_id`, `num_train`, `num_classes`, `attacker`
    (1 or 0; NaN in a run without any), `label` (with the client's name, if it
    has one) and `style`, ordered by the number of examples, then of classes;
    free riders, which have no data, are last.
  """
  clients = run.clients.rename_axis('client_id').reset_index()
  clients = clients.reindex(
    columns=['client_id', 'num_train', 'num_classes', 'attacker']
  )
  honest = clients[clients['num_train'] > 0]
  order = honest.sort_values(
    ['num_train', 'num_classes', 'client_id'], kind='stable'
  )
  clients = pd.concat([order, clients[clients['num_train'] == 0]])
  # More clients are not drawn as lines.
  looks = [
    method_styles.Style(method_styles.COLORS[i], _MARKERS[i])
    for i in np.arange(len(honest)) % MAX_LINES
  ]
  clients['style'] = looks + [_FREE_RIDER] * (len(clients) - len(honest))
  amount = amount_column(clients)
  clients['label'] = [
    _label(client, run.names.get(client.client_id, ''), amount)
    for client in clients.itertuples()
  ]
  return clients


def draw_clients(
  axes: mpl_axes.Axes,
  clients: pd.DataFrame,
  values: pd.DataFrame,
  column: str,
  norm: mpl_colors.Normalize | None = None,
) -> None:
  """Draws a column of `values`, which has a row per round and client.

  Clients are lines, or rows of a heat map, the first one on top; its cells
  without a value are grey, and a black line is above the free riders.
  """
  plot_parts.mark_rounds(axes)
  if len(clients) <= MAX_LINES:
    _draw_lines(axes, clients, values, column)
    return
  table = values.pivot(index='client_id', columns='round', values=column)
  table = table.reindex(clients['client_id']).astype(float)
  if table.isna().any(axis=None):
    axes.set_facecolor(_NO_VALUE)
    axes.fill([], [], color=_NO_VALUE, label='no value')
  # A single round has no neighbour that would say how wide its cells are.
  x, y = table.columns.to_numpy(float), np.arange(len(clients))
  if len(x) == 1:
    x, y = x + [-0.5, 0.5], np.arange(len(clients) + 1) - 0.5
  axes.pcolormesh(
    x,
    y,
    np.ma.masked_invalid(table),
    cmap=COLOR_MAP,
    norm=norm or _find_scale(values[column]),
    rasterized=True,
  )
  num_honest = int((clients['num_train'] != 0).sum())
  if num_honest < len(clients):
    axes.axhline(num_honest - 0.5, color='black', linewidth=1.5)
  axes.set(ylim=(len(clients) - 0.5, -0.5))


def draw_reputations(
  axes: mpl_axes.Axes, clients: pd.DataFrame, run: frame.Run
) -> None:
  """Draws reputations until CFFL's server isolates a client, and where."""
  reports = run.reports
  ends = pd.Series(dtype=float)
  if 'reputable' in reports:
    ends = reports[reports['reputable'] == 0]
    ends = ends.groupby('client_id')['round'].min()
    last = reports['client_id'].map(ends).fillna(np.inf)
    reports = reports[reports['round'] <= last]
  draw_clients(axes, clients, reports, 'reputation')
  rows = pd.Series(range(len(clients)), index=clients['client_id'])
  heights = rows[ends.index]
  if len(clients) <= MAX_LINES:
    heights = 0 * heights
    if 'reputable' in reports:
      axes.plot(
        run.curve('aggregator_threshold'),
        color='gray',
        linestyle=':',
        label='threshold of isolation',
      )
  if len(ends):
    axes.plot(
      ends,
      heights,
      marker='X',
      markersize=10,
      markeredgecolor='white',
      linestyle='',
      color=_ISOLATED,
      clip_on=False,
      label='isolated',
      zorder=3,
    )
  if len(clients) <= MAX_LINES:
    axes.set_ylim(0, None)


def name_rows(axes: mpl_axes.Axes, clients: pd.DataFrame) -> None:
  """Names the rows of a heat map, or some of very many."""
  rows = np.arange(len(clients))
  if len(clients) > _MAX_LABELS:
    rows = np.unique(np.linspace(0, rows[-1], _FEW_LABELS).round().astype(int))
  axes.set_yticks(rows, clients['label'].iloc[rows], fontsize=8)
  axes.set_ylabel('Client, from least to most data')


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


def _draw_lines(axes, clients, values, column) -> None:
  by_client = dict(list(values.groupby('client_id')))
  for rank, client in enumerate(clients.itertuples()):
    if client.client_id in by_client:
      line = by_client[client.client_id]
      plot_parts.draw_curve(
        axes,
        line['round'],
        line[column],
        client.label,
        client.style,
        rank,
        len(clients),
      )
  plot_parts.tidy(axes)


def _find_scale(values) -> mpl_colors.Normalize:
  """The colours from the lowest to the highest finite value."""
  finite = values[np.isfinite(values)]
  return mpl_colors.Normalize(finite.min(), finite.max())


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


def _finish(figure, panels, clients, label, path) -> mpl_figure.Figure:
  """Explains lines or colours, and writes the file."""
  if len(clients) <= MAX_LINES:
    panels[0].set_ylabel(label)
    draw_legend(figure, panels)
  else:
    name_rows(panels[0], clients)
    figure.colorbar(panels[0].collections[0], ax=panels, label=label)
    if _entries(panels)['labels']:
      figure.legend(
        **_entries(panels), loc='outside lower center', ncols=2, frameon=False
      )
  plot_parts.save(figure, path)
  return figure


def _entries(panels) -> dict[str, list]:
  """Legend entries for all that is drawn in the panels."""
  entries = {}
  for axes in panels:
    handles, labels = axes.get_legend_handles_labels()
    entries.update(zip(labels, handles, strict=True))
  return {'handles': list(entries.values()), 'labels': list(entries)}


def _label(client, name, amount) -> str:
  # Behind the id, as names may be alike in their first characters.
  who = f'{client.client_id} {client_names.one_line(name, _NAME_WIDTH)}'
  who = who.rstrip()
  if client.num_train == 0:
    return f'{who}: free rider'
  count = int(getattr(client, amount))
  role = ', attacker' if client.attacker == 1 else ''
  if amount == 'num_train':
    return f'{who}: {count:,} example{"" if count == 1 else "s"}{role}'
  return f'{who}: {count} class{"" if count == 1 else "es"}{role}'
