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
  'fmnist': 'tasks.fmnist',
  'cifar10': 'tasks.cifar10',
  'cifar100': 'tasks.cifar100',
  'femnist': 'tasks.femnist',
  'adult': 'tasks.adult',
  'ehr': 'tasks.ehr',
}

TASK_NAMES = tuple(_MODULES)


def build_task(
  name: str,
  *,
  data_dir: str | None = None,
  num_clients: int | None = None,
  data_fraction: float = 1.0,
  num_examples: int | None = None,
  partition: str | None = None,
  dirichlet_alpha: float | None = None,
  dirichlet_remainder: str | None = None,
  balance_cap: bool = False,
  shift_sizes: str | None = None,
  shift_method: str | None = None,
  shift: float | None = None,
  pca_dim: int | None = None,
  shift_weights: str | None = None,
  split: str = 'client',
  validation_fraction: float | None = None,
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  min_samples: int = 2,
  model: str | None = None,
  ehr_scale: float | None = None,
  max_events: int | None = None,
  free_riders: int = 0,
  seed: int = 0,
) -> task.Task:
  """Builds a task by its name; the same arguments give the same task.

  Args:
    name: One of `TASK_NAMES`.
    data_dir: Folder with the data files; None for the environment variable
      TFF_FAIR_DATA_DIR. Files that are not there come from the cache, or the
      download, of the library that publishes them.
    num_clients: Number of clients; None for 20 (digits), 264 (mnist), 100
      (fmnist), 196 (cifar10), 10 (cifar100), all writers (femnist), 5
      (adult) or all states (ehr).
    data_fraction: Share, in (0, 1], of the examples that are used, drawn at
      random; a test file is always used whole under 'server'. femnist and ehr
      are only there whole.
    num_examples: Number of examples dealt to the clients in all, under 'equal',
      'power_law', 'zipf', 'class' (which leaves a remainder out) and
      'covariate_shift'; None for all there are, under 'class' for as many as go
      without dealing one twice, under 'covariate_shift' for half of them.
    partition: 'dirichlet' (the default of images without writers), 'equal',
      'power_law' (that of adult), 'zipf', 'class' or 'covariate_shift' (not for
      adult); femnist has only 'writer', ehr only 'state'.
    dirichlet_alpha: Concentration of 'dirichlet' in [1e-6, 1e6]; None for 0.5
      (digits, fmnist, cifar100, adult), 0.2 (mnist) or 0.4 (cifar10).
    dirichlet_remainder: 'use' deals every example, 'drop' leaves out what the
      rounding of the clients' shares leaves over (FedAKD); None for 'use'. Only
      under 'dirichlet'.
    balance_cap: Whether a client that holds its equal share of all examples, or
      more, gets none of the classes dealt after that (CoRe-Fed); only under
      'dirichlet'.
    shift_sizes: 'equal' (FedAKD's BCS) or 'zipf' (its ICS); None for 'equal'.
      This and the next four only under 'covariate_shift'; see
      `tasks.covariate_shift`.
    shift_method: 'importance' (FedAKD's Algorithm 2) or 'pc1_sort', slices of
      the examples in the order of their first principal component; None for
      'importance', which alone has the next three.
    shift: Squared Mahalanobis length of the clients' shifts; None for 5.
    pca_dim: Number of principal components that are shifted; None for 10.
    shift_weights: 'density' (as printed) or 'ratio' (those of a shifted
      Gaussian); None for 'density'.
    split: 'client': train and test files are pooled, and every client keeps a
      test and a holdout part of its own. 'server': the server keeps the test
      file as test set, or `test_fraction` of a data set without one (digits,
      adult), and validates on a part of the rest; clients only train. femnist
      and ehr have only 'client'.
    validation_fraction: Share, in [0, 1), of the examples outside the test set
      that the server validates on; None for 0.1. Only under 'server'.
    holdout_fraction: Share, in [0, 1), of a client's non-test examples that it
      holds out for its own validation; without effect under 'server'.
    test_fraction: Share, in [0, 1), of a client's examples that test it; under
      'server' that of all examples in the server's test set, if there is no
      test file.
    min_samples: Least number of examples of a client under 'dirichlet'.
    model: One of `MODEL_NAMES`, a function of `tff_fair.models`; None for
      'mlp_fedaboost' (digits, mnist), 'mlp_corefed' (fmnist), 'cnn_cifar_gn'
      (cifar10), 'cnn_fedquad' (cifar100), 'cnn_femnist' (femnist),
      'mlp_cffl_adult' (adult, which has no images to convolve) or 'gru_ehr'
      (ehr, which has no other, and which alone has it).
    ehr_scale: Share, in (0, 1], of the published numbers of records that ehr
      generates where it finds no files; None for 0.02. Only for ehr.
    max_events: Number of latest events of a record that are kept; None for 128.
      Only for ehr.
    free_riders: Number of additional clients, the last ones, without data.
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
    data_fraction=data_fraction,
    num_examples=num_examples,
    partition=partition,
    dirichlet_alpha=dirichlet_alpha,
    dirichlet_remainder=dirichlet_remainder,
    balance_cap=balance_cap,
    shift_sizes=shift_sizes,
    shift_method=shift_method,
    shift=shift,
    pca_dim=pca_dim,
    shift_weights=shift_weights,
    split=split,
    validation_fraction=validation_fraction,
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    min_samples=min_samples,
    model=model,
    ehr_scale=ehr_scale,
    max_events=max_events,
    free_riders=free_riders,
    seed=seed,
  )
  _check_fits(name, chosen)
  built = importlib.import_module(_MODULES[name]).build(chosen)
  return built.with_free_riders(free_riders)


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
