"""What the site has beside the pages of docs/, as hooks of MkDocs.

The start page is README.md. Pages of the API reference are made of the `api/`
entries of the navigation. Links to files of the repository, which GitHub
follows, lead to the API reference if they name something public, and otherwise
to a page with the file's source.
"""

from collections.abc import Iterator
import functools
import io
import pathlib
import posixpath
import re
from typing import NamedTuple

import equations
import griffe
from mkdocs.config import defaults
from mkdocs.structure import files as site_files
from mkdocs.structure import pages
from PIL import Image
import source_pages

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_FENCE = re.compile(r'(^```.*?^```$)', re.DOTALL | re.MULTILINE)
_LINK = re.compile(r'(\[`(?P<name>\w+)`)?\]\((?P<target>[^)\s]+)\)')
# Behind a fence's language, GitHub ignores where the code stands.
_QUOTED = re.compile(r'^```(\w+) (\S+)$', re.MULTILINE)
_PICTURE = re.compile(r'^(!\[[^]]*\]\(([^)]+)\))$', re.MULTILINE)
_API, _SOURCE = 'api/', 'source/'


class _Link(NamedTuple):
  """A link: the name that is its text, and what it leads to."""

  name: str | None
  path: str  # From the root of the repository.
  anchor: str  # With `#`, or empty.


def on_config(config: defaults.MkDocsConfig) -> defaults.MkDocsConfig:
  """Adds the fence of equations."""
  fences = config.mdx_configs.setdefault('pymdownx.superfences', {})
  fences['custom_fences'] = [
    {'name': 'math', 'class': 'equation', 'format': equations.format_math}
  ]
  return config


def on_files(
  files: site_files.Files, config: defaults.MkDocsConfig
) -> site_files.Files:
  """Adds the start page, the API reference, and the sources linked to."""

  def add(uri: str, text: str) -> None:
    files.append(site_files.File.generated(config, uri, content=text))

  for image in files.media_files():
    if image.src_uri.endswith('.png'):
      image.content_bytes = _fewer_colors(image.content_bytes)
  add('index.md', (_ROOT / 'README.md').read_text())
  modules = tuple(_api_modules(config.nav))
  for module in modules:
    add(f'{_API}{module}.md', _api_page(module))
  public = _public_names(modules)
  linked = {
    link.path
    for page in files.documentation_pages()
    for link in _links(page.src_uri, page.content_string)
    if _leaves_docs(link) and _full_name(link) not in public
  }
  for path in sorted(linked):
    add(f'{_SOURCE}{path}.md', source_pages.render(_ROOT, path))
  return files


def on_page_markdown(
  markdown: str,
  page: pages.Page,
  config: defaults.MkDocsConfig,
  files: site_files.Files,
) -> str:
  """Leads links to files of the repository to pages of the site."""
  del files
  uri = page.file.src_uri
  if uri.startswith((_API, _SOURCE)):
    return markdown
  public = _public_names(tuple(_api_modules(config.nav)))

  def lead(match: re.Match[str]) -> str:
    link = _read_link(uri, match)
    if link is None:
      return match[0]
    if documented := public.get(_full_name(link)):
      return f'[`{link.name}`][{documented}]'
    return f'{match[1] or ""}]({_relative(uri, link)})'

  parts = _FENCE.split(markdown)
  parts[::2] = [_LINK.sub(lead, part) for part in parts[::2]]
  parts[::2] = [_PICTURE.sub(r'[\1](\2)', part) for part in parts[::2]]
  parts[1::2] = [_QUOTED.sub(r'```\1 title="\2"', p) for p in parts[1::2]]
  return ''.join(parts)


def on_page_content(
  html: str,
  page: pages.Page,
  config: defaults.MkDocsConfig,
  files: site_files.Files,
) -> str:
  """Marks what the style sheet cannot know: cells with sentences."""
  del page, config, files
  return re.sub(r'<td>(?=[^<]{30})', '<td class="sentence">', html)


def _fewer_colors(png: bytes) -> bytes:
  """A picture of curves in a third of the bytes: 256 colours are plenty."""
  smaller = io.BytesIO()
  picture = Image.open(io.BytesIO(png)).convert('RGB')
  picture.quantize(256).save(smaller, 'PNG', optimize=True)
  return smaller.getvalue()


def _api_modules(nav: list | dict | str) -> Iterator[str]:
  """The modules of the API reference, which are the names of its pages."""
  if isinstance(nav, str):
    if nav.startswith(_API):
      yield nav.removeprefix(_API).removesuffix('.md')
    return
  for item in nav.values() if isinstance(nav, dict) else nav:
    yield from _api_modules(item)


@functools.cache
def _read_modules() -> griffe.ModulesCollection:
  return griffe.load('tff_fair', search_paths=[_ROOT]).modules_collection


def _api_page(module: str) -> str:
  """The page of a module; of its modules, if it has no names of its own."""
  submodules = str(not list(_public_members(module))).lower()
  options = f'    options:\n      show_submodules: {submodules}\n'
  return f'# `{module}`\n\n::: {module}\n{options}'


def _public_members(module: str) -> Iterator[griffe.Object | griffe.Alias]:
  for member in _read_modules()[module].members.values():
    if member.is_public and not member.is_module:
      yield member


@functools.cache
def _public_names(modules: tuple[str, ...]) -> dict[str, str]:
  """Where each public name is defined, and its name in the API reference."""
  return {
    member.canonical_path: member.path
    for module in modules
    for member in _public_members(module)
  }


def _links(uri: str, markdown: str) -> Iterator[_Link]:
  for part in _FENCE.split(markdown)[::2]:
    for match in _LINK.finditer(part):
      if link := _read_link(uri, match):
        yield link


def _read_link(uri: str, match: re.Match[str]) -> _Link | None:
  """The link of a page, unless it leaves the repository or stays on the page."""
  target, mark, anchor = match['target'].partition('#')
  if not target or '://' in target:
    return None
  folder = '' if uri == 'index.md' else f'docs/{posixpath.dirname(uri)}'
  path = posixpath.normpath(posixpath.join(folder, target))
  return _Link(match['name'], path, mark + anchor)


def _leaves_docs(link: _Link) -> bool:
  return not link.path.startswith('docs/') and link.path != 'README.md'


def _full_name(link: _Link) -> str:
  """Where Python finds what a link names."""
  module = link.path.removesuffix('.py').replace('/', '.')
  return f'tff_fair.{module.removeprefix("tff_fair.")}.{link.name}'


def _relative(uri: str, link: _Link) -> str:
  """A link from a page to the page of the site that has what it is about."""
  if link.path == 'README.md':
    target = f'index.md{link.anchor}'
  elif not _leaves_docs(link):
    target = link.path.removeprefix('docs/') + link.anchor
  else:
    anchor = f'#{link.name}' if link.name else ''
    target = f'{_SOURCE}{link.path}.md{anchor}'
  return posixpath.relpath(target, posixpath.dirname(uri) or '.')
