"""Leaves out Grappler's lines about each graph that TFF's compiler optimises.

TensorFlow reads TF_CPP_MIN_LOG_LEVEL when it is imported, which most programs
do before they import this package, so to set the variable here is too late. JAX
sets it to 1, later still; 0 is the user's wish.
"""

from collections.abc import Iterator
import contextlib
import os
import re
import tempfile
import threading

_STDERR = 2
_GRAPPLER = re.compile(rb'^\S+ \S+: \w tensorflow/core/grappler/')
_lock = threading.Lock()


@contextlib.contextmanager
def left_out() -> Iterator[None]:
  """A context in which Grappler's lines are left out.

  There is one for each start, and for each graph that it leaves as it is.
  Other lines of the standard error output appear at the end of the context.
  With TF_CPP_MIN_LOG_LEVEL=0 nothing is left out.
  """
  if os.environ.get('TF_CPP_MIN_LOG_LEVEL') == '0':
    yield
    return
  # One at a time, since the output belongs to the process.
  with _lock, tempfile.TemporaryFile() as log:
    stderr = os.dup(_STDERR)
    os.dup2(log.fileno(), _STDERR)
    try:
      yield
    finally:
      os.dup2(stderr, _STDERR)
      os.close(stderr)
      log.seek(0)
      for line in log:
        if not _GRAPPLER.match(line):
          os.write(_STDERR, line)
