"""The workers of a cluster: starts them, asks them, and replaces lost ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import itertools
import logging
import os
import time
from typing import Any

import ray
from ray import exceptions

from tff_fair.runtime import worker_error
from tff_fair.runtime.cluster import ray_session
from tff_fair.runtime.cluster import worker as worker_lib

_logger = logging.getLogger(__name__)
# TensorFlow alone takes several seconds to import, minutes on a busy machine.
_START_SECONDS = 300
# A worker that ends while it starts is replaced at most so often in a row.
_FAILED_STARTS = 3
# Whether TensorFlow uses oneDNN, which rounds sums differently. Nodes of a Ray
# that is joined have been started in another environment than this process.
_ONEDNN = 'TF_ENABLE_ONEDNN_OPTS'


class LostWorkersError(Exception):
  """Some workers are lost; what they were to do is not done."""


class Worker:
  """A worker as the driver sees it.

  Attributes:
    number: Its number, from 0; that of a replacement is new.
    actor: Ray's handle.
    programs: The numbers of the computations that it has.
    loaders: The numbers of the functions that it has.
    values: Number -> bytes of the values that it has; the last one was used
      last.
    unused_programs: Computations that it has, and need not keep.
  """

  def __init__(self, number: int, actor: Any) -> None:
    """Has nothing yet."""
    self.number = number
    self.actor = actor
    self.address, self.process = None, None
    self.programs: set[int] = set()
    self.loaders: set[int] = set()
    self.values: dict[int, int] = {}
    self.unused_programs: list[int] = []

  def forget(self) -> None:
    """Takes it that the worker has nothing, so that all is sent again."""
    self.programs.clear()
    self.loaders.clear()
    self.values.clear()


class Pool:
  """The workers.

  A worker that is gone, or does not answer within the timeout, is lost: it is
  killed, and another one is started. That one joins when it is ready.

  Attributes:
    workers: Those that are ready.
    client_threads: How many clients all workers together run at a time.
  """

  def __init__(
    self,
    num_workers: int,
    cpus_per_worker: int,
    gpus_per_worker: float,
    op_threads: int,
    timeout: float,
  ) -> None:
    """Starts the workers; `ready_workers` waits for them.

    Args:
      num_workers: Their number.
      cpus_per_worker: CPUs of each, which run as many clients at a time.
      gpus_per_worker: GPUs of each.
      op_threads: Threads of a TensorFlow operation.
      timeout: Seconds in which a worker must answer.

    Raises:
      WorkerError: If Ray's nodes cannot have so many workers.
    """
    _check_nodes(num_workers, cpus_per_worker, gpus_per_worker)
    self.client_threads = num_workers * cpus_per_worker
    self._timeout = timeout
    self._session = _session()
    self._actor_class = ray.remote(
      num_cpus=cpus_per_worker,
      num_gpus=gpus_per_worker,
      # Workers are on as many machines as possible.
      scheduling_strategy='SPREAD',
      # A call is repeated elsewhere, and what it needs sent there.
      max_restarts=0,
      max_task_retries=0,
      concurrency_groups={'health': 1},
      runtime_env={'env_vars': _environment()},
    )(worker_lib.Worker)
    self._arguments = op_threads, cpus_per_worker
    self._numbers = itertools.count()
    self.workers: list[Worker] = []
    self._num_workers, self._started = num_workers, False
    self._failed_starts = 0
    self._starting: dict[Any, Worker] = {}  # Its first answer -> worker.
    for _ in range(num_workers):
      self._start()

  def ready_workers(self) -> list[Worker]:
    """The workers that take part from now on, at least one.

    Waits for all at the first call, and for one if none is left. A replacement
    is not waited for otherwise.

    Raises:
      WorkerError: If too few workers start in time, or Ray has ended.
    """
    self._check_connected()
    self._welcome(0)
    needed = 1 if self._started else self._num_workers
    deadline = time.monotonic() + _START_SECONDS
    while len(self.workers) < needed and self._starting:
      self._welcome(1)
      ray_session.check_processes()
      if time.monotonic() > deadline:
        break
    if len(self.workers) < needed:
      raise worker_error.WorkerError(
        f'{needed} workers must start within {_START_SECONDS} seconds, found'
        f' {len(self.workers)} that did.'
      )
    self._started = True
    return list(self.workers)

  def results(
    self,
    pending: Mapping[Any, Worker],
    follow: Callable[[Any], tuple[Any, Worker] | None],
  ) -> Iterator[tuple[Any, Any]]:
    """The results of calls, as they come.

    Args:
      pending: Reference to the result -> the worker that was called.
      follow: Gets each reference when its result is there. Returns None for the
        result itself, or makes a call that needs it, and returns its reference
        and worker. A call that is made earlier would wait in the way of others.

    Yields:
      A reference and its result.

    Raises:
      LostWorkersError: If a worker is lost; after the results of the others.
      WorkerError: If a worker ran out of memory, or cannot make a call.
    """
    waiting, reasons = dict(pending), []
    check_at = time.monotonic() + self._timeout / 2
    while waiting:
      seconds = max(0.0, check_at - time.monotonic())
      ready, _ = ray.wait(list(waiting), timeout=seconds, fetch_local=False)
      for reference in ready:
        worker = waiting.pop(reference)
        next_call = follow(reference)
        if next_call is not None:
          waiting[next_call[0]] = next_call[1]
          continue
        try:
          result = ray.get(reference)
        except exceptions.RayError as error:
          reasons.append(sentence(error))
          self._check(worker, error)
        else:
          yield reference, result
      if time.monotonic() >= check_at:
        for worker in self._find_silent(set(waiting.values())):
          reasons.append(f'no answer in {self._timeout:g} seconds')
          self._lose(worker, reasons[-1])
          waiting = {r: w for r, w in waiting.items() if w is not worker}
        check_at = time.monotonic() + self._timeout / 2
    if reasons:
      raise LostWorkersError(reasons[0])

  def forget_program(self, number: int) -> None:
    """Lets the workers forget a computation when they are called next."""
    for worker in list(self.workers):
      if number in worker.programs:
        worker.programs.discard(number)
        worker.unused_programs.append(number)

  def is_connected(self) -> bool:
    """Returns whether Ray runs, and its session is that of the workers."""
    return ray.is_initialized() and _session() == self._session

  def _check_connected(self):
    if not self.is_connected():
      raise worker_error.WorkerError(
        'The Ray of an execution context must run, found one that has ended:'
        ' call `runtime.set_execution_context` again.'
      )
    ray_session.check_processes()

  def close(self) -> None:
    """Ends the workers."""
    if self.is_connected():
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
        worker.address, worker.process = ray.get(reference)
      except exceptions.RayError as error:
        _logger.warning('A worker does not start: %s', sentence(error))
        self._failed_starts += 1
        if self._failed_starts < _FAILED_STARTS:
          self._start()
      else:
        self._failed_starts = 0
        self.workers.append(worker)

  def _find_silent(self, workers: Iterable[Worker]) -> list[Worker]:
    """The workers that do not answer while they work."""
    self._check_connected()  # Ray would start by itself.
    asked = {worker.actor.ping.remote(): worker for worker in workers}
    _, silent = ray.wait(
      list(asked), num_returns=len(asked), timeout=self._timeout / 2
    )
    return [asked[reference] for reference in silent]

  def _check(self, worker, error):
    """Finds out why a call failed: perhaps only for the loss of another."""
    if isinstance(error, exceptions.RayTaskError):
      if not isinstance(error.cause, exceptions.RayError):
        raise worker_error.WorkerError(
          'A worker must be able to make its calls, found'
          f' {type(error.cause).__name__}: {sentence(error.cause)}'
        ) from error
    elif isinstance(error, exceptions.OutOfMemoryError):
      self._lose(worker, 'out of memory')
      raise worker_error.WorkerError(
        'Workers must have the memory that their clients need, found that Ray'
        f' ended {_describe_worker(worker)} as the memory there was nearly'
        ' full; fewer workers or CPUs of each, and smaller clients, need less.'
      ) from error
    if not self._is_alive(worker):
      self._lose(worker, sentence(error))

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
      'The cluster lost %s, its clients run on other workers: %s',
      _describe_worker(worker),
      reason,
    )
    with contextlib.suppress(exceptions.RayError):
      ray.kill(worker.actor)
    self._start()


def _session() -> tuple[str, str]:
  """Distinguishes a connection to a Ray from all others of this process."""
  found = ray.get_runtime_context()
  return found.get_node_id(), found.get_job_id()


def _environment() -> dict[str, str]:
  """What TensorFlow reads in a worker when it is imported."""
  given = {_ONEDNN: os.environ[_ONEDNN]} if _ONEDNN in os.environ else {}
  return {'TF_CPP_MIN_LOG_LEVEL': '3', **given}


def _check_nodes(num_workers, cpus, gpus):
  """Raises unless the nodes, empty, could have all workers."""
  fit = 0
  for node in ray.nodes():
    if node['Alive']:
      has = node['Resources']
      places = has.get('CPU', 0) // cpus
      if gpus:
        places = min(places, has.get('GPU', 0) // gpus)
      fit += int(places)
  if fit < num_workers:
    raise worker_error.WorkerError(
      f'The nodes of Ray must have places for {num_workers} workers of {cpus}'
      f' CPUs and {gpus:g} GPUs each, found {fit}.'
    )


def _describe_worker(worker: Worker) -> str:
  return (
    f'worker {worker.number} (process {worker.process} at {worker.address})'
  )


def sentence(error: Exception) -> str:
  """The message of Ray's error in one line."""
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  return lines[0] if lines else type(error).__name__
