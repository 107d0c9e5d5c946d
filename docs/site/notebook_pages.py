"""Pages of the notebooks, with the outputs that they keep."""

import html
import pathlib
import re

import nbformat

NOTEBOOKS = 'notebooks/'


def title(path: pathlib.Path) -> str:
  """The first heading of a notebook."""
  return re.search(r'^# (.*)$', render(path), re.MULTILINE)[1]


def render(path: pathlib.Path) -> str:
  """The page of a notebook, in Markdown."""
  parts = []
  for cell in nbformat.read(path, as_version=4).cells:
    if cell.cell_type == 'markdown':
      parts.append(cell.source)
    else:
      parts.append(f'```python\n{cell.source}\n```')
      for output in cell.get('outputs', ()):
        parts.append(f'<div class="output">{_as_html(output)}</div>')
  return '\n\n'.join(parts)


def _as_html(output: nbformat.NotebookNode) -> str:
  data = output.get('data', {})
  if 'text/html' in data:
    return data['text/html']
  if 'image/png' in data:
    png = data['image/png'].replace('\n', '')
    return f'<img alt="Drawn by the cell" src="data:image/png;base64,{png}">'
  text = output.get('text') or data['text/plain']
  return f'<pre>{html.escape(text)}</pre>'
