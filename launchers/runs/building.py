"""From the settings of a run to its runtime, task, process and cohorts."""

from collections.abc import Callable, Mapping
import pathlib
from typing import Any

import tensorflow_federated as tff

from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import contributions
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import flag_sentences
from tff_fair.launchers.runs import processes
from tff_fair.launchers.runs import run_directory

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

# The runtime that the last run has set: kind, options and context.
_runtime: tuple[str, Mapping[str, Any], Any] | None = None


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
  except ValueError as error:
    sentence = flag_sentences.with_flags(str(error), flags)
    raise errors.RunError(sentence) from error
  except ImportError as error:
    raise errors.RunError(str(error)) from error
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
    raise errors.RunError(flag_sentences.of_task(str(error))) from error


def build_process(
  settings: Mapping[str, Any], task: tasks.Task, *prepared: Any
) -> Any:
  """Builds the learning process of a run; see `processes.build_process`.

  Raises:
    RunError: If a setting does not fit the data.
  """
  return build(processes.build_process, settings, task, *prepared)


def build(
  build_fn: Callable[..., Any], settings: Mapping[str, Any], *arguments: Any
) -> Any:
  """Calls a builder, and raises a `RunError` if it rejects the settings."""
  try:
    return build_fn(settings, *arguments)
  except (TypeError, ValueError) as error:
    # TensorFlow's message about an error in a graph ends with the error.
    sentence = str(error).strip().splitlines()[-1].strip()
    sentence = flag_sentences.of_builder(sentence, settings)
    raise errors.RunError(sentence) from error


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
  # A free rider has no data and still takes part.
  server = settings['split'] == 'server'
  eligible = [i for i in clients if server or task.num_train(i) > 0]
  size = max(1, int(settings['client_fraction'] * task.num_clients + 0.5))
  size = min(size, len(eligible))
  sample = tff.simulation.build_uniform_sampling_fn(
    eligible, random_seed=settings['client_seed']
  )
  return lambda round_number: [sample(round_number, size)]


def load_global_model(
  settings: Mapping[str, Any],
  task: tasks.Task,
  output_dir: pathlib.Path,
  round_number: int,
) -> tff.learning.models.ModelWeights:
  """Loads the global model of a run after a round, from its checkpoint.

  Raises:
    FileNotFoundError: If there is no such checkpoint.
    ValueError: If it is damaged, or belongs to another run.
  """
  statistics = processes.gather_statistics(settings, task)
  alone = contributions.of_clients(settings, task, output_dir)
  process = processes.build_process(settings, task, statistics, alone)
  state = run_directory.load_state(
    output_dir, process.initialize(), round_number, origin(settings, alone)
  )
  return process.get_model_weights(state)


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
