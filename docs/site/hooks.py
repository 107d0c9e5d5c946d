"""What the site has beside the pages of docs/, as hooks of MkDocs.

The start page is README.md; pages of the API reference are made of the `api/`
entries of the navigation; others, of the notebooks in examples/, and of the
files that pages link to.
"""

import pathlib
import re

import api_names
import equations
from mkdocs import plugins
from mkdocs.config import defaults
from mkdocs.structure import files as site_files
from mkdocs.structure import pages
import notebook_pages
import repository_links
import source_pages

_LOG = plugins.get_plugin_logger('site')
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_GENERATED = (api_names.FOLDER, repository_links.SOURCES)
# Code in a line, and whether it is a link or heading already.
_CODE = re.compile(r'(<(?:a|autoref|h\d)\b[^>]*>)?<code>([\w.]+)</code>')
_FLAG = re.compile(r'<code>(?=--[^<\s]+</code>)')
# A cell that starts with a sentence, or with one in code: an error message.
_SENTENCE = re.compile(r'<td>(?=(<code>)?[^<]{30}[^<]* )')


def on_config(config: defaults.MkDocsConfig) -> defaults.MkDocsConfig:
  """Adds the fence of equations, and the notebooks behind the start page."""
  fences = config.mdx_configs.setdefault('pymdownx.superfences', {})
  fences['custom_fences'] = [
    {'name': 'math', 'class': 'equation', 'format': equations.format_math}
  ]
  notebooks = [
    {notebook_pages.title(path): _notebook_uri(path)} for path in _notebooks()
  ]
  if notebooks:
    config.nav.insert(1, {'Notebooks': notebooks})
  return config


def on_files(
  files: site_files.Files, config: defaults.MkDocsConfig
) -> site_files.Files:
  """Adds the start page, the API reference, and the sources linked to."""

  def add(uri: str, text: str) -> None:
    files.append(site_files.File.generated(config, uri, content=text))

  add('index.md', (_ROOT / 'README.md').read_text())
  for path in _notebooks():
    add(_notebook_uri(path), notebook_pages.render(path))
  names = _names(config)
  linked = {
    path
    for page in files.documentation_pages()
    for path in repository_links.linked_sources(
      page.src_uri, page.content_string, names.defined
    )
  }
  # MkDocs refuses links to what does not exist.
  for path in sorted(path for path in linked if (_ROOT / path).is_file()):
    text = source_pages.render(_ROOT, path)
    add(f'{repository_links.SOURCES}{path}.md', text)
  for module, text in names.pages.items():
    add(f'{api_names.FOLDER}{module}.md', text)
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
  if uri.startswith(_GENERATED):
    return markdown
  # Fences `text` hold error messages, which are sentences.
  markdown = markdown.replace('\n```text\n', '\n```{.text .message}\n')
  return repository_links.rewrite(uri, markdown, _names(config).defined)


def on_page_content(
  html: str,
  page: pages.Page,
  config: defaults.MkDocsConfig,
  files: site_files.Files,
) -> str:
  """Links names in code to the API reference, and prepares the looks."""
  del files
  written = _names(config).written

  def link(match: re.Match[str]) -> str:
    inside, name = match.groups()
    if name.startswith('tff_fair.') and not api_names.exists(name):
      _LOG.warning(f'{page.file.src_uri}: there is no {name}.')
    if inside or name not in written:
      return match[0]
    return f'<autoref identifier="{written[name]}">{match[0]}</autoref>'

  html = _CODE.sub(link, html)
  # What the style sheet cannot know: which text may be broken where.
  html = _FLAG.sub('<code class="flag">', html)
  return _SENTENCE.sub(
    lambda cell: f'<td class="{"message" if cell[1] else "sentence"}">', html
  )


def _notebooks() -> list[pathlib.Path]:
  return sorted((_ROOT / 'examples').glob('*.ipynb'))


def _notebook_uri(path: pathlib.Path) -> str:
  return f'{notebook_pages.NOTEBOOKS}{path.stem}.md'


def _names(config: defaults.MkDocsConfig) -> api_names.ApiNames:
  return api_names.read(tuple(api_names.of_navigation(config.nav)))
