"""Labels beside markers, where they cover neither markers nor each other."""

from collections.abc import Iterable, Sequence
import itertools

from matplotlib import axes as mpl_axes
from matplotlib import text as mpl_text
import numpy as np

# Where a label may stand: to the right (1) or left of its marker, above or
# below, and how far, from the best place to the worst.
_SIDES = (
  (1, 0),
  (1, 1),
  (1, -1),
  (-1, 0),
  (-1, 1),
  (-1, -1),
  (0, 1),
  (0, -1),
)
_HORIZONTAL = {1: 'left', 0: 'center', -1: 'right'}
_VERTICAL = {1: 'bottom', 0: 'center', -1: 'top'}
# In points of 1/72 inch from the middle of a marker: its edge, and the label.
# A label that is farther away has a line to its marker.
_RADIUS, _FAR = 4, 10
_OFFSETS = (6, 14, 24, 36, 50)
LINE = {'arrowstyle': '-', 'color': '#606060', 'linewidth': 0.6, 'shrinkB': 3}
"""The line of a label to its marker: `arrowprops` of `Axes.annotate`."""
# A label that leaves the panel is worse than one on others.
_OUTSIDE = 10
# And one that is a point farther away is so much worse.
_NEAR = 0.3
# Around a label, where another would look like a part of it.
_MARGIN = 2
# A line covers what these points of it do, from the marker (0) to the label.
_ALONG, _WIDTH = np.linspace(0, 1, 12)[1:-1, None], 1
# Each label moves so often: where the first ones stand depends on the others.
_ROUNDS = 2


def place(
  labels: Sequence[mpl_text.Annotation],
  axes: mpl_axes.Axes,
  points: Iterable[tuple[float, float]],
) -> None:
  """Places labels, one after the other in turns, each where it covers least.

  Args:
    labels: The labels, with offsets in points and a `LINE`.
    axes: Their panel, whose limits and contents are final.
    points: All markers of the panel, in its units.
  """
  axes.figure.draw_without_rendering()  # Which lays out the panels.
  places = [*itertools.product(_OFFSETS, _SIDES)]
  markers = _around(
    axes.transData.transform(np.array([*points])), axes, _RADIUS
  )
  boxes: dict[mpl_text.Annotation, np.ndarray] = {}
  for label in [*labels] * _ROUNDS:
    boxes.pop(label, None)
    taken = np.concatenate([markers, *boxes.values()])
    costs = [
      _cost(_move(label, axes, *where), axes, taken) + _NEAR * where[0]
      for where in places
    ]
    boxes[label] = _move(label, axes, *places[int(np.argmin(costs))])


def _move(label, axes, offset, side) -> np.ndarray:
  """Moves a label; returns what its text and its line cover, [boxes, 2, 2]."""
  right, up = side
  along = offset / (1.4 if right and up else 1)
  label.set_position((right * along, up * along))
  label.set(ha=_HORIZONTAL[right], va=_VERTICAL[up])
  label.arrow_patch.set_visible(offset > _FAR)
  extent = mpl_text.Text.get_window_extent(label)
  text = extent.padded(_MARGIN * _point(axes)).get_points()[None]
  if offset <= _FAR:
    return text
  marker = axes.transData.transform(label.xy)
  end = np.clip(marker, *extent.get_points())
  line = _around(marker + _ALONG * (end - marker), axes, _WIDTH)
  return np.concatenate([text, line])


def _around(points, axes, radius) -> np.ndarray:
  """Squares around points, [points, 2, 2]: their lowest and highest corners."""
  apart = radius * _point(axes)
  return np.stack([points - apart, points + apart], axis=1)


def _point(axes) -> float:
  """The pixels of 1/72 inch."""
  return axes.figure.dpi / 72


def _cost(boxes, axes, taken) -> float:
  """The area that boxes cover of others, and of what is not the panel."""
  panel = axes.bbox.get_points()[None]
  outside = _area(boxes).sum() - _shared(boxes, panel)
  return _shared(boxes, taken) + _OUTSIDE * outside


def _shared(boxes, others) -> float:
  low = np.maximum(boxes[:, None, 0], others[None, :, 0])
  high = np.minimum(boxes[:, None, 1], others[None, :, 1])
  return np.clip(high - low, 0, None).prod(axis=-1).sum()


def _area(boxes) -> np.ndarray:
  return (boxes[:, 1] - boxes[:, 0]).prod(axis=-1)
