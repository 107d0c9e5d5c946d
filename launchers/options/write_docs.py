"""The tables of options and of baselines in docs/methods.

A table stands between `<!-- NAME of METHOD -->` and `<!-- end -->`; what is
between them is replaced. Texts, flags and symbols come from the methods'
entries; names, order and defaults come from the builders' signatures.
"""

from collections.abc import Iterable, Mapping, Sequence
import inspect
import re
from typing import Any

from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options.methods import entry
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown

_START = (
  r'(?P<kind>options|own options|shared options|overview)(?: of (?P<name>\w+))?'
)
_OPTIONS_HEAD = ('argument', 'flag', 'paper', 'default', 'what it does')
_OVERVIEW_HEAD = ('method', 'what it does', 'aggregation rule', 'compared with')
_SHARED = {
  **{f.argument: '' for f in run_flags.FLAGS.values() if f.argument},
  **{argument.name: argument.help for argument in run_flags.ARGUMENTS},
}


def render(page: str) -> str:
  """A page with its tables as they should be.

  Args:
    page: The page's text.

  Returns:
    The text with all blocks between markers replaced.
  """

  def write(match):
    kind, name = match['kind'], match['name']
    if kind == 'options':
      return _options(methods.METHODS[name], _parameters(name))
    if kind == 'own options':
      return _own_options(methods.METHODS[name])
    return _shared_options() if kind == 'shared options' else _overview(page)

  return blocks.replace(page, _START, 'end', write)


def _parameters(name: str) -> dict[str, Any]:
  """The builder's arguments after `model_fn`, with their defaults as code."""
  signature = inspect.signature(builders.get(name))
  return {
    parameter.name: 'required'
    if parameter.default is parameter.empty
    else f'`{parameter.default!r}`'
    for parameter in list(signature.parameters.values())[1:]
  }


def _options(method: entry.Method, defaults: Mapping[str, str]) -> str:
  """The table of a method's arguments, in the order of `defaults`."""
  rows = [
    _option(method, argument, default) for argument, default in defaults.items()
  ]
  return _table(_OPTIONS_HEAD, rows)


def _option(method: entry.Method, name: str, default: str) -> tuple[str, ...]:
  flags = [
    flag
    for flag in builders.flags_of(method, name)
    if method.ignores.get(flag.name) != {}
  ]
  described = [
    argument
    for argument in (*method.arguments, *run_flags.ARGUMENTS)
    if argument.name == name
  ]
  symbols = dict.fromkeys(part.symbol for part in (*flags, *described))
  return (
    f'`{name}`',
    ', '.join(f'`--{flag.name}`' for flag in flags) or '-',
    ', '.join(filter(None, symbols)),
    default,
    ' '.join(part.help for part in described or flags),
  )


def _own_options(method: entry.Method) -> str:
  """The table of what other builders do not have, and what this one lacks."""
  defaults = _parameters(method.name)
  own = {name: text for name, text in defaults.items() if name not in _SHARED}
  lacks = [f'`{name}`' for name in _SHARED if name not in defaults]
  parts = [_options(method, own)] if own else ['No options of its own.']
  if lacks:
    parts.append(f'Does not take {", ".join(lacks)}.')
  return '\n\n'.join(parts)


def _shared_options() -> str:
  """The table of arguments that most builders of baselines have."""
  found = {name: {} for name in _SHARED}
  for method in methods.BASELINES:
    for name, default in _parameters(method).items():
      if name in found:
        found[name][default] = None
  no_method = entry.Method(name='', title='', summary='')
  return _options(no_method, {n: ' or '.join(d) for n, d in found.items()})


def _overview(page: str) -> str:
  """The table of the page's methods, in the order of their sections."""
  found = map(methods.METHODS.get, re.findall(r'\n`build_(\w+)`, `--', page))
  return _table(
    _OVERVIEW_HEAD,
    (
      (
        f'[{method.title}](#{_anchor(method.title)})',
        method.summary,
        _as_code(method.rule),
        ', '.join(method.compared_with),
      )
      for method in found
    ),
  )


def _anchor(heading: str) -> str:
  """GitHub's anchor of a heading."""
  return re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')


def _as_code(rule: str) -> str:
  return f'`{rule}`' if rule.endswith('Factory') else rule


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  return markdown.table(head, rows, texts=len(head), is_tight=True)
