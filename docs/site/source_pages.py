"""Pages with the source of files of the repository."""

import ast
import pathlib

# Pages are found by search; the code that they quote would drown them.
_HEAD = """---
search:
  exclude: true
---
# `{path}`
"""
# Longer than any fence inside a file.
_FENCE = '`' * 6


def render(root: pathlib.Path, path: str) -> str:
  """The page of a file, with an anchor for each function and class.

  Args:
    root: Folder of the repository.
    path: Path of the file from there.

  Returns:
    Markdown.
  """
  text = (root / path).read_text()
  parts = [_HEAD.format(path=path)]
  language = pathlib.Path(path).suffix.lstrip('.') or 'text'
  for name, code in _split(text) if language == 'py' else [('', text)]:
    if name:
      parts.append(f'## `{name}` {{ #{name} }}\n')
    parts.append(f'{_FENCE} {language}\n{code.strip(chr(10))}\n{_FENCE}\n')
  return '\n'.join(parts)


def _split(text: str) -> list[tuple[str, str]]:
  """What stands above the first definition, and each one up to the next."""
  lines = text.splitlines()
  starts, names = [0], ['']
  for node in ast.parse(text).body:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
      first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
      while lines[first - 1].startswith('#'):
        first -= 1
      starts.append(first)
      names.append(node.name)
  ends = [*starts[1:], len(lines)]
  return [
    (name, '\n'.join(lines[start:end]))
    for name, start, end in zip(names, starts, ends, strict=True)
    if start < end
  ]
