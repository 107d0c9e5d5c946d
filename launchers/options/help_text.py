"""`--help` of `launchers.train`: its groups of flags, methods and presets."""

from collections.abc import Iterator, Mapping

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import help_screen
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

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


def describe_help() -> help_screen.Help:
  """Returns the text of `--help`."""
  return help_screen.Help(
    first=[train_flags.FLAGS[name] for name in _FIRST],
    topics={
      'methods': help_screen.Topic('The methods, a line each', list_methods),
      'presets': help_screen.Topic("The papers' experiments", list_presets),
      **help_screen.group_topics(train_flags.GROUPS),
      'all': help_screen.Topic('All flags', help_text),
    },
    entries=help_screen.Entries(
      'METHOD',
      'The flags of a method, such as --help=ditto',
      methods.METHODS.keys(),
      lambda name: '\n'.join(_of_one(methods.METHODS[name])),
    ),
  )


def list_methods() -> str:
  """The methods, a line each or two."""
  return '\n'.join(
    line
    for method in methods.METHODS.values()
    for line in help_screen.wrap(
      f'{method.name}: {method.title}, {method.summary}.', 0
    )
  )


def list_presets() -> str:
  """The presets with where their values are from, by paper."""
  return list_by_paper(
    {name: preset.source for name, preset in presets.PRESETS.items()}
  )


def list_by_paper(texts: Mapping[str, str]) -> str:
  """Names that begin with that of a paper, each with a text, by paper."""
  papers: dict[str, list[str]] = {}
  for name, text in texts.items():
    lines = papers.setdefault(name.partition('_')[0], [])
    lines += help_screen.wrap(f'{name}: {text}', 2)
  return '\n\n'.join(
    '\n'.join([f'{methods.title(paper)}:', *lines])
    for paper, lines in papers.items()
  )


def help_text() -> str:
  """All flags with their defaults and limits, grouped."""
  return '\n\n'.join(
    [
      help_screen.describe_groups(train_flags.GROUPS),
      *('\n'.join(_of_one(method)) for method in methods.METHODS.values()),
    ]
  )


def _of_one(method: entry.Method) -> list[str]:
  """The lines about a method."""
  title = f'--algorithm={method.name}: {method.title}, {method.summary}.'
  lines = help_screen.wrap(title, 0)
  if described := help_screen.describe(_of_method(method)):
    lines.append(described)
  ignored = [f'--{n}' for n, others in method.ignores.items() if not others]
  if ignored:
    lines += help_screen.wrap(f'Without effect: {", ".join(ignored)}.', 2)
  return lines


def _of_method(method: entry.Method) -> Iterator[flag_types.Flag]:
  """A method's own flags, and those of which it has another default."""
  known = train_flags.of_method(method)
  yield from method.flags
  yield from (known[name] for name in method.defaults)
