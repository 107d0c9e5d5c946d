"""The tasks by name."""

import importlib

from tasks import options
from tasks import task
from tff_fair import checks

# The modules are named, not imported: they bring TensorFlow with them, for
# which a launcher that only prints its flags should not wait.
_MODULES = {
  'digits': 'tasks.digits',
  'mnist': 'tasks.mnist',
  'cifar10': 'tasks.cifar10',
  'femnist': 'tasks.femnist',
}

TASK_NAMES = tuple(_MODULES)


def build_task(
  name: str,
  *,
  data_dir: str | None = None,
  num_clients: int | None = None,
  partition: str | None = None,
  dirichlet_alpha: float | None = None,
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  min_samples: int = 2,
  seed: int = 0,
) -> task.Task:
  """Builds a task by its name; the same arguments give the same task.

  Args:
    name: One of `TASK_NAMES`.
    data_dir: Folder with the data files; None for the environment variable
      TFF_FAIR_DATA_DIR. Files that are not there come from the cache, or the
      download, of the library that publishes them.
    num_clients: Number of clients; None for 20 (digits), 264 (mnist), 196
      (cifar10) or all writers (femnist).
    partition: 'dirichlet' (the default) or 'equal'; femnist has only 'writer'.
    dirichlet_alpha: Concentration of 'dirichlet' in [1e-6, 1e6]; None for 0.5
      (digits), 0.2 (mnist) or 0.4 (cifar10).
    holdout_fraction: Share, in [0, 1), of a client's non-test examples that it
      holds out for its own validation.
    test_fraction: Share, in [0, 1), of a client's examples that test it.
    min_samples: Least number of examples of a client under 'dirichlet'.
    seed: Seed of the partition and of the splits, at least 0.

  Returns:
    The task.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If an argument is outside its range or has no effect.
    DataNotFoundError: If a data file is nowhere and cannot be downloaded.
    DataDamagedError: If a data file does not hold what it should.
  """
  checks.check_choice('The name of a task', name, TASK_NAMES)
  chosen = options.TaskOptions(
    data_dir=data_dir,
    num_clients=num_clients,
    partition=partition,
    dirichlet_alpha=dirichlet_alpha,
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    min_samples=min_samples,
    seed=seed,
  )
  return importlib.import_module(_MODULES[name]).build(chosen)
