"""Parts shared by the pictures: lines, legends, axes, files."""

import base64
from collections.abc import Sequence
import io
import math
import os
import textwrap
from typing import Any

import matplotlib
from matplotlib import artist as mpl_artist
from matplotlib import axes as mpl_axes
from matplotlib import axis as mpl_axis
from matplotlib import figure as mpl_figure
from matplotlib import font_manager
from matplotlib import ticker
from PIL import Image

from tff_fair.launchers.plots import method_styles

_DPI = 120
# Of texts of the usual size, in a legend.
_CHARACTERS_PER_INCH, _LINE_HEIGHT = 10, 0.22
# Markers of a curve, of which longer ones have few.
_MARKERS = 8
# Points by which a line is wider than the next, and the first than the last.
_GROWTH, _MAX_GROWTH = 0.9, 1.8
# Text as text; the same figure has the same bytes.
_SVG = {'svg.fonttype': 'none', 'svg.hashsalt': 'tff-fair'}
# Those fonts with many scripts that this machine has.
_FALLBACKS = sorted(
  {
    'Noto Sans CJK JP',
    'Noto Sans CJK SC',
    'WenQuanYi Zen Hei',
    'Droid Sans Fallback',
    'Arial Unicode MS',
    'Microsoft YaHei',
    'Unifont',
  }
  & set(font_manager.get_font_names())
)


def plain_text() -> Any:
  """Context manager or decorator for labels with client or directory names.

  It disables mathtext, so dollar signs are drawn as they are. Logarithmic axes,
  whose labels are mathtext by default, need their own formatter. Scripts that
  the usual font lacks are drawn with another font, if the machine has one.
  """
  return matplotlib.rc_context(
    {'text.parse_math': False, 'font.family': ['sans-serif', *_FALLBACKS]}
  )


def make_panels(
  number: int, max_columns: int
) -> tuple[mpl_figure.Figure, list[mpl_axes.Axes]]:
  """Makes a figure with so many axes, at least one."""
  rows = math.ceil(number / max_columns)
  columns = math.ceil(number / rows)
  figure = mpl_figure.Figure(
    figsize=(4.2 * columns, 3.2 * rows + 0.6), layout='constrained'
  )
  figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
  panels = list(figure.subplots(rows, columns, squeeze=False).flat)
  for axes in panels[number:]:
    axes.remove()
  return figure, panels[:number]


def draw_legend(
  figure: mpl_figure.Figure, lines: Sequence[mpl_artist.Artist], title: str
) -> None:
  """Draws the legend of runs above the panels."""
  across = int(_CHARACTERS_PER_INCH * figure.get_figwidth())
  labels = [textwrap.fill(line.get_label(), across - 4) for line in lines]
  width = max(map(len, '\n'.join(labels).splitlines())) + 4
  columns = max(1, min(len(labels), across // width))
  legend_lines = '\n'.join(labels[::columns]).count('\n') + 1
  figure.set_figheight(figure.get_figheight() + _LINE_HEIGHT * legend_lines)
  figure.legend(
    lines,
    labels,
    loc='outside upper center',
    ncols=columns,
    title=title,
    frameon=False,
  )


def draw_curve(
  axes: mpl_axes.Axes,
  rounds: Sequence[float],
  values: Sequence[float],
  label: str,
  style: method_styles.Style,
  rank: int,
  num_runs: int,
) -> None:
  """Draws a curve, the `rank`th of `num_runs`, so that it shows under others.

  The first one has the widest line and the largest markers, below all others,
  and each has its markers at other rounds.
  """
  # Points by which the line and the markers are larger than the last ones.
  growth = min(_GROWTH * (num_runs - 1), _MAX_GROWTH)
  growth *= 1 - rank / max(1, num_runs - 1)
  # Few markers on short curves, too, so that those of many runs take turns.
  step = max(len(rounds) / _MARKERS, min(num_runs, len(rounds) / 3), 1)
  step = math.ceil(step)
  axes.plot(
    rounds,
    values,
    label=label,
    color=style.color,
    linestyle=style.linestyle,
    linewidth=1.4 + growth,
    marker=style.marker,
    markersize=(5.5 + growth) * style.scale,
    markerfacecolor=style.face,
    markeredgecolor=style.color if style.hollow else 'white',
    markeredgewidth=1.2 if style.hollow else 0.5,
    markevery=(rank * step // num_runs, step),
  )


def dots(style: method_styles.Style) -> dict[str, Any]:
  """The arguments of `Axes.scatter` for the clients of a run."""
  return {
    'marker': style.marker,
    'facecolors': 'none' if style.hollow else style.color,
    'edgecolors': style.color if style.hollow else 'white',
    'linewidths': 1 if style.hollow else 0.4,
  }


def set_log_ticks(axis: mpl_axis.Axis, text: str) -> None:
  """Puts ticks of a logarithmic axis at 1, 2 and 5 times a power of ten."""
  axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
  axis.set_minor_formatter(ticker.NullFormatter())
  axis.set_major_formatter(text)


def mark_rounds(axes: mpl_axes.Axes) -> None:
  """Puts ticks at round numbers; a single one if there is a single round."""
  axes.set_xlabel('Round')
  axes.xaxis.set_major_locator(
    ticker.MaxNLocator(
      nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1
    )
  )


def save(
  figure: mpl_figure.Figure, path: str | os.PathLike[str] | None
) -> None:
  """Writes a figure as a PNG file with a palette, a third of the usual size."""
  if path is None:
    return
  drawn = io.BytesIO()
  figure.savefig(drawn, dpi=_DPI, format='png')
  with Image.open(drawn) as image:
    small = image.convert('RGB').quantize()
  small.save(path, format='png', optimize=True)


def embed(figure: mpl_figure.Figure) -> str:
  """Draws a figure as SVG, as an address that a page may contain."""
  file = io.BytesIO()
  with matplotlib.rc_context(_SVG), plain_text():
    figure.savefig(file, format='svg', metadata={'Date': None})
  data = base64.b64encode(file.getvalue()).decode()
  return f'data:image/svg+xml;base64,{data}'


def tidy(axes: mpl_axes.Axes) -> None:
  """Adds a faint grid, and removes the frame where there is no scale."""
  axes.grid(alpha=0.3)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
