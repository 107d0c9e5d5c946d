"""The methods that the launchers know: an entry each, found by its file.

A new method is a module in this package, or in `baselines`, with a `METHOD`;
`tff_fair.plugins` adds methods from outside.
"""

import importlib
import pkgutil

from tff_fair.launchers.options.methods import baselines
from tff_fair.launchers.options.methods import entry


def _read_entries(package, path) -> dict[str, entry.Method]:
  """The entries of a package, by the name of the method."""
  modules = [
    importlib.import_module(f'{package}.{module.name}')
    for module in pkgutil.iter_modules(path)
  ]
  found = [module.METHOD for module in modules if hasattr(module, 'METHOD')]
  return {method.name: method for method in found}


PAPERS = _read_entries(__name__, __path__)
BASELINES = _read_entries(baselines.__name__, baselines.__path__)
METHODS = {**PAPERS, **BASELINES}


def title(name: str) -> str:
  """A method's name in papers; the name itself if there is no such method."""
  return METHODS[name].title if name in METHODS else name


def takes_turns(name: str) -> bool:
  """Returns whether a method's clients take turns; False if it is unknown."""
  return name in METHODS and METHODS[name].takes_turns
