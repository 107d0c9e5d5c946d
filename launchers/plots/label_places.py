"""Labels of points that cover neither each other nor a point.

Each label in turn takes the first free place near its point. Libraries that
push labels apart step by step leave some that overlap, since they end without
a check; here, a label without a free place is not drawn.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
import itertools
from typing import NamedTuple

from matplotlib import axes as mpl_axes
from matplotlib import path as mpl_path
from matplotlib import text as mpl_text
from matplotlib import transforms
import numpy as np
from numpy import typing as npt

# In points: from the edge of a point to its label, the nearest place first. Far
# labels have a line to their point.
_GAPS = (2.0, *range(8, 300, 6))
# In points: what is kept free around a label, and how far another point must be
# for the label not to look like its own.
_PADDING, _APART = 1.0, 4.0
# From a point to its label: above on the right first, where a Pareto front has
# nothing, then the other corners, beside lines through the point, then sides.
_DIRECTIONS = np.array(
  [
    *itertools.product((1, -1), (1, -1)),
    (1, 0),
    (-1, 0),
    (0, 1),
    (0, -1),
    *itertools.product((1, -1), (0.5, -0.5)),
    *itertools.product((0.5, -0.5), (1, -1)),
  ]
)
_LINE = {'arrowstyle': '-', 'linewidth': 0.6, 'color': '#808080'}


class Label(NamedTuple):
  """A label of a point.

  Attributes:
    text: What it says.
    point: The index of its point.
    needed: Whether it may stand far from its point, with a line to it; others
      stand next to it, or are not drawn.
    bold: Whether its letters are bold.
  """

  text: str
  point: int
  needed: bool
  bold: bool = False


def draw(
  axes: mpl_axes.Axes,
  points: npt.ArrayLike,
  labels: Sequence[Label],
  radius: float,
  font_size: float,
  lines: Sequence[npt.ArrayLike] = (),
) -> list[mpl_text.Annotation]:
  """Draws labels; whatever changes the axes must be done before.

  Args:
    axes: Where the points are drawn.
    points: float[n, 2], the points, in units of the axes.
    labels: The labels; the first ones choose first.
    radius: Of a point, in points of 1/72 inch.
    font_size: Of the labels.
    lines: float[2, 2] each, the ends of lines that are drawn, which labels
      avoid if another place is as near; they keep apart from other points, too.

  Returns:
    The labels that found a place.
  """
  axes.figure.draw_without_rendering()  # The axes take their place.
  unit = axes.figure.dpi / 72
  centers = axes.transData.transform(np.asarray(points, float).reshape(-1, 2))
  drawn_lines = [
    mpl_path.Path(axes.transData.transform(line)) for line in lines
  ]
  inside = axes.get_window_extent()
  places = _Places(inside, centers, radius * unit, drawn_lines, _APART * unit)
  drawn = []
  for label in labels:
    style = {
      'fontsize': font_size,
      'fontweight': 'bold' if label.bold else 'normal',
    }
    half = _half_size(axes, label.text, style) + _PADDING * unit
    gaps = np.array(_GAPS if label.needed else _GAPS[:1]) * unit
    place = places.take(label.point, half, gaps, label.needed)
    if place is None:
      continue
    text = axes.annotate(
      label.text,
      points[label.point],
      place.offset / unit,
      textcoords='offset points',
      ha='center',
      va='center',
      arrowprops=_LINE if place.gap > gaps[0] else None,
      **style,
    )
    text.set_in_layout(False)  # The axes stay where they are.
    drawn.append(text)
  return drawn


class _Place(NamedTuple):
  """A place of a label, in pixels.

  Attributes:
    offset: float[2], from the point to the middle of the label.
    gap: Between the edge of the point and the label.
    box: What the label covers.
    line: From the point to the middle of the label.
  """

  offset: np.ndarray
  gap: float
  box: transforms.Bbox
  line: mpl_path.Path


class _Places:
  """What is taken, in pixels: points, labels, and lines between them."""

  def __init__(self, inside, centers, radius, drawn_lines, apart):
    self._inside = inside
    self._centers = centers
    self._radius = radius
    self._points = [_box(center, radius) for center in centers]
    self._labels = []
    self._lines = []  # To labels.
    self._drawn_lines = drawn_lines
    self._apart = apart

  def take(self, point, half, gaps, needed) -> _Place | None:
    """Takes a place for a label, the nearest one without lines that cross.

    Args:
      point: The index of its point.
      half: float[2], half of its size.
      gaps: Between the edge of the point and the label.
      needed: Whether a place that is not distinct is better than none.

    Returns:
      The place; None if there is none.
    """
    found = None
    for gap in gaps:
      free = self._free(point, half, gap)
      clear = [place for place in free if not self._crosses(point, place)]
      best = next((p for p in clear if self._is_distinct(point, p)), None)
      if best or (clear and needed):
        found = best or clear[0]
        break
      if needed and free:
        found = found or free[0]
    if found is not None:
      self._labels.append(found.box)
      self._lines.append(found.line)
    return found

  def _free(self, point, half, gap) -> list[_Place]:
    """The places at a distance where a label covers nothing."""
    places = []
    for direction in _DIRECTIONS:
      away = direction / np.linalg.norm(direction)
      offset = direction * half + away * (self._radius + gap)
      middle = self._centers[point] + offset
      box = _box(middle, half)
      line = mpl_path.Path([self._centers[point], middle])
      inside = self._inside.contains(*box.p0) and self._inside.contains(*box.p1)
      if inside and not box.count_overlaps([*self._points, *self._labels]):
        places.append(_Place(offset, gap, box, line))
    return places

  def _others(self, point) -> list[transforms.Bbox]:
    return self._points[:point] + self._points[point + 1 :]

  def _crosses(self, point, place) -> bool:
    """Whether a label, or the line to it, lies across others or a point."""
    return any(
      old.intersects_bbox(place.box, filled=False)
      or old.intersects_path(place.line, filled=False)
      for old in self._lines
    ) or any(
      place.line.intersects_bbox(old, filled=False)
      for old in self._labels + self._others(point)
    )

  def _is_distinct(self, point, place) -> bool:
    """Whether no drawn line strikes a label, and no other point is close."""
    around = place.box.padded(self._apart)
    return not around.count_overlaps(self._others(point)) and not any(
      line.intersects_bbox(place.box, filled=False)
      for line in self._drawn_lines
    )


def _half_size(axes, words, style) -> np.ndarray:
  text = axes.text(0, 0, words, transform=None, **style)
  size = text.get_window_extent().size
  text.remove()
  return size / 2


def _box(center, half) -> transforms.Bbox:
  return transforms.Bbox([center - half, center + half])
