"""The README and the pages of docs/ say what is, and do what they say."""

import ast
import functools
import importlib
import pathlib
import re
import shlex
from typing import NamedTuple

from absl import flags
import pytest

from tests import write_tff_names
from tff_fair import aggregators
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import settings
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.tables import definitions

_ROOT = pathlib.Path(__file__).parents[1]
_README = 'README.md'
_PAGES = [
  _README,
  'CONTRIBUTING.md',
  *sorted(
    str(path.relative_to(_ROOT)) for path in (_ROOT / 'docs').rglob('*.md')
  ),
]
_BASELINES = 'docs/methods/baselines.md'
# Page -> the method that it is about.
_METHOD_PAGES = {
  f'docs/methods/{name}.md': name
  for name in ('fedaboost', 'cffl', 'corefed', 'fedquad', 'fedakd')
}
_FENCE = re.compile(r'^```(\S*) ?(\S*)\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_OURS = r'(?:fedaboost|cffl|corefed|fedquad|fedakd)_\w+'


class _Block(NamedTuple):
  """A fenced block: its language, what stands behind it, its text and line."""

  language: str
  source: str
  text: str
  line: int


@functools.cache
def _read(page):
  return (_ROOT / page).read_text()


def _blocks(page, language):
  text = _read(page)
  found = (
    _Block(*match.groups(), line=text.count('\n', 0, match.start(3)))
    for match in _FENCE.finditer(text)
  )
  return [block for block in found if block.language == language]


def _with_blocks(language):
  return [page for page in _PAGES if _blocks(page, language)]


def _prose(page):
  return _FENCE.sub('', _read(page))


def _section(page, heading):
  """The text under a heading of the second level."""
  _, _, rest = _read(page).partition(f'\n## {heading}\n')
  return rest.partition('\n## ')[0]


def _rows(text):
  """The rows of the tables in a text, without their heads, as cells."""
  lines = [line for line in text.splitlines() if line.startswith('|')]
  heads = {i for i, line in enumerate(lines) if set(line) <= set('|-')}
  return [
    [cell.strip() for cell in line.strip('|').split(' |')]
    for i, line in enumerate(lines)
    if i not in heads and i + 1 not in heads
  ]


@pytest.mark.full
@pytest.mark.usefixtures(
  'default_runtime', 'runtime_as_before', 'plugins_as_before'
)
@pytest.mark.parametrize(
  'page',
  [
    page
    for page in _PAGES
    if any(not block.source for block in _blocks(page, 'python'))
  ],
)
def test_snippets_run_in_order(page, capsys):
  scope = {}
  for block in _blocks(page, 'python'):
    if not block.source:
      # Each snippet of the README is pasted alone.
      scope = {} if page == _README else scope
      # Tracebacks name the line of the page.
      code = compile('\n' * block.line + block.text, _ROOT / page, 'exec')
      exec(code, scope)
  assert capsys.readouterr().out


def test_quoted_code_is_that_of_the_file():
  quoted = [
    block
    for page in _PAGES
    for block in _blocks(page, 'python')
    if block.source
  ]
  assert quoted
  for block in quoted:
    assert block.text in _read(block.source), block.text


@pytest.mark.parametrize('page', _with_blocks('sh'))
def test_commands_are_understood(page):
  for block in _blocks(page, 'sh'):
    for line in block.text.splitlines():
      # `tests/launchers/plugins_run_test.py` runs these, with their modules.
      if '--plugins=' in line:
        continue
      _check_command(shlex.split(line.partition('&&')[2] or line))


def _check_command(words):
  for word in words:
    assert not word.endswith('.py') or (_ROOT / word).exists(), word
  if 'tff-fair' in words:
    name, *arguments = words[words.index('tff-fair') + 1 :]
    module = f'launchers.{name.replace("-", "_")}'
  elif '-m' in words:
    module, *arguments = words[words.index('-m') + 1 :]
  else:
    return
  if '--help' in arguments:
    arguments.remove('--help')
  if module == 'launchers.train':
    settings.resolve(train_flags.parse(arguments), train_flags.FLAG_NAMES)
    return
  flag_values = flags.FlagValues()
  importlib.import_module(module).define_flags(flag_values)
  flag_values([module, *arguments])


def test_the_test_command_is_the_one_of_continuous_integration():
  assert '\npip install uv && uv run pytest\n' in _read(_README)
  assert '\npip install uv && uv run pytest --full\n' in _read(_README)
  ci = (_ROOT / '.ci' / 'run').read_text()
  assert "'pip install uv && uv run pytest --full'" in ci


def test_the_page_on_tff_lists_what_is_used_of_it():
  page = write_tff_names.PAGE.read_text()
  # `python -m tests.write_tff_names` makes it so.
  assert '<!-- names of TFF -->' in page
  assert write_tff_names.render(page) == page


def test_all_presets_and_tables_are_listed():
  known = {*presets.PRESETS, *definitions.TABLES}
  listed = set(re.findall(f'`({_OURS})`', _read('docs/experiments.md')))
  assert listed == known
  known |= {m for table in definitions.TABLES.values() for m in table.methods}
  for page in _PAGES:
    assert set(re.findall(f'`({_OURS})`', _prose(page))) <= known, page


@pytest.mark.parametrize('page', _METHOD_PAGES)
def test_a_table_stands_beside_the_presets_of_its_cells(page):
  listed = {}
  for first, names, *_ in _rows(_section(page, 'Reproduce')):
    for table in re.findall(f'`({_OURS})`', first):
      listed.setdefault(table, set()).update(re.findall(f'`({_OURS})`', names))
  name = _METHOD_PAGES[page]
  assert set(listed) == {
    t for t in definitions.TABLES if t.startswith(f'{name}_')
  }
  for table, names in listed.items():
    assert {
      cell.preset for cell in definitions.TABLES[table].cells.values()
    } <= (names)


@pytest.mark.parametrize('page', _PAGES)
def test_links_lead_somewhere(page):
  for name, path in re.findall(r'\[`(\w+)`\]\(([^)]+\.py)\)', _prose(page)):
    text = ((_ROOT / page).parent / path).read_text()
    assert re.search(rf'^(def|class) {name}[(:]', text, re.MULTILINE), name
  for target in re.findall(r'\]\(([^)\s]+)\)', _prose(page)):
    if target.startswith('https://'):
      continue
    path, _, anchor = target.partition('#')
    linked = ((_ROOT / page).parent / path).resolve() if path else _ROOT / page
    assert linked.exists(), target
    if anchor:
      assert anchor in _anchors(str(linked.relative_to(_ROOT))), target


@functools.cache
def _anchors(page):
  """Returns the anchors that GitHub makes of the headings."""
  headings = re.findall(r'^#+ (.*)$', _prose(page), re.MULTILINE)
  kept = (re.sub(r'[^\w\- ]', '', heading.lower()) for heading in headings)
  return {heading.replace(' ', '-') for heading in kept}


def test_every_page_is_linked_from_the_readme_or_a_page_that_is():
  reached, new = set(), {_README}
  while new:
    reached |= new
    new = {
      str(((_ROOT / page).parent / path).resolve().relative_to(_ROOT))
      for page in new
      for path in re.findall(r'\]\(([^)#\s:]+\.md)', _prose(page))
    } - reached
  assert reached >= set(_PAGES)


def test_every_method_has_a_table_of_its_options():
  """`tests/launchers/options/methods_test.py` compares what is in them."""
  assert {*_METHOD_PAGES.values()} == {*methods.PAPERS}
  for page, method in _METHOD_PAGES.items():
    assert f'\n<!-- options of {method} -->\n' in _section(page, 'Options')
  sections = re.findall(
    r'\n`build_(\w+)`, `--algorithm=(\w+)`(?s:.*?)'
    r'\n<!-- own options of (\w+) -->\n',
    _read(_BASELINES),
  )
  assert {*sections} == {(name,) * 3 for name in methods.BASELINES}
  assert f'{len(sections)} baselines' in _read(_README)


def _name(row):
  return row[0].strip('`')


def test_every_factory_is_listed_with_its_weight():
  rows = _rows(_section('docs/composing.md', 'Rules and their weights'))
  factories = {n for n in aggregators.__all__ if n.endswith('Factory')}
  assert {_name(row) for row in rows} == factories


def test_messages_are_those_of_the_code():
  page = 'docs/troubleshooting.md'
  messages = [_name(row) for row in _rows(_read(page))]
  assert len(messages) > 20
  for message in messages:
    best = max(
      (len(m[0]) for p in _patterns() if (m := p.search(message))), default=0
    )
    assert best >= 0.4 * len(message), message


@functools.cache
def _patterns():
  """Every string of the code with some text, its values left open."""
  patterns = set()
  for folder in ('tff_fair', 'launchers', 'tasks'):
    for path in (_ROOT / folder).rglob('*.py'):
      for node in ast.walk(ast.parse(path.read_text())):
        patterns.add(_pattern(node))
  return [re.compile(pattern) for pattern in patterns - {None}]


def _pattern(node):
  parts = node.values if isinstance(node, ast.JoinedStr) else [node]
  texts = [
    part.value
    for part in parts
    if isinstance(part, ast.Constant) and isinstance(part.value, str)
  ]
  if sum(map(len, texts)) < 15:
    return None
  return ''.join(
    re.escape(part.value) if isinstance(part, ast.Constant) else '.+'
    for part in parts
  )
