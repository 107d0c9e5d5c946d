"""The builder of each method, and whether a method's entry fits it.

Ours are the functions `build_*` of `tff_fair.algorithms`; plug-ins register
theirs. Nothing here imports TensorFlow before a builder is needed.
"""

from collections.abc import Callable, Mapping
import inspect
import typing
from typing import Any

from absl import flags

from tff_fair import plugins
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

# What builders have where the launchers always give something else.
BUILT: Mapping[str, tuple[Any, ...]] = {
  'num_clients': (inspect.Parameter.empty, None),
  'client_optimizer': (inspect.Parameter.empty,),
  'client_learning_rate_fn': (None,),
  'server_optimizer': (None,),
  'personal_optimizer': (None,),
  'free_riders': (None,),
}
# Arguments that `launchers.runs.processes` makes of a run, for entries that
# name them -> the flags of the method that it needs for that.
PROVIDED: Mapping[str, tuple[str, ...]] = {
  'amounts': ('scenario',),
  'contributions': (),
  'free_riders': ('free_riders', 'free_rider_kind'),
  'personal_learning_rate_fn': ('personal_learning_rate',),
  'personal_optimizer': (
    'personal_optimizer',
    'personal_learning_rate',
    'personal_weight_decay',
  ),
  'statistics': (),
  'total_examples': (),
  'validation': (),
}
# Arguments that it makes of several flags.
COMPOSED = (
  'client_optimizer',
  'margins',
  'personal_optimizer',
  'server_optimizer',
)

_TYPES = {
  bool: flag_types.Switch,
  int: flag_types.Integer,
  float: flag_types.Real,
}
# Which absl defines later than its other flags.
_HELP = ('help', 'helpfull', 'helpshort', 'helpxml')
# Those of plug-ins.
_REGISTERED: dict[str, Callable[..., Any] | str] = {}


def register(method: entry.Method, builder: Callable[..., Any] | str) -> None:
  """Adds a method from outside the package.

  Args:
    method: Its entry.
    builder: Its builder, or where it is, as 'module:name'.

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
  _check_flags(method)
  check_entry(method)
  if not isinstance(builder, str):
    check_builder(method, builder)
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
      function, or the method's entry does not fit it.
  """
  if name not in _REGISTERED:
    # Takes seconds to import.
    from tff_fair import algorithms

    return getattr(algorithms, f'build_{name}')
  builder = plugins.find_function(f'The method {name!r}', _REGISTERED[name])
  check_builder(methods.METHODS[name], builder)
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
  own = [flag.name for flag in method.flags]
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
  values = [(name, known[name].default) for name in own]
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


def check_builder(method: entry.Method, builder: Callable[..., Any]) -> None:
  """Checks that an entry has the arguments, defaults and choices of a builder.

  Args:
    method: The entry.
    builder: The builder.

  Raises:
    ValueError: If it has not.
  """
  first, *rest = inspect.signature(builder).parameters.values()
  where = f'of the builder of the method {method.name!r}'
  given = run_flags.builder_arguments(method)
  if all(parameter.kind != parameter.VAR_KEYWORD for parameter in rest):
    missing = [n for n in given if n not in {p.name for p in rest}]
    if missing:
      raise ValueError(
        f"The arguments {where} must be those of the method's flags, found no"
        f' {", ".join(missing)}; shared flags that it does not need belong in'
        ' `ignores` of its entry.'
      )
  for parameter in rest:
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
      continue
    if parameter.name in given:
      _check_defaults(method, parameter, where)
    elif parameter.default is parameter.empty:
      raise ValueError(
        f'The argument {parameter.name} {where} must have a default or a flag,'
        ' found neither.'
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


def _check_flags(method: entry.Method) -> None:
  """Refuses what would go wrong when flags are defined."""
  for flag in method.flags:
    if not isinstance(flag, flag_types.Flag):
      raise TypeError(
        f'flags of the method {method.name!r} must be of'
        f' launchers.options.flag_types, found {flag!r}.'
      )
    of_absl = {*flags.FLAGS, *_HELP} - {*train_flags.FLAG_NAMES}
    if not flag.name.isidentifier() or flag.name in of_absl:
      raise ValueError(
        f'A flag of the method {method.name!r} must have a name that can be an'
        f' argument and is no flag of absl, found {flag.name!r}.'
      )
  train_flags.merge_method(method)  # Their kinds.
  arguments = [flag.argument or flag.name for flag in method.flags]
  for name in arguments:
    if arguments.count(name) > 1 and name not in COMPOSED:
      raise ValueError(
        f'Flags of the method {method.name!r} must set an argument each, found'
        f' {arguments.count(name)} that set {name}.'
      )
  own = {flag.name for flag in method.flags}
  for argument in method.arguments:
    if not argument.provided:
      continue
    if argument.name not in PROVIDED:
      raise ValueError(
        f'A provided argument of the method {method.name!r} must be one of'
        f' {", ".join(PROVIDED)}, found {argument.name!r}.'
      )
    missing = [n for n in PROVIDED[argument.name] if n not in own]
    if missing:
      raise ValueError(
        f'The argument {argument.name} of the method {method.name!r} must come'
        f' with the flags {", ".join(PROVIDED[argument.name])}, found no'
        f' {", ".join(missing)}.'
      )


def _check_defaults(method, parameter, where) -> None:
  """Compares an argument's default and choices with those of its flags."""
  found = flags_of(method, parameter.name)
  if not found or parameter.name in BUILT:
    return
  defaults = tuple(flag.default for flag in found)
  expected = defaults if len(found) > 1 else defaults[0]
  if parameter.default not in (parameter.empty, expected):
    names = ' and '.join(f'--{flag.name}' for flag in found)
    raise ValueError(
      f'The default of the argument {parameter.name} {where} must be that of'
      f' {names}, {expected!r}, found {parameter.default!r}.'
    )
  if len(found) == 1:
    _check_type(found[0], parameter.annotation, where)


def _check_type(flag, annotation, where) -> None:
  """Compares a flag with the type of its argument, where this has one."""
  parts = typing.get_args(annotation)
  if typing.get_origin(annotation) is typing.Literal:
    if tuple(getattr(flag, 'choices', ())) != parts:
      raise ValueError(
        f'The values of the argument {flag.name} {where} must be the choices of'
        f' --{flag.name}, found {", ".join(map(repr, parts))}.'
      )
    return
  # `float | None`.
  kinds = [_TYPES[kind] for kind in parts or [annotation] if kind in _TYPES]
  if kinds and type(flag) is not kinds[0]:
    raise ValueError(
      f'--{flag.name} {where} must be a {kinds[0].__name__} as its argument,'
      f' found a {type(flag).__name__}.'
    )
