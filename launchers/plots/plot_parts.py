"""What the pictures share: colours, line styles, axes."""

from typing import Any

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import ticker

from tff_fair.launchers.plots import method_styles

DPI = 150

# Distinguishable with every common kind of colour blindness.
COLORS = matplotlib.color_sequences['petroff10']
# For runs beyond the number of colours.
_LINE_STYLES = ('-', '--', ':', '-.')
# Longer curves are clearer without a marker at each round.
_MAX_MARKERS = 30


def marker(num_points: int) -> str | None:
  """The marker of a curve: none where there are too many points."""
  return 'o' if num_points <= _MAX_MARKERS else None


def line(style: method_styles.Style) -> dict[str, Any]:
  """How `Axes.plot` draws the curve of a run."""
  return {
    'color': style.color,
    'linestyle': style.linestyle,
    'marker': style.marker,
    'markerfacecolor': 'none' if style.hollow else style.color,
    'markersize': 5,
  }


def plain_text() -> Any:
  """A context, or a decorator, in which dollar signs in texts are no markup.

  Labels may be names of directories. Not for logarithmic axes, whose numbers
  are markup.
  """
  return matplotlib.rc_context({'text.parse_math': False})


def round_locator() -> ticker.Locator:
  """Ticks at round numbers; a single tick if there is a single round."""
  return ticker.MaxNLocator(
    nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1
  )


def style(index: int) -> dict[str, str]:
  """The colour and the line style of a run, or client, by its index."""
  turn, color = divmod(index, len(COLORS))
  line_style = _LINE_STYLES[turn % len(_LINE_STYLES)]
  return {'color': COLORS[color], 'linestyle': line_style}


def tidy(axes: mpl_axes.Axes) -> None:
  """Adds a faint grid, and removes the frame where there is no scale."""
  axes.grid(alpha=0.3)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)
