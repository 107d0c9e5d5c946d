"""`--help` of the launchers: a first screen, and a page for each topic."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import re
import signal
import sys
import textwrap
from typing import Any, NamedTuple, NoReturn

from absl import app
from absl import flags

from tff_fair import checks
from tff_fair.launchers.options import flag_types

# Characters of a list of choices on the first screen.
_SHORT = 100
# Kinds of absl's flags without a list of choices; all others are texts.
_NUMBERS = {
  flags.IntegerParser: flag_types.Integer,
  flags.FloatParser: flag_types.Real,
}


class Topic(NamedTuple):
  """A page of `--help=NAME`: its title, and what writes its text."""

  title: str
  write: Callable[[], str]


class Entries(NamedTuple):
  """Things with a page each, such as methods.

  Attributes:
    word: What stands for their names, such as METHOD.
    title: What the first screen says of their pages.
    known: Their names; of a registry a view, which has what plug-ins add.
    write: From a name to the text of the page.
  """

  word: str
  title: str
  known: Iterable[str]
  write: Callable[[str], str]


@dataclasses.dataclass(frozen=True)
class Help:
  """Returns the text of a launcher's `--help`.

  Attributes:
    first: The flags of the first screen.
    topics: NAME of `--help=NAME` -> its page, in the order of the first screen.
    entries: Things with a page each beside the topics.
  """

  first: Sequence[flag_types.Flag]
  topics: Mapping[str, Topic] = dataclasses.field(default_factory=dict)
  entries: Entries | None = None

  def first_screen(self) -> str:
    """The flags to begin with, and where the others are."""
    titles = {name: f'{topic.title}.' for name, topic in self.topics.items()}
    if self.entries:
      titles[self.entries.word] = f'{self.entries.title}.'
    begin = describe(self.first, short=True)
    if not titles:
      return f'Flags:\n{begin}'
    more = [f'  {f"--help={n}":<20} {title}' for n, title in titles.items()]
    return '\n'.join(['To begin with:', begin, '', 'More:', *more])

  def page(self, name: str) -> str | None:
    """The page of a topic or an entry; None if there is no such page."""
    if name in self.topics:
      return self.topics[name].write()
    if self.entries and name in self.entries.known:
      return self.entries.write(name)
    return None

  def names(self) -> list[str]:
    """The names of all pages."""
    return [*self.topics, *(self.entries.known if self.entries else ())]


def define(shown: Help) -> None:
  """Defines `--help` and absl's other flags that print help."""
  app.define_help_flags()
  flags.DEFINE_flag(_HelpFlag(shown))


def of_all(define_flags: Callable[[flags.FlagValues], None]) -> Help:
  """A first screen of all flags that a launcher defines."""
  return Help([*own_flags(define_flags).values()])


def own_flags(
  define_flags: Callable[[flags.FlagValues], None],
) -> dict[str, flag_types.Flag]:
  """The flags that a launcher defines, by name."""
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  return {name: _from_absl(flag_values[name]) for name in flag_values}


def group_topics(
  groups: Mapping[str, Sequence[flag_types.Flag]],
) -> dict[str, Topic]:
  """A topic for each group of flags: title -> flags."""
  return {
    title.lower(): Topic(
      f'The flags of the {title.lower()}', functools.partial(describe, group)
    )
    for title, group in groups.items()
  }


def describe_groups(groups: Mapping[str, Sequence[flag_types.Flag]]) -> str:
  """All flags of some groups, each group below its title."""
  return '\n\n'.join(f'{t}:\n{describe(g)}' for t, g in groups.items())


def describe(group: Iterable[flag_types.Flag], *, short: bool = False) -> str:
  """Flags with their defaults and limits; if short, without long limits."""
  return '\n'.join(line for flag in group for line in _lines(flag, short))


def wrap(text: str, indent: int) -> list[str]:
  """Lines of at most 80 characters, all but the first one further in."""
  return textwrap.wrap(
    text,
    80,
    initial_indent=' ' * indent,
    subsequent_indent=' ' * (indent + 2),
    break_long_words=False,
    break_on_hyphens=False,
  )


class _HelpFlag(app.HelpFlag):
  """absl's `--help`, with our text in place of absl's list of flags."""

  def __init__(self, shown: Help):
    super().__init__()
    self.allow_override = True
    self._shown = shown

  def parse(self, arg: str | bool) -> None:
    """Prints the first screen, or the page of a topic or entry, and exits."""
    page = self._shown.page(str(arg))
    if page is not None:
      _show(page)
    try:
      wanted = self._parse(arg)
    except flags.IllegalFlagValueError:
      raise flags.Error(
        checks.unknown_name('--help', arg, self._shown.names())
      ) from None
    if wanted:
      _show(f'{sys.modules["__main__"].__doc__}\n{self._shown.first_screen()}')


def _show(text: str) -> NoReturn:
  # A pager that has been left, or `head`, is no error.
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  print(text)
  sys.exit()


def _from_absl(flag: flags.Flag) -> flag_types.Flag:
  values: dict[str, Any] = {
    'name': flag.name,
    'default': flag.default,
    'help': flag.help,
  }
  parser = flag.parser
  if flag.boolean:
    return flag_types.Switch(**values)
  if isinstance(parser, flags.EnumParser):
    # absl writes the choices before the help, too.
    values['help'] = re.sub('^<[^>]*>: ', '', flag.help)
    return flag_types.Choice(**values, choices=parser.enum_values)
  for kind, number in _NUMBERS.items():
    if isinstance(parser, kind):
      bounds = {'minimum': parser.lower_bound, 'maximum': parser.upper_bound}
      return number(**values, **bounds)
  if isinstance(flag.default, list):
    values['default'] = ','.join(flag.default) or None
  return flag_types.Text(**values)


def _lines(flag: flag_types.Flag, short: bool) -> Iterator[str]:
  name = f'--[no]{flag.name}' if flag.kind == 'boolean' else f'--{flag.name}'
  symbol = f' ({flag.symbol})' if flag.symbol else ''
  notes = [flag.limits()] if not isinstance(flag, flag_types.Text) else []
  if flag.default not in (None, []):
    notes.append(f'default {flag.default}')
  notes = [n for n in notes if n and not (short and len(n) > _SHORT)]
  ending = f' [{"; ".join(notes)}]' if notes else ''
  yield from wrap(f'{name}{symbol}: {flag.help}{ending}', 2)
