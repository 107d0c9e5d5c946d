"""The flags of `launchers.train`: those that all methods share, and all.

`flags.json` has the shared ones: of the run, its data, clients and seeds. Those
of absl are defined on demand, not on import: the launchers share names, and
`launchers.reproduce` resolves many commands without touching its own flags.
Nothing here imports TensorFlow.
"""

from collections.abc import Collection, Mapping
import dataclasses
import json
import pathlib
from typing import Any

from absl import flags

from tff_fair import tasks
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import paths
from tff_fair.launchers.options import presets
from tff_fair.launchers.options.methods import entry
from tff_fair.own_data import encoded
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import partitions

# The columns of metrics.csv by which `--stop_after` can judge a run. Those of
# training and holdout are not of test data.
GLOBAL_METRICS = ('global_accuracy', 'global_f1', 'global_loss')
TRAINING_METRICS = ('train_loss',)
HOLDOUT_METRICS = tuple(
  f'holdout_accuracy_{statistic}' for statistic in ('mean', 'min', 'worst10')
)
# The scores of a client.
CLIENT_SCORES = ('accuracy', 'f1', 'f1_own_labels', 'f1_weighted')
_STATISTICS = ('mean', 'median', 'min', 'worst10', 'max', 'variance', 'jain')
_STOP_METRICS = (
  *(
    f'client_{score}_{statistic}'
    for score in CLIENT_SCORES
    for statistic in _STATISTICS
  ),
  *GLOBAL_METRICS,
  *HOLDOUT_METRICS,
  *TRAINING_METRICS,
)
# Of registries views, which have what plug-ins add.
_CHOICES: Mapping[str, Collection[str]] = {
  'preset': sorted(presets.PRESETS),
  'algorithm': methods.METHODS.keys(),
  'task': tasks.TASK_NAMES,
  'model': tasks.MODEL_NAMES,
  'stop_metric': _STOP_METRICS,
  'missing_values': encoded.MISSING_VALUES,
  'partition': tasks.PARTITION_NAMES,
  'dirichlet_remainder': partitions.REMAINDERS,
  'small_clients': partitions.SMALL_CLIENTS,
  'shift_sizes': covariate_shift.SIZES,
  'shift_method': covariate_shift.METHODS,
  'shift_weights': covariate_shift.WEIGHTS,
  'shift_pool': covariate_shift.POOLS,
  'split': tasks.SPLIT_NAMES,
  'test_leak': tasks.TEST_LEAKS,
}
# Kinds of flags that absl does not have.
_DEFINE = {'path': paths.define, 'multi_path': paths.define_multi}
# The flags of one name that methods have.
_Variants = list[tuple[entry.Method, flag_types.Flag]]


def is_lower_better(metric: str) -> bool:
  """Returns whether a smaller value of a stop metric is better."""
  return metric.endswith(('_loss', '_variance'))


def _flag(values: Mapping[str, Any]) -> flag_types.Flag:
  """A flag of flags.json; some say only how they differ from the schema."""
  name = values['name']
  if name in methods.SHARED:
    return dataclasses.replace(methods.SHARED[name], **values)
  choices = {'choices': _CHOICES[name]} if name in _CHOICES else {}
  return flag_types.from_json({**values, **choices})


# In the order in which `--help` shows them.
GROUPS = {
  title: tuple(map(_flag, group))
  for title, group in json.loads(
    pathlib.Path(__file__).with_name('flags.json').read_text('utf-8')
  ).items()
}
FLAGS = {flag.name: flag for group in GROUPS.values() for flag in group}

_FLAGS = dict(FLAGS)
_VARIANTS: dict[str, _Variants] = {}
# A live view, with the flags of plug-ins.
FLAG_NAMES = _FLAGS.keys()
# Those that describe a task.
DATA_FLAG_NAMES = ('task', *(f.name for f in GROUPS['Data']), 'data_seed')


def of_method(method: entry.Method) -> dict[str, flag_types.Flag]:
  """All flags that a method knows, by name, with the method's defaults."""
  shared = {
    name: dataclasses.replace(flag, default=method.defaults[name])
    if name in method.defaults
    else flag
    for name, flag in FLAGS.items()
  }
  return {**shared, **{flag.name: flag for flag in method.flags}}


def builder_arguments(method: entry.Method) -> list[str]:
  """The names of the arguments with which we call a method's builder.

  None of an argument all of whose flags the method ignores.
  """
  own = {flag.name: flag.argument or flag.name for flag in method.flags}
  shared = {
    name: flag.argument
    for name, flag in FLAGS.items()
    if flag.argument and name not in own and method.ignores.get(name) != {}
  }
  arguments = (*shared.values(), *own.values(), *method.arguments)
  return list(dict.fromkeys(arguments))


def merge_method(
  method: entry.Method,
) -> dict[str, tuple[_Variants, flag_types.Flag]]:
  """Merges the flags of a new method with others of their names.

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
    shared = FLAGS.get(flag.name)
    if shared:
      flag_types.merge([shared, flag])
      texts.insert(0, shared.help)
    found[flag.name] = (
      described,
      dataclasses.replace(merged, default=None, help=' '.join(texts)),
    )
  return found


def add_method(method: entry.Method) -> None:
  """Adds the flags of a method to all flags; errors as of `merge_method`."""
  for name, (described, merged) in merge_method(method).items():
    _VARIANTS[name] = described
    _FLAGS[name] = merged


for _method in methods.METHODS.values():
  add_method(_method)


def define_flags(
  flag_values: flags.FlagValues, names: Collection[str] = FLAG_NAMES
) -> None:
  """Defines the flags of `launchers.train`, or some of them.

  Their limits are checked by `launchers.options.settings.resolve`, since they
  depend on the method.
  """
  for name in names:
    flag = _FLAGS[name]
    choices = {}
    if isinstance(flag, flag_types.Choice):
      choices['enum_values'] = list(flag.choices)
    define = _DEFINE.get(flag.kind) or getattr(flags, f'DEFINE_{flag.kind}')
    define(
      name=name,
      default=flag.default,
      help=flag.help,
      flag_values=flag_values,
      **choices,
    )


def parse(arguments: list[str]) -> flags.FlagValues:
  """Parses a command's arguments without touching this process's flags.

  Raises:
    flags.Error: If there is no such flag, or a value is not of its type.
  """
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  flag_values(['launchers.train', *arguments])
  return flag_values
