"""Leaves lines out of what libraries write to the standard error output."""

from collections.abc import Iterator
import contextlib
import os
import re
import tempfile
import threading

_STDERR = 2
_lock = threading.Lock()


@contextlib.contextmanager
def left_out(pattern: re.Pattern[bytes]) -> Iterator[None]:
  """A context in which lines that begin with a pattern are left out.

  Other lines appear at the end of the context.

  Args:
    pattern: The pattern.
  """
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
        if not pattern.match(line):
          os.write(_STDERR, line)
