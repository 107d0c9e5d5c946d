"""The builder of each method, and the methods of plug-ins.

Ours are the functions `build_*` of `tff_fair.algorithms`; plug-ins register
theirs. Nothing here imports TensorFlow before a builder is needed.
"""

from collections.abc import Callable
from typing import Any

from absl import flags

from tff_fair import plugins
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options import signatures
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

# Which absl defines later than its other flags.
_HELP = ('help', 'helpfull', 'helpshort', 'helpxml')
# Those of plug-ins.
_REGISTERED: dict[str, Callable[..., Any] | str] = {}


def register(method: entry.Method, builder: Callable[..., Any] | str) -> None:
  """Adds a method from outside the package.

  Args:
    method: Its entry.
    builder: Its builder, whose signature adds flags to the entry, or where it
      is, as 'module:name': then the entry has all flags.

  Raises:
    TypeError: If an argument is of the wrong kind, or a flag is of another kind
      than that of another method.
    ValueError: If there is a method of that name, or the entry does not fit the
      builder.
  """
  if not isinstance(method, entry.Method):
    raise TypeError(
      f'A method must be an entry.Method, found {type(method).__name__}.'
    )
  if method.name in methods.METHODS:
    raise ValueError(
      f'The name of a method must be new, found {method.name!r}, which exists.'
    )
  plugins.check_reference(f'The method {method.name!r}', builder)
  for flag in method.flags:
    if not isinstance(flag, flag_types.Flag):
      raise TypeError(
        f'flags of the method {method.name!r} must be of'
        f' launchers.options.flag_types, found {flag!r}.'
      )
  if not isinstance(builder, str):
    method = method.with_signature(signatures.read(builder))
  _check_flags(method)
  check_entry(method)
  if not isinstance(builder, str):
    _check_parameters(method, builder)
  train_flags.add_method(method)
  methods.METHODS[method.name] = method
  _REGISTERED[method.name] = builder


def get(name: str) -> Callable[..., Any]:
  """The builder of a method.

  Args:
    name: The method.

  Returns:
    The function.

  Raises:
    ValueError: If a plug-in has registered it by a name, and there is no such
      function, or it does not have the arguments of the entry.
  """
  if name not in _REGISTERED:
    # Takes seconds to import.
    from tff_fair import algorithms

    return getattr(algorithms, f'build_{name}')
  builder = plugins.find_function(f'The method {name!r}', _REGISTERED[name])
  _check_parameters(methods.METHODS[name], builder)
  return builder


def is_provided(name: str) -> bool:
  """Returns whether a method is ours, not a plug-in's.

  Args:
    name: The method.
  """
  return name not in _REGISTERED


def check_entry(method: entry.Method) -> None:
  """Checks that what an entry says of flags fits them.

  Args:
    method: The entry.

  Raises:
    ValueError: If it does not.
  """
  known = run_flags.of_method(method)
  parts = {
    'defaults': method.defaults,
    'required': method.required,
    'tuned': method.tuned,
    'ignores': method.ignores,
    **{f'ignores[{n!r}]': others for n, others in method.ignores.items()},
    **{
      f'unless of --{flag.name}': others
      for flag in method.flags
      for others in flag.unless
    },
  }
  for part, names in parts.items():
    for name in names:
      if name not in known:
        raise ValueError(
          f'{part} of the method {method.name!r} must name flags of the method,'
          f' found {name!r}.'
        )
  values = [(flag.name, flag.default) for flag in method.flags]
  values += [*method.defaults.items(), *method.required.items()]
  values += [(name, v) for name, tried in method.tuned.items() for v in tried]
  for name, value in values:
    limits = '' if value is None else known[name].violated(value)
    if limits:
      raise ValueError(
        f'--{name} of the method {method.name!r} must be {limits}, found'
        f' {value!r}.'
      )
  unknown = set(method.groups) - set(entry.GROUPS)
  if unknown:
    raise ValueError(
      f'groups of the method {method.name!r} must be of'
      f' {", ".join(entry.GROUPS)}, found {min(unknown)!r}.'
    )
  for argument in method.arguments:
    needed = entry.PROVIDED.get(argument)
    if needed is None or not {*needed} <= {*known}:
      raise ValueError(
        f'arguments of the method {method.name!r} must be of'
        f' {", ".join(entry.PROVIDED)}, and come with their flags, found'
        f' {argument!r}.'
      )


def flags_of(method: entry.Method, argument: str) -> list[flag_types.Flag]:
  """The flags that set an argument of a method's builder.

  Args:
    method: The method's entry.
    argument: The name of the argument.
  """
  own = {flag.name for flag in method.flags}
  return [
    flag
    for flag in run_flags.of_method(method).values()
    if argument == (flag.argument or (flag.name in own and flag.name))
  ]


def _check_parameters(method: entry.Method, builder) -> None:
  """Checks that a builder can be called with the arguments of an entry."""
  given = run_flags.builder_arguments(method)
  found = signatures.parameters(builder)
  missing = [name for name in given if name not in found]
  if missing and not signatures.takes_all(builder):
    raise ValueError(
      f'The builder of the method {method.name!r} must have the arguments of'
      f" the method's flags, found no {', '.join(missing)}."
    )
  for name, parameter in found.items():
    if name not in given and parameter.default is parameter.empty:
      raise ValueError(
        f'The argument {name} of the builder of the method {method.name!r} must'
        ' have a default or a flag, found neither.'
      )


def _check_flags(method: entry.Method) -> None:
  """Refuses what would go wrong when flags are defined."""
  of_absl = {*flags.FLAGS, *_HELP} - {*train_flags.FLAG_NAMES}
  for flag in method.flags:
    if not flag.name.isidentifier() or flag.name in of_absl:
      raise ValueError(
        f'A flag of the method {method.name!r} must have a name that can be an'
        f' argument and is no flag of absl, found {flag.name!r}.'
      )
  train_flags.merge_method(method)  # Their kinds.
