"""Learning processes from the settings of a run.

An argument of a method's builder is the flag of the same name, unless
`_ARGUMENTS` says how it is made.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import algorithms
from tff_fair import client
from tff_fair import tasks
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags


@dataclasses.dataclass(frozen=True)
class _Run:
  """The inputs from which the arguments of a builder are made."""

  settings: Mapping[str, Any]
  task: tasks.Task
  statistics: Mapping[str, Any] | None
  contributions: Sequence[float] | None


def needs(settings: Mapping[str, Any], argument: str) -> bool:
  """Returns whether the builder of the run's method needs an argument."""
  method = methods.METHODS[settings['algorithm']]
  return argument in method.arguments


def same_for_all_seeds(settings: Mapping[str, Any]) -> bool:
  """Returns whether runs that differ only in their seeds share one `next`.

  The seed and the initial weights are in the state. But some servers validate,
  or rate clients, by data that are constants of the computation; and what a
  plug-in does with its seed is not known.
  """
  return builders.is_provided(settings['algorithm']) and not any(
    needs(settings, argument) for argument in _OF_THE_DATA
  )


def gather_statistics(
  settings: Mapping[str, Any], task: tasks.Task
) -> Mapping[str, Any] | None:
  """Gathers the statistics of the clients' data that a method starts with.

  For FedRDN the mean and the standard deviation of the channels of each
  client's images, for others None.

  Raises:
    ValueError: If the data are not images.
  """
  if not needs(settings, 'statistics'):
    return None
  gather = algorithms.build_channel_statistics(
    task.model_fn, num_clients=task.num_clients
  )
  return gather([task.client_reference(i) for i in range(task.num_clients)])


def build_class_centroids(
  settings: Mapping[str, Any], task: tasks.Task
) -> Callable[[Any], Mapping[str, Any]] | None:
  """Builds the replacement of a classifier in a run that trains none.

  Returns:
    From a process's global `ModelWeights` to the class centroids of all
    clients' training data; None for a run with cross-entropy.
  """
  if settings.get('use_ce', True):
    return None
  centroids = algorithms.build_class_centroids(
    task.model_fn, num_clients=task.num_clients
  )
  data = [task.client_reference(i) for i in range(task.num_clients)]
  return lambda weights: centroids(weights, data)


def build_process(
  settings: Mapping[str, Any],
  task: tasks.Task,
  statistics: Mapping[str, Any] | None = None,
  contributions: Sequence[float] | None = None,
) -> Any:
  """Builds the learning process of a run.

  `statistics` are of `gather_statistics`, `contributions` the accuracy that
  each client reaches alone, for methods that need them.

  Raises:
    TypeError: If a builder refuses an argument's kind.
    ValueError: If a builder refuses an argument's value.
  """
  arguments = builder_arguments(settings, task, statistics, contributions)
  build = builders.get(settings['algorithm'])
  process = build(task.model_fn, **arguments)
  if not isinstance(process, algorithms.FairLearningProcess):
    raise TypeError(
      f'The builder of {settings["algorithm"]} must return what'
      ' `SharedArguments.compose` does, an algorithms.FairLearningProcess,'
      f' found {type(process).__name__}.'
    )
  return process


def builder_arguments(
  settings: Mapping[str, Any],
  task: tasks.Task,
  statistics: Mapping[str, Any] | None = None,
  contributions: Sequence[float] | None = None,
) -> dict[str, Any]:
  """Makes the arguments of the builder, all but the model.

  Raises:
    ValueError: If the task lacks the data that an argument requires.
  """
  method = methods.METHODS[settings['algorithm']]
  run = _Run(settings, task, statistics, contributions)
  flags = {flag.argument or flag.name: flag.name for flag in method.flags}
  return {
    name: _ARGUMENTS[name](run)
    if name in _ARGUMENTS
    else settings[flags.get(name, name)]
    for name in run_flags.builder_arguments(method)
  }


def validation_examples(
  settings: Mapping[str, Any], task: tasks.Task
) -> tuple[Any, Any]:
  """Returns `(x, y)`, the examples on which the server validates.

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


def _optimizer(owner: str) -> Callable[[_Run], Any]:
  """A TFF optimiser with the papers' weight decay, decoupled for 'adamw'."""

  def build(run):
    kind, learning_rate, weight_decay = (
      run.settings[f'{owner}_{name}']
      for name in ('optimizer', 'learning_rate', 'weight_decay')
    )
    if kind == 'adamw':
      return tff.learning.optimizers.build_adamw(
        learning_rate, weight_decay=weight_decay
      )
    try:
      return client.with_weight_decay(
        _OPTIMIZERS[kind](learning_rate), weight_decay
      )
    except ValueError as error:
      # Begins with the name of an argument.
      raise ValueError(f'{owner}_{error}') from error

  return build


def _learning_rate_fn(owner: str) -> Callable[[_Run], Any]:
  """`round -> learning rate * decay^round`, rounds from 0; None if constant."""

  def build(run):
    learning_rate = run.settings[f'{owner}_learning_rate']
    decay = run.settings['learning_rate_decay']
    if decay == 1:
      return None
    return lambda round_number: (
      learning_rate * decay ** tf.cast(round_number, tf.float32)
    )

  return build


def _server_optimizer(run):
  kind = run.settings['server_optimizer']
  if kind is None:
    return None
  return _OPTIMIZERS[kind](run.settings['server_learning_rate'])


def _free_riders(run):
  if not run.task.free_riders:
    return None
  return client.FreeRiders(
    client_ids=run.task.free_riders, kind=run.settings['free_rider_kind']
  )


# Arguments that are made of the task.
_OF_THE_DATA = (
  'amounts',
  'contributions',
  'free_riders',
  'statistics',
  'total_examples',
  'validation',
)

_OPTIMIZERS = {
  'sgd': tff.learning.optimizers.build_sgdm,
  'adam': tff.learning.optimizers.build_adam,
  'adagrad': tff.learning.optimizers.build_adagrad,
  'yogi': tff.learning.optimizers.build_yogi,
}

# Arguments of builders that are not the flag of their name.
_ARGUMENTS: Mapping[str, Callable[[_Run], Any]] = {
  'num_clients': lambda run: run.task.num_clients,
  'seed': lambda run: run.settings['client_seed'],
  'client_optimizer': _optimizer('client'),
  'client_learning_rate_fn': _learning_rate_fn('client'),
  # No bound is 0 on the command line.
  'max_update_norm': lambda run: run.settings['max_update_norm'] or None,
  'personal_optimizer': _optimizer('personal'),
  'personal_learning_rate_fn': _learning_rate_fn('personal'),
  'server_optimizer': _server_optimizer,
  'margins': lambda run: (run.settings['margin_1'], run.settings['margin_2']),
  'validation': lambda run: validation_examples(run.settings, run.task),
  'amounts': lambda run: tasks.stated_amounts(
    run.task, run.settings['scenario']
  ),
  'free_riders': _free_riders,
  'statistics': lambda run: run.statistics,
  'contributions': lambda run: run.contributions,
  'total_examples': lambda run: sum(
    map(run.task.num_train, range(run.task.num_clients))
  ),
}
