"""Figures of a page: drawn by Matplotlib, as SVG inside the page.

Nothing here imports TensorFlow.
"""

from collections.abc import Callable
import io
from typing import NamedTuple
from xml.etree import ElementTree

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
from matplotlib import markers

from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts

# In inches of 72 units; on a phone a unit is about a point.
_WIDTH, _HEIGHT = 4.7, 3.1
FONT_SIZE = 11
# Black and white as the page has them, light or dark.
_COLORS = {'#000000': 'currentColor', '#ffffff': 'var(--page)'}
# Dates would differ each time, and the others refer to other sites.
_NO_METADATA = dict.fromkeys(('Creator', 'Date', 'Format', 'Type'))
_DASHES = {'-': 'none', '--': '7 3', ':': '2 2', '-.': '7 2 2 2'}
# Of the marker of a key: its size, and its place.
_SIZE, _X, _Y = 8, 15, 5


class Figure(NamedTuple):
  """A figure of a page.

  Attributes:
    title: Its title.
    note: How to read it; may be empty.
    svg: An `svg` element with a text alternative, safe to put into a page; its
      ids are unique in the page.
  """

  title: str
  note: str
  svg: str


class Key(NamedTuple):
  """A legend entry: its label, and how SVG draws its line and its marker."""

  label: str
  color: str
  dashes: str
  marker: str
  hollow: bool


def make_key(label: str, style: method_styles.Style) -> Key:
  """Makes the legend entry of a style."""
  shape = markers.MarkerStyle(style.marker)
  path = shape.get_path().transformed(shape.get_transform())
  points, *_ = path.to_polygons()
  # SVG's vertical axis points down.
  size = _SIZE * style.scale
  corners = [f'{_X + size * x:.1f} {_Y - size * y:.1f}' for x, y in points]
  outline = f'M{"L".join(corners)}Z'
  dashes = _DASHES[style.linestyle]
  return Key(label, style.color, dashes, outline, style.hollow)


def draw(
  figure_id: str,
  title: str,
  note: str,
  words: str,
  draw_axes: Callable[[mpl_axes.Axes], None],
  height: float = _HEIGHT,
) -> Figure:
  """Draws a figure with a single axes; the page shows the title."""
  style = {
    'font.size': FONT_SIZE,
    # Text that can be searched, in the colour of the page.
    'svg.fonttype': 'none',
    'svg.hashsalt': figure_id,
  }
  with matplotlib.rc_context(style), plot_parts.plain_text():
    figure = mpl_figure.Figure(figsize=(_WIDTH, height), layout='constrained')
    axes = figure.subplots()
    draw_axes(axes)
    axes.set_title('')
    file = io.StringIO()
    figure.savefig(file, format='svg', transparent=True, metadata=_NO_METADATA)
  label = f'{title} {words}.'
  return Figure(title, note, _inline(file.getvalue(), figure_id, label))


def _inline(svg, figure_id, label) -> str:
  """An SVG file as an element of a page, with unique ids."""
  root = ElementTree.fromstring(svg)
  # Its rules would hold in the whole page, which has them for figures.
  for parent in root.iter():
    for style in parent.findall('{*}style'):
      parent.remove(style)
  for element in root.iter():
    element.tag = _local(element.tag)
    element.attrib = {
      _local(name): _in_page(_local(name), value, figure_id)
      for name, value in element.attrib.items()
    }
  root.attrib = {
    'viewBox': root.attrib['viewBox'],
    'role': 'img',
    'aria-label': label,
  }
  return ElementTree.tostring(root, encoding='unicode')


def _local(name) -> str:
  """A name without its namespace, which HTML implies."""
  return name.rpartition('}')[2]


def _in_page(name, value, figure_id) -> str:
  """The value of an attribute with the ids and the colours of the page."""
  if name == 'id':
    return f'{figure_id}-{value}'
  if name == 'style':
    for color, here in _COLORS.items():
      value = value.replace(color, here)
  if name == 'href':
    return value.replace('#', f'#{figure_id}-')
  return value.replace('url(#', f'url(#{figure_id}-')
