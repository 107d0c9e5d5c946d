import subprocess

import pytest

import tff_fair
from tff_fair.launchers.runs import provenance


@pytest.fixture
def clone(tmp_path, monkeypatch):
  monkeypatch.setattr(provenance, '_ROOT', tmp_path)
  provenance.code_version.cache_clear()
  yield tmp_path
  provenance.code_version.cache_clear()


def _git(folder, *arguments):
  name = ('-c', 'user.name=a', '-c', 'user.email=a@b.c')
  return subprocess.run(
    ['git', *name, *arguments],
    cwd=folder,
    check=True,
    capture_output=True,
    text=True,
  ).stdout.strip()


def test_an_installation_has_no_commit(clone):
  assert provenance.code_version() == tff_fair.__version__


@pytest.mark.parametrize('text, end', [('1', ''), ('2', '.changed')])
def test_a_clone_has_one_and_says_whether_files_differ(clone, text, end):
  (clone / 'file').write_text('1')
  _git(clone, 'init')
  _git(clone, 'add', '.')
  _git(clone, 'commit', '-m', 'first')
  _git(clone, 'tag', 'v9')
  (clone / 'file').write_text(text)
  commit = _git(clone, 'rev-parse', '--short', 'HEAD')
  expected = f'{tff_fair.__version__}+{commit}{end}'
  assert provenance.code_version() == expected


def test_the_processor_is_named(tmp_path, monkeypatch):
  monkeypatch.setattr(provenance, '_CPUINFO', tmp_path / 'cpuinfo')
  monkeypatch.setattr(provenance.platform, 'processor', lambda: '')
  monkeypatch.setattr(provenance.platform, 'machine', lambda: 'arm64')
  assert provenance.processor_name() == 'arm64'
  text = 'processor\t: 0\nmodel\t\t: 106\nmodel name\t: A CPU: 2\n'
  (tmp_path / 'cpuinfo').write_text(text)
  assert provenance.processor_name() == 'A CPU: 2'
