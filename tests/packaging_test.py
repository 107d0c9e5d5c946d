"""Declared packages are those imported, and their pins agree."""

import ast
import importlib.metadata
import pathlib
import subprocess
import sys
import sysconfig

from packaging import requirements
from packaging import utils
import pytest

if sys.version_info >= (3, 11):
  import tomllib
else:
  import tomli as tomllib

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_OURS = {'benchmarks', 'examples', 'digits', 'launchers', 'tasks', 'tests'}
_OURS |= {'tff_fair'}
_OURS |= {path.stem for path in (_ROOT / 'docs' / 'site').glob('*.py')}
# Declared for another reason than an import of ours.
_NOT_IMPORTED = {
  'ipykernel': 'runs notebooks',
  'ipython': 'runs in ipykernel; only bounded',
  'mkdocs-material': 'a theme of mkdocs',
  'mkdocstrings-python': 'a plugin of mkdocs',
  'mypy': 'a command',
  'pytest-xdist': 'a plugin of pytest',
  'ruff': 'a command',
  'setuptools': 'TensorBoard imports it',
}
# Only Python 3.10 installs and imports the first, and only 3.11 has the second.
_BACKPORTED = {'tomli', 'tomllib'}
# Python 3.10 knows the modules of those packages only that list them. Here are
# those of the others that have another name than their package.
_UNLISTED = {
  'griffe': 'griffelib',
  'pymdownx': 'pymdown-extensions',
  'sklearn': 'scikit-learn',
}

_PYPROJECT = tomllib.loads((_ROOT / 'pyproject.toml').read_text())
_UV = _PYPROJECT['tool']['uv']
_NEEDS = _PYPROJECT['project']['dependencies']
_EXTRAS = _PYPROJECT['project']['optional-dependencies']
_GROUPS = _PYPROJECT['dependency-groups']
_CONSTRAINTS = _UV['constraint-dependencies']
_REQUIREMENTS = [
  line
  for line in (_ROOT / 'requirements.txt').read_text().splitlines()
  if line and not line.startswith('#')
]


def _parse(lines):
  return [requirements.Requirement(line) for line in lines]


def _for_this_python(parsed):
  """Maps each package's canonical name to its requirement here."""
  return {
    utils.canonicalize_name(requirement.name): requirement
    for requirement in parsed
    if requirement.marker is None or requirement.marker.evaluate()
  }


def _version(requirement):
  """The version of a requirement that is pinned to exactly one."""
  (specifier,) = requirement.specifier
  assert specifier.operator == '==', f'{requirement} is not pinned'
  return specifier.version


def _pins(lines):
  # Without markers: fewer hold for the part that the package itself needs.
  return {(pin.name, _version(pin)) for pin in _parse(lines)}


def _imported(*folders):
  """The packages that the Python files of some folders import.

  Scripts that declare what they need, for an environment of their own, are no
  part of ours, nor is what lies beside them.
  """
  modules = set()
  for folder in folders:
    for path in (_ROOT / folder).rglob('*.py'):
      if path.is_relative_to(_ROOT / 'benchmarks/peers'):
        continue
      for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
          modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
          modules.add(node.module)
  modules = {module.partition('.')[0] for module in modules}
  packages = importlib.metadata.packages_distributions()
  return {
    utils.canonicalize_name(
      packages.get(module, [_UNLISTED.get(module, module)])[0]
    )
    for module in modules - sys.stdlib_module_names - _OURS - _BACKPORTED
  }


def _names(lines):
  names = {utils.canonicalize_name(need.name) for need in _parse(lines)}
  return names - set(_NOT_IMPORTED) - _BACKPORTED


def test_what_is_imported_is_declared_and_the_reverse():
  package, cluster = _names(_NEEDS), _names(_EXTRAS['cluster'])
  parquet, development = _names(_EXTRAS['parquet']), _names(_GROUPS['dev'])
  ours = _imported('tff_fair', 'launchers', 'tasks')
  assert package | cluster == ours
  assert not package & cluster
  assert development == (_imported('tests') | parquet) - package
  assert _names(_GROUPS['docs']) == _imported('docs/site')
  assert _imported('benchmarks', 'examples') <= package


