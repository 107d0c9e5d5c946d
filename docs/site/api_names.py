"""The public names of the API reference, read from the source."""

import dataclasses
import functools
import pathlib
import re

import griffe

FOLDER = 'api/'
_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Names that mean one thing, wherever they stand.
_TELLING = re.compile(
  r'(build|create|from|register|set)_\w+|[A-Z]+[a-z]+[A-Z]\w+'
)


@dataclasses.dataclass(frozen=True)
class ApiNames:
  """What pages can link to.

  Attributes:
    pages: Markdown of the page of each module.
    defined: Where a public name is defined, and its name in the reference.
    written: How pages and docstrings write a name, and that in the reference.
  """

  pages: dict[str, str]
  defined: dict[str, str]
  written: dict[str, str]


def modules(nav):
  """Yields the modules of the reference, whose pages the navigation names."""
  if isinstance(nav, str):
    if nav.startswith(FOLDER):
      yield nav.removeprefix(FOLDER).removesuffix('.md')
    return
  for item in nav.values() if isinstance(nav, dict) else nav:
    yield from modules(item)


@functools.cache
def read(names: tuple[str, ...]) -> ApiNames:
  """Reads the public names of some modules, without importing them."""
  members = {
    name: [
      member
      for member in _load()[name].members.values()
      if member.is_public and not member.is_module
    ]
    for name in names
  }
  public = [member for own in members.values() for member in own]
  paths = [name for name in names if '.' in name] + [m.path for m in public]
  written = {path: path for path in paths}
  written |= {path.removeprefix('tff_fair.'): path for path in paths}
  written |= {
    member.name: member.path
    for member in public
    if _TELLING.fullmatch(member.name) and not member.is_attribute
  }
  # A module without names of its own has those of its modules on its page.
  options = '    options:\n      show_submodules: '
  return ApiNames(
    pages={
      name: f'::: {name}\n{options}{str(not members[name]).lower()}\n'
      for name in names
    },
    defined={member.canonical_path: member.path for member in public},
    written=written,
  )


def exists(path: str) -> bool:
  """Returns whether a dotted name, such as `tff_fair.client`, is one."""
  try:
    return bool(_load()[path])
  except KeyError:
    return False


@functools.cache
def _load():
  return griffe.load('tff_fair', search_paths=[_ROOT]).modules_collection
