"""TFF's local C++ worker, which ends with this process."""

import atexit

import portpicker
import tensorflow_federated as tff

from tff_fair import worker_process
from tff_fair.runtime import secure_sums
from tff_fair.runtime import worker_error
from tff_fair.runtime import workers

_running: set['_Worker'] = set()


def create_native_context() -> tff.framework.SyncExecutionContext:
  """A context that executes in a C++ worker, started at the first execution.

  The worker listens on all interfaces, which its program cannot be told not to:
  docs/runtimes.md says how to keep others from its port.

  Returns:
    A `tff.framework.SyncExecutionContext`. It raises a `WorkerError` if the
    worker does not start.
  """
  connection = workers.Connection("TFF's worker", _Worker().stub)
  return connection.create_context(_compile)


def stop_workers() -> None:
  """Ends every worker that this process has started."""
  for worker in tuple(_running):
    worker.stop()


# The worker ends in any case; this waits for it.
atexit.register(stop_workers)


def _compile(comp):
  return tff.backends.native.desugar_and_transform_to_native(
    secure_sums.replace_secure_sums(comp)
  )


class _Worker:
  """One worker and the connection to it; both are replaced if it dies."""

  def __init__(self):
    self._process = None
    self._stub = None

  def stub(self) -> tff.framework.RemoteExecutorGrpcStub:
    """The connection to a running worker."""
    if self._stub is None or not self._stub.is_ready:
      self.stop()
      self._start()
    return self._stub

  def stop(self) -> None:
    """Ends the worker and waits for it."""
    if self._process is not None:
      self._process.stop()
    self._process = self._stub = None
    _running.discard(self)

  def _start(self):
    port = portpicker.pick_unused_port()
    try:
      self._process = worker_process.WorkerProcess(port)
    except RuntimeError as error:
      raise worker_error.WorkerError(str(error)) from error
    _running.add(self)
    self._stub = workers.connect(f'localhost:{port}')
