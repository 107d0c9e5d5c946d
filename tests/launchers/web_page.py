"""A page as a browser reads it, for tests."""

import collections
from html import parser

# What is never closed.
_VOID = ('meta', 'link', 'img')
# What ends a line of the page's text.
_BLOCKS = (
  'title',
  'h1',
  'h2',
  'p',
  'li',
  'dt',
  'dd',
  'tr',
  'caption',
  'summary',
  'figcaption',
)


class Page(parser.HTMLParser):
  """The elements of a page, and the tables in it."""

  def __init__(self, text):
    super().__init__()
    self.source = text
    self.elements = []  # (tag, attributes)
    self.tables = []  # Rows of cells: (text, class).
    self.text = ''
    self.lines = []  # The text of each block; of figures, the alternative.
    self._open, self._line = [], ''
    self.feed(text)
    self.close()
    assert not self._open

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    self.elements.append((tag, attributes))
    if tag not in _VOID:
      self._open.append(tag)
    if tag == 'table':
      self.tables.append([])
    elif tag == 'tr':
      self.tables[-1].append([])
    elif tag in ('td', 'th'):
      self.tables[-1][-1].append(['', attributes.get('class')])
      self._line += ' | '
    elif tag == 'img':
      self.lines.append(f'[{attributes["alt"]}]')

  def handle_startendtag(self, tag, attrs):
    self.elements.append((tag, dict(attrs)))

  def handle_endtag(self, tag):
    assert self._open.pop() == tag
    if tag in _BLOCKS:
      line = ' '.join(self._line.split())
      self.lines += [line] if line else []
      self._line = ''

  def handle_data(self, data):
    if self._open[-1:] == ['style']:
      return
    self.text += data
    self._line += data
    if 'td' in self._open or 'th' in self._open:
      self.tables[-1][-1][-1][0] += data

  def row(self, title, table=0):
    """The cells of the rows whose title begins so, without the title."""
    return [r[1:] for r in self.tables[table] if r[0][0].startswith(title)]

  def check_is_safe(self):
    """Fails if something comes from outside, runs, or refers to nothing."""
    assert '://' not in self.source
    assert not {'script', 'svg', 'iframe'} & {tag for tag, _ in self.elements}
    for _, attributes in self.elements:
      target = attributes.get('href', '#')
      assert target.startswith('#') or target == 'data:,'
      assert not [name for name in attributes if name.startswith('on')]
      # An image runs nothing and loads nothing.
      source = attributes.get('src', 'data:image/')
      assert source.startswith('data:image/')
    ids = collections.Counter(a['id'] for _, a in self.elements if 'id' in a)
    assert set(ids.values()) == {1}
    images = [a for tag, a in self.elements if tag == 'img']
    assert images and all(attributes['alt'] for attributes in images)
