"""Links of pages to files of the repository, as GitHub follows them.

On the site they lead to the API reference if they name something public, and
otherwise to a page with the file's source.
"""

from collections.abc import Iterator, Mapping
import posixpath
import re
from typing import NamedTuple

import notebook_pages

SOURCES = 'source/'
_FENCE = re.compile(r'(^```.*?^```$)', re.DOTALL | re.MULTILINE)
_LINK = re.compile(r'(\[`(?P<name>\w+)`)?\]\((?P<target>[^)\s]+)\)')
_PICTURE = re.compile(r'^(!\[[^]]*\]\(([^)]+)\))$', re.MULTILINE)
# Behind a fence's language, GitHub ignores where the code stands.
_QUOTED = re.compile(r'^```(\w+) (\S+)$', re.MULTILINE)


class _Link(NamedTuple):
  """A link: the name that is its text, and what it leads to."""

  name: str | None
  path: str  # From the root of the repository.
  anchor: str  # With `#`, or empty.


def linked_sources(
  uri: str, markdown: str, defined: Mapping[str, str]
) -> Iterator[str]:
  """The files that a page links to and that need a page of their own.

  Args:
    uri: The page, as the site calls it.
    markdown: Its text.
    defined: Where the names of the API reference are defined.

  Yields:
    Paths from the root of the repository.
  """
  for part in _FENCE.split(markdown)[::2]:
    for match in _LINK.finditer(part):
      link = _read_link(uri, match)
      if link and not _has_page(link) and _full_name(link) not in defined:
        yield link.path


def rewrite(uri: str, markdown: str, defined: Mapping[str, str]) -> str:
  """Markdown of a page whose links lead to pages of the site.

  Args:
    uri: The page, as the site calls it.
    markdown: Its text.
    defined: Where the names of the API reference are defined.

  Returns:
    The text, in which pictures are links to themselves, in full size.
  """

  def lead(match: re.Match[str]) -> str:
    link = _read_link(uri, match)
    if link is None:
      return match[0]
    if documented := defined.get(_full_name(link)):
      return f'[`{link.name}`][{documented}]'
    return f'{match[1] or ""}]({_relative(uri, link)})'

  parts = _FENCE.split(markdown)
  parts[::2] = [
    _PICTURE.sub(r'[\1](\2)', _LINK.sub(lead, part)) for part in parts[::2]
  ]
  parts[1::2] = [_QUOTED.sub(r'```\1 title="\2"', p) for p in parts[1::2]]
  return ''.join(parts)


def _read_link(uri: str, match: re.Match[str]) -> _Link | None:
  """A link to a file of the repository; None for any other."""
  target, mark, anchor = match['target'].partition('#')
  if not target or '://' in target:
    return None
  if uri == 'index.md':
    folder = ''
  elif uri.startswith(notebook_pages.NOTEBOOKS):
    folder = 'examples'
  else:
    folder = f'docs/{posixpath.dirname(uri)}'
  path = posixpath.normpath(posixpath.join(folder, target))
  return _Link(match['name'], path, mark + anchor)


def _has_page(link: _Link) -> bool:
  """Whether the site shows the file, and not only its source."""
  is_page = link.path.startswith('docs/') or link.path == 'README.md'
  return is_page or link.path.endswith('.ipynb')


def _full_name(link: _Link) -> str:
  """Where Python finds what a link names."""
  module = link.path.removesuffix('.py').replace('/', '.')
  return f'tff_fair.{module.removeprefix("tff_fair.")}.{link.name}'


def _relative(uri: str, link: _Link) -> str:
  """A link from a page to the page of the site that has what it is about."""
  if link.path == 'README.md':
    target = f'index.md{link.anchor}'
  elif link.path.endswith('.ipynb'):
    target = f'{notebook_pages.NOTEBOOKS}{posixpath.basename(link.path)}'
    target = target.removesuffix('.ipynb') + '.md'
  elif _has_page(link):
    target = link.path.removeprefix('docs/') + link.anchor
  else:
    anchor = f'#{link.name}' if link.name else ''
    target = f'{SOURCES}{link.path}.md{anchor}'
  return posixpath.relpath(target, posixpath.dirname(uri) or '.')
