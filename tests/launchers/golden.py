"""Compares a page with the one that was read and found right.

`UPDATE_GOLDEN=1 python -m pytest FILE` writes what is there now; read the
difference before you commit it.
"""

import os
import pathlib

_FOLDER = pathlib.Path(__file__).parent / 'golden'


def check(name, text):
  """Fails unless the page is that of the file."""
  path = _FOLDER / name
  if os.environ.get('UPDATE_GOLDEN'):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding='utf-8')
  assert text == path.read_text(encoding='utf-8')
