"""Connections to TFF's C++ workers."""

from collections.abc import Callable, Iterator
import contextlib
import time

import grpc
import tensorflow_federated as tff

from tff_fair.runtime import client_reference
from tff_fair.runtime import keeping_executor
from tff_fair.runtime import worker_error

_CONNECT_SECONDS = 20
_POLL_SECONDS = 0.05
_MESSAGE_BYTES = 2_000_000_000
_CHANNEL_OPTIONS = [
  ('grpc.max_message_length', _MESSAGE_BYTES),
  ('grpc.max_receive_message_length', _MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MESSAGE_BYTES),
]

_DEFAULT_COMPILE = tff.backends.native.desugar_and_transform_to_native
_Compile = Callable[
  [tff.framework.ConcreteComputation], tff.framework.ConcreteComputation
]
_Stub = tff.framework.RemoteExecutorGrpcStub


class Connection:
  """The connection to one worker."""

  def __init__(self, name: str, stub_fn: Callable[[], _Stub]):
    """Connects at the first use.

    Args:
      name: The worker's name in error messages.
      stub_fn: Returns the gRPC stub of a running worker.
    """
    self._name = name
    self._stub_fn = stub_fn

  def create_executor(
    self,
    num_clients: int,
    executor_class: type[
      tff.framework.RemoteExecutor
    ] = tff.framework.RemoteExecutor,
  ) -> tff.framework.RemoteExecutor:
    """Creates an executor on the worker, for the values of a computation.

    Args:
      num_clients: Number of clients.
      executor_class: Its class.

    Returns:
      The executor.
    """
    executor = executor_class(self._stub_fn())
    executor.set_cardinalities({tff.CLIENTS: num_clients})
    return executor

  def create_context(
    self, compile_fn: _Compile = _DEFAULT_COMPILE
  ) -> tff.framework.SyncContext:
    """A context that executes in this worker.

    Args:
      compile_fn: Turns a computation into one that the worker can run.

    Returns:
      The context.
    """
    return _WorkerContext(self, compile_fn)

  @contextlib.contextmanager
  def one_line_errors(self) -> Iterator[None]:
    """Reports a failed computation in one line, as a `RuntimeError`."""
    try:
      yield
    except worker_error.WorkerError:
      raise
    except grpc.RpcError as error:
      # The other lines are the compiled computation.
      line = error.details().splitlines()[0]
      raise RuntimeError(f'{self._name}: {line}') from error


class _WorkerContext(tff.framework.SyncExecutionContext):
  """See `Connection.create_context`."""

  def __init__(self, connection, compile_fn):
    super().__init__(
      tff.framework.ResourceManagingExecutorFactory(
        lambda cardinalities: connection.create_executor(
          cardinalities.get(tff.CLIENTS, 0), keeping_executor.KeepingExecutor
        )
      ),
      compile_fn,
      transform_args=tff.tensorflow.transform_args,
      transform_result=tff.tensorflow.transform_result,
    )
    self._connection = connection

  def invoke(self, comp, arg):
    """Executes `comp`; see `tff.framework.SyncContext`."""
    with self._connection.one_line_errors():
      return super().invoke(comp, client_reference.load_all(arg))


def connect(address: str) -> tff.framework.RemoteExecutorGrpcStub:
  """Waits until a worker answers.

  Args:
    address: `host:port`.

  Returns:
    The connection.

  Raises:
    errors.WorkerError: If the worker does not answer.
  """
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


class _NamedErrors(grpc.UnaryUnaryClientInterceptor):
  """Adds to gRPC's errors which worker is gone."""

  def __init__(self, address):
    self._address = address

  def intercept_unary_unary(self, continuation, client_call_details, request):
    """Sends the request; see `grpc.UnaryUnaryClientInterceptor`."""
    call = continuation(client_call_details, request)
    if call.code() == grpc.StatusCode.UNAVAILABLE:
      raise worker_error.WorkerError(
        f'The worker at {self._address} must run until the computation ends,'
        f' found that it is gone ({call.details()}).'
      )
    return call
