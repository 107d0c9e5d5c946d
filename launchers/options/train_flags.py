"""The flags of `launchers.train`, as absl's flags.

They are defined on demand, not on import: the launchers share names of flags,
and `launchers.reproduce` resolves many commands without touching its own flags.
"""

from collections.abc import Sequence
import dataclasses

from absl import flags

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags


def _merge_all() -> dict[str, flag_types.Flag]:
  """All flags; those of methods without a default, which depends on them."""
  found = dict(run_flags.FLAGS)
  variants = {}
  for method in methods.METHODS.values():
    for flag in method.flags:
      variants.setdefault(flag.name, []).append((method, flag))
  for name, described in variants.items():
    merged = flag_types.merge([flag for _, flag in described])
    text = ' '.join(
      f'{method.title}: {flag.help}' for method, flag in described
    )
    if name in found:
      text = f'{found[name].help} {text}'
    found[name] = dataclasses.replace(merged, default=None, help=text)
  return found


_FLAGS = _merge_all()

FLAG_NAMES = tuple(_FLAGS)
# Those that describe a task.
DATA_FLAG_NAMES = ('task', *(flag.name for flag in run_flags.DATA), 'data_seed')


def define_flags(
  flag_values: flags.FlagValues, names: Sequence[str] = FLAG_NAMES
) -> None:
  """Defines the flags of `launchers.train`, or some of them.

  Their limits are checked by `launchers.options.settings.resolve`, since they
  depend on the method.

  Args:
    flag_values: Where to define them.
    names: The flags to define.
  """
  for name in names:
    flag = _FLAGS[name]
    choices = {}
    if isinstance(flag, flag_types.Choice):
      choices['enum_values'] = list(flag.choices)
    getattr(flags, f'DEFINE_{flag.kind}')(
      name=name,
      default=flag.default,
      help=flag.help,
      flag_values=flag_values,
      **choices,
    )


def parse(arguments: list[str]) -> flags.FlagValues:
  """Parses a command's arguments without touching this process's flags.

  Args:
    arguments: The command line after `python -m launchers.train`.

  Returns:
    The parsed flags.

  Raises:
    flags.Error: If there is no such flag, or a value is not of its type.
  """
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  flag_values(['launchers.train', *arguments])
  return flag_values
