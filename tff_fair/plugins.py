"""Methods, data sets and models from outside this package.

A plug-in is a module that registers them when it is imported, as in
docs/adding_a_method.md. Importing this module does not import TensorFlow.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import importlib
from importlib import metadata
import os
import pkgutil
import re
import sys
from typing import Any

# The plug-ins of this process, in the order of their imports.
_LOADED: dict[str, None] = {}


class PluginError(ValueError):
  """A plug-in cannot be used."""


def register_method(method: Any, builder: Callable[..., Any] | str) -> None:
  """Adds an `entry.Method`; its builder may be 'module:name', imported late."""
  from tff_fair.launchers.options import builders

  builders.register(method, builder)


def register_task(data_set: Any) -> None:
  """Adds a value of `--task` and of `tasks.build_task`: a `tasks.DataSet`."""
  from tff_fair.tasks import registry

  registry.register(data_set)


def register_model(
  name: str,
  build: Callable[..., Any] | str,
  inputs: Sequence[str] = ('images', 'numbers'),
) -> None:
  """Adds a function of an input's shape and the number of classes.

  `inputs` are of 'images', 'numbers' and 'records'.
  """
  from tff_fair.tasks import model_builders

  model_builders.register(name, build, inputs)


def load(names: Iterable[str]) -> None:
  """Imports modules, each once; calls the function of 'module:function'."""
  if not {'', os.getcwd()} & {*sys.path}:
    sys.path.append(os.getcwd())
  for name in names:
    if name not in _LOADED:
      with named_errors(f'The plug-in {name!r}'):
        if ':' in name:
          pkgutil.resolve_name(name)()
        else:
          importlib.import_module(name)
      _LOADED[name] = None


def load_installed() -> list[str]:
  """Imports those of installed packages; returns a line on each that fails."""
  failures = []
  for point in sorted(metadata.entry_points(group='tff_fair.plugins')):
    try:
      load([point.value])
    except PluginError as error:
      failures.append(f'The entry point {point.name!r}: {error}')
  return failures


def check_name(what: str, name: str) -> str:
  """Returns the name of a method, task or model if files can have it.

  Args:
    what: What has the name.
    name: The name.

  Raises:
    ValueError: If it is no word.
  """
  if not re.fullmatch(r'\w+', str(name), re.ASCII):
    raise ValueError(
      f'The name of a {what} must be of letters, digits and _, found {name!r}.'
    )
  return name


def loaded() -> tuple[str, ...]:
  """The plug-ins that this process has loaded, for `load` in another one."""
  return tuple(_LOADED)


def find_function(what: str, reference: Any) -> Callable[..., Any]:
  """Imports a function that was registered by its name."""
  if not isinstance(reference, str):
    return reference
  with named_errors(f'{what}, built by {reference!r},'):
    function = pkgutil.resolve_name(reference)
    if not callable(function):
      raise TypeError('it must be a function')
    return function


@contextlib.contextmanager
def named_errors(what: str, *passed: type[BaseException]) -> Iterator[None]:
  """A context that makes one sentence of whatever a plug-in raises.

  Args:
    what: What fails, the first words of the sentence.
    *passed: Errors that are left as they are.

  Raises:
    PluginError: If it raises anything, even what ends a program.
  """
  try:
    yield
  except passed:
    raise
  except BaseException as error:
    reason = ' '.join(f'{type(error).__name__}: {error}'.split())
    raise PluginError(f'{what} fails with {reason.rstrip(".: ")}.') from error
