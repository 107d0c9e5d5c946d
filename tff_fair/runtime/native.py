"""TFF's local C++ worker, which ends with this process."""

import atexit
import time

import grpc
import portpicker
import tensorflow_federated as tff

from tff_fair.runtime import client_reference
from tff_fair.runtime import grappler_log
from tff_fair.runtime import keeping_executor
from tff_fair.runtime import secure_sums
from tff_fair.runtime import worker_error
from tff_fair.runtime import worker_process

_CONNECT_SECONDS = 20
_POLL_SECONDS = 0.05
_MESSAGE_BYTES = 2_000_000_000
_CHANNEL_OPTIONS = [
  ('grpc.max_message_length', _MESSAGE_BYTES),
  ('grpc.max_receive_message_length', _MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MESSAGE_BYTES),
]

_running: set['_Worker'] = set()


def create_native_context() -> tff.framework.SyncExecutionContext:
  """A context that executes in a C++ worker, started at the first execution.

  The worker listens on all interfaces, which its program cannot be told not to:
  docs/runtimes.md says how to keep others from its port.
  """
  return _NativeContext(_Worker())


def stop_workers() -> None:
  """Ends every worker that this process has started."""
  for worker in tuple(_running):
    worker.stop()


# The worker ends in any case; this waits for it.
atexit.register(stop_workers)


class _NativeContext(tff.framework.SyncExecutionContext):
  """See `create_native_context`."""

  def __init__(self, worker) -> None:
    def create_executor(cardinalities):
      executor = keeping_executor.KeepingExecutor(worker.stub())
      executor.set_cardinalities(
        {tff.CLIENTS: cardinalities.get(tff.CLIENTS, 0)}
      )
      return executor

    super().__init__(
      tff.framework.ResourceManagingExecutorFactory(create_executor),
      _compile,
      transform_args=tff.tensorflow.transform_args,
      transform_result=tff.tensorflow.transform_result,
    )

  def invoke(self, comp, arg):
    """Executes `comp`; see `tff.framework.SyncContext`."""
    try:
      return super().invoke(comp, client_reference.load_all(arg))
    except worker_error.WorkerError:
      raise
    except grpc.RpcError as error:
      # The other lines are the compiled computation.
      line = error.details().splitlines()[0]
      raise RuntimeError(f"TFF's worker: {line}") from error


def _compile(comp):
  with grappler_log.left_out():
    return tff.backends.native.desugar_and_transform_to_native(
      secure_sums.replace_secure_sums(comp)
    )


class _Worker:
  """One worker and the connection to it; both are replaced if it dies."""

  def __init__(self) -> None:
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
    self._stub = _connect(f'localhost:{port}')


def _connect(address) -> tff.framework.RemoteExecutorGrpcStub:
  """Waits until a worker answers."""
  channel = grpc.intercept_channel(
    grpc.insecure_channel(address, _CHANNEL_OPTIONS), _NamedErrors(address)
  )
  stub = tff.framework.RemoteExecutorGrpcStub(channel)
  deadline = time.monotonic() + _CONNECT_SECONDS
  while not stub.is_ready:
    if time.monotonic() > deadline:
      channel.close()
      raise worker_error.WorkerError(
        f'The worker at {address} must answer within {_CONNECT_SECONDS}'
        ' seconds, found no answer.'
      )
    time.sleep(_POLL_SECONDS)
  return stub


class _GivenBack:
  """The answer of a worker that is gone: it holds no values."""

  def result(self):
    """The response, in which nobody is interested."""
    return None


class _NamedErrors(grpc.UnaryUnaryClientInterceptor):
  """Adds to gRPC's errors which worker is gone."""

  def __init__(self, address) -> None:
    self._address = address

  def intercept_unary_unary(self, continuation, client_call_details, request):
    """Sends the request; see `grpc.UnaryUnaryClientInterceptor`."""
    call = continuation(client_call_details, request)
    if call.code() == grpc.StatusCode.UNAVAILABLE:
      # Values are given back at any time, also when Python ends.
      if 'Dispose' in str(client_call_details.method):
        return _GivenBack()
      raise worker_error.WorkerError(
        f'The worker at {self._address} must run until the computation ends,'
        f' found that it is gone ({call.details()}).'
      )
    return call
