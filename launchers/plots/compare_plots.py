"""The pictures of a comparison of methods.

Nothing here imports TensorFlow.
"""

import math
import textwrap

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
from matplotlib import lines as mpl_lines
import numpy as np

from tff_fair.launchers import measures
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.plots import labels
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts

MEAN, WORST10, CF = 'client_accuracy_mean', 'client_accuracy_worst10', 'cf'
FRONTS = ((MEAN, WORST10), (MEAN, CF))
"""The pairs of measures that are drawn, each with a Pareto front."""
_LINES = {methods_lib.ONE_MODEL: '-', methods_lib.OWN_MODELS: '--'}
MAX_CURVES = 8
"""More curves cannot be told apart."""
# See `Front`.
_FAR = 5
_SIZE = 6  # Of a marker, in points of 1/72 inch.
_PALE = 0.45  # Opacity.
# Around the markers, as a share of where they are.
_ROOM = 0.18
# Inches of a panel, and of a line of the legend; its names in a line. A page
# shows two panels 700 pixels wide, where the smallest text then has 11 pixels.
_PANEL, _HEIGHT, _LINE, _NAMES = 3.9, 3.9, 0.2, 5
_TEXT = 8.5  # Points.
_TITLE = 52  # Letters in a line above a panel.


class Front:
  """Two measures of all methods, and a Pareto front for each kind.

  Attributes:
    points: Method -> its means, for the methods with both.
    fronts: Kind -> the methods on its front; not of clients that take turns,
      and not where a measure is no merit, see `analysis.is_merit`.
    front: The methods on a front.
    outside: The methods so far below the others that these would be one blot:
      further below the median of all methods than five times what the best one
      is above it; never the baseline, Standalone, or a method on the front.
    drawn: The other methods with both measures.
    named: Those of them whose names stand in the panel: the baseline, the
      front, the papers' methods, and those in turn.
  """

  def __init__(self, analysis: analysis_lib.Analysis, columns: tuple[str, str]):
    self._analysis = analysis
    self._columns = columns
    self.points = {
      method: tuple(analysis.estimates[method, c].mean for c in columns)
      for method in analysis.methods
      if all(analysis.estimates[method, c].reached for c in columns)
    }
    self.fronts = {
      kind: analysis.of(kind).front(*columns)
      for kind in analysis.kinds
      if kind in _LINES and all(analysis_lib.is_merit(kind, c) for c in columns)
    }
    self.front = tuple(m for front in self.fronts.values() for m in front)
    kept = (analysis.baseline, plan.ALONE, *self.front)
    self.outside = [m for m in self._far_below() if m not in kept]
    self.drawn = [m for m in self.points if m not in self.outside]
    wanted = (
      analysis.baseline,
      *self.front,
      *methods_lib.PAPERS,
      *analysis.in_turn,
    )
    self.named = [m for m in dict.fromkeys(wanted) if m in self.drawn]

  def draw(self, axes: mpl_axes.Axes) -> None:
    """Draws the methods, without names."""
    looks = find_styles(self._analysis)
    for method in self.drawn:
      style = looks[method]._replace(hollow=method not in self.front)
      shade = _PALE if method in self._analysis.in_turn else 1
      x, y = (self._analysis.estimates[method, c] for c in self._columns)
      if method in self.named:
        for interval in (
          ([x.low, x.high], [y.mean] * 2),
          ([x.mean] * 2, [y.low, y.high]),
        ):
          axes.plot(
            *interval,
            color=style.color,
            linewidth=0.8,
            alpha=0.4 * shade,
            zorder=1,
          )
      axes.plot(
        x.mean, y.mean, linestyle='', zorder=3, alpha=shade, **_marker(style)
      )
    for kind, front in self.fronts.items():
      ends = np.array([self.points[method] for method in front])
      axes.plot(
        *ends.reshape(-1, 2).T,
        color='#808080',
        linestyle=_LINES[kind],
        linewidth=1.2,
        zorder=2,
      )
    names = [measures.MEASURES[column].title for column in self._columns]
    axes.set(xlabel=f'{names[0]} →', ylabel=f'{names[1]} →')
    self._limit(axes)
    plot_parts.tidy(axes)
    axes.tick_params(labelsize=_TEXT)
    far = ', '.join(map(self._analysis.title, self.outside))
    if far:
      title = textwrap.fill(f'Far below: {far}', _TITLE)
      axes.set_title(title, fontsize=_TEXT, loc='left')

  def label(self, axes: mpl_axes.Axes) -> None:
    """Writes the names of `named` beside their markers, once all is drawn."""
    written = [
      axes.annotate(
        _name(self._analysis, method),
        self.points[method],
        (0, 0),
        textcoords='offset points',
        arrowprops=labels.LINE,
        fontsize=_TEXT,
        fontweight='bold' if method == self._analysis.baseline else 'normal',
        zorder=4,
      )
      for method in self.named
    ]
    labels.place(written, axes, (self.points[m] for m in self.drawn))

  def _far_below(self) -> list[str]:
    if not self.points:
      return []
    points = np.array(list(self.points.values()))
    middle = np.median(points, axis=0)
    far = (points < middle - _FAR * (points.max(axis=0) - middle)).any(axis=1)
    return [m for m, is_far in zip(self.points, far, strict=True) if is_far]

  def _limit(self, axes) -> None:
    """Sets the limits by the markers: intervals of few seeds are far longer."""
    points = np.array([self.points[method] for method in self.drawn])
    low, high = points.min(axis=0), points.max(axis=0)
    # A single point, or equal ones, would leave no room.
    room = _ROOM * np.where(high > low, high - low, np.maximum(abs(high), 1))
    axes.set(xlim=(low[0] - room[0], high[0] + room[0]))
    axes.set(ylim=(low[1] - room[1], high[1] + room[1]))


