"""Heat maps of many clients over the rounds: a row of cells per client."""

from collections.abc import Sequence

from matplotlib import axes as mpl_axes
from matplotlib import collections as mpl_collections
from matplotlib import colors as mpl_colors
import numpy as np
import pandas as pd

from tff_fair.launchers.plots import plot_parts

COLOR_MAP = 'viridis'
# Rows that all have a label, and labels of more rows.
_MAX_LABELS, _FEW_LABELS = 30, 12
_NO_VALUE = '#d9d9d9'


def draw(
  axes: mpl_axes.Axes,
  clients: pd.DataFrame,
  values: pd.DataFrame,
  column: str,
  norm: mpl_colors.Normalize,
) -> mpl_collections.QuadMesh:
  """Draws a row of cells per client over the rounds; the first row is on top.

  Cells without a value are grey. A line is above the free riders.
  """
  table = values.pivot(index='client_id', columns='round', values=column)
  table = table.reindex(clients['client_id']).astype(float)
  if table.isna().any(axis=None):
    axes.set_facecolor(_NO_VALUE)
    axes.fill([], [], color=_NO_VALUE, label='no value')
  cells = axes.pcolormesh(
    _edges(table.columns.to_numpy(float)),
    np.arange(len(clients) + 1) - 0.5,
    np.ma.masked_invalid(table),
    cmap=COLOR_MAP,
    norm=norm,
    rasterized=True,
  )
  num_honest = int((clients['num_train'] != 0).sum())
  if num_honest < len(clients):
    axes.axhline(num_honest - 0.5, color='black', linewidth=1.5)
  axes.set(ylim=(len(clients) - 0.5, -0.5))
  axes.xaxis.set_major_locator(plot_parts.round_locator())
  return cells


def label_rows(axes: mpl_axes.Axes, clients: pd.DataFrame) -> None:
  """Names the rows, or some of very many."""
  rows = np.arange(len(clients))
  if len(clients) > _MAX_LABELS:
    rows = np.unique(np.linspace(0, rows[-1], _FEW_LABELS).round().astype(int))
  axes.set_yticks(rows, clients['label'].iloc[rows], fontsize=8)
  axes.set_ylabel('Client, from least to most data')


def scale(values: pd.Series) -> mpl_colors.Normalize:
  """The colours from the lowest to the highest finite value."""
  finite = values[np.isfinite(values)]
  return mpl_colors.Normalize(finite.min(), finite.max())


def _edges(rounds: Sequence[float]) -> np.ndarray:
  """The borders of cells in whose middle the rounds lie."""
  between = (rounds[1:] + rounds[:-1]) / 2
  first, last = (
    (rounds[0] - 0.5, rounds[-1] + 0.5)
    if len(rounds) == 1
    else (2 * rounds[0] - between[0], 2 * rounds[-1] - between[-1])
  )
  return np.concatenate([[first], between, [last]])
