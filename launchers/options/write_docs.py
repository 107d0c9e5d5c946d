"""The tables of options and of baselines in docs/methods.

A table stands between `<!-- NAME of METHOD -->` and `<!-- end -->`; what is
between them is replaced. All but the overview follows from the builders'
signatures and docstrings.
"""

from collections.abc import Iterable, Mapping, Sequence
import re

from tff_fair import algorithms
from tff_fair import annotations
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown

_START = (
  r'(?P<kind>options|own options|shared options|overview)(?: of (?P<name>\w+))?'
)
_OPTIONS_HEAD = ('argument', 'flag', 'paper', 'default', 'what it does')
_IN_COMMON = (
  'Also the [arguments in common](baselines.md#arguments-in-common) of all'
  ' builders'
)
_OVERVIEW_HEAD = ('method', 'what it does', 'aggregation rule', 'compared with')
# Those that have a row in the table of shared options, in its order.
_SHARED = (
  *dict.fromkeys(f.argument for f in train_flags.FLAGS.values() if f.argument),
  'model_aggregator',
)


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
      return _paper_options(name)
    if kind == 'own options':
      return _own_options(name)
    return _shared_options() if kind == 'shared options' else _overview(page)

  return blocks.replace(page, _START, 'end', write)


def _defaults(name: str) -> dict[str, str]:
  """The arguments of a method's builder, with their defaults as code."""
  return {
    parameter.name: 'required'
    if parameter.default is parameter.empty
    else f'`{parameter.default!r}`'
    for parameter in builders.parameters(builders.get(name)).values()
  }


def _options(name: str, defaults: Mapping[str, str]) -> str:
  """The table of a method's arguments, in the order of `defaults`."""
  return _table(_OPTIONS_HEAD, _rows(name, defaults))


def _rows(name: str, defaults: Mapping[str, str]) -> list[tuple[str, ...]]:
  """The cells of that table."""
  method = methods.METHODS[name]
  texts = dict(builders.argument_texts(builders.get(name)))
  shared = builders.argument_texts(algorithms.build_fed_avg)
  texts.update((argument, shared[argument]) for argument in _SHARED)
  parameters = builders.parameters(builders.get(name))
  rows = []
  for argument, default in defaults.items():
    flags = [
      flag
      for flag in builders.flags_of(method, argument)
      if method.ignores.get(flag.name) != {}
    ]
    own = annotations.read(parameters[argument].annotation).symbol
    symbols = dict.fromkeys((*(flag.symbol for flag in flags), own))
    rows.append(
      (
        f'`{argument}`',
        ', '.join(f'`--{flag.name}`' for flag in flags) or '-',
        ', '.join(filter(None, symbols)),
        default,
        builders.first_sentence(texts[argument]),
      )
    )
  return rows


def _paper_options(name: str) -> str:
  """The table of a paper's method: what is not as with FedAvg."""
  defaults, usual = _defaults(name), _defaults('fed_avg')
  own = {
    argument: default
    for argument, default in defaults.items()
    if argument not in _SHARED or default != usual[argument]
  }
  lacks = [f'`{name}`' for name in _SHARED if name not in defaults]
  but = f', but not {", ".join(lacks)}' if lacks else ''
  return f'{_options(name, own)}\n\n{_IN_COMMON}{but}.'


def _own_options(name: str) -> str:
  """A list of what other builders do not have, and what this one lacks."""
  defaults = _defaults(name)
  own = {name: text for name, text in defaults.items() if name not in _SHARED}
  lacks = [f'`{name}`' for name in _SHARED if name not in defaults]
  lines = [_as_item(*row) for row in _rows(name, own)]
  lines = lines or ['- No options of its own.']
  if lacks:
    lines.append(f'- Does not take {", ".join(lacks)}.')
  return '\n'.join(lines)


def _as_item(argument, flags, symbol, default, text) -> str:
  """An option as an item of a list."""
  facts = ['' if flags == '-' else flags, symbol]
  facts.append(default if default == 'required' else f'default {default}')
  return f'- {argument} ({", ".join(filter(None, facts))}): {text}'


def _shared_options() -> str:
  """The table of arguments that most builders of baselines have."""
  found = {name: {} for name in _SHARED}
  for method in methods.BASELINES:
    for name, default in _defaults(method).items():
      if name in found:
        found[name][default] = None
  return _options('fed_avg', {n: ' or '.join(d) for n, d in found.items()})


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
        ', '.join(method.compared_with) or '-',
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
