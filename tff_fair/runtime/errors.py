"""Errors of the runtimes."""

import grpc


class WorkerError(RuntimeError, grpc.RpcError):
  """A worker cannot be started, reached, or replaced; the message says why.

  TFF retries after connection errors without end, but not after this error.
  """
