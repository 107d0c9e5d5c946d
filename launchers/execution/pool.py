"""Trains runs in worker processes."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent import futures
import multiprocessing
import os
import pathlib
import signal
import sys
import time
from typing import Any

import tqdm

from tff_fair import stopped
from tff_fair.launchers.execution import worker
from tff_fair.launchers.runs import planned_run

# Runs that differ in their seeds alone.
Group = Sequence[planned_run.PlannedRun]
# Seconds between two looks at the progress.
_MOMENT = 0.5


class PoolError(RuntimeError):
  """The program has to end; the message is one sentence."""


class Pool:
  """Worker processes; a context that ends them, after their current round.

  They are started anew, not forked: TensorFlow does not survive a fork. Each
  has its share of the cores.

  Attributes:
    total: The rounds from the start to the end, for the bar on a terminal.
  """

  def __init__(
    self,
    size: int,
    plugin_names: Sequence[str] = (),
    budget: float | None = None,
  ):
    """Starts no process yet, but the clock of `budget`, in seconds."""
    spawn = multiprocessing.get_context('spawn')
    self._signals = worker.Signals(
      rounds=spawn.Value('q', 0),
      stop=spawn.Event(),
      reports=spawn.SimpleQueue(),
      deadline=None if budget is None else time.monotonic() + budget,
    )
    self._size = size
    self._processes = {}  # Id -> process, also of those that have ended.
    self.total = 0
    self._executor = futures.ProcessPoolExecutor(
      size,
      mp_context=spawn,
      initializer=worker.start,
      initargs=(
        self._signals,
        tuple(plugin_names),
        max(1, (os.cpu_count() or 1) // size),
      ),
    )

  def __enter__(self) -> 'Pool':
    return self

  def __exit__(self, kind, *exception):
    self._signals.stop.set()
    if kind is KeyboardInterrupt:
      print('stopping after the current rounds', file=sys.stderr, flush=True)
    self._executor.shutdown(cancel_futures=True)

  def warm_up(self) -> None:
    """Starts all processes at once; without it they start one by one.

    Not done on entry: Ctrl-C there would not reach `__exit__`.
    """
    for _ in range(self._size):
      self._submit(worker.warm_up)

  def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of a module in a worker, and returns its result.

    Raises:
      PoolError: If the result is a `worker.Report`, with its sentence.
    """
    found = self._result(self._submit(function, *arguments))
    if isinstance(found, worker.Report):
      raise PoolError(found.sentence)
    return found

  def train(
    self,
    queue: deque[Group],
    on_end: Callable[[pathlib.Path, worker.Report], None],
    measure: bool = False,
  ) -> None:
    """Trains what is queued until nothing is left.

    Args:
      queue: Groups of runs, taken from the left as processes get free. `on_end`
        may change it.
      on_end: Called for each run that has ended, with its directory and its
        report; also for those that the deadline has kept from starting.
      measure: See `worker.train`.

    Raises:
      PoolError: If a run fails or a worker process dies; all can be resumed.
    """
    running = set()
    with tqdm.tqdm(disable=None, unit='round', smoothing=0.02) as bar:
      while queue or running:
        while queue and len(running) < self._size:
          running.add(self._submit(worker.train, queue.popleft(), measure))
        ended, running = futures.wait(
          running, _MOMENT, return_when=futures.FIRST_COMPLETED
        )
        # Before the results: a worker reports its runs first.
        for output_dir, report in self._take_reports():
          if report.kind == worker.FAILED:
            raise PoolError(report.sentence)
          on_end(output_dir, report)
        for future in ended:
          self._result(future)
        bar.total = self.total
        bar.n = min(self._signals.rounds.value, self.total)
        bar.refresh()

  def _take_reports(self) -> Iterator[tuple[pathlib.Path, worker.Report]]:
    while not self._signals.reports.empty():
      yield self._signals.reports.get()

  def _submit(self, call, *arguments) -> futures.Future:
    """Queues a call, and starts worker processes if needed.

    They inherit the blocked SIGINT: otherwise Ctrl-C would also interrupt them
    before `worker.start` runs.
    """
    held = []
    # The mask holds it back in this thread alone; another may take it.
    handler = signal.signal(signal.SIGINT, lambda *_: held.append(True))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      submitted = self._executor.submit(call, *arguments)
      for process in multiprocessing.active_children():
        self._processes[process.pid] = process
        stopped.watch(process.pid, 'A worker')
      return submitted
    finally:
      signal.pthread_sigmask(signal.SIG_SETMASK, before)
      signal.signal(signal.SIGINT, handler or signal.default_int_handler)
      # Not `raise_signal`: to `interrupts.end_in_any_case`, which ends the
      # program some seconds later, that would be a second Ctrl-C.
      if held and callable(handler):
        handler(signal.SIGINT, None)

  def _result(self, future) -> Any:
    try:
      return future.result()
    except futures.process.BrokenProcessPool:
      self._executor.shutdown()  # Waits for the exit statuses.
      how = _how_ended([p.exitcode for p in self._processes.values()])
      raise PoolError(f'a worker process {how}') from None


def say(text: str) -> None:
  """Prints a line, above the bar."""
  tqdm.tqdm.write(text)
  sys.stdout.flush()


def _how_ended(statuses: Collection[int | None]) -> str:
  """How the first of the workers ended, of all their exit statuses."""
  # The executor terminates the others.
  found = {*statuses} - {None, -signal.SIGTERM}
  again = 'run the same command again to resume'
  status = max(found, default=-1)
  if status >= 0:
    return (
      f'has ended without a word, with exit status {status}, as if a plug-in or'
      f' a library had called os._exit; {again}.'
    )
  by = f' by signal {-status}' if found else ''
  return (
    f'died{by}, possibly because it ran out of memory; {again}, with a lower'
    ' --parallel.'
  )
