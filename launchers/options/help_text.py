"""`--help` of `launchers.train`: the flags in groups, those of methods last."""

from collections.abc import Iterable, Iterator
import signal
import sys
import textwrap
from typing import NoReturn

from absl import app
from absl import flags

from tff_fair import checks
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry


class _HelpFlag(app.HelpFlag):
  """absl's `--help`, with our text in place of absl's list of flags."""

  def __init__(self):
    super().__init__()
    self.allow_override = True

  def parse(self, arg: str | bool) -> None:
    """Prints the text, or that of one method, and exits."""
    if arg in methods.METHODS:
      _show('\n'.join(_of_one(methods.METHODS[arg])))
    try:
      wanted = self._parse(arg)
    except flags.IllegalFlagValueError:
      raise flags.Error(
        checks.unknown_name('--help', arg, methods.METHODS)
      ) from None
    if wanted:
      _show(f'{sys.modules["__main__"].__doc__}\n{help_text()}')


def define_help() -> None:
  """Defines `--help` and absl's other flags that print help."""
  app.define_help_flags()
  flags.DEFINE_flag(_HelpFlag())


def _show(text: str) -> NoReturn:
  # A pager that has been left, or `head`, is no error.
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  print(text)
  sys.exit(1)  # As absl.


def help_text() -> str:
  """All flags with their defaults and limits, grouped."""
  lines = ['--help=METHOD shows the flags of one method alone.', '']
  for title, group in train_flags.GROUPS.items():
    lines += [f'{title}:', *_describe(group), '']
  for method in methods.METHODS.values():
    lines += [*_of_one(method), '']
  return '\n'.join(lines)


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


def _describe(group: Iterable[flag_types.Flag]) -> Iterator[str]:
  for flag in group:
    name = f'--[no]{flag.name}' if flag.kind == 'boolean' else f'--{flag.name}'
    symbol = f' ({flag.symbol})' if flag.symbol else ''
    notes = [flag.limits()] if not isinstance(flag, flag_types.Text) else []
    if flag.default not in (None, []):
      notes.append(f'default {flag.default}')
    notes = [note for note in notes if note]
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
