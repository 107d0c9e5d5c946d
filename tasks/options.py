"""What the user may choose about a task, checked once on entry."""

import dataclasses

from tff_fair import checks

PARTITION_NAMES = ('dirichlet', 'equal', 'writer')


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions:
  """The choices of `build_task`; None stands for the task's own default.

  Attributes:
    data_dir: Folder with the data files; None for the environment variable
      TFF_FAIR_DATA_DIR.
    num_clients: Number of clients, at least 1.
    partition: One of `PARTITION_NAMES`.
    dirichlet_alpha: Concentration of the partition 'dirichlet', positive.
    holdout_fraction: Share, in [0, 1), of a client's non-test examples that it
      holds out for validation.
    test_fraction: Share, in [0, 1), of a client's examples that test it.
    min_samples: Least number of examples of a client under 'dirichlet'.
    seed: Seed of the partition and of the splits, at least 0.
  """

  data_dir: str | None = None
  num_clients: int | None = None
  partition: str | None = None
  dirichlet_alpha: float | None = None
  holdout_fraction: float = 0.1
  test_fraction: float = 0.2
  min_samples: int = 2
  seed: int = 0

  def __post_init__(self):
    if self.num_clients is not None:
      checks.check_integer('num_clients', self.num_clients, 1)
    if self.partition is not None:
      checks.check_choice('partition', self.partition, PARTITION_NAMES)
    checks.check_fraction('holdout_fraction', self.holdout_fraction)
    checks.check_fraction('test_fraction', self.test_fraction)
    checks.check_integer('min_samples', self.min_samples, 0)
    checks.check_integer('seed', self.seed, 0)

  def with_defaults(
    self, *, partition: str, num_clients: int, dirichlet_alpha: float
  ) -> 'TaskOptions':
    """Returns these options with the task's defaults in place of None.

    The default of `dirichlet_alpha` is only filled in where the partition uses
    it.

    Args:
      partition: The task's default partition.
      num_clients: The task's default number of clients.
      dirichlet_alpha: The task's default concentration.

    Returns:
      Options without None, except for `data_dir` and, where the partition is
      not 'dirichlet', `dirichlet_alpha`.

    Raises:
      ValueError: If `dirichlet_alpha` was chosen for a partition without it.
    """
    chosen = self.partition or partition
    alpha = self.dirichlet_alpha
    if chosen == 'dirichlet' and alpha is None:
      alpha = dirichlet_alpha
    options = dataclasses.replace(
      self,
      partition=chosen,
      num_clients=self.num_clients or num_clients,
      dirichlet_alpha=alpha,
    )
    options.check_alpha_is_used()
    return options

  def check_alpha_is_used(self) -> None:
    """Refuses a Dirichlet concentration that the partition would ignore.

    Raises:
      ValueError: If `dirichlet_alpha` is set and the partition is not
        'dirichlet'.
    """
    if self.dirichlet_alpha is not None and self.partition != 'dirichlet':
      raise ValueError(
        "dirichlet_alpha is only used by the partition 'dirichlet', found "
        f'dirichlet_alpha={self.dirichlet_alpha} with the partition '
        f'{self.partition!r}.'
      )
