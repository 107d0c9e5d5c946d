"""Flags of a method, read from the signature and the docstring of its builder.

An argument whose annotation is `bool`, `int`, `float` (or None) or a `Literal`
is a flag of its name, unless a shared flag sets it; its help is the first
sentence of its entry in the docstring. See `tff_fair.annotations` for limits.
"""

from collections.abc import Callable, Mapping
import inspect
import re
import sys
from typing import Any

from tff_fair import annotations
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options.methods import entry

_KINDS = {
  bool: flag_types.Switch,
  int: flag_types.Integer,
  float: flag_types.Real,
  str: flag_types.Choice,
}


def read(builder: Callable[..., Any]) -> entry.Signature:
  """Reads what the launchers need of a builder.

  Args:
    builder: The builder.
  """
  found = parameters(builder)
  texts = argument_texts(builder)
  shared: dict[str, list[flag_types.Flag]] = {}
  for flag in run_flags.FLAGS.values():
    if flag.argument:
      shared.setdefault(flag.argument, []).append(flag)
  own = [
    flag_of(parameter, texts)
    for name, parameter in found.items()
    if name not in shared and name not in entry.PROVIDED
  ]
  return entry.Signature(
    flags=tuple(flag for flag in own if flag),
    defaults={
      flag.name: found[name].default
      for name, (flag, *others) in shared.items()
      if name in found and not others and _differs(found[name].default, flag)
    },
    # Data have clients whether a builder counts them or not.
    ignores=()
    if takes_all(builder)
    else tuple(
      flag.name
      for name, flags in shared.items()
      for flag in flags
      if name not in found and name != 'num_clients'
    ),
    arguments=tuple(name for name in entry.PROVIDED if name in found),
  )


def parameters(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
  """The named arguments of a builder after the first, which builds the model.

  Args:
    builder: The builder.
  """
  _, *others = inspect.signature(builder, eval_str=True).parameters.values()
  unnamed = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
  return {p.name: p for p in others if p.kind not in unnamed}


def takes_all(builder: Callable[..., Any]) -> bool:
  """Returns whether a builder takes arguments of any name.

  Args:
    builder: The builder.
  """
  found = inspect.signature(builder).parameters.values()
  return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found)


def argument_texts(builder: Callable[..., Any]) -> Mapping[str, str]:
  """The entries of arguments in a builder's docstring.

  Args:
    builder: The builder; what its docstring leaves to that of one of ours, as
      'See `build_fed_avg` for', is there.

  Returns:
    Name -> text, in one line.
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
  """The first sentence of a text.

  Args:
    text: The text, in one line.
  """
  return re.split(r'(?<=\.) ', text, maxsplit=1)[0]


def _differs(default, flag) -> bool:
  return isinstance(default, bool | int | float) and default != flag.default


def flag_of(
  parameter: inspect.Parameter, texts: Mapping[str, str]
) -> flag_types.Flag | None:
  """The flag of an argument, if it can be one.

  Args:
    parameter: The argument.
    texts: The result of `argument_texts`.
  """
  found = annotations.read(parameter.annotation)
  if found.kind is None or parameter.default is parameter.empty:
    return None
  kind = _KINDS[found.kind]
  options: dict[str, Any] = {}
  if found.choices:
    options['choices'] = found.choices
  if found.kind in (int, float):
    options.update(vars(found.limits))
  return kind(
    parameter.name,
    parameter.default,
    first_sentence(texts.get(parameter.name, '')),
    symbol=found.symbol,
    unless=found.unless,
    **options,
  )
