"""The data sets by name: the modules of `tasks.data_sets`, and plug-ins'."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import importlib
import os
import pkgutil
from typing import Any

from tff_fair import checks
from tff_fair import plugins
from tff_fair.tasks import data_sets
from tff_fair.tasks import options
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task


def _read_data_sets() -> dict[str, rules.DataSet]:
  """The data sets of the package, by their names."""
  names = (module.name for module in pkgutil.iter_modules(data_sets.__path__))
  return {
    name: importlib.import_module(f'{data_sets.__name__}.{name}').DATA_SET
    for name in sorted(names)
  }


_DATA_SETS = _read_data_sets()
# The partitions of all data sets, those of a pool first; a set with an order.
_PARTITIONS = dict.fromkeys(
  [
    *rules.POOL_PARTITIONS,
    *(name for found in _DATA_SETS.values() for name in found.partitions),
  ]
)
TASK_NAMES = _DATA_SETS.keys()
"""Names of all data sets, with those of plug-ins: a live view."""

PARTITION_NAMES = _PARTITIONS.keys()
"""Names of all partitions, with those of plug-ins: a live view."""


def register(data_set: rules.DataSet) -> None:
  """Adds a data set from outside the package.

  Args:
    data_set: Its facts.

  Raises:
    TypeError: If it is none.
    ValueError: If there is one of that name, or its facts do not fit together.
  """
  if not isinstance(data_set, rules.DataSet):
    raise TypeError(
      f'A task must be a tasks.DataSet, found {type(data_set).__name__}.'
    )
  plugins.check_name('task', data_set.name)
  if data_set.name in _DATA_SETS:
    raise ValueError(
      f'The name of a task must be new, found {data_set.name!r}, which exists.'
    )
  data_set.check()
  _DATA_SETS[data_set.name] = data_set
  _PARTITIONS.update(dict.fromkeys(data_set.partitions))


def get_data_set(name: str) -> rules.DataSet:
  """Returns the facts about a data set, without its data.

  Args:
    name: One of `TASK_NAMES`.

  Raises:
    ValueError: If there is no such data set.
  """
  if name not in TASK_NAMES:
    raise ValueError(
      checks.unknown_name('The name of a task', name, TASK_NAMES)
    )
  return _DATA_SETS[name]


def unused_options(
  name: str, chosen: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
  """Returns the options that have no effect, each with the reason.

  Args:
    name: One of `TASK_NAMES`.
    chosen: Option -> value; one that is missing or None has the task's default.
      Keys that are no options are ignored.

  Returns:
    Option -> the settings that leave it without effect, by their names: options
    of the task, or 'task' itself.

  Raises:
    ValueError: If there is no such task.
  """
  data_set = get_data_set(name)
  foreign = {option for n in TASK_NAMES for option in get_data_set(n).options}
  return {
    **data_set.unused_options(chosen),
    **dict.fromkeys(sorted(foreign - {*data_set.options}), {'task': name}),
  }


def is_synthetic(name: str, data_dir: str | os.PathLike | None = None) -> bool:
  """Returns whether a task generates its data because it finds no files.

  Args:
    name: One of `TASK_NAMES`.
    data_dir: The data folder; None for the environment variable
      TFF_FAIR_DATA_DIR.

  Raises:
    ValueError: If there is no such task.
    DataNotFoundError: If only some of the files are there.
  """
  data_set = get_data_set(name)
  return data_set.is_synthetic is not None and data_set.is_synthetic(data_dir)


def build_task(name: str, **choices: Any) -> task.Task:
  """Builds a task by its name; the same arguments give the same task.

  Args:
    name: One of `TASK_NAMES`.
    **choices: Attributes of `TaskOptions`; the others have their defaults.

  Returns:
    The task.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If an argument is outside its range or has no effect.
    DataNotFoundError: If a data file is missing and cannot be downloaded, or
      there is no `data_dir`.
    DataDamagedError: If a data file does not hold what it should.
  """
  data_set, chosen, filled = _choose(name, choices)
  built = data_set.build(filled)
  if not isinstance(built, task.Task):
    raise TypeError(
      f'The task {name!r} must be built as a tasks.Task, found'
      f' {type(built).__name__}.'
    )
  # Of the training, test and server's parts alike.
  checks.check_inputs(f'The task {name!r}', built.data.x)
  if chosen.test_leak is not None:
    built = built.with_test_leak(chosen.test_leak)
  if chosen.unseen_fraction:
    built = built.with_unseen(chosen.unseen_fraction, seed=chosen.seed)
  elsewhere = dataclasses.replace(
    chosen,
    data_dir=sources.existing_data_dir(chosen.data_dir),
    data_file=sources.absolute_path(chosen.data_file),
  )
  rebuild = functools.partial(_build_once, name, elsewhere, plugins.loaded())
  unseen = built.unseen and dataclasses.replace(
    built.unseen, rebuild=functools.partial(_rebuild_unseen, rebuild)
  )
  return dataclasses.replace(
    built.with_free_riders(chosen.free_riders), rebuild=rebuild, unseen=unseen
  )


def check_task(name: str, **choices: Any) -> None:
  """Checks what can be checked of a task before TensorFlow is imported.

  Args:
    name: See `build_task`.
    **choices: See `build_task`.

  Raises:
    TypeError: As `build_task`.
    ValueError: As `build_task`.
    DataNotFoundError: If there is no `data_dir`, or no `data_file`.
    DataDamagedError: If the `data_file` does not hold what it should.
  """
  data_set, _, filled = _choose(name, choices)
  if data_set.check_data is not None:
    data_set.check_data(filled)


def _choose(
  name: str, choices: Mapping[str, Any]
) -> tuple[rules.DataSet, options.TaskOptions, options.TaskOptions]:
  """Returns the data set, the options, and these with its defaults."""
  data_set = get_data_set(name)
  chosen = options.TaskOptions(**choices)
  unused = unused_options(name, dataclasses.asdict(chosen))
  _check_fits(data_set, chosen, unused)
  sources.check_data_dir(chosen.data_dir)
  return data_set, chosen, chosen.with_defaults(data_set, unused)


@functools.lru_cache(maxsize=1)
def _build_once(
  name: str, chosen: options.TaskOptions, modules: tuple[str, ...]
) -> task.Task:
  """A task that another process has built, kept until there is a next one.

  Args:
    name: Its name.
    chosen: Its options.
    modules: The plug-ins of that process.
  """
  plugins.load(modules)
  return build_task(name, **dataclasses.asdict(chosen))


def _rebuild_unseen(rebuild: Callable[[], task.Task]) -> task.Task:
  """The unseen clients of a task that another process has built."""
  return rebuild().unseen


def _check_fits(
  data_set: rules.DataSet,
  chosen: options.TaskOptions,
  unused: Mapping[str, Mapping[str, Any]],
) -> None:
  """Refuses what the data set cannot have, and what has no effect on it."""
  for option in ('partition', 'split', 'model'):
    if getattr(chosen, option) is not None:
      checks.check_choice(
        f'The {option} of the task {data_set.name!r}',
        getattr(chosen, option),
        getattr(data_set, f'{option}s'),
      )
  for option in data_set.required:
    if getattr(chosen, option) is None:
      raise ValueError(
        f'The task {data_set.name!r} must be given with'
        f' {" and ".join(data_set.required)}, found no {option}.'
      )
  for option in chosen.changed():
    if option in unused:
      settings = ' and '.join(f'{n}={v!r}' for n, v in unused[option].items())
      raise ValueError(
        f'{option} must not be set with {settings}, which leaves it without '
        f'effect, found {getattr(chosen, option)!r}.'
      )
