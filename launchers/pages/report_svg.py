"""A figure of a page: drawn by Matplotlib, as SVG inside the page.

Nothing here imports TensorFlow.
"""

from collections.abc import Callable
import dataclasses
import io
from xml.etree import ElementTree

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure

from tff_fair.launchers.plots import plot_parts

# In inches of 72 units; on a phone a unit is about a point.
_WIDTH, HEIGHT = 4.7, 3.1
FONT_SIZE = 11

# Black and white as the page has them, light or dark.
_COLORS = {'#000000': 'currentColor', '#ffffff': 'var(--page)'}
# Dates would differ each time, and the others refer to other sites.
_NO_METADATA = dict.fromkeys(('Creator', 'Date', 'Format', 'Type'))


@dataclasses.dataclass(frozen=True)
class Figure:
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


def draw_figure(
  figure_id: str,
  title: str,
  note: str,
  words: str,
  draw: Callable[[mpl_axes.Axes], None],
  height: float = HEIGHT,
) -> Figure:
  """Draws a figure with a single axes; the page shows the title.

  Args:
    figure_id: Its name, unique in the page, of which its ids are made.
    title: Its title.
    note: How to read it.
    words: The text alternative after the title.
    draw: Draws into the axes.
    height: In inches.

  Returns:
    The figure.
  """
  style = {
    'font.size': FONT_SIZE,
    # Text that can be searched, in the colour of the page.
    'svg.fonttype': 'none',
    'svg.hashsalt': figure_id,
  }
  with matplotlib.rc_context(style), plot_parts.plain_text():
    figure = mpl_figure.Figure(figsize=(_WIDTH, height), layout='constrained')
    axes = figure.subplots()
    draw(axes)
    axes.set_title('')
    file = io.StringIO()
    figure.savefig(file, format='svg', transparent=True, metadata=_NO_METADATA)
  label = f'{title} {words}.'
  return Figure(title, note, _inline(file.getvalue(), figure_id, label))


def _inline(svg: str, figure_id: str, label: str) -> str:
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


def _local(name: str) -> str:
  """A name without its namespace, which HTML implies."""
  return name.rpartition('}')[2]


def _in_page(name: str, value: str, figure_id: str) -> str:
  """The value of an attribute with the ids and the colours of the page."""
  if name == 'id':
    return f'{figure_id}-{value}'
  if name == 'style':
    for color, here in _COLORS.items():
      value = value.replace(color, here)
  if name == 'href':
    return value.replace('#', f'#{figure_id}-')
  return value.replace('url(#', f'url(#{figure_id}-')