def test_no_range_is_narrower_than_that_of_tensorflow_federated():
  needs = _parse(importlib.metadata.requires('tensorflow-federated'))
  theirs = _for_this_python(needs)
  for need in _parse(_NEEDS):
    if need.name in theirs:
      assert need.specifier in ('', theirs[need.name].specifier), need


def test_pins_name_no_address_and_no_hash_and_pip_gets_a_part_of_them():
  lines = [*_CONSTRAINTS, *_REQUIREMENTS]
  for line in lines:
    assert not any(text in line for text in ('://', '@', '--', '#')), line
    assert _version(requirements.Requirement(line)), line
  assert _pins(_REQUIREMENTS) < _pins(_CONSTRAINTS)


def test_each_declared_dependency_is_pinned_within_its_range():
  pins = _parse(_CONSTRAINTS)
  declared = [*_NEEDS, *_EXTRAS['cluster'], *_GROUPS['dev'], *_GROUPS['docs']]
  for need in _parse(declared):
    name = utils.canonicalize_name(need.name)
    own = [p for p in pins if utils.canonicalize_name(p.name) == name]
    assert own, need
    assert all(need.specifier.contains(_version(pin)) for pin in own), need


def test_overrides_are_pinned_alike():
  overrides = _parse(_UV['override-dependencies'])
  pins = _for_this_python(_parse(_CONSTRAINTS))
  for override in overrides:
    assert override.specifier == pins[override.name].specifier


def test_gpu_extra_is_pinned_and_apart():
  gpu = _parse(_EXTRAS['gpu'])
  pins = {pin.name for pin in _parse(_CONSTRAINTS)}
  assert all(_version(requirement) for requirement in gpu)
  assert not pins & {requirement.name for requirement in gpu}


def test_the_environment_has_the_pinned_versions():
  pins = _for_this_python(_parse(_CONSTRAINTS))
  # Not by name: once imported, Ray puts a psutil of its own first on the path.
  packages = importlib.metadata.distributions(
    path=[sysconfig.get_path('purelib')]
  )
  versions = {
    utils.canonicalize_name(package.name): package.version
    for package in packages
  }
  installed = {name: versions[name] for name in pins}
  assert installed == {name: _version(pin) for name, pin in pins.items()}


@pytest.mark.parametrize(
  ('declared', 'listed'),
  [
    (_NEEDS, _REQUIREMENTS),
    ([*_NEEDS, *_GROUPS['dev'], *_GROUPS['docs']], _CONSTRAINTS),
  ],
)
def test_a_list_is_what_the_declared_dependencies_need(declared, listed):
  todo, seen = list(_for_this_python(_parse(declared))), set()
  while todo:
    name = todo.pop()
    if name in seen:
      continue
    seen.add(name)
    needs = _parse(importlib.metadata.requires(name) or [])
    todo.extend(_for_this_python(needs))
  assert seen == set(_for_this_python(_parse(listed)))


def test_another_python_is_refused_in_one_sentence():
  low, high = (3, 10), (3, 12)
  assert _PYPROJECT['project']['requires-python'] == '>=3.10,<3.12'
  for version in (low, (3, 11, 99), (3, 9, 18), high):
    script = (
      f'import sys\nsys.version_info = {version}\n'
      "sys.argv[0] = '-m'\nimport launchers\n"
    )
    done = subprocess.run(
      [sys.executable, '-c', script],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      check=False,
    )
    if low <= version < high:
      assert (done.returncode, done.stderr) == (0, '')
    else:
      found = '.'.join(map(str, version))
      assert (done.returncode, done.stderr) == (
        1,
        'Error: tff-fair must run on Python 3.10 or 3.11, as TensorFlow'
        f' Federated 0.87, found {found}.\n',
      )
