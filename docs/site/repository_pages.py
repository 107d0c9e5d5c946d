"""Files of the repository as pages: notebooks, and sources that pages link to.

A link to a file leads to the API reference if it names something public, and
otherwise to a page with the file's source.
"""

import ast
import functools
import html
import pathlib
import posixpath
import re

import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS, SOURCES = 'notebooks/', 'source/'
_FENCE = re.compile(r'(^```.*?^```$)', re.DOTALL | re.MULTILINE)
# A link to a file, not to an address or a heading of its page.
_LINK = re.compile(
  r'(\[`(?P<name>\w+)`)?\]\((?!\w+://)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)'
)
_PICTURE = re.compile(r'^(!\[[^]]*\]\(([^)]+)\))$', re.MULTILINE)
# Behind a fence's language, GitHub ignores where the code stands.
_QUOTED = re.compile(r'^```(\w+) (\S+)$', re.MULTILINE)


@functools.cache
def read_notebooks() -> dict[str, str]:
  """Returns the page of each notebook, with the outputs that it keeps."""
  return {
    f'{NOTEBOOKS}{path.stem}.md': _render_notebook(path)
    for path in sorted((ROOT / 'examples').glob('*.ipynb'))
  }


def _render_notebook(path):
  parts = []
  for cell in nbformat.read(path, as_version=4).cells:
    if cell.cell_type == 'markdown':
      parts.append(cell.source)
      continue
    parts.append(_as_fence(cell.source))
    for output in cell.get('outputs', ()):
      parts.append(f'<div class="output">{_as_html(output)}</div>')
  return '\n\n'.join(parts)


def _as_fence(source):
  """A cell; the first line of one that is no Python says what it is."""
  magic, _, rest = source.partition('\n')
  if magic == '%%sh':
    return f'```sh\n{rest}\n```'
  if magic.startswith('%%writefile '):
    return f'```python {magic.split()[1]}\n{rest}\n```'
  return f'```python\n{source}\n```'


def _as_html(output):
  data = output.get('data', {})
  if 'text/html' in data:
    return data['text/html']
  if 'image/png' in data:
    png = data['image/png'].replace('\n', '')
    return f'<img alt="Drawn by the cell" src="data:image/png;base64,{png}">'
  return f'<pre>{html.escape(output.get("text") or data["text/plain"])}</pre>'


def render_source(path: str) -> str:
  """Returns the page of a file, with an anchor for each function and class."""
  # Pages are found by search; the code that they quote would drown them.
  parts = [f'---\nsearch:\n  exclude: true\n---\n# `{path}`\n']
  text = (ROOT / path).read_text()
  language = pathlib.Path(path).suffix.lstrip('.') or 'text'
  for name, code in _split(text) if language == 'py' else [('', text)]:
    if name:
      parts.append(f'## `{name}` {{ #{name} }}\n')
    # The fence is longer than any inside a file.
    parts.append(f'`````` {language}\n{code.strip(chr(10))}\n``````\n')
  return '\n'.join(parts)


def _split(text):
  """Yields what stands above the first definition, then each, with its name."""
  lines, starts = text.splitlines(), {0: ''}
  for node in ast.parse(text).body:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
      first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
      while lines[first - 1].startswith('#'):
        first -= 1
      starts[first] = node.name
  for (start, name), end in zip(
    starts.items(), [*starts][1:] + [None], strict=True
  ):
    yield name, '\n'.join(lines[start:end])


def linked_sources(uri: str, markdown: str, defined: dict[str, str]):
  """Yields the files that a page links to and that need a page of their own."""
  for part in _FENCE.split(markdown)[::2]:
    for link in _LINK.finditer(part):
      path = _resolve(uri, link['path'])
      if not _has_page(path) and _full_name(path, link['name']) not in defined:
        yield path


def rewrite(uri: str, markdown: str, defined: dict[str, str]) -> str:
  """Leads links to pages of the site, and pictures to themselves."""

  def lead(link):
    path, name = _resolve(uri, link['path']), link['name']
    if documented := defined.get(_full_name(path, name)):
      return f'[`{name}`][{documented}]'
    target = _page_of(path, name, link['anchor'] or '')
    target = posixpath.relpath(target, posixpath.dirname(uri) or '.')
    return f'{link[1] or ""}]({target})'

  parts = _FENCE.split(markdown)
  parts[::2] = [
    _PICTURE.sub(r'[\1](\2)', _LINK.sub(lead, part)) for part in parts[::2]
  ]
  parts[1::2] = [_QUOTED.sub(r'```\1 title="\2"', p) for p in parts[1::2]]
  return ''.join(parts)


def _resolve(uri, target):
  """Returns the path of a link's target from the root of the repository."""
  folder = posixpath.join('docs', posixpath.dirname(uri))
  if uri.startswith(NOTEBOOKS):
    folder = 'examples'
  return posixpath.normpath(posixpath.join(folder, target))


def _has_page(path):
  """Returns whether the site shows a file, and not only its source."""
  return path.startswith('docs/') or path.endswith('.ipynb')


def _full_name(path, name):
  """Returns where Python finds what a link names."""
  module = path.removesuffix('.py').replace('/', '.')
  return f'tff_fair.{module.removeprefix("tff_fair.")}.{name}'


def _page_of(path, name, anchor):
  """Returns the page of the site, with an anchor, that shows a file."""
  if path.endswith('.ipynb'):
    return f'{NOTEBOOKS}{pathlib.Path(path).stem}.md'
  if _has_page(path):
    return path.removeprefix('docs/') + anchor
  return f'{SOURCES}{path}.md' + (f'#{name}' if name else '')
