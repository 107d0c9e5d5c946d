"""From the settings of a run to its runtime, task, process and cohorts.

An argument of a method's builder is the flag of the same name, unless
`_ARGUMENTS` says how it is made. Messages about arguments are reworded with the
flags that set them.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import re
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import algorithms
from tff_fair import client
from tff_fair import plugins
from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers.options import attack
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import private
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import attackers
from tff_fair.launchers.runs import errors

# Runtime -> its arguments, each with the flag that sets it.
_RUNTIME_ARGUMENTS = {
  'device': {'device': 'device', 'client_threads': 'client_threads'},
  'native': {},
  'cluster': {
    'num_workers': 'num_workers',
    'cpus_per_worker': 'cpus_per_worker',
    'gpus_per_worker': 'gpus_per_worker',
    'address': 'cluster_address',
    'timeout': 'worker_timeout',
  },
}
# Argument of a task or of its partition -> flag.
_TASK_ARGUMENTS = {
  **{field.name: field.name for field in dataclasses.fields(tasks.TaskOptions)},
  'seed': 'data_seed',
  'remainder': 'dirichlet_remainder',
}

# The runtime that the last run has set: kind, options and context.
_runtime: tuple[str, Mapping[str, Any], Any] | None = None


@dataclasses.dataclass(frozen=True)
class _Run:
  """The inputs from which the arguments of a builder are made."""

  settings: Mapping[str, Any]
  task: tasks.Task
  statistics: Mapping[str, Any] | None
  contributions: Sequence[float] | None


def set_runtime(settings: Mapping[str, Any]) -> None:
  """Sets the runtime of a run in place of the current one, if that differs.

  A new runtime would compile again what the last one has compiled.

  Raises:
    RunError: If there is no such device, or Ray is not installed.
    runtime.WorkerError: If no worker can be had.
  """
  global _runtime
  kind = settings['runtime']
  flags = _RUNTIME_ARGUMENTS[kind]
  options = {argument: settings[flag] for argument, flag in flags.items()}
  contexts = tff.framework.get_context_stack()
  if _runtime and _runtime == (kind, options, contexts.current):
    return
  # First, even if the other fails: TFF's default context, if it is never used,
  # prints an exception when Python exits.
  runtime.set_execution_context('native')
  try:
    runtime.set_execution_context(kind, **options)
  except (ImportError, ValueError) as error:
    raise errors.RunError(with_flags(str(error), flags)) from error
  _runtime = kind, options, contexts.current


def build_task(settings: Mapping[str, Any]) -> tasks.Task:
  """Builds the task of a run.

  Raises:
    RunError: If a setting does not fit the data.
    tasks.DataNotFoundError: If a data file cannot be found.
    tasks.DataDamagedError: If a data file is damaged.
  """
  try:
    return tasks.build_task(
      settings['task'], **settings_lib.task_options(settings)
    )
  except tasks.DataDamagedError:
    raise
  except (TypeError, ValueError) as error:
    raise errors.RunError(with_flags(str(error))) from error


def with_groups(settings: Mapping[str, Any], task: tasks.Task) -> tasks.Task:
  """Returns the task whose clients know groups of people, if a run needs it.

  Raises:
    ValueError: If they are not two, or there are not two classes.
  """
  if not methods.METHODS[settings['algorithm']].needs_groups:
    return task
  return task.with_groups()


def build(
  build_fn: Callable[..., Any], settings: Mapping[str, Any], *arguments: Any
) -> Any:
  """Calls a builder, and raises a `RunError` if it rejects the settings."""
  try:
    return build_fn(settings, *arguments)
  except (TypeError, ValueError) as error:
    method = methods.METHODS[settings['algorithm']]
    flags = {name: name for name in settings}
    for argument in train_flags.builder_arguments(method):
      found = builders.flags_of(method, argument)
      if len(found) == 1:
        flags[argument] = found[0].name
    # TensorFlow's message about an error in a graph ends with the error.
    sentence = str(error).strip().splitlines()[-1].strip()
    raise errors.RunError(with_flags(sentence, flags)) from error


def with_flags(
  sentence: str, flags: Mapping[str, str] = _TASK_ARGUMENTS
) -> str:
  """Replaces arguments, by default those of a task, by flags in a sentence.

  It may begin with the name of an argument, and have other names that are no
  words of English, as they have an underscore.
  """
  # The longest first: one name may begin with another.
  names = sorted(map(re.escape, flags), key=len, reverse=True)
  first = '|'.join(names)
  inside = '|'.join(name for name in names if '_' in name)
  pattern = rf"^({first})(?=[ =])|(?<![-\w'\"./])({inside})(?![\w(/])"
  return re.sub(pattern, lambda match: f'--{flags[match[0]]}', sentence)


def needs(settings: Mapping[str, Any], argument: str) -> bool:
  """Returns whether the builder of the run's method needs an argument."""
  return argument in methods.METHODS[settings['algorithm']].arguments


