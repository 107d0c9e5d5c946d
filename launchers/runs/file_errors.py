"""Errors of files that TensorFlow writes, as what they are."""

from collections.abc import Iterator
import contextlib
import errno
import os

import tensorflow as tf


@contextlib.contextmanager
def as_os_errors() -> Iterator[None]:
  """A context that raises an error of TensorFlow's files as an `OSError`.

  Raises:
    OSError: In place of the error.
  """
  try:
    yield
  except tf.errors.OpError as error:
    full = isinstance(error, tf.errors.ResourceExhaustedError)
    code = errno.ENOSPC if full else errno.EIO
    # Some messages begin with the name of a graph's node, in braces.
    path = error.message.partition(';')[0].rpartition('}} ')[2]
    raise OSError(code, os.strerror(code), path) from error
