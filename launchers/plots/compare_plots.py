"""The pictures of a comparison of methods, as files and for its page.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable
import math
import os
import pathlib

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
from matplotlib import lines as mpl_lines
from matplotlib import text as mpl_text
import numpy as np

from tff_fair.launchers import measures
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import svg

MEAN, WORST10, CF = 'client_accuracy_mean', 'client_accuracy_worst10', 'cf'
FRONTS = ((MEAN, WORST10), (MEAN, CF))
"""What is drawn against what, each with a Pareto front."""
# See `Front`.
_FAR = 5
MAX_CURVES = 8
"""More curves cannot be told apart."""
IN_TURN = 'Pale, in brackets: clients take turns, not ranked.'
"""How a picture shows methods in turn."""

# On a page: of labels in figures, and the height of the square ones in inches.
_FONT_SIZE, _SQUARE = 9, 4.1
# In points of 1/72 inch: a marker, and from its middle to its label.
_SIZE, _OFFSET = 6.5, 4.5
_GRAY = '#808080'
_PALE = 0.45  # Opacity.
# Around the markers, as a share of where they are.
_ROOM = 0.18
_ALIGNED = {1: 'bottom', 0: 'center', -1: 'top'}
# Of the picture with all names beside it: inches, and names in a column.
_PANEL, _LEGEND, _HEIGHT, _NAMES = 6.2, 1.5, 5.4, 30


class Front:
  """Two measures of all methods, and the Pareto front of the ranked ones.

  Attributes:
    points: Method -> its means, for the methods with both.
    front: The methods on the front.
    outside: The methods so far below the others that these would be one blot:
      further below the median of all methods than five times what the best one
      is above it; never the baseline, Standalone, or a method on the front.
    drawn: The other methods with both measures.
  """

  def __init__(self, analysis: analysis_lib.Analysis, columns: tuple[str, str]):
    self._analysis = analysis
    self._columns = columns
    self.points = {
      method: tuple(analysis.estimates[method, c].mean for c in columns)
      for method in analysis.methods
      if all(analysis.estimates[method, c].reached for c in columns)
    }
    self.front = analysis.front(*columns)
    self.outside = self._find_outside()
    self.drawn = [m for m in self.points if m not in self.outside]

  @plot_parts.plain_text()
  def draw(
    self, axes: mpl_axes.Axes, font_size: float
  ) -> list[mpl_text.Annotation]:
    """Draws the methods; returns the names beside their markers."""
    looks = find_styles(self._analysis)
    for method in self.drawn:
      style = looks[method]._replace(hollow=method not in self.front)
      shade = _PALE if method in self._analysis.in_turn else 1
      for line in self._cross(method):
        axes.plot(
          *line.T,
          color=style.color,
          linewidth=0.8,
          alpha=0.55 * shade,
          zorder=1,
        )
      axes.plot(
        *self.points[method],
        linestyle='',
        zorder=3,
        alpha=shade,
        **_marker(style),
      )
    ends = np.array([self.points[method] for method in self.front])
    axes.plot(*ends.T, color=_GRAY, linewidth=1.2, zorder=2)
    names = [measures.MEASURES[column].title for column in self._columns]
    axes.set(xlabel=f'{names[0]} →', ylabel=f'{names[1]} →')
    self._limit(axes)
    plot_parts.tidy(axes)
    return self._label(axes, font_size)

  def to_svg(self) -> svg.Figure:
    """Draws the methods for a page."""
    across, up = (measures.MEASURES[column] for column in self._columns)
    told = {method: self._tell(method) for method in self.points}
    front = [told.pop(method) for method in self.front]
    return svg.draw(
      f'front-{up.column.replace("_", "-")}',
      f'{across.title} and {up.short}',
      self.describe(),
      f'of the methods. On the Pareto front: {"; ".join(front)}. Not on it:'
      f' {"; ".join(told.values()) or "none"}',
      lambda axes: self.draw(axes, _FONT_SIZE),
      height=_SQUARE,
    )

  def describe(self) -> str:
    """Says how to read the picture, and what it lacks."""
    analysis = self._analysis
    absent = [
      analysis.title(m) for m in analysis.methods if m not in self.points
    ]
    notes = [
      'Filled markers on the line: no other method is as good in both and'
      ' better in one (the Pareto front).'
    ]
    if analysis.has_intervals:
      notes.append(
        'Thin crosses: 95 % intervals over the seeds; long ones are cut off.'
      )
    if analysis.in_turn:
      notes.append(IN_TURN)
    if absent:
      notes.append(f'Not defined for {", ".join(absent)}.')
    if self.outside:
      far = '; '.join(map(self._tell, self.outside))
      notes.append(f'Far below, outside the picture: {far}.')
    return ' '.join(notes)

  def _find_outside(self) -> list[str]:
    if not self.points:
      return []
    points = np.array(list(self.points.values()))
    middle = np.median(points, axis=0)
    far = (points < middle - _FAR * (points.max(axis=0) - middle)).any(axis=1)
    kept = (self._analysis.baseline, plan.ALONE, *self.front)
    return [
      method
      for method, is_far in zip(self.points, far, strict=True)
      if is_far and method not in kept
    ]

  def _cross(self, method) -> list[np.ndarray]:
    """The intervals of a method as lines, if it has some."""
    x, y = (self._analysis.estimates[method, c] for c in self._columns)
    lines = np.array(
      [
        [(x.low, y.mean), (x.high, y.mean)],
        [(x.mean, y.low), (x.mean, y.high)],
      ]
    )
    return [line for line in lines if np.isfinite(line).all()]

  def _limit(self, axes) -> None:
    """Sets the limits by the markers: intervals of few seeds are far longer."""
    points = np.array([self.points[method] for method in self.drawn])
    low, high = points.min(axis=0), points.max(axis=0)
    # A single point, or equal ones, would leave no room.
    room = _ROOM * np.where(high > low, high - low, np.maximum(abs(high), 1))
    axes.set(xlim=(low[0] - room[0], high[0] + room[0]))
    axes.set(ylim=(low[1] - room[1], high[1] + room[1]))

  def _label(self, axes, font_size) -> list[mpl_text.Annotation]:
    """Writes the names of few methods."""
    # Those on the front stand above on the right, where no ranked method can
    # be, but the leftmost one on the left; that of the baseline on the right,
    # and those in turn below on the right.
    front, baseline = self.front, self._analysis.baseline
    labels = []
    for method in self.drawn:
      if method in front:
        right, up = -1 if method == front[-1] != front[0] else 1, 1
      elif method == baseline:
        right, up = 1.5, 0
      elif method in self._analysis.in_turn:
        right, up = 1, -1
      else:
        continue
      labels.append(
        axes.annotate(
          _name(self._analysis, method),
          self.points[method],
          (right * _OFFSET, up * _OFFSET),
          textcoords='offset points',
          ha='left' if right > 0 else 'right',
          va=_ALIGNED[up],
          fontsize=font_size,
          fontweight='bold' if method == baseline else 'normal',
          zorder=4,
        )
      )
    return labels

  def _tell(self, method) -> str:
    values = ', '.join(f'{value:.3g}' for value in self.points[method])
    return f'{self._analysis.title(method)} {values}'


def write(
  analysis: analysis_lib.Analysis, folder: str | os.PathLike[str]
) -> list[pathlib.Path]:
  """Draws a comparison; returns the files. Pictures without content are not."""
  folder = pathlib.Path(folder)
  folder.mkdir(parents=True, exist_ok=True)
  figures = {
    'pareto.png': draw_fronts(analysis),
    'curves.png': _draw_curve_file(analysis),
  }
  written = []
  for name, figure in figures.items():
    if figure is not None:
      plot_parts.save(figure, folder / name)
      written.append(folder / name)
  return written


def find_styles(
  analysis: analysis_lib.Analysis,
) -> dict[str, method_styles.Style]:
  """Finds the style of each method with a result, the same in all pictures."""
  found = method_styles.of_runs(analysis.methods)
  return dict(zip(analysis.methods, found, strict=True))


def find_keys(
  analysis: analysis_lib.Analysis, methods: Iterable[str]
) -> list[svg.Key]:
  """Makes the legend of methods on a page."""
  looks = find_styles(analysis)
  return [svg.make_key(analysis.title(m), looks[m]) for m in methods]


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


def draw_curves_svg(analysis: analysis_lib.Analysis) -> list[svg.Figure]:
  """Draws the curves of `curve_methods` for a page; nothing without curves."""
  methods = curve_methods(analysis)
  if not methods:
    return []
  ends = [
    f'{analysis.title(m)}: {analysis.curves[m].mean[-1]:.3f}' for m in methods
  ]
  notes = []
  if analysis.has_intervals:
    notes.append('Mean over the seeds; the band is its 95 % interval.')
  absent = len(analysis.methods) - len(methods)
  if absent:
    notes.append(
      f'{absent} of {len(analysis.methods)} methods are not drawn: the picture'
      ' has the baseline, Standalone, the best ones and the papers’ methods, at'
      f' most {MAX_CURVES}.'
    )
  return [
    svg.draw(
      'curves',
      'Mean accuracy of the clients over the rounds',
      ' '.join(notes),
      f'at the end. {"; ".join(ends)}',
      lambda axes: _draw_curves(axes, analysis, methods),
    )
  ]


@plot_parts.plain_text()
def draw_fronts(analysis: analysis_lib.Analysis) -> mpl_figure.Figure | None:
  """Draws all fronts beside each other; nothing without a method."""
  fronts = [Front(analysis, columns) for columns in FRONTS]
  fronts = [front for front in fronts if front.points]
  if not fronts:
    return None
  figure = mpl_figure.Figure(
    figsize=(_PANEL * len(fronts) + _LEGEND, _HEIGHT), layout='constrained'
  )
  panels = figure.subplots(1, len(fronts), squeeze=False)[0]
  heading = 'Filled in a panel: on its Pareto front.'
  if analysis.has_intervals:
    heading += ' Crosses: 95 % intervals over the seeds; long ones are cut off.'
  if analysis.in_turn:
    heading += f' {IN_TURN}'
  figure.suptitle(heading, fontsize='medium')
  for axes, front in zip(panels, fronts, strict=True):
    front.draw(axes, font_size=8)
    far = ', '.join(map(analysis.title, front.outside))
    if far:
      axes.set_title(f'Far below: {far}', fontsize='small', loc='left')
  shown = {method for front in fronts for method in front.drawn}
  looks = find_styles(analysis)
  keys = [
    mpl_lines.Line2D(
      [],
      [],
      linestyle='',
      label=_name(analysis, method),
      alpha=_PALE if method in analysis.in_turn else 1,
      **_marker(looks[method]),
    )
    for method in analysis.methods
    if method in shown
  ]
  figure.legend(
    handles=keys,
    loc='outside right upper',
    ncols=math.ceil(len(keys) / _NAMES),
    fontsize='small',
    frameon=False,
  )
  return figure


@plot_parts.plain_text()
def _draw_curve_file(analysis) -> mpl_figure.Figure | None:
  methods = curve_methods(analysis)
  if not methods:
    return None
  figure = mpl_figure.Figure(figsize=(8, 4.2), layout='constrained')
  axes = figure.subplots()
  _draw_curves(axes, analysis, methods)
  heading = 'Of one seed.'
  if analysis.has_intervals:
    heading = 'Mean over the seeds; the band is its 95 % interval.'
  plot_parts.draw_legend(figure, axes.lines, heading)
  return figure


@plot_parts.plain_text()
def _draw_curves(axes, analysis, methods) -> None:
  """Learning curves with bands, the intervals of the means."""
  looks = find_styles(analysis)
  for rank, method in enumerate(methods):
    (rounds, mean, low, high), style = analysis.curves[method], looks[method]
    axes.fill_between(
      rounds, low, high, color=style.color, alpha=0.15, linewidth=0
    )
    title = analysis.title(method)
    plot_parts.draw_curve(axes, rounds, mean, title, style, rank, len(methods))
  axes.set(xlabel='Round', ylabel=measures.MEASURES[MEAN].title)
  axes.xaxis.set_major_locator(plot_parts.round_locator())
  plot_parts.tidy(axes)


def _marker(style) -> dict:
  return {
    'marker': style.marker,
    'markersize': _SIZE * style.scale,
    'markerfacecolor': 'white' if style.hollow else style.color,
    'markeredgecolor': style.color,
    'markeredgewidth': 1.1,
  }


def _name(analysis, method) -> str:
  name = analysis.title(method)
  return f'({name})' if method in analysis.in_turn else name
