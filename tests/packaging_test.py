"""Tests that the two lists of pinned packages agree, and are complete."""

import importlib.metadata
import pathlib
import sys

from packaging import requirements
from packaging import utils
import pytest

if sys.version_info >= (3, 11):
  import tomllib
else:
  import tomli as tomllib

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def _pyproject():
  return tomllib.loads((_ROOT / 'pyproject.toml').read_text())


def _constraint_lines():
  return _pyproject()['tool']['uv']['constraint-dependencies']


def _requirements_lines():
  lines = (_ROOT / 'requirements.txt').read_text().splitlines()
  return [line for line in lines if line and not line.startswith('#')]


def _parse(lines):
  return [requirements.Requirement(line) for line in lines]


def _declared():
  """The requirements of the library and of the groups installed by default."""
  pyproject = _pyproject()
  groups = pyproject['dependency-groups']
  names = pyproject['tool']['uv']['default-groups']
  lines = [line for name in names for line in groups[name]]
  return _parse(pyproject['project']['dependencies'] + lines)


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


def test_both_lists_are_equal():
  constraints = [str(pin) for pin in _parse(_constraint_lines())]
  assert constraints == [str(pin) for pin in _parse(_requirements_lines())]


@pytest.mark.parametrize('lines', [_constraint_lines, _requirements_lines])
def test_pins_name_no_address_and_no_hash(lines):
  for line in lines():
    assert not any(text in line for text in ('://', '@', '--', '#')), line
    assert _version(requirements.Requirement(line))


def test_default_groups_are_all_groups():
  pyproject = _pyproject()
  groups = set(pyproject['dependency-groups'])
  assert set(pyproject['tool']['uv']['default-groups']) == groups


@pytest.mark.parametrize('declared', _declared(), ids=lambda need: need.name)
def test_each_declared_dependency_is_pinned(declared):
  name = utils.canonicalize_name(declared.name)
  pins = [
    pin
    for pin in _parse(_constraint_lines())
    if utils.canonicalize_name(pin.name) == name
  ]
  assert pins
  assert all(declared.specifier.contains(_version(pin)) for pin in pins)


def test_overrides_are_pinned_alike():
  overrides = _parse(_pyproject()['tool']['uv']['override-dependencies'])
  pins = _for_this_python(_parse(_constraint_lines()))
  for override in overrides:
    assert override.specifier == pins[override.name].specifier


def test_gpu_extra_is_pinned_and_apart():
  gpu = _parse(_pyproject()['project']['optional-dependencies']['gpu'])
  pins = {pin.name for pin in _parse(_constraint_lines())}
  assert all(_version(requirement) for requirement in gpu)
  assert not pins & {requirement.name for requirement in gpu}


def test_the_environment_has_the_pinned_versions():
  pins = _for_this_python(_parse(_constraint_lines()))
  installed = {name: importlib.metadata.version(name) for name in pins}
  assert installed == {name: _version(pin) for name, pin in pins.items()}


def test_the_lists_cover_what_the_declared_dependencies_need():
  pins = _for_this_python(_parse(_constraint_lines()))
  todo, seen = list(_for_this_python(_declared())), set()
  while todo:
    name = todo.pop()
    if name in seen:
      continue
    seen.add(name)
    needs = _parse(importlib.metadata.requires(name) or [])
    todo.extend(_for_this_python(needs))
  assert seen == set(pins)
