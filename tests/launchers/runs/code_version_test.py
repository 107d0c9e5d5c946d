import subprocess

import pytest

import tff_fair
from tff_fair.launchers.runs import code_version


@pytest.fixture
def clone(tmp_path, monkeypatch):
  monkeypatch.setattr(code_version, '_ROOT', tmp_path)
  code_version.code_version.cache_clear()
  yield tmp_path
  code_version.code_version.cache_clear()


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
  assert code_version.code_version() == tff_fair.__version__


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
  assert code_version.code_version() == expected
