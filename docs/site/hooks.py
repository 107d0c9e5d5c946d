"""What the site has beside the pages of docs/, as hooks of MkDocs.

Pages of the API reference are made of the `api/`
entries of the navigation; others, of the notebooks in examples/, and of the
files that pages link to.
"""

import re

import api_names
import equations
from mkdocs import plugins
from mkdocs.structure import files as site_files
import repository_pages

_LOG = plugins.get_plugin_logger('site')
_GENERATED = (api_names.FOLDER, repository_pages.SOURCES)
# Code in a line, and whether it is a link or heading already.
_CODE = re.compile(r'(<(?:a|autoref|h\d)\b[^>]*>)?<code>([\w.]+)</code>')
_FLAG = re.compile(r'<code>(?=--[^<\s]+</code>)')
# A cell that starts with a sentence, or with one in code: an error message.
_SENTENCE = re.compile(r'<td>(?=(<code>)?[^<]{30}[^<]* )')


def on_config(config):
  """Adds the fence of equations, and the notebooks behind the start page."""
  fences = config.mdx_configs.setdefault('pymdownx.superfences', {})
  fences['custom_fences'] = [
    {'name': 'math', 'class': 'equation', 'format': equations.format_math}
  ]
  notebooks = repository_pages.read_notebooks()
  titles = [
    {re.search(r'^# (.*)$', text, re.MULTILINE)[1]: uri}
    for uri, text in notebooks.items()
  ]
  config.nav.insert(1, {'Notebooks': titles})
  return config


def on_files(files, config):
  """Adds the API reference, the notebooks, and the sources linked to."""

  def add(uri, text):
    files.append(site_files.File.generated(config, uri, content=text))

  names = _read_names(config)
  for uri, text in repository_pages.read_notebooks().items():
    add(uri, text)
  linked = {
    path
    for page in files.documentation_pages()
    for path in repository_pages.linked_sources(
      page.src_uri, page.content_string, names.defined
    )
  }
  for path in sorted(linked):
    # MkDocs refuses links to what does not exist.
    if (repository_pages.ROOT / path).is_file():
      uri = f'{repository_pages.SOURCES}{path}.md'
      add(uri, repository_pages.render_source(path))
  for module, text in names.pages.items():
    add(f'{api_names.FOLDER}{module}.md', text)
  return files


def on_page_markdown(markdown, page, config, files):
  """Leads links to files of the repository to pages of the site."""
  uri = page.file.src_uri
  if uri.startswith(_GENERATED):
    return markdown
  # Fences `text` hold error messages, which are sentences.
  markdown = markdown.replace('\n```text\n', '\n```{.text .message}\n')
  return repository_pages.rewrite(uri, markdown, _read_names(config).defined)


def on_page_content(html, page, config, files):
  """Links names in code to the API reference, and prepares the looks."""
  written = _read_names(config).written

  def link(match):
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


def _read_names(config):
  return api_names.read(tuple(api_names.modules(config.nav)))
