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
# In points: what is kept free around a label.
_PADDING = 1.0
# Above on the right first, where a Pareto front has nothing; then beside the
# point, above and below, then all others.
_FIRST_ANGLES = (45, 0, 90, 180, 270)
_ANGLES = np.deg2rad(
  [*_FIRST_ANGLES, *(a for a in range(0, 360, 15) if a not in _FIRST_ANGLES)]
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
) -> list[mpl_text.Annotation]:
  """Draws labels; whatever changes the axes must be done before.

  Args:
    axes: Where the points are drawn.
    points: float[n, 2], the points, in units of the axes.
    labels: The labels; the first ones choose first.
    radius: Of a point, in points of 1/72 inch.
    font_size: Of the labels.

  Returns:
    The labels that found a place.
  """
  axes.figure.draw_without_rendering()  # The axes take their place.
  unit = axes.figure.dpi / 72
  centers = axes.transData.transform(np.asarray(points, float).reshape(-1, 2))
  places = _Places(axes.get_window_extent(), centers, radius * unit)
  drawn = []
  for label in labels:
    style = {
      'fontsize': font_size,
      'fontweight': 'bold' if label.bold else 'normal',
    }
    half = _half_size(axes, label.text, style) + _PADDING * unit
    gaps = np.array(_GAPS if label.needed else _GAPS[:1]) * unit
    place = places.take(label.point, half, gaps)
    if place is None:
      continue
    offset, gap = place
    text = axes.annotate(
      label.text,
      points[label.point],
      offset / unit,
      textcoords='offset points',
      ha='center',
      va='center',
      arrowprops=_LINE if gap > gaps[0] else None,
      **style,
    )
    text.set_in_layout(False)  # The axes stay where they are.
    drawn.append(text)
  return drawn


class _Places:
  """What is taken, in pixels: points, labels, and lines between them."""

  def __init__(self, inside, centers, radius):
    self._inside = inside
    self._centers = centers
    self._radius = radius
    self._points = [_box(center, radius) for center in centers]
    self._labels = []
    self._lines = []

  def take(self, point, half, gaps) -> tuple[np.ndarray, float] | None:
    """Takes a free place for a label, if possible without lines that cross.

    Args:
      point: The index of its point.
      half: float[2], half of its size.
      gaps: Between the edge of the point and the label.

    Returns:
      float[2], from the point to the middle of the label, and the gap; None if
      there is no place.
    """
    found = None
    for gap, angle in itertools.product(gaps, _ANGLES):
      direction = np.array([np.cos(angle), np.sin(angle)])
      offset = direction * (half + self._radius + gap)
      middle = self._centers[point] + offset
      box = _box(middle, half)
      if not self._is_free(box):
        continue
      line = mpl_path.Path([self._centers[point], middle])
      found = found or (box, line, offset, gap)
      if not self._crosses(point, box, line):
        found = box, line, offset, gap
        break
    if found is None:
      return None
    box, line, offset, gap = found
    self._labels.append(box)
    self._lines.append(line)
    return offset, gap

  def _is_free(self, box) -> bool:
    x, y = self._inside.intervalx, self._inside.intervaly
    return (
      x[0] <= box.x0 <= box.x1 <= x[1]
      and y[0] <= box.y0 <= box.y1 <= y[1]
      and not box.count_overlaps([*self._points, *self._labels])
    )

  def _crosses(self, point, box, line) -> bool:
    """Whether a label, or the line to it, lies across what is drawn."""
    others = self._points[:point] + self._points[point + 1 :]
    return any(
      old.intersects_bbox(box, filled=False)
      or old.intersects_path(line, filled=False)
      for old in self._lines
    ) or any(
      line.intersects_bbox(old, filled=False) for old in self._labels + others
    )


def _half_size(axes, words, style) -> np.ndarray:
  text = axes.text(0, 0, words, transform=None, **style)
  size = text.get_window_extent().size
  text.remove()
  return size / 2


def _box(center, half) -> transforms.Bbox:
  return transforms.Bbox([center - half, center + half])
