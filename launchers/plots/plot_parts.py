"""Parts shared by the pictures: colours, line styles, axes."""

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

# Distinguishable with every common kind of colour blindness.
COLORS = matplotlib.color_sequences['petroff10']
# Of texts of the usual size, in a legend.
_CHARACTERS_PER_INCH, _LINE_HEIGHT = 10, 0.22
# Markers of a curve, of which longer ones have few.
_MARKERS = 8
# Points by which a line is wider than the next, and the first than the last.
_GROWTH, _MAX_GROWTH = 0.9, 1.8
# Those fonts with many scripts that this machine has.
_INSTALLED = set(font_manager.get_font_names())
_FALLBACKS = [
  name
  for name in (
    'Noto Sans CJK JP',
    'Noto Sans CJK SC',
    'WenQuanYi Zen Hei',
    'Droid Sans Fallback',
    'Arial Unicode MS',
    'Microsoft YaHei',
    'Unifont',
  )
  if name in _INSTALLED
]


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
  """Draws the curve of a run so that it shows under curves that coincide.

  The first run has the widest line and the largest markers, below all others,
  and each run has its markers at other rounds.

  Args:
    axes: Where to draw.
    rounds: The rounds of the values.
    values: The values.
    label: The label of the run.
    style: The style of the run.
    rank: The index of the run among those of the panel.
    num_runs: The number of these runs.
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
    markerfacecolor='white' if style.hollow else style.color,
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


def plain_text() -> Any:
  """Context manager or decorator for labels with client or directory names.

  It disables mathtext, so dollar signs are drawn as they are. Logarithmic axes,
  whose labels are mathtext by default, need their own formatter. Scripts that
  the usual font lacks are drawn with another font, if the machine has one.
  """
  return matplotlib.rc_context(
    {'text.parse_math': False, 'font.family': ['sans-serif', *_FALLBACKS]}
  )


def round_locator() -> ticker.Locator:
  """Ticks at round numbers; a single tick if there is a single round."""
  return ticker.MaxNLocator(
    nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1
  )


def save(figure: mpl_figure.Figure, path: str | os.PathLike[str]) -> None:
  """Writes a figure as a PNG file with a palette, a third of the usual size."""
  drawn = io.BytesIO()
  figure.savefig(drawn, dpi=_DPI, format='png')
  with Image.open(drawn) as image:
    small = image.convert('RGB').quantize()
  small.save(path, format='png', optimize=True)


def tidy(axes: mpl_axes.Axes) -> None:
  """Adds a faint grid, and removes the frame where there is no scale."""
  axes.grid(alpha=0.3)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
