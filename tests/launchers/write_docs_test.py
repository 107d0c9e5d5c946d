"""All that is written of our results and options is what they say now."""

import collections
import re
import shutil

import pytest

from tff_fair.launchers import write_docs
from tff_fair.launchers.options import methods
from tff_fair.launchers.pages import compare_docs
from tff_fair.launchers.results import layouts

_ROOT = write_docs.ROOT


@pytest.fixture(scope='module', name='texts')
def _texts():
  comparisons = compare_docs.read_results(_ROOT / 'results')
  return write_docs.render(_ROOT, comparisons)


def test_committed_files_are_what_is_written(texts):
  # `python -m launchers.write_docs` makes them so.
  differ = [path for path, text in texts.items() if path.read_text() != text]
  assert not differ


def test_every_block_stands_once_and_on_its_page(texts):
  pages = collections.defaultdict(list)
  for path, text in texts.items():
    for name in re.findall('<!-- (.*) -->\n', text):
      pages[name].append(path.name)
  expected = {
    **{f'results {name}': ['results.md'] for name in layouts.LAYOUTS},
    'results headlines': ['results.md'],
    'claims': ['README.md'],
    'attackers': ['attackers.md'],
    'trained again': ['results.md'],
    'compare findings': ['README.md'],
    'compare across': ['comparison.md'],
    'compare overview': ['comparison.md'],
    'compare fine_tuned': ['comparison.md'],
    'compare halves': ['comparison.md'],
    'overview': ['baselines.md'],
    'shared options': ['baselines.md'],
  }
  assert {name: pages[name] for name in expected} == expected
  assert len([n for n in pages if n.startswith('options of ')]) == 5
  own = {n for n in pages if n.startswith('own options of ')}
  assert own == {f'own options of {name}' for name in methods.BASELINES}


@pytest.fixture(name='clone')
def _clone(tmp_path, monkeypatch):
  """A clone with two blocks and without other pages."""
  monkeypatch.setattr(write_docs, 'ROOT', tmp_path)
  monkeypatch.setattr(compare_docs, 'write_pictures', lambda *_: None)
  (tmp_path / 'docs').mkdir()
  (tmp_path / 'results').mkdir()
  shutil.copy(_ROOT / 'results' / 'fedquad_table5.csv', tmp_path / 'results')
  _write_block(tmp_path / 'README.md', 'claims')
  _write_block(tmp_path / 'docs' / 'x.md', 'results fedquad_table5')
  return tmp_path


def _write_block(path, name):
  path.write_text(f'a\n<!-- {name} -->\nstale\n<!-- end of {name} -->\nb\n')


def test_blocks_are_replaced_and_nothing_else(clone):
  write_docs.main(['write_docs'])
  for name, comment, start in (
    ('README.md', 'claims', '| paper | claims |'),
    ('docs/x.md', 'results fedquad_table5', '**Accuracy of the global model'),
  ):
    text = (clone / name).read_text()
    assert text.startswith(f'a\n<!-- {comment} -->\n{start}'), name
    assert text.endswith(f'|\n<!-- end of {comment} -->\nb\n'), name
    assert 'stale' not in text
  assert (clone / 'docs' / 'claims.md').read_text().startswith('<!-- Written')
  table = (clone / 'results' / 'claims.csv').read_text()
  assert table.startswith('id,paper,place,claim,')


def test_a_mistake_ends_the_command_before_anything_is_written(clone):
  _write_block(clone / 'docs' / 'y.md', 'results fedqad_table1')
  with pytest.raises(SystemExit, match='A block .* found .fedqad_table1'):
    write_docs.main(['write_docs'])
  (clone / 'docs' / 'y.md').unlink()
  file = clone / 'results' / 'fedquad_table5.csv'
  file.write_text(file.read_text().replace(',0.1,', ',a bit,', 1))
  with pytest.raises(SystemExit, match="fedquad_table5.csv .* found 'a bit'"):
    write_docs.main(['write_docs'])
  with pytest.raises(SystemExit, match="must be a flag, found 'x'"):
    write_docs.main(['write_docs', 'x'])
  assert 'stale' in (clone / 'README.md').read_text()
  assert not (clone / 'docs' / 'claims.md').exists()
