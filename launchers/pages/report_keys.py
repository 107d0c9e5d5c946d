"""The legends of a report: how each run and each client is drawn.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
import dataclasses

from matplotlib import markers

from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.plots import method_styles

_DASHES = {'-': 'none', '--': '7 3', ':': '2 2', '-.': '7 2 2 2'}
# Of the marker in a swatch: its size, and its place.
_SIZE, _X, _Y = 8, 15, 5


@dataclasses.dataclass(frozen=True)
class Key:
  """A legend entry.

  Attributes:
    label: The run or the client.
    color: Its colour.
    dashes: The dashes of its line, as SVG has them.
    marker: The outline of its marker, an SVG path.
    hollow: Whether the marker is not filled.
  """

  label: str
  color: str
  dashes: str
  marker: str
  hollow: bool


def styles(
  runs: Sequence[report_runs.Run],
) -> dict[str, method_styles.Style]:
  """The style of each run, the same in all figures.

  Args:
    runs: The runs.

  Returns:
    Label -> style.
  """
  found = method_styles.of_runs([run.algorithm for run in runs])
  return {run.label: style for run, style in zip(runs, found, strict=True)}


def of_runs(runs: Sequence[report_runs.Run]) -> list[Key]:
  """The legend of figures that compare runs.

  Args:
    runs: The runs.

  Returns:
    A key per run.
  """
  return [of_style(*item) for item in styles(runs).items()]


def of_style(label: str, style: method_styles.Style) -> Key:
  """The key of a style.

  Args:
    label: What is drawn so.
    style: The style.
  """
  return Key(
    label,
    style.color,
    _DASHES[style.linestyle],
    _outline(style),
    style.hollow,
  )


def _outline(style: method_styles.Style) -> str:
  """The outline of a marker in a swatch, an SVG path."""
  shape = markers.MarkerStyle(style.marker)
  path = shape.get_path().transformed(shape.get_transform())
  points, *_ = path.to_polygons()
  # SVG's vertical axis points down.
  size = _SIZE * style.scale
  corners = [f'{_X + size * x:.1f} {_Y - size * y:.1f}' for x, y in points]
  return f'M{"L".join(corners)}Z'
