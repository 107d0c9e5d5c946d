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
# Each has a row in every table of the clients.
_MAX_FREE_RIDERS = 10_000
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
    free_riders: Number of additional clients, the last ones, without data, at
      most 10,000.
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
    checks.check_count('free_riders', self.free_riders, 0, _MAX_FREE_RIDERS)
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

  def check_own_clients(self, task: str, partition: str, owners: str) -> None:
    """Refuses what has no effect on data that say themselves whose they are.

    Args:
      task: Name of the task.
      partition: Its only partition.
      owners: What its clients are, for the message.

    Raises:
      ValueError: If something else was chosen, or what other partitions use.
    """
    for name, only in (('partition', partition), ('split', 'client')):
      if getattr(self, name) not in (None, only):
        raise ValueError(
          f'The task {task!r} must have the {name} {only!r}, found '
          f'{getattr(self, name)!r}.'
        )
    if self.data_fraction != 1:
      raise ValueError(
        f'data_fraction must be 1 for the task {task!r}, found '
        f'{self.data_fraction}.'
      )
    for name in (*_ONLY_USED_BY, 'num_examples'):
      if self._is_chosen(name):
        raise ValueError(
          f'{name} must not be set for the task {task!r}, whose clients are '
          f'{owners}, found {getattr(self, name)}.'
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
