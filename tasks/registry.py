"""The tasks by name."""

import importlib
from typing import Any

from tasks import options
from tasks import task
from tff_fair import checks

# The modules are named, not imported: they bring TensorFlow with them, for
# which a launcher that only prints its flags should not wait.
_MODULES = {
  'digits': 'tasks.digits',
  'mnist': 'tasks.mnist',
  'fmnist': 'tasks.fmnist',
  'cifar10': 'tasks.cifar10',
  'cifar100': 'tasks.cifar100',
  'femnist': 'tasks.femnist',
  'adult': 'tasks.adult',
  'ehr': 'tasks.ehr',
}

TASK_NAMES = tuple(_MODULES)


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
    DataNotFoundError: If a data file is nowhere and cannot be downloaded.
    DataDamagedError: If a data file does not hold what it should.
  """
  checks.check_choice('The name of a task', name, TASK_NAMES)
  chosen = options.TaskOptions(**choices)
  _check_fits(name, chosen)
  built = importlib.import_module(_MODULES[name]).build(chosen)
  return built.with_free_riders(chosen.free_riders)


def _check_fits(name: str, chosen: options.TaskOptions) -> None:
  """Refuses what only another task can have."""
  if name != 'ehr':
    for option in ('ehr_scale', 'max_events'):
      value = getattr(chosen, option)
      if value is not None:
        raise ValueError(
          f"{option} is only used by the task 'ehr', found {option}={value} "
          f'with the task {name!r}.'
        )
    if chosen.model == 'gru_ehr':
      raise ValueError(
        f'model must be one for the inputs of the task {name!r}, found '
        "'gru_ehr', which is for those of the task 'ehr'."
      )
  # Its numbers are standardised after the partition, with the training parts.
  if name == 'adult' and chosen.partition == 'covariate_shift':
    raise ValueError(
      "The partition 'covariate_shift' must be given with a task of images, "
      f'found the task {name!r}.'
    )
