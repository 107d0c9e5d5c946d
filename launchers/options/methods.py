"""The methods that the launchers know, and the flags each of them reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tasks

_SHIFT = ('shift_sizes', 'shift_method', 'shift', 'pca_dim', 'shift_weights')
_TUPLES = ('metric_weight', 'use_ce', 'resample')

# Method -> the flags that only some methods read. The names are those of the
# builder's arguments, but for those that describe an optimiser, free riders or
# margins.
METHOD_FLAGS: dict[str, tuple[str, ...]] = {
  'fed_avg': ('uniform', 'focal_gamma'),
  'ditto': (
    'uniform',
    'proximal_weight',
    'personal_optimizer',
    'personal_learning_rate',
    'personal_weight_decay',
  ),
  'fedaboost': (
    'boosting',
    'boost_rate',
    'error_threshold',
    'error_clip',
    'initial_gamma',
    'max_gamma',
    'focal_weight',
    'class_count',
    'single_class',
    'fallback',
    'weight_sign',
    'weight_init',
    'gamma_mode',
  ),
  'cffl': (
    'scenario',
    'upload_rate',
    'pretrain',
    'pretrain_epochs',
    'punishment_factor',
    'history_weight',
    'clip_value',
    'clip_mode',
    'threshold_absolute',
    'agg_norm',
    'own_share',
    'normalize_before_mixing',
    'isolation',
    'after_isolation',
    'ties',
    'focal_gamma',
    'free_riders',
    'free_rider_kind',
  ),
  'corefed': (
    'variant',
    'alignment',
    'gradient_reuse',
    'include_positive',
    'gamma',
    'sharpness',
    'beta',
    'temperature',
    'contrastive_weight',
    'distillation_weight',
  ),
  'q_fed_avg': ('q',),
  'fed_mgda': ('deviation',),
  'fed_mdfg': ('angle', 'line_search_scale'),
  'fed_rdn': (),
  'fedquad': (
    'quadruplet_weight',
    'margin_1',
    'margin_2',
    'squared',
    'use_ce',
    'resample',
  ),
  'moon': ('contrastive_weight', 'temperature'),
  'supcon_fl': ('metric_weight', 'temperature', 'use_ce'),
  'triplet_fl': ('margin', *_TUPLES),
  'quadruplet_fl': ('margin_1', 'margin_2', *_TUPLES),
  'fed_prox': ('uniform', 'proximal_weight'),
  'fedakd': (
    'down_weight',
    'up_weight',
    'distillation_temperature',
    'variant',
    'order',
    'granularity',
    'evaluate',
    'focal_gamma',
  ),
  'scaffold': ('server_learning_rate', 'variant', 'focal_gamma'),
  'cgsv': (
    'update_length',
    'history_weight',
    'altruism',
    'variant',
    'focal_gamma',
  ),
  'fed_ave': (
    'update_length',
    'history_weight',
    'altruism',
    'upload_fraction',
    'download_base',
    'variant',
    'focal_gamma',
  ),
  'fed_sac': (
    'contribution_sharpness',
    'importance_every',
    'mid_round',
    'variant',
    'focal_gamma',
  ),
  'pfed_ck': (
    'knowledge_weight',
    'feature_weight',
    'distillation_temperature',
    'num_clusters',
    'focal_gamma',
  ),
  'fed_dc': ('drift_weight', 'grad_correction', 'variant', 'focal_gamma'),
  'fed_as': ('alignment_learning_rate', 'alignment_batch_size', 'focal_gamma'),
  'fed_mpr': ('prune_fraction', 'prune_stages', 'focal_gamma'),
  'standalone': ('focal_gamma',),
  'round_robin_fed_avg': (),
  'dssgd': ('upload_rate', 'clip_value'),
}

# Method -> the defaults of flags that differ from those of other methods.
METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
  'moon': {'contrastive_weight': 5.0, 'temperature': 0.5},
  'fed_prox': {'proximal_weight': 0.01},
  'fedakd': {'variant': 'full'},
  'scaffold': {'variant': 'original'},
  'cgsv': {'variant': 'original', 'history_weight': 0.95},
  'fed_ave': {'variant': 'original', 'history_weight': 0.9},
  'fed_sac': {'variant': 'original'},
  'fed_dc': {'variant': 'original'},
}

# Clients of these take turns: a round is a call of `next` for each of them.
SEQUENTIAL = ('round_robin_fed_avg', 'dssgd')

# A round of these does not lead from one global model to the next.
_WITHOUT_DISTANCES = (
  'cffl',
  'cgsv',
  'fed_ave',
  'fed_sac',
  'pfed_ck',
  'standalone',
  *SEQUENTIAL,
)

# Their server rates clients on a validation set.
_VALIDATING = ('cffl', 'fed_ave', 'fed_sac')

# A flag, and the values of others that leave it without effect.
INEFFECTIVE: tuple[tuple[str, dict[str, Any]], ...] = (
  ('boost_rate', {'boosting': False}),
  ('error_threshold', {'boosting': False}),
  ('initial_gamma', {'boosting': False}),
  ('max_gamma', {'boosting': False}),
  ('weight_sign', {'boosting': False}),
  ('weight_init', {'boosting': False}),
  ('gamma_mode', {'boosting': False}),
  ('pretrain_epochs', {'pretrain': False}),
  ('free_rider_kind', {'free_riders': 0}),
  *(
    (name, {'variant': 'cofed'})
    for name in (
      'alignment',
      'beta',
      'contrastive_weight',
      'distillation_weight',
    )
  ),
  *(
    (name, {'variant': 'refed'})
    for name in ('gamma', 'sharpness', 'gradient_reuse')
  ),
  *(
    (name, {'variant': 'refed', 'alignment': 'server'})
    for name in ('include_positive', 'beta', 'temperature')
  ),
  ('contrastive_weight', {'alignment': 'server'}),
  ('distillation_weight', {'alignment': 'server'}),
  *(
    (name, {weight: 0.0})
    for weight in ('quadruplet_weight', 'metric_weight')
    for name in ('margin', 'margin_1', 'margin_2', 'squared', 'resample')
  ),
  ('temperature', {'algorithm': 'supcon_fl', 'metric_weight': 0.0}),
  ('temperature', {'algorithm': 'moon', 'contrastive_weight': 0.0}),
  ('down_weight', {'variant': 'single_dist'}),
  ('evaluate', {'variant': 'single_dist'}),
  ('distillation_temperature', {'down_weight': 0.0, 'up_weight': 0.0}),
  ('distillation_temperature', {'knowledge_weight': 0.0}),
  ('local_epochs', {'granularity': 'single_step'}),
  ('batch_size', {'granularity': 'single_step'}),
  ('update_length', {'variant': 'fedakd'}),
  ('upload_fraction', {'variant': 'original'}),
  ('download_base', {'variant': 'original'}),
  ('importance_every', {'variant': 'fedakd'}),
  ('mid_round', {'variant': 'original'}),
  ('grad_correction', {'variant': 'fedakd'}),
  *(
    (name, {'partition': partition})
    for name in (
      'dirichlet_alpha',
      'dirichlet_remainder',
      'balance_cap',
      'min_samples',
    )
    for partition in tasks.PARTITION_NAMES
    if partition != 'dirichlet'
  ),
  ('num_examples', {'partition': 'dirichlet'}),
  *(
    (name, {'partition': partition})
    for name in _SHIFT
    for partition in tasks.PARTITION_NAMES
    if partition != 'covariate_shift'
  ),
  *(
    (name, {'shift_method': 'pc1_sort'})
    for name in ('shift', 'pca_dim', 'shift_weights')
  ),
  ('num_examples', {'partition': 'writer'}),
  ('num_examples', {'partition': 'state'}),
  ('data_fraction', {'task': 'femnist'}),
  ('data_fraction', {'task': 'ehr'}),
  # The data say themselves whose they are.
  *(
    (name, {'task': task})
    for name in ('dirichlet_remainder', *_SHIFT)
    for task in ('femnist', 'ehr')
  ),
  *(
    (name, {'task': 'ehr'})
    for name in (
      'dirichlet_alpha',
      'balance_cap',
      'min_samples',
      'num_examples',
    )
  ),
  *(
    (name, {'task': task})
    for name in ('ehr_scale', 'max_events')
    for task in tasks.TASK_NAMES
    if task != 'ehr'
  ),
  ('margin_2', {'task': 'adult'}),
  ('validation_fraction', {'split': 'client'}),
  ('holdout_fraction', {'split': 'server'}),
  # These data sets have a test file of their own.
  ('test_fraction', {'split': 'server', 'task': 'mnist'}),
  ('test_fraction', {'split': 'server', 'task': 'fmnist'}),
  ('test_fraction', {'split': 'server', 'task': 'cifar10'}),
  ('test_fraction', {'split': 'server', 'task': 'cifar100'}),
  ('client_fraction', {'algorithm': 'round_robin_fed_avg'}),
  ('client_fraction', {'algorithm': 'dssgd'}),
  *(('distances', {'algorithm': name}) for name in _WITHOUT_DISTANCES),
  *(
    (name, {'algorithm': 'fed_mdfg'})
    for name in ('local_epochs', 'client_optimizer', 'client_weight_decay')
  ),
  *(
    (name, {'runtime': runtime})
    for name in ('device', 'client_threads')
    for runtime in ('native', 'remote')
  ),
  *(('workers', {'runtime': runtime}) for runtime in ('device', 'native')),
)

# Method -> the values of flags that it cannot do without.
REQUIRED: dict[str, dict[str, Any]] = {
  # Test data are normalised by the statistics of the client that keeps them.
  'fed_rdn': {'split': 'client'},
}


def gather_statistics(
  settings: Mapping[str, Any], task: tasks.Task
) -> Mapping[str, Any] | None:
  """What a method has to know of the clients' data before the first round.

  Args:
    settings: The flag values of the run.
    task: The task of the run.

  Returns:
    For FedRDN the mean and the standard deviation of the channels of each
    client's images, for others None.

  Raises:
    ValueError: If the data are no images.
  """
  if settings['algorithm'] != 'fed_rdn':
    return None
  from tff_fair import algorithms

  gather = algorithms.build_channel_statistics(
    task.model_fn, num_clients=task.num_clients
  )
  return gather([task.client_data(i) for i in range(task.num_clients)])


def build_class_centroids(
  settings: Mapping[str, Any], task: tasks.Task
) -> Callable[[Any], Mapping[str, Any]] | None:
  """What takes the place of a classifier in a run that trains none.

  Args:
    settings: The flag values of the run.
    task: The task of the run.

  Returns:
    From a process's global `ModelWeights` to the class centroids of all
    clients' training data; None for a run with cross-entropy.
  """
  if settings.get('use_ce', True):
    return None
  from tff_fair import algorithms

  centroids = algorithms.build_class_centroids(
    task.model_fn, num_clients=task.num_clients
  )
  data = [task.client_data(i) for i in range(task.num_clients)]
  return lambda weights: centroids(weights, data)


def needs_contributions(settings: Mapping[str, Any]) -> bool:
  """Whether the server has to know beforehand what clients reach alone."""
  return settings['algorithm'] == 'fed_sac'


def build_process(
  settings: Mapping[str, Any],
  task: tasks.Task,
  statistics: Mapping[str, Any] | None,
  contributions: Sequence[float] | None = None,
) -> Any:
  """Builds the learning process of a run.

  Args:
    settings: The flag values of the run.
    task: The task of the run.
    statistics: What `gather_statistics` returned.
    contributions: What each client reaches alone, an accuracy, where
      `needs_contributions`.

  Returns:
    A `tff.learning.templates.LearningProcess`.

  Raises:
    TypeError: If a builder refuses an argument's kind.
    ValueError: If a builder refuses an argument's value.
  """
  from tff_fair import algorithms

  builders = {
    'fed_avg': algorithms.build_fed_avg,
    'ditto': algorithms.build_ditto,
    'fedaboost': algorithms.build_fedaboost,
    'cffl': algorithms.build_cffl,
    'corefed': algorithms.build_corefed,
    'q_fed_avg': algorithms.build_q_fed_avg,
    'fed_mgda': algorithms.build_fed_mgda,
    'fed_mdfg': algorithms.build_fed_mdfg,
    'fed_rdn': algorithms.build_fed_rdn,
    'fedquad': algorithms.build_fedquad,
    'moon': algorithms.build_moon,
    'supcon_fl': algorithms.build_supcon_fl,
    'triplet_fl': algorithms.build_triplet_fl,
    'quadruplet_fl': algorithms.build_quadruplet_fl,
    'fed_prox': algorithms.build_fed_prox,
    'fedakd': algorithms.build_fedakd,
    'scaffold': algorithms.build_scaffold,
    'cgsv': algorithms.build_cgsv,
    'fed_ave': algorithms.build_fed_ave,
    'fed_sac': algorithms.build_fed_sac,
    'pfed_ck': algorithms.build_pfed_ck,
    'fed_dc': algorithms.build_fed_dc,
    'fed_as': algorithms.build_fed_as,
    'fed_mpr': algorithms.build_fed_mpr,
    'standalone': algorithms.build_standalone,
    'round_robin_fed_avg': algorithms.build_round_robin_fed_avg,
    'dssgd': algorithms.build_dssgd,
  }
  algorithm = settings['algorithm']
  own = {name: settings[name] for name in METHOD_FLAGS[algorithm]}
  own.update(_optimizer_arguments(settings, 'client'))
  if algorithm in _VALIDATING:
    own['validation'] = validation_examples(settings, task)
  if needs_contributions(settings):
    own['contributions'] = contributions
  if algorithm == 'ditto':
    own.pop('personal_weight_decay')
    own.pop('personal_learning_rate')
    own.update(_optimizer_arguments(settings, 'personal'))
  elif algorithm == 'cffl':
    own.pop('free_rider_kind')
    own.update(_amounts_and_riders(settings, task))
  elif algorithm == 'fed_rdn':
    own['statistics'] = statistics
  elif 'margin_1' in own:
    own['margins'] = (own.pop('margin_1'), own.pop('margin_2'))
  elif algorithm == 'round_robin_fed_avg':
    own['total_examples'] = sum(map(task.num_train, range(task.num_clients)))
  return builders[algorithm](
    task.model_fn,
    num_clients=task.num_clients,
    local_epochs=settings['local_epochs'],
    batch_size=settings['batch_size'],
    seed=settings['client_seed'],
    **own,
  )


def validation_examples(
  settings: Mapping[str, Any], task: tasks.Task
) -> tuple[Any, Any]:
  """What the server validates on.

  Args:
    settings: The flag values of the run.
    task: The task of the run.

  Returns:
    `(x, y)`, the task's validation examples.

  Raises:
    ValueError: If there are none.
  """
  if not len(task.validation.y):
    name = {'client': 'holdout_fraction', 'server': 'validation_fraction'}[
      settings['split']
    ]
    raise ValueError(
      f'{name} must be above 0 for {settings["algorithm"]}, whose server'
      f' validates on that part, found {settings[name]}.'
    )
  return tuple(task.validation)


def _amounts_and_riders(settings, task) -> dict[str, Any]:
  """What CFFL's server is told, and who deceives it."""
  from tff_fair import client

  riders = None
  if task.free_riders:
    riders = client.FreeRiders(
      client_ids=task.free_riders, kind=settings['free_rider_kind']
    )
  return {
    'amounts': tasks.stated_amounts(task, settings['scenario']),
    'free_riders': riders,
  }


