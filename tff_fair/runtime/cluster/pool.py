"""The workers of a cluster: starts them, asks them, and replaces lost ones."""

from collections.abc import Mapping
import contextlib
import itertools
import logging
import os
import signal
import time
from typing import Any

import ray
from ray import exceptions

from tff_fair.runtime import worker_error
from tff_fair.runtime.cluster import worker as worker_lib

_logger = logging.getLogger(__name__)
# TensorFlow alone takes several seconds to import.
_START_SECONDS = 120


class LostWorkersError(Exception):
  """Some workers are lost; what they were to do is not done."""


class Worker:
  """A worker as the driver sees it.

  Attributes:
    number: Its number, from 0; that of a replacement is new.
    actor: Ray's handle.
    programs: The numbers of the computations that it has.
    loaders: The numbers of the functions that it has.
    data_sets: Key -> bytes of the data sets that it has; the last one was used
      last.
  """

  def __init__(self, number: int, actor: Any):
    """Has nothing yet."""
    self.number = number
    self.actor = actor
    self.node, self.process = None, None
    self.programs: set[int] = set()
    self.loaders: set[int] = set()
    self.data_sets: dict[int, int] = {}


class Pool:
  """The workers.

  A worker that is gone, or does not answer within the timeout, is lost: it is
  killed, and another one is started. That one joins when it is ready.

  Attributes:
    workers: Those that are ready.
  """

  def __init__(
    self,
    num_workers: int,
    cpus_per_worker: int,
    gpus_per_worker: float,
    op_threads: int,
    timeout: float,
  ):
    """Starts the workers and waits for them.

    Args:
      num_workers: Their number.
      cpus_per_worker: CPUs of each, which run as many clients at a time.
      gpus_per_worker: GPUs of each.
      op_threads: Threads of a TensorFlow operation.
      timeout: Seconds in which a worker must answer.

    Raises:
      WorkerError: If they do not start.
    """
    self._timeout = timeout
    self._node = ray.get_runtime_context().get_node_id()
    self._actor_class = ray.remote(
      num_cpus=cpus_per_worker,
      num_gpus=gpus_per_worker,
      # Workers are on as many machines as possible.
      scheduling_strategy='SPREAD',
      # A call is repeated elsewhere, and what it needs sent there.
      max_restarts=0,
      max_task_retries=0,
      concurrency_groups={'health': 1},
      runtime_env={'env_vars': {'TF_CPP_MIN_LOG_LEVEL': '3'}},
    )(worker_lib.Worker)
    self._arguments = op_threads, cpus_per_worker
    self._numbers = itertools.count()
    self.workers: list[Worker] = []
    self._starting: dict[Any, Worker] = {}  # Its first answer -> worker.
    for _ in range(num_workers):
      self._start()
    deadline = time.monotonic() + _START_SECONDS
    while self._starting and time.monotonic() < deadline:
      self._welcome(1)
    if len(self.workers) < num_workers:
      raise worker_error.WorkerError(
        f'{num_workers} workers must start within {_START_SECONDS} seconds,'
        f' found {len(self.workers)} that did.'
      )

  def ready_workers(self) -> list[Worker]:
    """The workers that take part from now on, at least one.

    Raises:
      WorkerError: If no worker is left, and none starts in time.
    """
    self._welcome(0)
    deadline = time.monotonic() + _START_SECONDS
    while not self.workers and self._starting and time.monotonic() < deadline:
      self._welcome(1)
    if not self.workers:
      raise worker_error.WorkerError(
        'At least one worker must run, found that all are lost.'
      )
    return list(self.workers)

  def collect(self, pending: Mapping[Any, Worker]) -> dict[Any, Any]:
    """Waits for the results of calls.

    Args:
      pending: Reference to the result -> the worker that was called.

    Returns:
      Reference -> result.

    Raises:
      LostWorkersError: If a worker is lost.
      WorkerError: If a worker ran out of memory.
    """
    waiting, failed = list(pending), False
    while waiting:
      ready, waiting = ray.wait(
        waiting, num_returns=len(waiting), timeout=self._timeout / 2
      )
      if waiting:
        asked = {pending[ref] for ref in waiting}
        silent = self._find_silent(asked)
        for worker in silent:
          self._lose(worker, f'no answer in {self._timeout:g} seconds')
        if silent:
          # Calls may wait for what a lost worker was to send to others.
          failed = True
          waiting = [r for r in waiting if pending[r] not in silent]
    results = {}
    for reference, worker in pending.items():
      try:
        if worker in self.workers:
          results[reference] = ray.get(reference)
        else:
          failed = True
      except exceptions.RayError as error:
        failed = True
        self._find_reason(worker, error)
    if failed:
      raise LostWorkersError
    return results

  def close(self) -> None:
    """Ends the workers."""
    for worker in [*self.workers, *self._starting.values()]:
      ray.kill(worker.actor)
    self.workers.clear()
    self._starting.clear()

  def _start(self):
    worker = Worker(
      next(self._numbers), self._actor_class.remote(*self._arguments)
    )
    self._starting[worker.actor.ping.remote()] = worker

  def _welcome(self, seconds):
    """Adds the workers that have started within some seconds."""
    if not self._starting:
      return
    ready, _ = ray.wait(
      list(self._starting), num_returns=len(self._starting), timeout=seconds
    )
    for reference in ready:
      worker = self._starting.pop(reference)
      try:
        worker.node, worker.process = ray.get(reference)
        self.workers.append(worker)
      except exceptions.RayError as error:
        # Another one would end likewise.
        _logger.warning('A worker does not start: %s', _sentence(error))

  def _find_silent(self, workers) -> set[Worker]:
    """The workers that do not answer while they work."""
    asked = {worker.actor.ping.remote(): worker for worker in workers}
    _, silent = ray.wait(
      list(asked), num_returns=len(asked), timeout=self._timeout / 2
    )
    return {asked[reference] for reference in silent}

  def _find_reason(self, worker, error):
    """Why a call failed: its worker is lost, or what it needs from another."""
    if 'memory' in str(error) and isinstance(error, exceptions.RayActorError):
      self._lose(worker, 'out of memory')
      raise worker_error.WorkerError(
        f'A worker must have the memory that its clients need, found that'
        f' worker {worker.number} ran out of memory: {_sentence(error)}'
      ) from error
    if self._find_silent([worker]) or not self._is_alive(worker):
      self._lose(worker, _sentence(error))

  def _is_alive(self, worker) -> bool:
    try:
      ray.get(worker.actor.ping.remote(), timeout=self._timeout / 2)
      return True
    except exceptions.RayError:
      return False

  def _lose(self, worker, reason):
    if worker not in self.workers:
      return
    self.workers.remove(worker)
    _logger.warning(
      'Worker %d is lost, its clients run on other workers: %s',
      worker.number,
      reason,
    )
    with contextlib.suppress(exceptions.RayError):
      ray.kill(worker.actor)
    if worker.node == self._node:
      # Ray asks a process to end, which a stopped one does not hear.
      with contextlib.suppress(ProcessLookupError):
        os.kill(worker.process, signal.SIGKILL)
    self._start()


def _sentence(error: Exception) -> str:
  """The message of Ray's error in one line."""
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  return ' '.join(lines[:1]) or type(error).__name__
