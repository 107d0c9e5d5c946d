"""The flags of `launchers.train`, as absl's flags.

They are defined on demand, not on import: the launchers share names of flags,
and `launchers.reproduce` resolves many commands without touching its own flags.
"""

from collections.abc import Collection
import dataclasses

from absl import flags

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options.methods import entry

_FLAGS = dict(run_flags.FLAGS)
# The flags of one name that methods have.
_Variants = list[tuple[entry.Method, flag_types.Flag]]
_VARIANTS: dict[str, _Variants] = {}


def merge_method(
  method: entry.Method,
) -> dict[str, tuple[_Variants, flag_types.Flag]]:
  """All flags of the names that a method's flags have.

  Args:
    method: A method that is not among them yet.

  Returns:
    Name -> the flags of that name, each with its method, and one flag for all
    of them, without a default, since that depends on the method.

  Raises:
    TypeError: If flags of the same name are of different kinds.
  """
  found = {}
  for flag in method.flags:
    described = [*_VARIANTS.get(flag.name, []), (method, flag)]
    merged = flag_types.merge([flag for _, flag in described])
    texts = [f'{method.title}: {flag.help}' for method, flag in described]
    shared = run_flags.FLAGS.get(flag.name)
    if shared:
      flag_types.merge([shared, flag])
      texts.insert(0, shared.help)
    found[flag.name] = (
      described,
      dataclasses.replace(merged, default=None, help=' '.join(texts)),
    )
  return found


def add_method(method: entry.Method) -> None:
  """Adds the flags of a method to all flags.

  Args:
    method: The method.

  Raises:
    TypeError: If flags of the same name are of different kinds.
  """
  for name, (described, merged) in merge_method(method).items():
    _VARIANTS[name] = described
    _FLAGS[name] = merged


for _method in methods.METHODS.values():
  add_method(_method)

# A live view, with the flags of plug-ins.
FLAG_NAMES = _FLAGS.keys()
# Those that describe a task.
DATA_FLAG_NAMES = ('task', *(flag.name for flag in run_flags.DATA), 'data_seed')


def define_flags(
  flag_values: flags.FlagValues, names: Collection[str] = FLAG_NAMES
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
