"""The public names of the API reference, read from the source."""

from collections.abc import Iterator
import dataclasses
import functools
import pathlib
import re

import griffe

_ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = 'api/'
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


def of_navigation(nav: list | dict | str) -> Iterator[str]:
  """The modules of the reference, which name its pages in the navigation."""
  if isinstance(nav, str):
    if nav.startswith(FOLDER):
      yield nav.removeprefix(FOLDER).removesuffix('.md')
    return
  for item in nav.values() if isinstance(nav, dict) else nav:
    yield from of_navigation(item)


@functools.cache
def read(names: tuple[str, ...]) -> ApiNames:
  """Reads the public names of some modules, without importing them."""
  modules = _read_modules()
  members = {name: list(_public_members(modules[name])) for name in names}
  public = [member for of_module in members.values() for member in of_module]
  paths = [name for name in names if '.' in name] + [m.path for m in public]
  written = {path: path for path in paths}
  written |= {path.removeprefix('tff_fair.'): path for path in paths}
  written |= {
    member.name: member.path
    for member in public
    if _TELLING.fullmatch(member.name) and not member.is_attribute
  }
  return ApiNames(
    pages={name: _page(name, not members[name]) for name in names},
    defined={member.canonical_path: member.path for member in public},
    written=written,
  )


def exists(path: str) -> bool:
  """Whether a dotted name, such as `tff_fair.client`, leads to something."""
  try:
    return bool(_read_modules()[path])
  except KeyError:
    return False


@functools.cache
def _read_modules() -> griffe.ModulesCollection:
  return griffe.load('tff_fair', search_paths=[_ROOT]).modules_collection


def _public_members(
  module: griffe.Module,
) -> Iterator[griffe.Object | griffe.Alias]:
  for member in module.members.values():
    if member.is_public and not member.is_module:
      yield member


def _page(module: str, in_full: bool) -> str:
  """The page of a module; of its modules, if it has no names of its own."""
  options = f'    options:\n      show_submodules: {str(in_full).lower()}\n'
  return f'::: {module}\n{options}'
