"""The notebooks are short, run, and print what they have kept."""

import re

import nbformat
import numpy as np
import pytest

from tests import write_notebooks

pytestmark = pytest.mark.full

_NUMBER = re.compile(r'-?\d+\.?\d*(?:e[-+]?\d+)?')
_NAMES = sorted(path.name for path in write_notebooks.FOLDER.glob('*.ipynb'))
_MOST_BYTES = 300_000
# Of five minutes of reading.
_MOST_WORDS = 1000
# How long something took.
_TIME = re.compile(r'\b[\d.]+ (s|min)\b')


@pytest.mark.parametrize('name', _NAMES)
def test_notebook_is_short_and_leads_on(name):
  number = name.partition('_')[0]
  cells = nbformat.read(write_notebooks.FOLDER / name, as_version=4).cells
  first, last = cells[0].source, cells[-1].source
  assert first.startswith(f'# {number}. ') and 'At the end you ' in first
  assert '## Next\n' in last
  following = [n for n in _NAMES if n.startswith(f'{int(number) + 1}_')]
  assert all(f']({n})' in last for n in following)
  assert sum(len(cell.source.split()) for cell in cells) <= _MOST_WORDS


def test_every_notebook_is_linked_from_the_start_page():
  page = (write_notebooks.FOLDER.parent / 'docs' / 'index.md').read_text()
  assert re.findall(r'\(\.\./examples/([^)]*\.ipynb)\)', page) == _NAMES


def _texts(notebook):
  """Returns the text that each cell shows, and the kind of each output."""
  shown = []
  for cell in notebook.cells:
    for output in cell.get('outputs', ()):
      # Pictures have no text: that of a figure says its size only.
      text = output.get('text') or output['data']['text/plain']
      shown.append((output.output_type, output.get('name'), text))
  return shown


@pytest.mark.parametrize('name', _NAMES)
def test_notebook_shows_what_it_has_kept(name, monkeypatch):
  """Numbers may differ in their last digits on other processors."""
  # A kernel inherits what conftest.py sets; a user has nothing set.
  monkeypatch.delenv('TF_CPP_MIN_LOG_LEVEL', raising=False)
  path = write_notebooks.FOLDER / name
  kept = nbformat.read(path, as_version=4)
  assert path.stat().st_size <= _MOST_BYTES
  found, expected = _texts(write_notebooks.execute(path)), _texts(kept)
  assert len(found) == len(expected) > 1
  for (*kind, text), (*kept_kind, kept_text) in zip(
    found, expected, strict=True
  ):
    assert kind == kept_kind
    assert 'stderr' not in kind, text
    assert _words(text) == _words(kept_text)
    np.testing.assert_allclose(
      _numbers(text), _numbers(kept_text), atol=0.05, err_msg=text
    )


def _words(text):
  return _NUMBER.sub('#', _TIME.sub('', text)).split()


def _numbers(text):
  found = _NUMBER.findall(_TIME.sub('', text))
  return [float(number) for number in found]
