"""Writes what this library uses of TFF into docs/tff.md.

python -m tests.write_tff_names
"""

import ast
import collections
from collections.abc import Iterator
import pathlib
import re

from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown

_ROOT = pathlib.Path(__file__).parents[1]
PAGE = _ROOT / 'docs' / 'tff.md'
_NAME = re.compile(r'tff\.(?:[a-z]\w*\.)*\w+')
_FOLDERS = ('tff_fair', 'launchers', 'tasks', 'examples')


def render(page: str) -> str:
  """The page, with its list as it should be."""
  name = 'names of TFF'
  return blocks.replace(page, name, f'end of {name}', lambda match: _text())


def main() -> None:
  """Writes it."""
  PAGE.write_text(render(PAGE.read_text()))


def _text():
  """How many names are used, and which, by the part of TFF that has them."""
  names = _find()
  by_part = collections.defaultdict(list)
  for name in sorted(names):
    part, _, rest = name.partition('.')[2].rpartition('.')
    by_part[f'tff.{part}' if part else 'tff'].append(rest)
  rows = [
    (f'`{part}`', ', '.join(f'`{name}`' for name in of_part))
    for part, of_part in sorted(by_part.items())
  ]
  return '\n'.join(
    [
      f'{len(names)} names in `{"`, `".join(_FOLDERS)}`:',
      '',
      markdown.table(['part', 'names'], rows, rule='---'),
    ]
  )


def _find() -> set[str]:
  """The names that some file uses."""
  return {
    name
    for folder in _FOLDERS
    for path in (_ROOT / folder).rglob('*.py')
    for name in _names(ast.parse(path.read_text()))
  }


def _names(tree) -> Iterator[str]:
  """All `tff.a.b` of a module, without attributes of classes."""
  inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and id(node) not in inner:
      match = _NAME.match(ast.unparse(node))
      if match:
        yield match[0]


if __name__ == '__main__':
  main()