def same_for_all_seeds(settings: Mapping[str, Any]) -> bool:
  """Returns whether runs that differ only in their seeds share one `next`.

  The seed and the initial weights are in the state. But some servers validate,
  or rate clients, by data that are constants of the computation, as are the ids
  of attackers; and what a plug-in does with its seed is not known.
  """
  if attack.is_attacked(settings):
    return False
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
  builder = builders.get(settings['algorithm'])
  found = attackers.build(settings, task)
  if found is not None:
    builder = algorithms.with_attackers(builder, found)
  what = f'The builder of {settings["algorithm"]}'
  # Ctrl-C is not the builder's.
  with plugins.named_errors(what, TypeError, ValueError, KeyboardInterrupt):
    process = builder(task.model_fn, **arguments)
  if not isinstance(process, algorithms.FairLearningProcess):
    raise TypeError(
      f'The builder of {settings["algorithm"]} must return what'
      ' `SharedArguments.compose` does, an algorithms.FairLearningProcess,'
      f' found {type(process).__name__}.'
    )
  if private.is_private(settings):
    _check_only_trainable(process)
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
  found = {
    name: _ARGUMENTS[name](run)
    if name in _ARGUMENTS
    else settings[flags.get(name, name)]
    for name in train_flags.builder_arguments(method)
  }
  if private.is_private(settings):
    found['model_aggregator'] = _private_mean(run)
  return found


def fine_tuning_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Makes the arguments of `client.build_fine_tuning`, all but the model.

  Raises:
    ValueError: If a setting of the optimiser is refused.
  """
  run = _Run(settings, None, None, None)
  return {
    'optimizer': _optimizer('client')(run),
    'epochs': settings['fine_tune_epochs'],
    'batch_size': settings['batch_size'],
    'seed': settings['client_seed'],
    'learning_rate_fn': _learning_rate_fn('client')(run),
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


def build_cohorts(
  settings: Mapping[str, Any], task: tasks.Task
) -> Callable[[int], list[list[int]]]:
  """Builds the sampling, a function of the client seed and the round.

  Returns:
    From the number of a round to the client ids of each call of `next`.
  """
  clients = range(task.num_clients)
  if methods.takes_turns(settings['algorithm']):
    turns = [[i] for i in clients]
    return lambda round_number: turns
  eligible, size = sampled_clients(settings, task)
  sample = tff.simulation.build_uniform_sampling_fn(
    eligible, random_seed=settings['client_seed']
  )
  return lambda round_number: [sample(round_number, size)]


def sampled_clients(
  settings: Mapping[str, Any], task: tasks.Task
) -> tuple[list[int], int]:
  """Returns the clients that a round draws from, and how many it draws."""
  # A free rider has no data and still takes part.
  server = settings['split'] == 'server'
  eligible = [
    i for i in range(task.num_clients) if server or task.num_train(i) > 0
  ]
  size = max(1, int(settings['client_fraction'] * task.num_clients + 0.5))
  return eligible, min(size, len(eligible))


def origin(
  settings: Mapping[str, Any], alone: list[float] | None
) -> dict[str, str]:
  """Returns the settings and data that a checkpoint of a run belongs to."""
  found = settings_lib.relevant(settings_lib.to_text(settings, None))
  if alone is not None:
    found['contributions'] = str(alone)
  if settings.get('data_file') is not None:
    # A file of one's own may change between two starts of a run.
    found['the content of --data_file'] = tasks.fingerprint(
      settings['data_file']
    )
  return found


def _optimizer(owner: str) -> Callable[[_Run], Any]:
  """A TFF optimiser with the papers' weight decay, decoupled for 'adamw'."""

  def build_optimizer(run):
    kind, learning_rate, weight_decay = (
      run.settings[f'{owner}_{name}']
      for name in ('optimizer', 'learning_rate', 'weight_decay')
    )
    if kind == 'adamw':
      return tff.learning.optimizers.build_adamw(
        learning_rate, weight_decay=weight_decay
      )
    momentum = run.settings.get(f'{owner}_momentum') or 0.0
    try:
      if run.settings.get(f'{owner}_nesterov'):
        optimizer = client.build_nesterov_sgd(learning_rate, momentum)
      elif momentum:
        optimizer = _OPTIMIZERS[kind](learning_rate, momentum)
      else:
        optimizer = _OPTIMIZERS[kind](learning_rate)
      return client.with_weight_decay(optimizer, weight_decay)
    except ValueError as error:
      # Begins with the name of an argument.
      raise ValueError(f'{owner}_{error}') from error

  return build_optimizer


def _learning_rate_fn(owner: str) -> Callable[[_Run], Any]:
  """`round -> learning rate * decay^round`, rounds from 0; None if constant."""

  def build_fn(run):
    learning_rate = run.settings[f'{owner}_learning_rate']
    decay = run.settings['learning_rate_decay']
    if decay == 1:
      return None
    return lambda round_number: (
      learning_rate * decay ** tf.cast(round_number, tf.float32)
    )

  return build_fn


def _server_optimizer(run):
  kind = run.settings['server_optimizer']
  if kind is None:
    return None
  return _OPTIMIZERS[kind](run.settings['server_learning_rate'])


def _private_mean(run):
  _, size = sampled_clients(run.settings, run.task)
  try:
    return aggregators.private_mean_factory(
      run.settings['dp_noise_multiplier'],
      size,
      private.clip(run.settings),
      run.settings['client_seed'],
    )
  except ValueError as error:
    # Begins with the name of an argument.
    raise ValueError(f'dp_{error}') from error


def _check_only_trainable(process) -> None:
  """Raises ValueError if clients would send statistics without noise."""
  state_type = process.initialize.type_signature.result.member
  number = len(state_type.global_model_weights.non_trainable)
  if number:
    raise ValueError(
      'dp_noise_multiplier must be given with a model that has trainable'
      ' weights only, since statistics such as those of batch normalisation'
      f' get no noise, found {number} tensors of others.'
    )


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
  'positive_class': lambda run: run.task.positive_class,
  'statistics': lambda run: run.statistics,
  'contributions': lambda run: run.contributions,
  'total_examples': lambda run: sum(
    map(run.task.num_train, range(run.task.num_clients))
  ),
}
