"""The accuracy of clients that train alone, for servers that need it."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair import files
from tff_fair import metrics
from tff_fair import tasks
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation
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
    ValueError: If there is no validation set, an argument is refused, or the
      file there is damaged.
    DivergedError: If a model that trained alone is of no use.
  """
  if not building.needs(settings, 'contributions'):
    return None
  path = output_dir / FILE
  return _read(path, task) if path.exists() else _measure(settings, task)


def keep(accuracies: list[float] | None, output_dir: pathlib.Path) -> None:
  """Saves the accuracies, once the directory belongs to the run."""
  if accuracies is not None:
    text = json.dumps(accuracies)
    run_files.write_atomically(output_dir / FILE, text)


def _read(path, task) -> list[float]:
  def damaged(found):
    return ValueError(
      f'{path} must hold an accuracy of each client, found: {found}; without'
      ' the file, it is measured again.'
    )

  with files.reading(path, damaged):
    found = json.loads(path.read_text())
    if len(found) != task.num_clients or not all(0 <= a <= 1 for a in found):
      raise ValueError('something else')
  return found


def _measure(settings, task) -> list[float]:
  validation = building.validation_examples(settings, task)
  tf.keras.utils.set_random_seed(settings['model_seed'])
  process = building.build_process(
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
  bad = np.flatnonzero(~np.isfinite(scores.loss))
  if bad.size:
    who = evaluation.listed(bad, task.client_names)
    raise errors.diverged(f'the loss of {who}, trained alone, is not finite')
  return [float(accuracy) for accuracy in scores.accuracy]