def find_styles(
  analysis: analysis_lib.Analysis,
) -> dict[str, method_styles.Style]:
  """Finds the style of each method with a result, the same in all pictures."""
  found = method_styles.of_runs(analysis.methods)
  return dict(zip(analysis.methods, found, strict=True))


def curve_methods(analysis: analysis_lib.Analysis) -> tuple[str, ...]:
  """The methods whose curves are drawn, as far as there is room.

  They are the baseline, Standalone, the best ones and the papers' methods.
  """
  best = [analysis.best(column) for column in (MEAN, WORST10, CF)]
  wanted = dict.fromkeys(
    (analysis.baseline, plan.ALONE, *best, *methods_lib.PAPERS)
  )
  known = [m for m in wanted if m in analysis.methods]
  return tuple(m for m in known if len(analysis.curves[m].rounds))[:MAX_CURVES]


def draw(analysis: analysis_lib.Analysis) -> dict[str, mpl_figure.Figure]:
  """Draws a comparison: name -> figure, of those with content."""
  figures = {'pareto': draw_fronts(analysis), 'curves': draw_curves(analysis)}
  return {name: figure for name, figure in figures.items() if figure}


@plot_parts.plain_text()
def draw_fronts(analysis: analysis_lib.Analysis) -> mpl_figure.Figure | None:
  """Draws all fronts beside each other; nothing without a method."""
  fronts = [Front(analysis, columns) for columns in FRONTS]
  fronts = [front for front in fronts if front.points]
  if not fronts:
    return None
  named = {method for front in fronts for method in front.named}
  keys = [
    mpl_lines.Line2D(
      [],
      [],
      linestyle='',
      label=analysis.title(method),
      # Those of a front have their names beside them.
      **_marker(style._replace(hollow=True)),
    )
    for method, style in find_styles(analysis).items()
    if method not in named and any(method in front.drawn for front in fronts)
  ]
  lines = math.ceil(len(keys) / _NAMES)
  figure = mpl_figure.Figure(
    figsize=(_PANEL * len(fronts), _HEIGHT + _LINE * lines),
    layout='constrained',
  )
  panels = figure.subplots(1, len(fronts), squeeze=False)[0]
  heading = (
    'Filled: on the Pareto front of one model for all (line), or of a model'
    ' for each client (dashes).'
  )
  if analysis.has_intervals:
    heading += '\nCrosses: 95 % intervals over the seeds of those with names.'
  if analysis.in_turn:
    heading += ' Pale, in brackets: clients take turns, not ranked.'
  figure.suptitle(heading, fontsize=_TEXT + 0.5)
  for axes, front in zip(panels, fronts, strict=True):
    front.draw(axes)
  if keys:
    figure.legend(
      handles=keys,
      loc='outside lower center',
      ncols=min(_NAMES, len(keys)),
      fontsize=_TEXT,
      frameon=False,
      columnspacing=1,
      handletextpad=0.2,
    )
  for axes, front in zip(panels, fronts, strict=True):
    front.label(axes)
  return figure


@plot_parts.plain_text()
def draw_curves(analysis: analysis_lib.Analysis) -> mpl_figure.Figure | None:
  """Draws learning curves with the intervals of the means; nothing without."""
  methods, looks = curve_methods(analysis), find_styles(analysis)
  if not methods:
    return None
  figure = mpl_figure.Figure(figsize=(8, 4.2), layout='constrained')
  axes = figure.subplots()
  for rank, method in enumerate(methods):
    (rounds, mean, low, high), style = analysis.curves[method], looks[method]
    axes.fill_between(
      rounds, low, high, color=style.color, alpha=0.15, linewidth=0
    )
    title = analysis.title(method)
    plot_parts.draw_curve(axes, rounds, mean, title, style, rank, len(methods))
  plot_parts.mark_rounds(axes)
  axes.set_ylabel(measures.MEASURES[MEAN].title)
  plot_parts.tidy(axes)
  heading = 'Of one seed.'
  if analysis.has_intervals:
    heading = 'Mean over the seeds; the band is its 95 % interval.'
  plot_parts.draw_legend(figure, axes.lines, heading)
  return figure


def _marker(style) -> dict:
  return {
    'marker': style.marker,
    'markersize': _SIZE * style.scale,
    'markerfacecolor': style.face,
    'markeredgecolor': style.color,
    'markeredgewidth': 1.1,
  }


def _name(analysis, method) -> str:
  name = analysis.title(method)
  return f'({name})' if method in analysis.in_turn else name
