"""Embeddings of test examples by the global model of a finished run."""

from collections.abc import Mapping
import pathlib
from typing import Any, NamedTuple

import numpy as np

_SEED = 0


class Embeddings(NamedTuple):
  """Test examples, embedded by a model: float [n, p], and int32 [n] classes."""

  vectors: np.ndarray
  labels: np.ndarray
  num_classes: int
  round_number: int


def of_run(
  settings: Mapping[str, Any],
  output_dir: pathlib.Path,
  round_number: int | None,
  *,
  max_classes: int,
  max_examples: int,
) -> Embeddings:
  """Embeds random test examples, the same for all runs with the same data.

  They are examples of the first `max_classes` classes, embedded by the model of
  a round, or of the last one.

  Raises:
    RunError: If the run has no intact checkpoint of that round.
    ValueError: If the model has no embedding.
  """
  # Imported here: the plots import this module, and must not import TensorFlow.
  from tff_fair import metrics
  from tff_fair.launchers.runs import building
  from tff_fair.launchers.runs import errors

  task = building.build_task(settings)
  number = round_number or settings['rounds']
  try:
    weights = _load_weights(settings, task, output_dir, number)
  except (FileNotFoundError, ValueError) as error:
    raise errors.RunError(str(error)) from error
  x, labels = task.global_test
  eligible = np.flatnonzero(labels < max_classes)
  chosen = np.random.default_rng(_SEED).permutation(eligible)[:max_examples]
  vectors = metrics.embeddings(task.model_fn(), weights, x[chosen])
  return Embeddings(vectors, labels[chosen], task.num_classes, number)


def _load_weights(settings, task, output_dir, number) -> Any:
  """The global model of a run after a round, from its checkpoint."""
  from tff_fair.launchers.runs import building
  from tff_fair.launchers.runs import contributions
  from tff_fair.launchers.runs import run_directory

  statistics = building.gather_statistics(settings, task)
  alone = contributions.of_clients(settings, task, output_dir)
  process = building.build_process(settings, task, statistics, alone)
  origin = building.origin(settings, alone)
  initial = process.initialize()
  state = run_directory.load_state(output_dir, initial, number, origin)
  return process.get_model_weights(state)
