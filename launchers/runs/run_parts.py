"""What a run is made of: data, process and evaluation."""

from collections.abc import Mapping
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair import tasks
from tff_fair.launchers.options import methods
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import contributions
from tff_fair.launchers.runs import divergence
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import flag_sentences
from tff_fair.launchers.runs import messages
from tff_fair.launchers.runs import processes


class RunParts:
  """The parts of a run, all functions of its settings.

  Attributes:
    settings: Flag name -> value.
    task: The data, and how they are divided.
    num_clients: Number of clients.
    num_train: Number of training examples of each client.
    has_data: Whether each client has any, bool[k].
    statistics: The channel statistics of the clients' data, if the method
      needs them; else None.
    alone: The accuracy of each client that trains alone, if the method needs
      them; else None.
    process: The learning process of the method.
    centroids: From global weights to class centroids, if the nearest one
      classifies; else None.
  """

  def __init__(
    self,
    settings: Mapping[str, Any],
    task: tasks.Task,
    output_dir: pathlib.Path,
    like: 'RunParts | None' = None,
  ):
    """Builds the parts; arguments are as of `training.Run`."""
    self.settings = settings
    self.task = task
    self.num_clients = task.num_clients
    self.num_train = [task.num_train(i) for i in range(task.num_clients)]
    self.has_data = np.greater(self.num_train, 0)
    # Before the seed is set: the seed is that of the initial weights.
    self.statistics = self._build(processes.gather_statistics)
    self.alone = self._build(contributions.of_clients, output_dir)
    tf.keras.utils.set_random_seed(settings['model_seed'])
    self.process = self._build(
      processes.build_process, self.statistics, self.alone
    )
    self._next = self.process.next
    if like is not None and processes.same_for_all_seeds(settings):
      self._next = like._next
    self._cohorts = building.build_cohorts(settings, task)
    self._evaluator = evaluation.build_evaluator(task, self.statistics)
    self.centroids = self._build(processes.build_class_centroids)

  def evaluate(self, state: Any, round_number: int) -> evaluation.Scores:
    """Scores the models of a state after a round.

    Raises:
      DivergedError: If the nearest centroid classifies, and there is none.
    """
    try:
      return self._evaluate(self._evaluator, state)
    except evaluation.NotFiniteError as error:
      failure = f'{error} after round {round_number}'
      raise divergence.diverged(failure) from None

  def metric_columns(self, scores: evaluation.Scores) -> dict[str, float]:
    """Returns the columns of metrics.csv that hold the scores."""
    return evaluation.metric_columns(scores, self.has_data)

  def bytes_per_round(self) -> tuple[int, int]:
    """Returns the bytes of a round from the server to all clients, and back.

    They include the rows of the client table, although a deployment could keep
    these on the clients. A method without an aggregation rule has zero.
    """
    if methods.METHODS[self.settings['algorithm']].rule == 'none':
      return 0, 0
    calls = self._cohorts(1)
    size = max(map(len, calls))
    sent = messages.count_messages(self.process.next, size)
    number = size * len(calls)
    return number * sent.down, number * sent.up

  def _holdout_accuracy(self, state) -> float:
    try:
      evaluator = evaluation.build_holdout_evaluator(self.task, self.statistics)
    except ValueError as error:
      raise errors.RunError(flag_sentences.of_task(str(error))) from error
    scores = self._evaluate(evaluator, state)
    return self.metric_columns(scores)['client_accuracy_mean']

  def _evaluate(self, evaluator, state):
    return evaluation.evaluate(evaluator, self.process, state, self.centroids)

  def _build(self, build_fn, *arguments):
    return building.build(build_fn, self.settings, self.task, *arguments)
