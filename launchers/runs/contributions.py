"""The accuracy of clients that train alone, for servers that need it."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any
import warnings

import tensorflow as tf

from tff_fair import metrics
from tff_fair import tasks
from tff_fair.launchers.runs import processes
from tff_fair.launchers.runs import run_files

FILE = 'contributions.json'


def of_clients(
  settings: Mapping[str, Any], task: tasks.Task, output_dir: pathlib.Path
) -> list[float] | None:
  """Measures each client's model after training alone, if a method needs it.

  This training has the rounds, the initial weights and the optimiser of the
  run. The accuracy is that on the server's validation set: methods never see
  test data. A resumed run reads it from its directory, where `keep` saved it.

  Raises:
    ValueError: If there is no validation set, or an argument is refused.
  """
  if not processes.needs(settings, 'contributions'):
    return None
  return _read_accuracies(output_dir / FILE, task) or _measure(settings, task)


def keep(accuracies: list[float] | None, output_dir: pathlib.Path) -> None:
  """Saves the accuracies, once the directory belongs to the run."""
  if accuracies is not None:
    text = json.dumps(accuracies)
    run_files.write_atomically(output_dir / FILE, text)


def _read_accuracies(path, task) -> list[float] | None:
  """The saved accuracies; None without a file, or with a damaged one."""
  if not path.exists():
    return None
  try:
    found = json.loads(path.read_text())
    good = len(found) == task.num_clients and all(0 <= a <= 1 for a in found)
  except (ValueError, TypeError):
    good = False
  if good:
    return found
  warnings.warn(
    f'{path} must hold the accuracy of each of {task.num_clients} clients,'
    ' found something else; they train alone again.',
    stacklevel=3,
  )
  return None


def _measure(settings, task) -> list[float]:
  validation = processes.validation_examples(settings, task)
  tf.keras.utils.set_random_seed(settings['model_seed'])
  process = processes.build_process(
    {**settings, 'algorithm': 'standalone'}, task
  )
  data = [task.client_reference(i) for i in range(task.num_clients)]
  state = process.initialize()
  for _ in range(settings['rounds']):
    state = process.next(state, data).state
  evaluator = metrics.ServerEvaluator(
    task.model_fn(), validation, task.num_clients
  )
  scores = evaluator.evaluate_clients(process.client_model_table(state))
  return [float(accuracy) for accuracy in scores.accuracy]
