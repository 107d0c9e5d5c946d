"""The legends of a report: how each run and each client is drawn.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses

from matplotlib import colors
from matplotlib import markers

from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.plots import method_styles

_DASHES = {'-': 'none', '--': '7 3', ':': '2 2', '-.': '7 2 2 2'}
# Half of the size of a marker, and its place in a swatch.
_RADIUS, _X, _Y = 4, 15, 5


@dataclasses.dataclass(frozen=True)
class Key:
  """A legend entry.

  Attributes:
    label: The run or the client.
    color: Its colour.
    dashes: The dashes of its line, as SVG has them.
    marker: The outline of its marker, an SVG path; empty for none.
    hollow: Whether the marker is not filled.
  """

  label: str
  color: str
  dashes: str
  marker: str = ''
  hollow: bool = False


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
  return [
    Key(
      label,
      style.color,
      _DASHES[style.linestyle],
      _outline(style.marker),
      style.hollow,
    )
    for label, style in styles(runs).items()
  ]


def of_line(label: str, style: Mapping[str, object]) -> Key:
  """The key of a line.

  Args:
    label: What it stands for.
    style: Its style, as for `Axes.plot`.
  """
  dashes = _DASHES[style.get('linestyle', '-')]
  return Key(label, colors.to_hex(style['color']), dashes)


def _outline(marker: str) -> str:
  """The outline of a marker of Matplotlib, in a swatch."""
  style = markers.MarkerStyle(marker)
  path = style.get_path().transformed(style.get_transform())
  points, *_ = path.to_polygons()
  # The unit of a marker is its size, and SVG's vertical axis points down.
  corners = [
    f'{_X + 2 * _RADIUS * x:.1f} {_Y - 2 * _RADIUS * y:.1f}' for x, y in points
  ]
  return f'M{"L".join(corners)}Z'
