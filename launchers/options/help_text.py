"""`--help` of `launchers.train`: a first screen, and a page for each topic."""

from collections.abc import Callable, Iterable, Iterator
import itertools
import signal
import sys
import textwrap
from typing import NoReturn

from absl import app
from absl import flags

from tff_fair import checks
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

# Characters of a list of choices on the first screen.
_SHORT = 100


class _HelpFlag(app.HelpFlag):
  """absl's `--help`, with our text in place of absl's list of flags."""

  def __init__(self):
    super().__init__()
    self.allow_override = True

  def parse(self, arg: str | bool) -> None:
    """Prints the first screen, or the page of a topic or method, and exits."""
    if arg in methods.METHODS:
      _show('\n'.join(_of_one(methods.METHODS[arg])))
    if arg in TOPICS:
      _show(TOPICS[arg][1]())
    try:
      wanted = self._parse(arg)
    except flags.IllegalFlagValueError:
      raise flags.Error(
        checks.unknown_name('--help', arg, [*TOPICS, *methods.METHODS])
      ) from None
    if wanted:
      _show(f'{sys.modules["__main__"].__doc__}\n{first_screen()}')


def define_help() -> None:
  """Defines `--help` and absl's other flags that print help."""
  app.define_help_flags()
  flags.DEFINE_flag(_HelpFlag())


def _show(text: str) -> NoReturn:
  # A pager that has been left, or `head`, is no error.
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  print(text)
  sys.exit(1)  # As absl.


def first_screen() -> str:
  """The flags to begin with, and where the others are."""
  topics = {name: f'{title}.' for name, (title, _) in TOPICS.items()}
  topics['METHOD'] = 'The flags of a method, such as --help=ditto.'
  return '\n'.join(
    [
      'To begin with:',
      *_describe((train_flags.FLAGS[name] for name in _FIRST), short=True),
      '',
      'More:',
      *(f'  {f"--help={name}":<20} {title}' for name, title in topics.items()),
    ]
  )


def list_methods() -> str:
  """The methods, a line each or two."""
  return '\n'.join(
    line
    for method in methods.METHODS.values()
    for line in _wrap(f'{method.name}: {method.title}, {method.summary}.', 0)
  )


def list_presets() -> str:
  """The presets with where their values are from, by paper."""
  lines = []
  for paper, group in itertools.groupby(
    presets.PRESETS.items(), lambda item: item[0].partition('_')[0]
  ):
    lines.append(f'{methods.title(paper)}:')
    for name, preset in group:
      lines += _wrap(f'{name}: {preset.source}', 2)
    lines.append('')
  return '\n'.join(lines[:-1])


def help_text() -> str:
  """All flags with their defaults and limits, grouped."""
  lines = []
  for title, group in train_flags.GROUPS.items():
    lines += [f'{title}:', *_describe(group), '']
  for method in methods.METHODS.values():
    lines += [*_of_one(method), '']
  return '\n'.join(lines)


def _group_page(title: str) -> Callable[[], str]:
  return lambda: '\n'.join(_describe(train_flags.GROUPS[title]))


_FIRST = (
  'preset',
  'algorithm',
  'task',
  'data_file',
  'num_clients',
  'rounds',
  'client_learning_rate',
  'local_epochs',
  'output_dir',
  'dry_run',
)
TOPICS: dict[str, tuple[str, Callable[[], str]]] = {
  'methods': ('The methods, a line each', list_methods),
  'presets': ("The papers' experiments", list_presets),
  **{
    title.lower(): (f'The flags of the {title.lower()}', _group_page(title))
    for title in train_flags.GROUPS
  },
  'all': ('All flags', help_text),
}
"""What `--help=` shows beside the methods: topic -> its title and text."""


def _of_one(method: entry.Method) -> list[str]:
  """The lines about a method."""
  title = f'--algorithm={method.name}: {method.title}, {method.summary}.'
  lines = [*_wrap(title, 0), *_describe(_of_method(method))]
  ignored = [f'--{n}' for n, others in method.ignores.items() if not others]
  if ignored:
    lines += _wrap(f'Without effect: {", ".join(ignored)}.', 2)
  return lines


def _of_method(method: entry.Method) -> Iterator[flag_types.Flag]:
  """A method's own flags, and those of which it has another default."""
  known = train_flags.of_method(method)
  yield from method.flags
  yield from (known[name] for name in method.defaults)


def _describe(
  group: Iterable[flag_types.Flag], *, short: bool = False
) -> Iterator[str]:
  for flag in group:
    name = f'--[no]{flag.name}' if flag.kind == 'boolean' else f'--{flag.name}'
    symbol = f' ({flag.symbol})' if flag.symbol else ''
    notes = [flag.limits()] if not isinstance(flag, flag_types.Text) else []
    if flag.default not in (None, []):
      notes.append(f'default {flag.default}')
    notes = [n for n in notes if n and not (short and len(n) > _SHORT)]
    ending = f' [{"; ".join(notes)}]' if notes else ''
    yield from _wrap(f'{name}{symbol}: {flag.help}{ending}', 2)


def _wrap(text: str, indent: int) -> list[str]:
  return textwrap.wrap(
    text,
    80,
    initial_indent=' ' * indent,
    subsequent_indent=' ' * (indent + 2),
    break_long_words=False,
    break_on_hyphens=False,
  )
