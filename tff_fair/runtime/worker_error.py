"""The error that runtimes raise when a process that they use is gone."""

import grpc


class WorkerError(RuntimeError, grpc.RpcError):
  """A worker cannot be reached; the message names it.

  TFF retries after connection errors without end, but not after this error.
  """
