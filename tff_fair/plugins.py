"""Methods, data sets and models from outside this package.

A plug-in is a module that registers them when it is imported:

    from tff_fair import plugins

    plugins.register_method(METHOD, build_tilted)

The launchers import the modules that `--plugins` names, and those that
installed packages name as entry points of the group `tff_fair.plugins`; then
methods, tasks and models have the same flags and checks as ours.
docs/adding_a_method.md has an example of each.

Importing this module does not import TensorFlow.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import importlib
from importlib import metadata
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  import tensorflow as tf

  from tff_fair.launchers.options.methods import entry
  from tff_fair.tasks import rules

GROUP = 'tff_fair.plugins'
"""The group of entry points by which installed packages bring plug-ins."""

# A module, or a function of a module, which is called.
_NAME = re.compile(r'[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?')

# The plug-ins of this process, in the order of their imports.
_LOADED: dict[str, None] = {}
# For each registration the module whose code asked for it.
_REGISTERED: list[str] = []


class PluginError(ValueError):
  """A plug-in cannot be used; the message is one sentence."""


def register_method(
  method: 'entry.Method', builder: Callable[..., Any] | str
) -> None:
  """Adds a method: a value of `--algorithm`, with its flags.

  Args:
    method: The method's entry: its name, its flags and all else that the
      launchers know about it.
    builder: From a function that builds a Keras model, and the arguments that
      the entry names, to a learning process, as `algorithms.build_fed_avg`;
      or where this function is, as 'module:name'. As text it is imported only
      when a run needs it, so that flags are checked before TensorFlow is
      imported.

  Raises:
    PluginError: If there is a method of that name, or the entry does not fit
      the builder or the flags of other methods.
  """
  from tff_fair.launchers.options import builders

  _register(builders.register, method, builder)


def register_task(data_set: 'rules.DataSet') -> None:
  """Adds a data set: a value of `--task`, and of `tasks.build_task`.

  Args:
    data_set: The facts about the data set, and the function that builds it.

  Raises:
    PluginError: If there is a task of that name, or the facts do not fit
      together.
  """
  from tff_fair.tasks import registry

  _register(registry.register, data_set)


def register_model(
  name: str,
  build: 'Callable[..., tf.keras.Model] | str',
  inputs: Sequence[str] = ('images', 'numbers'),
) -> None:
  """Adds a model: a value of `--model`.

  Args:
    name: Its name.
    build: From the shape of an input, without the batch, and the number of
      classes to a new Keras model that gives logits; or where this function
      is, as 'module:name'.
    inputs: The kinds of inputs that it takes: 'images', 'numbers' (vectors) or
      'records'. It can be chosen for data sets of these kinds.

  Raises:
    PluginError: If there is a model of that name, or an argument is not as
      described.
  """
  from tff_fair.tasks import model_builders

  _register(model_builders.register, name, build, inputs)


def load(names: Iterable[str]) -> None:
  """Imports plug-ins, each once in a process.

  Modules are looked for where Python looks, and then in the current folder.

  Args:
    names: Names of modules, as in an import statement; 'module:function' also
      calls the function, without arguments.

  Raises:
    PluginError: If one cannot be imported, or registers nothing.
  """
  # `python -m` and notebooks find modules in the current folder, a program
  # that a package has installed does not.
  folder = os.getcwd()
  if '' not in sys.path and folder not in sys.path:
    sys.path.append(folder)
  for name in names:
    if name not in _LOADED:
      _load(name)
      _LOADED[name] = None


def load_installed() -> list[str]:
  """Imports the plug-ins that installed packages name as entry points.

  Returns:
    A sentence on each that cannot be used; the others can.
  """
  failures = []
  for point in sorted(metadata.entry_points(group=GROUP)):
    try:
      load([point.value])
    except PluginError as error:
      package = f' of {point.dist.name}' if point.dist else ''
      failures.append(f'The installed plug-in {point.name!r}{package}: {error}')
  return failures


def loaded() -> tuple[str, ...]:
  """The plug-ins that this process has loaded, for `load` in another one."""
  return tuple(_LOADED)


def check_reference(what: str, reference: Any) -> None:
  """Checks that something is a function, or names one.

  Args:
    what: What the message calls the function.
    reference: The function, or 'module:name'.

  Raises:
    TypeError: If it is neither.
  """
  if isinstance(reference, str):
    legal = ':' in reference and _NAME.fullmatch(reference)
  else:
    legal = callable(reference)
  if not legal:
    raise TypeError(
      f"{what} must be built by a function, or by 'module:name', found"
      f' {reference!r}.'
    )


def find_function(
  what: str, reference: Callable[..., Any] | str
) -> Callable[..., Any]:
  """Imports a function that was registered by its name.

  Args:
    what: What the message calls the function.
    reference: The function, or 'module:name'.

  Returns:
    The function.

  Raises:
    PluginError: If there is no such function, or its module cannot be
      imported.
  """
  if not isinstance(reference, str):
    return reference
  module, _, name = reference.partition(':')
  function = getattr(_import(module, reference), name, None)
  if not callable(function):
    raise PluginError(
      f'{what} must be built by a function, found none at {reference!r}.'
    )
  return function


def _register(register: Callable[..., None], *arguments: Any) -> None:
  try:
    register(*arguments)
  except (TypeError, ValueError) as error:
    raise PluginError(str(error)) from error
  # The caller's caller.
  _REGISTERED.append(sys._getframe(2).f_globals.get('__name__', ''))


def _load(name: str) -> None:
  if not _NAME.fullmatch(name) or name.endswith('.py'):
    raise PluginError(
      'A plug-in must be named as in an import statement, for example'
      f" 'my_package.my_module', found {name!r}."
    )
  module, _, function = name.partition(':')
  before = len(_REGISTERED)
  _import(module, name)
  if function:
    call = find_function(f'The plug-in {name!r}', name)
    with _errors_of(name):
      call()
  # One that was imported before has registered its parts then.
  if len(_REGISTERED) == before and module not in _REGISTERED:
    raise PluginError(
      f'The plug-in {name!r} must register a method, a task or a model when it'
      ' is imported, found nothing registered.'
    )


def _import(module: str, name: str) -> Any:
  with _errors_of(name):
    try:
      return importlib.import_module(module)
    except ModuleNotFoundError as error:
      # Of the module itself, not of what it imports.
      if f'{module}.'.startswith(f'{error.name}.'):
        raise PluginError(
          f'The plug-in {name!r} must be a module that Python finds, found no'
          f' module {error.name!r} in the current folder or on the path.'
        ) from error
      raise


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
  """Turns what the code of a plug-in raises into one sentence."""
  try:
    yield
  except PluginError as error:
    if str(error).startswith('The plug-in '):
      raise
    raise PluginError(f'The plug-in {name!r}: {error}') from error
  # A module may be a script, and exit.
  except (Exception, SystemExit) as error:
    reason = ' '.join(f'{type(error).__name__}: {error}'.split())
    raise PluginError(
      f'The plug-in {name!r} must be a module that can be imported, found'
      f' {reason.rstrip(".")}{_place(error)}.'
    ) from error


def _place(error: BaseException) -> str:
  """The file and line of the plug-in that raised an error."""
  for frame in traceback.extract_tb(error.__traceback__):
    ours = frame.filename in (__file__, importlib.__file__)
    if not ours and not frame.filename.startswith('<frozen'):
      return f' ({os.path.basename(frame.filename)}, line {frame.lineno})'
  return ''
