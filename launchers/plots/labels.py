"""Labels beside markers, where they cover neither markers nor each other."""

from collections.abc import Iterable, Sequence
import itertools

from matplotlib import axes as mpl_axes
from matplotlib import text as mpl_text
from matplotlib import transforms as mpl_transforms
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
_OFFSETS = (6, 14, 24, 36)
LINE = {'arrowstyle': '-', 'color': '#606060', 'linewidth': 0.6, 'shrinkB': 3}
"""The line of a label to its marker: `arrowprops` of `Axes.annotate`."""
# A label that leaves the panel is worse than one on others.
_OUTSIDE = 10


def place(
  labels: Sequence[mpl_text.Annotation],
  axes: mpl_axes.Axes,
  points: Iterable[tuple[float, float]],
) -> None:
  """Places labels, one after the other, each where it covers least.

  Args:
    labels: The labels, with offsets in points and a `LINE`; the first ones
      have the choice.
    axes: Their panel, whose limits and contents are final.
    points: All markers of the panel, in its units.
  """
  axes.figure.draw_without_rendering()  # Which lays out the panels.
  radius = _RADIUS * axes.figure.dpi / 72
  taken = [
    mpl_transforms.Bbox([centre - radius, centre + radius])
    for centre in axes.transData.transform(np.array([*points]))
  ]
  places = [*itertools.product(_OFFSETS, _SIDES)]
  for label in labels:
    costs = [_cost(_move(label, *where), axes, taken) for where in places]
    taken.append(_move(label, *places[int(np.argmin(costs))]))


def _move(label, offset, side) -> mpl_transforms.Bbox:
  """Moves a label; returns what its text covers."""
  right, up = side
  along = offset / (1.4 if right and up else 1)
  label.set_position((right * along, up * along))
  label.set(ha=_HORIZONTAL[right], va=_VERTICAL[up])
  label.arrow_patch.set_visible(offset > _FAR)
  return mpl_text.Text.get_window_extent(label)


def _cost(box, axes, taken) -> float:
  """The area that a label covers of others, and of what is not the panel."""
  outside = _area(box) - _shared(box, axes.bbox)
  return sum(_shared(box, other) for other in taken) + _OUTSIDE * outside


def _shared(first, second) -> float:
  both = mpl_transforms.Bbox.intersection(first, second)
  return _area(both) if both else 0


def _area(box) -> float:
  return box.width * box.height
