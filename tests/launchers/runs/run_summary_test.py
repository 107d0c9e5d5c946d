"""What summary.json says of a run, its code and its machine."""

import subprocess

import numpy as np
import pandas as pd
import pytest

import tff_fair
from tff_fair.launchers.runs import run_summary


@pytest.fixture
def clone(tmp_path, monkeypatch):
  monkeypatch.setattr(run_summary, '_ROOT', tmp_path)
  run_summary.code_version.cache_clear()
  yield tmp_path
  run_summary.code_version.cache_clear()


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
  assert run_summary.code_version() == tff_fair.__version__


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
  assert run_summary.code_version() == expected


def test_the_processor_is_named(tmp_path, monkeypatch):
  monkeypatch.setattr(run_summary, '_CPUINFO', tmp_path / 'cpuinfo')
  monkeypatch.setattr(run_summary.platform, 'processor', lambda: '')
  monkeypatch.setattr(run_summary.platform, 'machine', lambda: 'arm64')
  assert run_summary.processor_name() == 'arm64'
  text = 'processor\t: 0\nmodel\t\t: 106\nmodel name\t: A CPU: 2\n'
  (tmp_path / 'cpuinfo').write_text(text)
  assert run_summary.processor_name() == 'A CPU: 2'
  others = 'flags\t\t: fpu avx avx2\n\nprocessor\t: 1\nflags\t\t: avx512f\n'
  (tmp_path / 'cpuinfo').write_text(text + others)
  assert run_summary.processor_name() == 'A CPU: 2, AVX2'


def test_the_window_is_of_evaluations_and_not_of_rounds():
  column = pd.Series([np.nan if i % 2 else float(i) for i in range(40)])
  found = run_summary._window(column)
  assert found['evaluations'] == 10
  # 20, 22, ..., 38.
  assert found['mean'] == pytest.approx(29)
