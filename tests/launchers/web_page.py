"""A page as a browser reads it, for tests."""

from html import parser

# What is never closed.
_VOID = ('meta', 'link')


class Page(parser.HTMLParser):
  """The elements of a page, and the tables in it."""

  def __init__(self, text):
    super().__init__()
    self.elements = []  # (tag, attributes)
    self.tables = []  # Rows of cells: (text, value of <data>, class).
    self.text = ''
    self._open = []
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
      self.tables[-1][-1].append(['', None, attributes.get('class')])
    elif tag == 'data':
      self.tables[-1][-1][-1][1] = float(attributes['value'])

  def handle_startendtag(self, tag, attrs):
    self.elements.append((tag, dict(attrs)))

  def handle_endtag(self, tag):
    assert self._open.pop() == tag

  def handle_data(self, data):
    if self._open[-1:] == ['style']:
      return
    self.text += data
    if 'td' in self._open or 'th' in self._open:
      self.tables[-1][-1][-1][0] += data

  def row(self, title, table=0):
    """The cells of the rows whose title begins so, without the title."""
    return [r[1:] for r in self.tables[table] if r[0][0].startswith(title)]
