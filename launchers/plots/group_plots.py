"""Draws how runs serve groups of people.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping
import textwrap

from matplotlib import figure as mpl_figure
import numpy as np

from tff_fair import group_fairness
from tff_fair.launchers import frame
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import client_names

TITLES = {
  'accuracy': 'Accuracy',
  'selection_rate': 'Selection rate',
  'true_positive_rate': 'True positive rate',
  'false_positive_rate': 'False positive rate',
}
"""The measures of a group, and how they are called."""

# Of the groups at an axis: characters of a line, and of a name.
_TICK_WIDTH, _NAME_WIDTH = 12, 30
# From the first run to the last one, as a share of the room of a group.
_SPREAD = 0.5
# Groups that fit side by side without turning their names.
_FEW = 4


@plot_parts.plain_text()
def group_measures(
  runs: Mapping[str, frame.Run], styles: run_plots.Styles, column: str
) -> mpl_figure.Figure | None:
  """Draws the measures of the groups of a sensitive column, a panel each.

  A large marker is of all clients together, a small one of a client. Nothing is
  drawn if no group is large enough.
  """
  tables = {
    label: run.groups[run.groups['column'] == column]
    for label, run in runs.items()
  }
  groups = list(dict.fromkeys(g for t in tables.values() for g in t['group']))
  shown = [
    name
    for name in TITLES
    if any(table[name].notna().any() for table in tables.values())
  ]
  if not shown:
    return None
  figure, panels = plot_parts.make_panels(len(shown), 2)
  offsets = np.linspace(-0.5, 0.5, len(tables) + 2)[1:-1] * _SPREAD
  for axes, measure in zip(panels, shown, strict=True):
    for offset, (label, table) in zip(offsets, tables.items(), strict=True):
      _draw(axes, table, measure, groups, offset, label, styles[label])
    ticks = [
      textwrap.fill(client_names.one_line(g, _NAME_WIDTH), _TICK_WIDTH)
      for g in groups
    ]
    axes.set_xticks(
      range(len(groups)), ticks, rotation=0 if len(groups) <= _FEW else 90
    )
    axes.set(
      title=TITLES[measure], xlim=(-0.5, len(groups) - 0.5), ylim=(-0.03, 1.03)
    )
    plot_parts.tidy(axes)
  told = 'large: all clients, small: a client'
  plot_parts.draw_legend(
    figure, panels[0].lines, f'Groups by {column} ({told})'
  )
  return figure


def _draw(axes, table, measure, groups, offset, label, style) -> None:
  place = {group: i + offset for i, group in enumerate(groups)}
  is_all = table['client_id'] == group_fairness.ALL
  x = table['group'].map(place)
  axes.scatter(
    x[~is_all],
    table.loc[~is_all, measure],
    s=14,
    alpha=0.6,
    **plot_parts.dots(style),
  )
  axes.plot(
    x[is_all],
    table.loc[is_all, measure],
    label=label,
    linestyle='',
    marker=style.marker,
    markersize=10 * style.scale,
    markerfacecolor='none' if style.hollow else style.color,
    markeredgecolor=style.color,
    zorder=3,
  )
