"""What clients reach alone, for servers that must know it before they begin."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

import tensorflow as tf

from launchers.runs import processes
from launchers.runs import run_directory
import tasks
from tff_fair import metrics

FILE = 'contributions.json'


def of_clients(
  settings: Mapping[str, Any], task: tasks.Task, output_dir: pathlib.Path
) -> list[float] | None:
  """The accuracy of each client's model after training alone.

  It has the rounds, the first weights and the optimiser of the run, and is
  measured on the server's validation set: no test data enter a method. A run
  that goes on finds it in its directory, where `keep` puts it.

  Args:
    settings: The flag values of the run.
    task: The task of the run.
    output_dir: The run's directory.

  Returns:
    An accuracy for each client; None if the method needs none.

  Raises:
    ValueError: If there is no validation set, or an argument is refused.
  """
  if not processes.needs(settings, 'contributions'):
    return None
  path = output_dir / FILE
  if path.exists():
    return json.loads(path.read_text())
  return _measure(settings, task)


def keep(accuracies: list[float] | None, output_dir: pathlib.Path) -> None:
  """Writes what `of_clients` returned, once the directory is the run's.

  Args:
    accuracies: What it returned.
    output_dir: The run's directory.
  """
  if accuracies is not None:
    text = json.dumps(accuracies)
    run_directory.write_atomically(output_dir / FILE, text)


def _measure(settings, task) -> list[float]:
  validation = processes.validation_examples(settings, task)
  tf.keras.utils.set_random_seed(settings['model_seed'])
  process = processes.build_process(
    {**settings, 'algorithm': 'standalone'}, task
  )
  data = [task.client_data(i) for i in range(task.num_clients)]
  state = process.initialize()
  for _ in range(settings['rounds']):
    state = process.next(state, data).state
  evaluator = metrics.ServerEvaluator(
    task.model_fn(), validation, task.num_clients
  )
  scores = evaluator.evaluate_clients(process.client_model_table(state))
  return [float(accuracy) for accuracy in scores.accuracy]
