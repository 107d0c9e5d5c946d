"""The pictures of a comparison of methods; pages draw the same.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
import math
import os
import pathlib

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
from matplotlib import lines as mpl_lines
from matplotlib import text as mpl_text
import numpy as np

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import client_names

MEAN, WORST10, CF = 'client_accuracy_mean', 'client_accuracy_worst10', 'cf'
FRONTS = ((MEAN, WORST10), (MEAN, CF))
"""What is drawn against what, each with a Pareto front."""
# See `outside`.
_FAR = 5
MAX_CURVES = 8
"""More curves cannot be told apart."""
IN_TURN = 'Pale, in brackets: clients take turns, not ranked.'
"""How a picture shows methods in turn."""

# In points of 1/72 inch: a marker, and from its middle to its label.
_SIZE, _OFFSET = 6.5, 4.5
_GRAY = '#808080'
_PALE = 0.45  # Opacity.
# Around the markers, as a share of where they are.
_ROOM = 0.18
_NAME_WIDTH = 30  # Characters.
_ALIGNED = {1: 'bottom', 0: 'center', -1: 'top'}
# Of the picture with all names beside it: inches, and names in a column.
_PANEL, _LEGEND, _HEIGHT, _NAMES = 6.2, 1.5, 5.4, 30


def write(
  analysis: analysis_lib.Analysis, folder: str | os.PathLike[str]
) -> list[pathlib.Path]:
  """Draws a comparison.

  Args:
    analysis: The comparison.
    folder: The folder to write to; made if it is missing.

  Returns:
    The files written; pictures without any content are not.
  """
  folder = pathlib.Path(folder)
  folder.mkdir(parents=True, exist_ok=True)
  figures = {
    'pareto.png': _front_figure(analysis),
    'curves.png': _curve_figure(analysis),
  }
  written = []
  for name, figure in figures.items():
    if figure is not None:
      plot_parts.save(figure, folder / name)
      written.append(folder / name)
  return written


def styles(analysis: analysis_lib.Analysis) -> dict[str, method_styles.Style]:
  """The style of each method with a result, the same in all pictures.

  Args:
    analysis: The comparison.

  Returns:
    Method -> style.
  """
  found = method_styles.of_runs(analysis.methods)
  return dict(zip(analysis.methods, found, strict=True))


def title(method: str) -> str:
  """A method's name as pictures and tables have it; a plug-in's may be long.

  Args:
    method: The method.

  Returns:
    Its name in papers, on one line.
  """
  return client_names.one_line(methods_lib.title(method), _NAME_WIDTH)


def methods_with(
  analysis: analysis_lib.Analysis, columns: tuple[str, str]
) -> list[str]:
  """The methods that a picture of two measures can show.

  Args:
    analysis: The comparison.
    columns: The measures' columns.

  Returns:
    The methods with a value of both.
  """
  return [
    method
    for method in analysis.methods
    if all(analysis.estimates[method, column].reached for column in columns)
  ]


def outside(
  analysis: analysis_lib.Analysis, columns: tuple[str, str]
) -> list[str]:
  """The methods so far below the others that these would be one blot.

  Args:
    analysis: The comparison.
    columns: The measures' columns.

  Returns:
    The methods that are further below the median of all methods than five times
    what the best one is above it; never the baseline, Standalone, or a method
    on the front.
  """
  known = methods_with(analysis, columns)
  if not known:
    return []
  points = np.array([_point(analysis, method, columns) for method in known])
  middle = np.median(points, axis=0)
  far = (points < middle - _FAR * (points.max(axis=0) - middle)).any(axis=1)
  kept = (analysis.baseline, plan.ALONE, *analysis.front(*columns))
  return [
    method
    for method, is_far in zip(known, far, strict=True)
    if is_far and method not in kept
  ]


def drawn(
  analysis: analysis_lib.Analysis, columns: tuple[str, str]
) -> list[str]:
  """The methods that `draw_front` draws.

  Args:
    analysis: The comparison.
    columns: The measures' columns.
  """
  left_out = outside(analysis, columns)
  return [m for m in methods_with(analysis, columns) if m not in left_out]


@plot_parts.plain_text()
def draw_front(
  axes: mpl_axes.Axes,
  analysis: analysis_lib.Analysis,
  columns: tuple[str, str],
) -> None:
  """Draws two measures of all methods, and the Pareto front of the ranked ones.

  Args:
    axes: Where to draw.
    analysis: The comparison.
    columns: The measures' columns, horizontal first.
  """
  front, looks = analysis.front(*columns), styles(analysis)
  for method in drawn(analysis, columns):
    style = looks[method]._replace(hollow=method not in front)
    shade = _PALE if method in analysis.in_turn else 1
    for line in _cross(analysis, method, columns):
      axes.plot(
        *line.T,
        color=style.color,
        linewidth=0.8,
        alpha=0.55 * shade,
        zorder=1,
      )
    point = _point(analysis, method, columns)
    axes.plot(*point, linestyle='', zorder=3, alpha=shade, **_marker(style))
  ends = np.array([_point(analysis, method, columns) for method in front])
  axes.plot(*ends.T, color=_GRAY, linewidth=1.2, zorder=2)
  names = [measures.BY_COLUMN[column].title for column in columns]
  axes.set(xlabel=f'{names[0]} →', ylabel=f'{names[1]} →')
  _limit(axes, analysis, columns)
  plot_parts.tidy(axes)


@plot_parts.plain_text()
def label_front(
  axes: mpl_axes.Axes,
  analysis: analysis_lib.Analysis,
  columns: tuple[str, str],
  font_size: float,
) -> list[mpl_text.Annotation]:
  """Writes the names of few methods next to their markers.

  Names on the front stand above on the right, where no ranked method can be,
  but the leftmost one on the left; that of the baseline on the right, and those
  in turn below on the right.

  Args:
    axes: What `draw_front` drew.
    analysis: The comparison.
    columns: The measures' columns, horizontal first.
    font_size: Of the labels.

  Returns:
    The labels of the front, of the baseline and of the methods in turn.
  """
  front = analysis.front(*columns)
  labels = []
  for method in drawn(analysis, columns):
    if method in front:
      right, up = -1 if method == front[-1] != front[0] else 1, 1
    elif method == analysis.baseline:
      right, up = 1.5, 0
    elif method in analysis.in_turn:
      right, up = 1, -1
    else:
      continue
    labels.append(
      axes.annotate(
        _label(analysis, method),
        _point(analysis, method, columns),
        (right * _OFFSET, up * _OFFSET),
        textcoords='offset points',
        ha='left' if right > 0 else 'right',
        va=_ALIGNED[up],
        fontsize=font_size,
        fontweight='bold' if method == analysis.baseline else 'normal',
        zorder=4,
      )
    )
  return labels


def curve_methods(analysis: analysis_lib.Analysis) -> tuple[str, ...]:
  """The methods whose curves are drawn.

  Args:
    analysis: The comparison.

  Returns:
    The baseline, Standalone, the best ones and the papers' methods, as far as
    there is room; those with a curve.
  """
  best = [analysis.best(column) for column in (MEAN, WORST10, CF)]
  wanted = dict.fromkeys(
    (analysis.baseline, plan.ALONE, *best, *methods_lib.PAPERS)
  )
  known = [m for m in wanted if m in analysis.methods]
  return tuple(m for m in known if len(analysis.curve(m).rounds))[:MAX_CURVES]


@plot_parts.plain_text()
def draw_curves(
  axes: mpl_axes.Axes, analysis: analysis_lib.Analysis, methods: Sequence[str]
) -> None:
  """Draws learning curves with bands, the intervals of the means.

  Args:
    axes: Where to draw.
    analysis: The comparison.
    methods: The methods to draw.
  """
  looks = styles(analysis)
  for rank, method in enumerate(methods):
    curve, style = analysis.curve(method), looks[method]
    axes.fill_between(
      curve.rounds,
      curve.low,
      curve.high,
      color=style.color,
      alpha=0.15,
      linewidth=0,
    )
    plot_parts.draw_curve(
      axes,
      curve.rounds,
      curve.mean,
      title(method),
      style,
      rank,
      len(methods),
    )
  axes.set(xlabel='Round', ylabel=measures.BY_COLUMN[MEAN].title)
  axes.xaxis.set_major_locator(plot_parts.round_locator())
  plot_parts.tidy(axes)


@plot_parts.plain_text()
def _front_figure(analysis) -> mpl_figure.Figure | None:
  pairs = [columns for columns in FRONTS if methods_with(analysis, columns)]
  if not pairs:
    return None
  figure = mpl_figure.Figure(
    figsize=(_PANEL * len(pairs) + _LEGEND, _HEIGHT), layout='constrained'
  )
  panels = figure.subplots(1, len(pairs), squeeze=False)[0]
  heading = 'Filled in a panel: on its Pareto front.'
  if _has_intervals(analysis):
    heading += ' Crosses: 95 % intervals over the seeds; long ones are cut off.'
  if analysis.in_turn:
    heading += f' {IN_TURN}'
  figure.suptitle(heading, fontsize='medium')
  for axes, columns in zip(panels, pairs, strict=True):
    draw_front(axes, analysis, columns)
    far = ', '.join(map(title, outside(analysis, columns)))
    if far:
      axes.set_title(f'Far below: {far}', fontsize='small', loc='left')
    label_front(axes, analysis, columns, font_size=8)
  shown = {method for columns in pairs for method in drawn(analysis, columns)}
  _draw_names(figure, analysis, [m for m in analysis.methods if m in shown])
  return figure


def _draw_names(figure, analysis, methods) -> None:
  """Draws the legend of all methods beside the panels."""
  looks = styles(analysis)
  keys = [
    mpl_lines.Line2D(
      [],
      [],
      linestyle='',
      label=_label(analysis, method),
      alpha=_PALE if method in analysis.in_turn else 1,
      **_marker(looks[method]),
    )
    for method in methods
  ]
  figure.legend(
    handles=keys,
    loc='outside right upper',
    ncols=math.ceil(len(keys) / _NAMES),
    fontsize='small',
    frameon=False,
  )


@plot_parts.plain_text()
def _curve_figure(analysis) -> mpl_figure.Figure | None:
  methods = curve_methods(analysis)
  if not methods:
    return None
  figure = mpl_figure.Figure(figsize=(8, 4.2), layout='constrained')
  axes = figure.subplots()
  draw_curves(axes, analysis, methods)
  heading = (
    'Mean over the seeds; the band is its 95 % interval.'
    if _has_intervals(analysis)
    else 'Of one seed.'
  )
  plot_parts.draw_legend(figure, axes.lines, heading)
  return figure


def _has_intervals(analysis) -> bool:
  return len(analysis.facts['seeds']) > 1


def _marker(style) -> dict:
  return {
    'marker': style.marker,
    'markersize': _SIZE * style.scale,
    'markerfacecolor': 'white' if style.hollow else style.color,
    'markeredgecolor': style.color,
    'markeredgewidth': 1.1,
  }


def _point(analysis, method, columns) -> tuple[float, ...]:
  return tuple(analysis.estimates[method, column].mean for column in columns)


def _limit(axes, analysis, columns) -> None:
  """Sets the limits by the markers: intervals of few seeds are far longer."""
  points = np.array(
    [_point(analysis, m, columns) for m in drawn(analysis, columns)]
  )
  low, high = points.min(axis=0), points.max(axis=0)
  # A single point, or equal ones, would leave no room.
  room = _ROOM * np.where(high > low, high - low, np.maximum(abs(high), 1))
  axes.set(xlim=(low[0] - room[0], high[0] + room[0]))
  axes.set(ylim=(low[1] - room[1], high[1] + room[1]))


def _label(analysis, method) -> str:
  name = title(method)
  return f'({name})' if method in analysis.in_turn else name


def _cross(analysis, method, columns) -> list[np.ndarray]:
  """The intervals of a method as lines, if it has some."""
  x, y = (analysis.estimates[method, column] for column in columns)
  lines = np.array(
    [
      [(x.low, y.mean), (x.high, y.mean)],
      [(x.mean, y.low), (x.mean, y.high)],
    ]
  )
  return [line for line in lines if np.isfinite(line).all()]
