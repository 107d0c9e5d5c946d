"""What the user may choose about a task, checked once on entry."""

import dataclasses

from tasks import covariate_shift
from tasks import partitions
from tff_fair import checks

# The partitions of data that do not say themselves whose they are.
_POOL_PARTITION_NAMES = (
  'dirichlet',
  'equal',
  'power_law',
  'zipf',
  'class',
  'covariate_shift',
)
PARTITION_NAMES = (*_POOL_PARTITION_NAMES, 'writer', 'state')
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
  'cnn_fedakd',
  'cnn_fedakd_deep',
  'gru_ehr',
)

_SHIFT_DEFAULTS = {
  'shift_sizes': 'equal',
  'shift_method': 'importance',
  'shift': 5.0,
  'pca_dim': 10,
  'shift_weights': 'density',
}
# The partition that each option is for.
_ONLY_USED_BY = {
  'dirichlet_alpha': 'dirichlet',
  'dirichlet_remainder': 'dirichlet',
  'balance_cap': 'dirichlet',
  **dict.fromkeys(_SHIFT_DEFAULTS, 'covariate_shift'),
}
# Those that the shift of another method than 'importance' does not use.
_IMPORTANCE_OPTIONS = ('shift', 'pca_dim', 'shift_weights')


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
      None for all there are, under 'covariate_shift' for half of them. Not
      under 'dirichlet', 'writer' and 'state'.
    partition: One of `PARTITION_NAMES`.
    dirichlet_alpha: Concentration of the partition 'dirichlet', positive.
    dirichlet_remainder: One of `partitions.REMAINDERS`: what becomes of the
      examples that the rounding of the partition 'dirichlet' leaves over.
    balance_cap: Whether the partition 'dirichlet' deals no further class to
      clients that hold their equal share of all examples.
    shift_sizes: One of `covariate_shift.SIZES`: the clients' sizes under the
      partition 'covariate_shift'.
    shift_method: One of `covariate_shift.METHODS`: how that partition chooses
      a client's examples. The next three are for its method 'importance'.
    shift: Squared Mahalanobis length of the clients' shifts, positive.
    pca_dim: Number of principal components that are shifted, at least 1.
    shift_weights: One of `covariate_shift.WEIGHTS`.
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
    ehr_scale: Share, in (0, 1], of the published numbers of records that the
      task 'ehr' generates.
    max_events: Number of latest events of a record that the task 'ehr' keeps,
      at least 1.
    free_riders: Number of additional clients without data, at least 0.
    seed: Seed of the partition and of the splits, at least 0.
  """

  data_dir: str | None = None
  num_clients: int | None = None
  data_fraction: float = 1.0
  num_examples: int | None = None
  partition: str | None = None
  dirichlet_alpha: float | None = None
  dirichlet_remainder: str | None = None
  balance_cap: bool = False
  shift_sizes: str | None = None
  shift_method: str | None = None
  shift: float | None = None
  pca_dim: int | None = None
  shift_weights: str | None = None
  split: str = 'client'
  validation_fraction: float | None = None
  holdout_fraction: float = 0.1
  test_fraction: float = 0.2
  min_samples: int = 2
  model: str | None = None
  ehr_scale: float | None = None
  max_events: int | None = None
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
    if self.dirichlet_remainder is not None:
      checks.check_choice(
        'dirichlet_remainder', self.dirichlet_remainder, partitions.REMAINDERS
      )
    self._check_shift()
    checks.check_choice('balance_cap', self.balance_cap, (False, True))
    checks.check_choice('split', self.split, SPLIT_NAMES)
    if self.validation_fraction is not None:
      self._check_validation_fraction()
    checks.check_fraction('holdout_fraction', self.holdout_fraction)
    checks.check_fraction('test_fraction', self.test_fraction)
    checks.check_integer('min_samples', self.min_samples, 0)
    if self.model is not None:
      checks.check_choice('model', self.model, MODEL_NAMES)
    if self.ehr_scale is not None:
      checks.check_positive('ehr_scale', self.ehr_scale, 1.0)
    if self.max_events is not None:
      checks.check_integer('max_events', self.max_events, 1)
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
    defaults of `validation_fraction` and of the options of single partitions
    are only filled in where they are used.

    Args:
      partition: The task's default partition.
      num_clients: The task's default number of clients.
      dirichlet_alpha: The task's default concentration.
      model: The task's default model.

    Returns:
      Options without None, except for `data_dir`, `num_examples` and what is
      not used.

    Raises:
      ValueError: If the partition is not one for such tasks, or if an option
        was chosen that the partition does not use.
    """
    chosen = self.partition or partition
    checks.check_choice(
      'The partition of a task without writers', chosen, _POOL_PARTITION_NAMES
    )
    self._check_partition_uses_its_options(chosen)
    defaults = {
      'partition': chosen,
      'num_clients': num_clients,
      'model': model,
    }
    if chosen == 'dirichlet':
      defaults['dirichlet_alpha'] = dirichlet_alpha
      defaults['dirichlet_remainder'] = 'use'
    if chosen == 'covariate_shift':
      defaults.update(_SHIFT_DEFAULTS)
    if self.split == 'server':
      defaults['validation_fraction'] = 0.1
    return dataclasses.replace(
      self,
      **{
        name: default
        for name, default in defaults.items()
        if getattr(self, name) is None
      },
    )

  def _check_partition_uses_its_options(self, partition: str) -> None:
    for name, user in _ONLY_USED_BY.items():
      if self._is_chosen(name) and partition != user:
        raise ValueError(
          f'{name} is only used by the partition {user!r}, found '
          f'{name}={getattr(self, name)} with the partition {partition!r}.'
        )
    for name in _IMPORTANCE_OPTIONS:
      if self._is_chosen(name) and self.shift_method == 'pc1_sort':
        raise ValueError(
          f"{name} is only used by the shift_method 'importance', found "
          f'{name}={getattr(self, name)} with {self.shift_method!r}.'
        )
    if self.num_examples is not None and partition == 'dirichlet':
      raise ValueError(
        "num_examples is not used by the partition 'dirichlet', found "
        f'num_examples={self.num_examples} with it.'
      )

  def _is_chosen(self, name: str) -> bool:
    value = getattr(self, name)
    return value is not None and value is not False

  def _check_shift(self) -> None:
    choices = {
      'shift_sizes': covariate_shift.SIZES,
      'shift_method': covariate_shift.METHODS,
      'shift_weights': covariate_shift.WEIGHTS,
    }
    for name, values in choices.items():
      if self._is_chosen(name):
        checks.check_choice(name, getattr(self, name), values)
    if self.shift is not None:
      checks.check_positive('shift', self.shift)
    if self.pca_dim is not None:
      checks.check_integer('pca_dim', self.pca_dim, 1)

  def _check_validation_fraction(self) -> None:
    fraction = checks.check_fraction(
      'validation_fraction', self.validation_fraction
    )
    if self.split != 'server':
      raise ValueError(
        "validation_fraction is only used by the split 'server', found "
        f'validation_fraction={fraction} with the split {self.split!r}.'
      )
