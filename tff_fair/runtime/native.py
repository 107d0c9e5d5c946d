"""TFF's own local C++ worker, tied to the life of this process.

`tff.backends.native` starts the same worker, but leaves it running when Python
ends: the worker then holds Python's output open, and whoever reads that through
a pipe waits for ever. Here the worker is the child of a shell that waits on a
pipe from Python; the pipe closes when Python ends, by return, exception, signal
or `kill -9`, and the shell then ends the worker.
"""

import atexit
import importlib.resources
import os
import subprocess
import time

import grpc
import portpicker
import tensorflow_federated as tff

# Waits for the end of its input, then ends the worker it has started.
_GUARD = '"$0" "$@" </dev/null & cat >/dev/null; kill -KILL $!; wait'
_START_SECONDS = 60
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

  Returns:
    A `tff.framework.SyncExecutionContext`.
  """
  worker = _Worker()

  def create_executor(cardinalities):
    executor = tff.framework.RemoteExecutor(worker.stub())
    executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
    return executor

  return _NativeContext(
    tff.framework.ResourceManagingExecutorFactory(create_executor),
    tff.backends.native.desugar_and_transform_to_native,
    transform_args=tff.tensorflow.transform_args,
    transform_result=tff.tensorflow.transform_result,
  )


def stop_workers() -> None:
  """Ends every worker that this process has started."""
  for worker in tuple(_running):
    worker.stop()


# The guard would end the worker anyway; this waits until it has.
atexit.register(stop_workers)


class _NativeContext(tff.framework.SyncExecutionContext):
  """Reports a failed computation in one line."""

  def invoke(self, comp, arg):
    """Executes `comp`; see `tff.framework.SyncContext`."""
    try:
      return super().invoke(comp, arg)
    except grpc.RpcError as error:
      # The rest of the message is the compiled computation.
      line = error.details().splitlines()[0]
      raise RuntimeError(f"TFF's worker: {line}") from error


class _Worker:
  """One worker process and the connection to it."""

  def __init__(self):
    self._process = None
    self._stub = None

  def stub(self) -> tff.framework.RemoteExecutorGrpcStub:
    """The connection, to a worker that runs."""
    if self._stub is None or not self._stub.is_ready:
      self.stop()
      self._start()
    return self._stub

  def stop(self) -> None:
    """Ends the worker and waits for it."""
    if self._process is not None:
      self._process.stdin.close()
      self._process.wait()
    self._process = self._stub = None
    _running.discard(self)

  def _start(self):
    port = portpicker.pick_unused_port()
    binary = importlib.resources.files(tff) / 'data' / 'worker_binary'
    self._process = subprocess.Popen(
      ['sh', '-c', _GUARD, str(binary), f'--port={port}'],
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      # Errors come back through the connection; level 3 leaves fatal ones.
      env=os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3'},
      start_new_session=True,  # Ctrl-C is for Python: it may have work to save.
    )
    _running.add(self)
    channel = grpc.insecure_channel(f'localhost:{port}', _CHANNEL_OPTIONS)
    self._stub = tff.framework.RemoteExecutorGrpcStub(channel)
    deadline = time.monotonic() + _START_SECONDS
    while not self._stub.is_ready:
      if self._process.poll() is not None or time.monotonic() > deadline:
        self.stop()
        raise RuntimeError(
          f"TFF's worker must answer within {_START_SECONDS} seconds of its"
          f' start, found that {binary} does not.'
        )
      time.sleep(_POLL_SECONDS)
