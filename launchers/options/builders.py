"""The builder of each method, its signature as flags, and plug-ins' methods.

Ours are the functions `build_*` of `tff_fair.algorithms`; plug-ins register
theirs. An argument whose annotation is `bool`, `int`, `float` (or None) or a
`Literal` is a flag of its name, unless a shared flag sets it; its help is the
first sentence of its entry in the docstring. `tff_fair.annotations` has the
limits. Nothing here imports TensorFlow before a builder is needed.
"""

from collections.abc import Callable, Mapping
import importlib
import inspect
import re
import sys
from typing import Any

from absl import flags

from tff_fair import annotations
from tff_fair import plugins
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

# Which absl defines later than its other flags.
_HELP = ('help', 'helpfull', 'helpshort', 'helpxml')
_KINDS = {
  bool: flag_types.Switch,
  int: flag_types.Integer,
  float: flag_types.Real,
  str: flag_types.Choice,
}
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
  plugins.check_name('method', method.name)
  if method.name in methods.METHODS:
    raise ValueError(
      f'The name of a method must be new, found {method.name!r}, which exists.'
    )
  for flag in method.flags:
    if not isinstance(flag, flag_types.Flag):
      raise TypeError(
        f'flags of the method {method.name!r} must be of'
        f' launchers.options.flag_types, found {flag!r}.'
      )
  if not isinstance(builder, str):
    method = method.with_signature(read(builder))
  _check_flags(method)
  check_entry(method)
  if not isinstance(builder, str):
    _check_parameters(method, builder)
  train_flags.add_method(method)
  methods.METHODS[method.name] = method
  _REGISTERED[method.name] = builder


def get(name: str) -> Callable[..., Any]:
  """The builder of a method.

  Raises:
    ValueError: If a plug-in has registered it by a name, and there is no such
      function, or it does not have the arguments of the entry.
  """
  if name not in _REGISTERED:
    # Takes seconds to import.
    module, _, function = methods.METHODS[name].builder.partition(':')
    found = importlib.import_module(module or 'tff_fair.algorithms')
    return getattr(found, function or f'build_{name}')
  builder = plugins.find_function(f'The method {name!r}', _REGISTERED[name])
  _check_parameters(methods.METHODS[name], builder)
  return builder


def is_provided(name: str) -> bool:
  """Returns whether a method is ours, not a plug-in's."""
  return name not in _REGISTERED


def check_entry(method: entry.Method) -> None:
  """Raises `ValueError` if what an entry says of flags does not fit them."""
  known = train_flags.of_method(method)
  provided = [n for n, flags in entry.PROVIDED.items() if {*flags} <= {*known}]
  for part, names, legal in (
    *((n, getattr(method, n), known) for n in ('defaults', 'required')),
    *((n, getattr(method, n), known) for n in ('tuned', 'ignores')),
    *((f'ignores[{n!r}]', found, known) for n, found in method.ignores.items()),
    *(
      (f'unless of --{flag.name}', others, known)
      for flag in method.flags
      for others in flag.unless
    ),
    *(
      (f'follows of --{flag.name}', [flag.follows], known)
      for flag in method.flags
      if flag.follows
    ),
    ('groups', method.groups, entry.GROUPS),
    ('arguments', method.arguments, provided),
  ):
    for name in names:
      if name not in legal:
        kind = 'its flags' if legal is known else ', '.join(legal)
        if part == 'arguments':
          kind += ', and come with their flags'
        raise ValueError(
          f'{part} of the method {method.name!r} must be of {kind}, found'
          f' {name!r}.'
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


def flags_of(method: entry.Method, argument: str) -> list[flag_types.Flag]:
  """The flags that set an argument of a method's builder."""
  own = {flag.name for flag in method.flags}
  return [
    flag
    for flag in train_flags.of_method(method).values()
    if argument == (flag.argument or (flag.name in own and flag.name))
  ]


def read(builder: Callable[..., Any]) -> entry.Signature:
  """Reads what the launchers need of a builder's signature and docstring."""
  found = parameters(builder)
  texts = argument_texts(builder)
  shared: dict[str, list[flag_types.Flag]] = {}
  for flag in train_flags.FLAGS.values():
    if flag.argument:
      shared.setdefault(flag.argument, []).append(flag)
  own = [
    flag_of(parameter, texts)
    for name, parameter in found.items()
    if name not in shared and name not in entry.PROVIDED
  ]
  # Data have clients whether a builder counts them or not.
  missing = shared.keys() - {*found, 'num_clients'}
  return entry.Signature(
    flags=tuple(flag for flag in own if flag),
    defaults={
      flag.name: found[name].default
      for name, (flag, *others) in shared.items()
      if name in found and not others and _differs(found[name].default, flag)
    },
    ignores=()
    if _takes_all(builder)
    else tuple(
      flag.name
      for name, flags in shared.items()
      for flag in flags
      if name in missing
    ),
    arguments=tuple(name for name in entry.PROVIDED if name in found),
  )


def parameters(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
  """The named arguments of a builder after the first, which is the model."""
  _, *others = inspect.signature(builder, eval_str=True).parameters.values()
  unnamed = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
  return {p.name: p for p in others if p.kind not in unnamed}


def argument_texts(builder: Callable[..., Any]) -> Mapping[str, str]:
  """The entries of arguments in a builder's docstring, each in one line.

  What it leaves to that of one of ours, as 'See `build_fed_avg` for', is there.
  """
  docstring = inspect.getdoc(builder) or ''
  other = re.search(r'See `(build_\w+)`\s+for', docstring)
  ours = getattr(sys.modules.get('tff_fair.algorithms'), '__dict__', {})
  found = {}
  if other and other[1] in ours:
    found.update(argument_texts(ours[other[1]]))
  _, _, section = docstring.partition('\nArgs:\n')
  section = section.partition('\n\n')[0]
  for part in re.split(r'^  (?=\w)', section, flags=re.M)[1:]:
    name, _, text = part.partition(':')
    found[name] = ' '.join(text.split())
  return found


def first_sentence(text: str) -> str:
  """The first sentence of a text in one line."""
  return re.split(r'(?<=\.) ', text, maxsplit=1)[0]


def flag_of(
  parameter: inspect.Parameter, texts: Mapping[str, str]
) -> flag_types.Flag | None:
  """The flag of an argument, if it can be one; `texts` of `argument_texts`."""
  found = annotations.read(parameter.annotation)
  if found.kind is None or parameter.default is parameter.empty:
    return None
  options: dict[str, Any] = {}
  if found.choices:
    options['choices'] = found.choices
  if found.kind in (int, float):
    options.update(vars(found.limits))
  return _KINDS[found.kind](
    parameter.name,
    parameter.default,
    first_sentence(texts.get(parameter.name, '')),
    symbol=found.symbol,
    unless=found.unless,
    **options,
  )


def _differs(default, flag) -> bool:
  return isinstance(default, bool | int | float) and default != flag.default


def _takes_all(builder) -> bool:
  """Returns whether a builder takes arguments of any name."""
  found = inspect.signature(builder).parameters.values()
  return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found)


def _check_parameters(method: entry.Method, builder) -> None:
  """Checks that a builder can be called with the arguments of an entry."""
  given = train_flags.builder_arguments(method)
  found = parameters(builder)
  missing = [name for name in given if name not in found]
  if missing and not _takes_all(builder):
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
