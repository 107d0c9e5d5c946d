"""The site of pages and API reference builds, and nothing is missing in it."""

import importlib
import inspect
import os
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys
import zlib

import pytest

import tff_fair

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).resolve().parents[1]
# For the library's own use.
_INTERNAL = {
  f'tff_fair.{name}'
  for name in ('files', 'internals', 'stopped', 'streams', 'summary')
}


def _build(repository, site):
  """Builds the site of a clone; the exit status, and what was said."""
  command = [sys.executable, '-m', 'mkdocs', 'build', '--strict']
  done = subprocess.run(
    [*command, f'--site-dir={site}'],
    cwd=repository,
    env={**os.environ, 'NO_MKDOCS_2_WARNING': '1'},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    check=False,
  )
  return done.returncode, done.stdout


@pytest.fixture(scope='module')
def site(tmp_path_factory):
  """Folder of the site."""
  folder = tmp_path_factory.mktemp('site')
  status, said = _build(_ROOT, folder)
  assert not status, said
  return folder


def test_what_leads_nowhere_ends_the_build(tmp_path):
  for path in _ROOT.iterdir():
    if path.name != 'docs':
      (tmp_path / path.name).symlink_to(path)
  shutil.copytree(_ROOT / 'docs', tmp_path / 'docs')
  with (tmp_path / 'docs' / 'models.md').open('a') as page:
    page.write(
      '\n[page](no_page.md) [file](../tff_fair/no_file.py)'
      ' [heading](composing.md#no-heading)'
      ' [`no_function`](../tff_fair/aggregators/samme.py)'
      ' `tff_fair.client.no_name`\n'
    )
  status, said = _build(tmp_path, tmp_path / 'built')
  assert status
  for name in ('no_page', 'no_file', 'no-heading', 'no_function', 'no_name'):
    assert re.search(f'WARNING .*models.md.*{name}', said), name


def _public_names():
  """Returns what users import: names listed by packages or defined on top."""
  for found in pkgutil.walk_packages(tff_fair.__path__, 'tff_fair.'):
    if found.name in _INTERNAL or found.name.startswith('tff_fair.launchers'):
      continue
    if not found.ispkg and found.name.count('.') > 1:
      continue
    module = importlib.import_module(found.name)
    for name in getattr(module, '__all__', None) or _defined_in(module):
      yield f'{found.name}.{name}'


def _defined_in(module):
  for name, value in vars(module).items():
    is_code = inspect.isfunction(value) or inspect.isclass(value)
    is_own = is_code and value.__module__ == module.__name__
    if is_own and not name.startswith('_'):
      yield name


def test_every_public_name_is_in_the_reference(site):
  inventory = (site / 'objects.inv').read_bytes().split(b'\n', 4)[4]
  lines = zlib.decompress(inventory).decode().splitlines()
  places = {line.split()[0]: line.split()[3] for line in lines}
  names = [*_public_names()]
  assert 'tff_fair.algorithms.build_fedaboost' in names
  assert not {*names} - {*places}
  for name in names:
    page, _, anchor = places[name].partition('#')
    anchor = anchor.replace('$', name)
    assert f'id="{anchor}"' in (site / page).read_text(), name


# What a browser loads with a page, from another address.
_ELSEWHERE = re.compile(
  r'<(?:script|img|iframe|source)\b[^>]*\ssrc="?(?:\w+:)?//'
  r'|<link\b(?=[^>]*rel="?(?:stylesheet|icon|preconnect))'
  r'[^>]*\shref="?(?:\w+:)?//'
)


def test_nothing_is_loaded_from_elsewhere(site):
  assert _ELSEWHERE.search('<link href="//a.b/c.css" rel="stylesheet">')
  pages = [*site.rglob('*.html')]
  assert pages
  for page in pages:
    assert not _ELSEWHERE.search(page.read_text()), page
  for sheet in site.rglob('*.css'):
    text = sheet.read_text()
    assert not re.search(r'url\(["\']?(https?:)?//|@import', text), sheet


def test_every_equation_is_rendered(site):
  pages = [*(_ROOT / 'docs' / 'methods').glob('*.md')]
  for page in pages:
    fences = page.read_text().count('```math\n')
    built = (site / 'methods' / page.with_suffix('.html').name).read_text()
    assert built.count('<math ') == fences, page
  assert pages
