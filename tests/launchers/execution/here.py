"""A pool whose workers are this process: nothing to start, all to see."""

from concurrent import futures

from tff_fair.launchers.execution import pool
from tff_fair.launchers.execution import worker


class Pool(pool.Pool):
  """Does what is submitted at once."""

  def __init__(self, *arguments, **options):
    super().__init__(*arguments, **options)
    worker._signals, worker._threads = self._signals, 1

  def _submit(self, call, *arguments):
    future = futures.Future()
    try:
      future.set_result(call(*arguments))
    except Exception as error:  # As an executor does.
      future.set_exception(error)
    return future
