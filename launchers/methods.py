"""The methods that the launchers know, and the flags each of them reads."""

from collections.abc import Mapping
from typing import Any

# Method -> the flags that only some methods read. The names are those of the
# builder's arguments, but for the three that describe an optimiser.
METHOD_FLAGS: dict[str, tuple[str, ...]] = {
  'fedavg': ('uniform',),
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
}

# Flag -> (another flag, the value of it that leaves the first without effect).
_BOOSTING_OFF = ('boosting', False)
INEFFECTIVE: dict[str, tuple[str, Any]] = {
  'boost_rate': _BOOSTING_OFF,
  'error_threshold': _BOOSTING_OFF,
  'initial_gamma': _BOOSTING_OFF,
  'max_gamma': _BOOSTING_OFF,
  'weight_sign': _BOOSTING_OFF,
  'weight_init': _BOOSTING_OFF,
  'gamma_mode': _BOOSTING_OFF,
  'dirichlet_alpha': ('partition', 'equal'),
  'device': ('runtime', 'native'),
  'client_threads': ('runtime', 'native'),
}


def build_process(settings: Mapping[str, Any], task: Any) -> Any:
  """Builds the learning process of a run.

  Args:
    settings: The flag values of the run.
    task: The `tasks.Task`.

  Returns:
    A `tff.learning.templates.LearningProcess`.

  Raises:
    TypeError: If a builder refuses an argument's kind.
    ValueError: If a builder refuses an argument's value.
  """
  from tff_fair import algorithms

  builders = {
    'fedavg': algorithms.build_fed_avg,
    'ditto': algorithms.build_ditto,
    'fedaboost': algorithms.build_fedaboost,
  }
  algorithm = settings['algorithm']
  own = {name: settings[name] for name in METHOD_FLAGS[algorithm]}
  own.update(_optimizer_arguments(settings, 'client'))
  if algorithm == 'ditto':
    own.pop('personal_weight_decay')
    own.pop('personal_learning_rate')
    own.update(_optimizer_arguments(settings, 'personal'))
  return builders[algorithm](
    task.model_fn,
    num_clients=task.num_clients,
    local_epochs=settings['local_epochs'],
    batch_size=settings['batch_size'],
    seed=settings['client_seed'],
    **own,
  )


def _optimizer_arguments(settings, owner: str) -> dict[str, Any]:
  """The builder's arguments for `owner`'s optimiser."""
  rate = settings[f'{owner}_learning_rate']
  optimizer = build_optimizer(
    settings[f'{owner}_optimizer'], rate, settings[f'{owner}_weight_decay']
  )
  decay = settings['learning_rate_decay']
  rate_fn = None if decay == 1 else learning_rate_decay(rate, decay)
  return {
    f'{owner}_optimizer': optimizer,
    f'{owner}_learning_rate_fn': rate_fn,
  }


def build_optimizer(kind: str, learning_rate: float, weight_decay: float):
  """A TFF optimiser with the papers' weight decay.

  Args:
    kind: 'sgd', 'adam' (coupled decay) or 'adamw' (decoupled).
    learning_rate: Positive.
    weight_decay: Not negative.

  Returns:
    A `tff.learning.optimizers.Optimizer`.
  """
  import tensorflow_federated as tff

  from tff_fair import client

  optimizers = tff.learning.optimizers
  if kind == 'adamw':
    return optimizers.build_adamw(learning_rate, weight_decay=weight_decay)
  build = {'sgd': optimizers.build_sgdm, 'adam': optimizers.build_adam}[kind]
  return client.with_weight_decay(build(learning_rate), weight_decay)


def learning_rate_decay(learning_rate: float, decay: float):
  """`round -> learning_rate * decay^round`, rounds from 0."""

  def rate_fn(round_number):
    import tensorflow as tf

    return learning_rate * decay ** tf.cast(round_number, tf.float32)

  return rate_fn
