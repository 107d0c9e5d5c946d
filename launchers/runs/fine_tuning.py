"""Fine-tuning: each client trains the global model further before its score."""

from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
import os
from typing import Any

from tff_fair import client
from tff_fair import models
from tff_fair import tasks
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import evaluation

FineTuning = Callable[[Any, int], Iterator[Any]]
"""From global weights, and the rounds so far, to the clients' models."""


def build(
  settings: Mapping[str, Any],
  task: tasks.Task,
  statistics: Mapping[str, Any] | None,
  first_id: int = 0,
) -> FineTuning:
  """Builds the fine-tuning of a task's clients, whose ids begin at `first_id`.

  With channel statistics, each client's data are normalised by its own, as for
  evaluation. As many models are in memory as clients train at the same time.

  Raises:
    ValueError: If a setting of the optimiser is refused.
  """
  arguments = building.fine_tuning_arguments(settings)
  fine_tune = client.build_fine_tuning(
    models.StatelessModel(task.model_fn), **arguments
  )
  threads = settings['client_threads'] or os.cpu_count()

  def train(weights, number, i):
    x, y = evaluation.examples(task, 'train', i, statistics)
    return fine_tune(weights, x, y, number, first_id + i)

  def fine_tuned(weights, number):
    with futures.ThreadPoolExecutor(threads) as pool:
      for start in range(0, task.num_clients, threads):
        ids = range(start, min(start + threads, task.num_clients))
        yield from pool.map(lambda i: train(weights, number, i), ids)

  return fine_tuned
