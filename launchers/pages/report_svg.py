"""A figure of a page: drawn by Matplotlib, as SVG inside the page.

Nothing here imports TensorFlow.
"""

from collections.abc import Callable
import dataclasses
import io
import re
from xml.etree import ElementTree
import zlib

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure

from tff_fair.launchers.plots import plot_parts

# In inches of 72 units; on a phone a unit is about a point.
_WIDTH, HEIGHT = 4.7, 3.1
FONT_SIZE = 11

# Black and white as the page has them, light or dark.
_COLORS = {'#000000': 'currentColor', '#ffffff': 'var(--page)'}
_REFERENCE = re.compile(r'(^|url\()#([^)]+)')
_FONTS = re.compile(r'font-family: [^;]*;? ?')
# Digits beyond a tenth of a unit.
_DIGITS = re.compile(r'(\.\d)\d+')
# Lines of a path behind its start or another line, which need no letter.
_LINES = re.compile(r'[ML](?: -?[\d.]+){2}(?: L(?: -?[\d.]+){2})+')
_COORDINATES = ('d', 'x', 'y', 'width', 'height', 'transform')


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
    figure.savefig(file, format='svg', transparent=True)
  label = f'{title} {words}.'
  return Figure(title, note, _inline(file.getvalue(), figure_id, label))


def _inline(svg: str, figure_id: str, label: str) -> str:
  """An SVG file as a small element of a page, with unique ids."""
  root = ElementTree.fromstring(svg)
  for element in root.iter():
    element.tag = _local(element.tag)
    element.attrib = {_local(n): v for n, v in element.attrib.items()}
  names = _new_ids(root, figure_id)
  # A marker is drawn by references to its shape, each with the shape's style.
  styles = {
    f'#{element.get("id")}': element.get('style') for element in root.iter()
  }
  for element in root.iter():
    if element.get('style') == styles.get(element.get('href'), ''):
      del element.attrib['style']
    element.attrib = {
      name: _shortened(name, value, names)
      for name, value in element.attrib.items()
      if _is_needed(name, value, names)
    }
  _compact(root)
  root.attrib = {
    'viewBox': root.attrib['viewBox'],
    'role': 'img',
    'aria-label': label,
  }
  return ElementTree.tostring(root, encoding='unicode').replace(' />', '/>')


def _local(name: str) -> str:
  """A name without its namespace, which HTML implies."""
  return name.rpartition('}')[2]


def _new_ids(root, figure_id) -> dict[str, str]:
  """The ids that something refers to, and their names in the page."""
  used = dict.fromkeys(
    name
    for element in root.iter()
    for value in element.attrib.values()
    for _, name in _REFERENCE.findall(value)
  )
  # Short, since every dot of a figure refers to its shape.
  start = f'f{zlib.crc32(figure_id.encode()):x}'
  return {name: f'{start}-{i}' for i, name in enumerate(used)}


def _is_needed(name: str, value: str, names) -> bool:
  if name == 'id':
    return value in names
  return not value.startswith('rotate(-0 ')


def _shortened(name: str, value: str, names) -> str:
  if name == 'id':
    return names[value]
  value = _REFERENCE.sub(lambda f: f'{f[1]}#{names[f[2]]}', value)
  if name == 'style':
    for color, here in _COLORS.items():
      value = value.replace(color, here)
  if name in _COORDINATES:
    value = ' '.join(_DIGITS.sub(r'\1', value).split())
  if name == 'd':
    value = _LINES.sub(lambda lines: lines[0].replace(' L', ''), value)
    value = value.replace(' -', '-')
  # The page has its own fonts.
  return _FONTS.sub('', value)


def _compact(parent) -> None:
  """Removes spaces, groups that say nothing, and what is for a whole file."""
  children = []
  for child in parent:
    if child.tag in ('metadata', 'style'):
      continue
    _compact(child)
    _share_style(child)
    child.tail = None
    if child.tag == 'g' and not child.attrib:
      children.extend(child)
    elif len(child) or child.tag != 'defs':
      children.append(child)
  parent[:] = children
  if parent.tag != 'text':
    parent.text = None


def _share_style(group) -> None:
  """Moves a style that all children have to the group."""
  styles = {child.get('style') for child in group}
  if group.tag == 'g' and len(group) > 1 and len(styles) == 1:
    (style,) = styles
    if style and not group.get('style'):
      group.set('style', style)
      for child in group:
        del child.attrib['style']
