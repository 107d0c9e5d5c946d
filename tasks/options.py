"""What the user may choose about a task, checked once on entry."""

import dataclasses

from tff_fair import checks

# The partitions of data that do not say themselves whose they are.
_POOL_PARTITION_NAMES = ('dirichlet', 'equal', 'power_law', 'class')
PARTITION_NAMES = (*_POOL_PARTITION_NAMES, 'writer')
SPLIT_NAMES = ('client', 'server')
# Functions of `tff_fair.models`, which brings TensorFlow with it.
MODEL_NAMES = (
  'mlp_fedaboost',
  'mlp_cffl_mnist',
  'mlp_cffl_adult',
  'mlp_corefed',
  'cnn_femnist',
  'cnn_cifar_gn',
  'cnn_corefed',
  'cnn_corefed_plain',
  'cnn_fedquad',
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions:
  """The choices of `build_task`; None stands for the task's own default.

  Attributes:
    data_dir: Folder with the data files; None for the environment variable
      TFF_FAIR_DATA_DIR.
    num_clients: Number of clients with data, at least 1.
    data_fraction: Share, in (0, 1], of the examples outside the server's test
      set that are used, drawn at random; the others are left out altogether.
    num_examples: Number of examples dealt to the clients in all, at least 1;
      None for all there are. Not under 'dirichlet' and 'writer'.
    partition: One of `PARTITION_NAMES`.
    dirichlet_alpha: Concentration of the partition 'dirichlet', positive.
    balance_cap: Whether the partition 'dirichlet' deals no further class to
      clients that hold their equal share of all examples.
    split: One of `SPLIT_NAMES`: who keeps the test and validation examples.
    validation_fraction: Share, in [0, 1), of the examples outside the test set
      that the server validates on; only under the split 'server'.
    holdout_fraction: Share, in [0, 1), of a client's non-test examples that it
      holds out for validation; without effect under the split 'server'.
    test_fraction: Share, in [0, 1), of a client's examples that test it; under
      the split 'server' the share, in (0, 1), of all examples that are the
      server's test set, without effect where a test file is that set.
    min_samples: Least number of examples of a client under 'dirichlet'.
    model: One of `MODEL_NAMES`.
    free_riders: Number of additional clients without data, at least 0.
    seed: Seed of the partition and of the splits, at least 0.
  """

  data_dir: str | None = None
  num_clients: int | None = None
  data_fraction: float = 1.0
  num_examples: int | None = None
  partition: str | None = None
  dirichlet_alpha: float | None = None
  balance_cap: bool = False
  split: str = 'client'
  validation_fraction: float | None = None
  holdout_fraction: float = 0.1
  test_fraction: float = 0.2
  min_samples: int = 2
  model: str | None = None
  free_riders: int = 0
  seed: int = 0

  def __post_init__(self):
    if self.num_clients is not None:
      checks.check_integer('num_clients', self.num_clients, 1)
    checks.check_positive('data_fraction', self.data_fraction, 1.0)
    if self.num_examples is not None:
      checks.check_integer('num_examples', self.num_examples, 1)
    if self.partition is not None:
      checks.check_choice('partition', self.partition, PARTITION_NAMES)
    checks.check_choice('balance_cap', self.balance_cap, (False, True))
    checks.check_choice('split', self.split, SPLIT_NAMES)
    if self.validation_fraction is not None:
      self._check_validation_fraction()
    checks.check_fraction('holdout_fraction', self.holdout_fraction)
    checks.check_fraction('test_fraction', self.test_fraction)
    checks.check_integer('min_samples', self.min_samples, 0)
    if self.model is not None:
      checks.check_choice('model', self.model, MODEL_NAMES)
    checks.check_integer('free_riders', self.free_riders, 0)
    checks.check_integer('seed', self.seed, 0)

  def with_defaults(
    self,
    *,
    partition: str,
    num_clients: int,
    dirichlet_alpha: float,
    model: str,
  ) -> 'TaskOptions':
    """Returns these options with the task's defaults in place of None.

    For tasks whose data do not say themselves which client's they are. The
    defaults of `dirichlet_alpha` and `validation_fraction` are only filled in
    where they are used.

    Args:
      partition: The task's default partition.
      num_clients: The task's default number of clients.
      dirichlet_alpha: The task's default concentration.
      model: The task's default model.

    Returns:
      Options without None, except for `data_dir`, `num_examples` and what is
      not used.

    Raises:
      ValueError: If the partition is not one for such tasks, or if
        `dirichlet_alpha`, `balance_cap` or `num_examples` was chosen for a
        partition without it.
    """
    chosen = self.partition or partition
    checks.check_choice(
      'The partition of a task without writers', chosen, _POOL_PARTITION_NAMES
    )
    alpha = self.dirichlet_alpha
    if chosen == 'dirichlet' and alpha is None:
      alpha = dirichlet_alpha
    validation_fraction = self.validation_fraction
    if self.split == 'server' and validation_fraction is None:
      validation_fraction = 0.1
    options = dataclasses.replace(
      self,
      partition=chosen,
      num_clients=self.num_clients or num_clients,
      dirichlet_alpha=alpha,
      validation_fraction=validation_fraction,
      model=self.model or model,
    )
    options._check_partition_uses_its_options()
    return options

  def _check_partition_uses_its_options(self) -> None:
    for name in ('dirichlet_alpha', 'balance_cap'):
      value = getattr(self, name)
      chosen = value is not None and value is not False
      if chosen and self.partition != 'dirichlet':
        raise ValueError(
          f"{name} is only used by the partition 'dirichlet', found "
          f'{name}={value} with the partition {self.partition!r}.'
        )
    if self.num_examples is not None and self.partition == 'dirichlet':
      raise ValueError(
        "num_examples is not used by the partition 'dirichlet', found "
        f'num_examples={self.num_examples} with it.'
      )

  def _check_validation_fraction(self) -> None:
    fraction = checks.check_fraction(
      'validation_fraction', self.validation_fraction
    )
    if self.split != 'server':
      raise ValueError(
        "validation_fraction is only used by the split 'server', found "
        f'validation_fraction={fraction} with the split {self.split!r}.'
      )
