"""The package as others install it: from a wheel, with no clone beside it.

The commands are those of docs/installation.md, each in an empty folder. What uv
resolves is what a new user gets today, not the pinned versions of this project.
"""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / 'README.md').read_text()
_SECTION = (
  (_ROOT / 'docs' / 'installation.md')
  .read_text()
  .partition('\n## In your own project\n')[2]
)


def _blocks(text, language):
  pattern = rf'^```{language}\n(.*?)^```$'
  return re.findall(pattern, text, re.DOTALL | re.MULTILINE)


_PROJECT, _ENVIRONMENT, _PIP = _blocks(_SECTION, 'sh')
(_PYPROJECT,) = _blocks(_SECTION, 'toml')
# Modules of the user, first on the path, which must not be taken for ours.
_OTHERS = ('tasks', 'launchers', 'tests')
# Variables of this process's own environment.
_UNWANTED = (
  'PYTHONDONTWRITEBYTECODE',
  'PYTHONPATH',
  'UV_PROJECT_ENVIRONMENT',
  'VIRTUAL_ENV',
)
_TRY = """
import tff_fair
from tensorboard.backend.event_processing import event_accumulator
print(tff_fair.__file__)
"""
_PUBLIC = (
  'aggregators',
  'algorithms',
  'client',
  'losses',
  'metrics',
  'models',
)
# Each line with a comment is an error, whose message has the comment's word.
_MISTAKES = """
import tensorflow_federated as tff
from tff_fair import aggregators, algorithms, models, runtime

aggregators.SammeAlphaFactory(fallback='fed_avg')
aggregators.SammeAlphaFactory(fallback=3)  # fallback
process = algorithms.build_fedaboost(
  lambda: models.mlp_fedaboost((8, 8, 1), 10),
  num_clients='5',  # num_clients
  client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
)
runtime.set_execution_context('gpu')  # set_execution_context
models.StatelessModel(3)  # StatelessModel
"""


def _run(command, folder, status=0, **environment):
  """Runs a command; returns what it printed, through a file (see .ci/run)."""
  variables = {k: v for k, v in os.environ.items() if k not in _UNWANTED}
  output = folder / 'output.txt'
  with open(output, 'w') as file:
    done = subprocess.run(
      command,
      cwd=folder,
      env={**variables, **environment},
      stdin=subprocess.DEVNULL,
      stdout=file,
      stderr=subprocess.STDOUT,
      timeout=600,
      check=False,
    )
  assert done.returncode == status, output.read_text()
  return output.read_text()


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
  """A wheel built from the sdist, which is built from this repository."""
  folder = tmp_path_factory.mktemp('dist')
  _run(['uv', 'build', f'--out-dir={folder}', _ROOT], folder)
  (path,) = folder.glob('*.whl')
  return path


@pytest.fixture(scope='module')
def only_folder(tmp_path_factory):
  return tmp_path_factory.mktemp('study')


@pytest.fixture
def folder(only_folder, tmp_path):
  """An empty folder.

  It has the same path in all tests, so that they share the bytecode of
  TensorFlow and the rest: compiling it takes as long as everything else.
  """
  yield only_folder
  only_folder.rename(tmp_path / 'used')
  only_folder.mkdir()


def _activated(folder):
  environment = folder / '.venv'
  return {
    'VIRTUAL_ENV': str(environment),
    'PATH': f'{environment / "bin"}{os.pathsep}{os.environ["PATH"]}',
  }


def _follow(commands, wheel, folder, **environment):
  """Runs the page's commands, the training for one round."""
  script = commands.replace('ADDRESS', wheel.as_uri())
  script = script.replace('_digits\n', '_digits --rounds=1\n')
  for name in _OTHERS:
    (folder / f'{name}.py').write_text('raise AssertionError("not ours")')
  environment['PYTHONPATH'] = str(folder)
  environment['PYTHONPYCACHEPREFIX'] = f'{folder}_bytecode'
  printed = _run(['bash', '-ec', script], folder, **environment)
  assert '\nafter 1 rounds:\n' in printed
  python = folder / '.venv' / 'bin' / 'python'
  found = _run([python, '-c', _TRY], folder, **environment)
  assert found.startswith(str(folder / '.venv'))


def test_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
  ours = {
    str((pathlib.Path(parent) / name).relative_to(_ROOT))
    for parent, _, names in os.walk(_ROOT / 'tff_fair', followlinks=True)
    for name in names
    if '__pycache__' not in parent
  }
  assert {
    'tff_fair/py.typed',
    'tff_fair/launchers/pages/page.html',
    'tff_fair/launchers/tables/published.csv',
    'tff_fair/tasks/ehr_states.csv',
  } <= ours
  names = zipfile.ZipFile(wheel).namelist()
  assert {name for name in names if '.dist-info/' not in name} == ours


def test_a_project_with_uv(wheel, folder):
  (folder / 'pyproject.toml').write_text(_PYPROJECT)
  _follow(_PROJECT, wheel, folder, UV_PYTHON=sys.executable)


def test_an_environment_with_uv_differs_in_one_command():
  """The others were run: its jaxlib by the project, its training by pip."""
  override, install, train = _ENVIRONMENT.splitlines()
  assert f'override-dependencies = [{override.split()[1]}]' in _PYPROJECT
  assert install == (
    f'uv pip install --override={override.split()[-1]} "tff-fair @ ADDRESS"'
  )
  assert train == _PIP.splitlines()[-1]
  assert _ENVIRONMENT in _blocks(_README, 'sh')


def test_an_environment_with_pip(wheel, folder):
  _run([sys.executable, '-m', 'venv', '.venv'], folder)
  environment = _activated(folder)
  needs = folder / 'requirements.txt'
  needs.write_text((_ROOT / 'requirements.txt').read_text())
  # uv installs the list first, because it keeps unpacked wheels: pip then finds
  # each of them in place, in seconds instead of a minute and a half.
  _run(
    ['uv', 'pip', 'install', '--no-deps', '-r', needs], folder, **environment
  )
  _follow(_PIP, wheel, folder, **environment)
  # The list is complete: all that pip misses is what 0.4.13 replaces.
  complaints = _run(['pip', 'check'], folder, status=1, **environment)
  assert all(' jax' in line for line in complaints.splitlines()), complaints


def test_mypy_finds_mistakes_in_code_that_uses_the_package(wheel, folder):
  _run(['uv', 'venv', f'--python={sys.executable}'], folder)
  # Of all others, NumPy alone has types that matter here.
  install = ['uv', 'pip', 'install', '--no-deps', wheel, 'numpy==1.25.2']
  _run(install, folder, **_activated(folder))
  (folder / 'snippets.py').write_text('\n'.join(_blocks(_README, 'python')))
  (folder / 'mistakes.py').write_text(_MISTAKES)
  command = [sys.executable, '-m', 'mypy', '--ignore-missing-imports']
  command += [f'--python-executable={folder}/.venv/bin/python']
  # Modules that these import are read, but not checked.
  command += ['--follow-imports=silent', '-m', 'snippets', '-m', 'mistakes']
  for name in _PUBLIC:
    command += ['-p', f'tff_fair.{name}']
  *found, _ = _run(command, folder, status=1).splitlines()
  expected = [
    (f'mistakes.py:{number}: error: ', line.partition('# ')[2])
    for number, line in enumerate(_MISTAKES.splitlines(), 1)
    if '# ' in line
  ]
  assert len(found) == len(expected), found
  for line, (start, word) in zip(found, expected, strict=True):
    assert line.startswith(start) and word in line, found
