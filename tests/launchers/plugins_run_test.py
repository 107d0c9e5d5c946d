"""The plug-ins of docs/adding_a_method.md, run from a folder of one's own."""

import pathlib
import re
import subprocess
import sys

import pandas as pd
import pytest

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).parents[2]
_CODE = re.compile(r'^```python\n(.*?)^```$', re.DOTALL | re.MULTILINE)
# Like an installed program, it lies in another folder than the current one.
_PROGRAM = """
import runpy
runpy.run_module('tff_fair.launchers.train', run_name='__main__')
"""


def _modules():
  """The text of both modules of the page."""
  page = (_ROOT / 'docs' / 'adding_a_method.md').read_text()
  page = page.partition('## Into the library')[0]
  first, *steps = page.split('\n### ')
  steps = {step[0]: '\n'.join(_CODE.findall(step)) for step in steps}
  powered = [_CODE.findall(first)[0], *(steps[n] for n in '12346')]
  return {'powered': '\n'.join(powered), 'rings': steps['7']}


def _run(*arguments, cwd):
  done = subprocess.run(
    [sys.executable, *arguments],
    cwd=cwd,
    env={'PYTHONPATH': str(_ROOT), 'HOME': str(cwd)},
    stdin=subprocess.DEVNULL,
    capture_output=True,
    text=True,
    timeout=300,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return done.stdout


def test_a_method_and_a_data_set_of_ones_own(tmp_path):
  folder, programs = tmp_path / 'own', tmp_path / 'programs'
  folder.mkdir()
  programs.mkdir()
  (programs / 'tff-fair-train').write_text(_PROGRAM)
  for name, text in _modules().items():
    (folder / f'{name}.py').write_text(text)
  command = [
    programs / 'tff-fair-train',
    '--plugins=powered,rings',
    '--algorithm=powered',
    '--power=2',
    '--task=rings',
    '--rounds=2',
    '--num_clients=3',
  ]
  # The workers of a cluster find the modules, too.
  shown = _run(*command, '--runtime=cluster', '--output_dir=one', cwd=folder)
  assert 'powered on rings: 3 clients, 2 rounds' in shown
  flags = (folder / 'one' / 'flags.txt').read_text().splitlines()
  assert {'--plugins=powered,rings', '--power=2.0'} <= {*flags}
  # A report needs no plug-in.
  for name in _modules():
    (folder / f'{name}.py').unlink()
  _run('-m', 'tff_fair.launchers.report', 'one', cwd=folder)
  assert 'powered' in (folder / 'one' / 'report.html').read_text()


def test_a_method_of_ones_own_in_a_comparison(tmp_path):
  """The workers load the plug-ins, too."""
  for name, text in _modules().items():
    (tmp_path / f'{name}.py').write_text(text)
  printed = _run(
    '-m',
    'tff_fair.launchers.compare',
    '--plugins=powered,rings',
    '--methods=powered',
    '--task=rings',
    '--num_clients=3',
    '--rounds=1',
    '--seeds=1',
    '--tune=0',
    '--parallel=1',
    '--output_dir=out',
    cwd=tmp_path,
  )
  assert '3 methods on rings, clients: 3, rounds: 1, seeds: 1' in printed
  frame = pd.read_csv(tmp_path / 'out' / 'compare.csv')
  rows = frame[frame['method'] == 'powered']
  assert rows['client_accuracy_mean'].count() == 1
  assert '--plugins=powered,rings' in rows['command'].iloc[0]
