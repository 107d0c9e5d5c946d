"""The names that options choose from, and when an option has an effect.

Plain data without TensorFlow or SciPy, so that a launcher can refuse a flag at
once. What depends on the data set is a `DataSet`, one in each module of
`tasks.data_sets`.
"""

from collections.abc import Callable, Mapping
import dataclasses
import os
from typing import TYPE_CHECKING, Any

from tff_fair import checks

if TYPE_CHECKING:
  from tff_fair.tasks import options
  from tff_fair.tasks import task

# Partitions that deal a pool of examples to the clients.
POOL_PARTITIONS = (
  'dirichlet',
  'equal',
  'power_law',
  'zipf',
  'class',
  'covariate_shift',
)
# The partition of own data that say which client an example belongs to.
OWN_PARTITION = 'client'
SPLIT_NAMES = ('client', 'server')
"""The party that splits off test examples: each client, or the server first."""
# Kinds of inputs.
INPUTS = ('images', 'numbers', 'records')
# Functions of `tff_fair.models` -> the kinds of inputs that they take; plug-ins
# add their models.
MODELS: dict[str, tuple[str, ...]] = {
  'mlp_fedaboost': ('images', 'numbers'),
  'mlp_cffl_mnist': ('images', 'numbers'),
  'mlp_cffl_mnist_padded': ('images',),
  'mlp_cffl_adult': ('images', 'numbers'),
  'mlp_corefed': ('images', 'numbers'),
  'mlp_corefed_standardised': ('images', 'numbers'),
  'cnn_femnist': ('images',),
  'cnn_cifar_gn': ('images',),
  'cnn_corefed': ('images',),
  'cnn_corefed_plain': ('images',),
  'cnn_fedquad': ('images',),
  'cnn_fedquad_momentum_09': ('images',),
  'cnn_fedquad_group_norm': ('images',),
  'cnn_fedakd': ('images',),
  'cnn_fedakd_deep': ('images',),
  'cnn_lenet': ('images',),
  'gru_ehr': ('records',),
}
MODEL_NAMES = MODELS.keys()
"""Names of all models, with those of plug-ins: a live view."""

# Defaults of options that are the same for all data sets. An option without a
# default here or in its `DataSet` stays None.
DEFAULTS = {
  'dirichlet_remainder': 'use',
  'small_clients': 'top_up',
  'shift_sizes': 'equal',
  'shift_method': 'importance',
  'shift': 5.0,
  'pca_dim': 10,
  'shift_weights': 'density',
  'split': 'client',
  'validation_fraction': 0.1,
  'missing_values': 'refuse',
}

_DIRICHLET = {'partition': ('dirichlet',)}
_SHIFT = {'partition': ('covariate_shift',)}
_IMPORTANCE = {**_SHIFT, 'shift_method': ('importance',)}
# Option -> the settings, each with its values, under which it has an effect.
USED_WITH: dict[str, dict[str, tuple[str, ...]]] = {
  'dirichlet_alpha': _DIRICHLET,
  'dirichlet_remainder': _DIRICHLET,
  'balance_cap': _DIRICHLET,
  'min_samples': _DIRICHLET,
  'small_clients': _DIRICHLET,
  'random_classes': {'partition': ('class',)},
  'shift_sizes': _SHIFT,
  'shift_method': _SHIFT,
  'shift': _IMPORTANCE,
  'pca_dim': _IMPORTANCE,
  'shift_weights': _IMPORTANCE,
  'shift_pool': {**_IMPORTANCE, 'split': ('client',)},
  'num_examples': {
    'partition': tuple(p for p in POOL_PARTITIONS if p != 'dirichlet')
  },
  'validation_fraction': {'split': ('server',)},
  'holdout_fraction': {'split': ('client',)},
  'test_leak': {'split': ('client',)},
  'unseen_fraction': {'split': ('client',)},
  'sensitive_columns': {'split': ('client',)},
  'data_fraction': {'partition': POOL_PARTITIONS},
  'client_column': {'partition': (OWN_PARTITION,)},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
  """The facts about a data set; `DATA_SET` of a module of `tasks.data_sets`.

  Attributes:
    name: Name of the task, which is that of the module.
    build: From options with the defaults filled in to the task. Only here may
      the module import what takes long to import.
    files: Names of the files (or folders) in the data folder.
    inputs: Kind of the inputs: 'images', 'numbers' or 'records'.
    num_clients: Default number of clients; None for all there are.
    partition: Default partition.
    partitions: The legal partitions.
    dirichlet_alpha: Default concentration of 'dirichlet'.
    model: Default model.
    clients: What a client is where the data say which client's they are, for
      example 'a writer'; None for data that are dealt to the clients.
    has_test_file: Whether the server's test set is a file of its own.
    options: Options that other data sets do not have.
    required: Those of them that must be given.
    check_data: Raises a ValueError if the options, with their defaults filled
      in, do not fit the data; for data of one's own, before TensorFlow is
      imported.
    is_synthetic: From the data folder (or None) to whether the data are
      generated; None if they never are.
  """

  name: str
  build: 'Callable[[options.TaskOptions], task.Task]'
  files: tuple[str, ...] = ()
  inputs: str = 'images'
  num_clients: int | None = None
  partition: str = 'dirichlet'
  partitions: tuple[str, ...] = POOL_PARTITIONS
  dirichlet_alpha: float | None = None
  model: str
  clients: str | None = None
  has_test_file: bool = False
  options: tuple[str, ...] = ()
  required: tuple[str, ...] = ()
  check_data: 'Callable[[options.TaskOptions], None] | None' = None
  is_synthetic: Callable[[str | os.PathLike | None], bool] | None = None

  def check(self) -> None:
    """Checks that the facts fit together.

    Raises:
      ValueError: If they do not.
    """
    task = f'of the task {self.name!r}'
    checks.check_function(f'build {task}', self.build, 'the options')
    checks.check_choice(f'partition {task}', self.partition, self.partitions)
    checks.check_choice(f'model {task}', self.model, self.models)
    needed = ['num_clients'] if self.clients is None else []
    if 'dirichlet' in self.partitions:
      needed.append('dirichlet_alpha')
    for name in needed:
      if getattr(self, name) is None:
        raise ValueError(
          f'{name} {task} must have a default where data are dealt to the'
          ' clients, found None.'
        )

  @property
  def models(self) -> tuple[str, ...]:
    """The legal models: those for its kind of inputs."""
    return tuple(name for name, kinds in MODELS.items() if self.inputs in kinds)

  @property
  def splits(self) -> tuple[str, ...]:
    """The legal splits."""
    return SPLIT_NAMES if self.clients is None else ('client',)

  def default(self, option: str) -> Any:
    """Returns what None stands for; None if the option has no default.

    Args:
      option: Name of the option.
    """
    return DEFAULTS.get(option, getattr(self, option, None))

  def unused_options(
    self, chosen: Mapping[str, Any]
  ) -> dict[str, Mapping[str, Any]]:
    """Returns the options that have no effect, each with the reason.

    Args:
      chosen: Option -> value; one that is missing or None has its default.
        Other keys are ignored.

    Returns:
      Option -> the settings that leave it without effect, by their names.
    """
    task = {'task': self.name}
    unused = {}
    for name, conditions in USED_WITH.items():
      for setting, values in conditions.items():
        found = chosen.get(setting)
        found = self.default(setting) if found is None else found
        if setting == 'partition' and self.clients is not None:
          unused[name] = task
        elif found not in values:
          unused.setdefault(name, {setting: found})
    if self.has_test_file and chosen.get('split') == 'server':
      unused['test_fraction'] = {'split': 'server', **task}
    return unused
