"""Errors of a run that its user can fix; each message is one sentence."""

from collections.abc import Iterator
import contextlib
import errno
import os

import tensorflow as tf

from tff_fair import plugins
from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers.runs import user_callbacks


class RunError(RuntimeError):
  """The run cannot start or continue."""


class DivergedError(RunError):
  """The run trained nothing, or its results are no longer finite."""


USER_ERRORS = (
  RunError,
  user_callbacks.CallbackError,
  plugins.PluginError,
  runtime.WorkerError,
  tasks.DataNotFoundError,
  tasks.DataDamagedError,
  tasks.DataDiffersError,
)


def diverged(failure: object) -> DivergedError:
  """Returns the error of a run that has diverged."""
  return DivergedError(
    f'the run has diverged: {failure}; a lower learning rate may help, in a'
    ' new --output_dir.'
  )


@contextlib.contextmanager
def as_os_errors() -> Iterator[None]:
  """A context that raises an error of TensorFlow's files as an `OSError`."""
  try:
    yield
  except tf.errors.OpError as error:
    full = isinstance(error, tf.errors.ResourceExhaustedError)
    code = errno.ENOSPC if full else errno.EIO
    # Some messages begin with the name of a graph's node, in braces.
    path = error.message.partition(';')[0].rpartition('}} ')[2]
    raise OSError(code, os.strerror(code), path) from error