def _optimizer_arguments(settings, owner: str) -> dict[str, Any]:
  """The builder's arguments for `owner`'s optimiser."""
  rate = settings[f'{owner}_learning_rate']
  optimizer = _build_optimizer(
    settings[f'{owner}_optimizer'], rate, settings[f'{owner}_weight_decay']
  )
  decay = settings['learning_rate_decay']
  rate_fn = None if decay == 1 else _learning_rate_decay(rate, decay)
  return {
    f'{owner}_optimizer': optimizer,
    f'{owner}_learning_rate_fn': rate_fn,
  }


def _build_optimizer(kind, learning_rate, weight_decay):
  """A TFF optimiser with the papers' weight decay, decoupled for 'adamw'."""
  import tensorflow_federated as tff

  from tff_fair import client

  optimizers = tff.learning.optimizers
  if kind == 'adamw':
    return optimizers.build_adamw(learning_rate, weight_decay=weight_decay)
  build = {'sgd': optimizers.build_sgdm, 'adam': optimizers.build_adam}[kind]
  return client.with_weight_decay(build(learning_rate), weight_decay)


def _learning_rate_decay(learning_rate, decay):
  """`round -> learning_rate * decay^round`, rounds from 0."""

  def rate_fn(round_number):
    import tensorflow as tf

    return learning_rate * decay ** tf.cast(round_number, tf.float32)

  return rate_fn
