"""Trains the runs of a comparison in worker processes."""

from collections.abc import Callable, Sequence
from concurrent import futures
import multiprocessing
import signal
import sys
from typing import Any

from tff_fair.launchers.comparison import budget
from tff_fair.launchers.comparison import worker
from tff_fair.launchers.runs import planned_run

# Seconds between two looks at the progress.
_MOMENT = 0.5


class PoolError(RuntimeError):
  """The comparison has to end; the message is one sentence."""


class Pool:
  """Worker processes; a context that ends them, after their current round.

  They are started anew, not forked: TensorFlow does not survive a fork.
  """

  def __init__(self, size: int, plugin_names: Sequence[str]):
    """Starts no process yet.

    Args:
      size: Number of processes.
      plugin_names: `--plugins`, which every process loads.
    """
    spawn = multiprocessing.get_context('spawn')
    self._signals = worker.Signals(spawn.Value('q', 0), spawn.Event())
    self._size = size
    self._executor = futures.ProcessPoolExecutor(
      size,
      mp_context=spawn,
      initializer=worker.start,
      initargs=(self._signals, tuple(plugin_names)),
    )

  def __enter__(self) -> 'Pool':
    return self

  def __exit__(self, kind, *exception):
    self._signals.stop.set()
    if kind is KeyboardInterrupt:
      print('stopping after the current rounds', file=sys.stderr, flush=True)
    self._executor.shutdown(cancel_futures=True)

  def warm_up(self) -> None:
    """Starts all processes, which otherwise start one after the other.

    Not done on entry: Ctrl-C there would not reach `__exit__`.
    """
    for _ in range(self._size):
      self._submit(worker.warm_up)

  def describe(self, runs: Sequence[planned_run.PlannedRun]) -> dict[str, Any]:
    """What the data of runs are, see `worker.describe`.

    Args:
      runs: A run for each seed.

    Raises:
      PoolError: If a task cannot be built.
    """
    found = _result(self._submit(worker.describe, runs))
    if isinstance(found, worker.Report):
      raise PoolError(found.sentence)
    return found

  def time(
    self, runs: Sequence[planned_run.PlannedRun]
  ) -> dict[str, budget.Cost]:
    """Times a few rounds of runs, as many at a time as in the comparison.

    Args:
      runs: A run of each method, in a directory of its own.

    Returns:
      Method -> its seconds; methods that cannot run on the task are left out.

    Raises:
      PoolError: If a run fails.
    """
    queued = {
      run.settings['algorithm']: self._submit(worker.time_rounds, run)
      for run in runs
    }
    found = {method: _result(future) for method, future in queued.items()}
    for cost in found.values():
      if isinstance(cost, worker.Report) and cost.kind == worker.FAILED:
        raise PoolError(cost.sentence)
    return {m: c for m, c in found.items() if isinstance(c, budget.Cost)}

  def submit(
    self, runs: Sequence[planned_run.PlannedRun]
  ) -> 'futures.Future[worker.Report]':
    """Queues runs of one method that differ in their seeds.

    Args:
      runs: The runs, trained one after the other in one process.
    """
    return self._submit(worker.train, runs)

  def follow(
    self,
    pending: set[futures.Future],
    on_rounds: Callable[[int], None],
    on_end: Callable[[futures.Future, worker.Report], Sequence[futures.Future]],
  ) -> None:
    """Waits until all that is queued has ended.

    Args:
      pending: What `submit` has returned.
      on_rounds: Called with the number of rounds that have been done so far.
      on_end: Called for each that has ended, with its report; returns what it
        has queued.

    Raises:
      PoolError: If a run fails or a worker process dies.
    """
    while pending:
      ended, pending = futures.wait(
        pending, _MOMENT, return_when=futures.FIRST_COMPLETED
      )
      on_rounds(self._signals.rounds.value)
      for future in ended:
        if future.cancelled():
          continue
        report = _result(future)
        if report.kind == worker.FAILED:
          raise PoolError(report.sentence)
        pending.update(on_end(future, report))

  def _submit(self, call, *arguments) -> futures.Future:
    """Queues a call, for which processes may be started.

    They inherit that Ctrl-C is held back, which is for the program: until
    `worker.start` it would reach them, too.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      return self._executor.submit(call, *arguments)
    finally:
      signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _result(future) -> Any:
  try:
    return future.result()
  except futures.process.BrokenProcessPool:
    raise PoolError(
      'a worker process has ended, perhaps for want of memory; run the same'
      ' command again to resume, with a lower --parallel.'
    ) from None
