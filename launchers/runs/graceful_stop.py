"""Ctrl-C and SIGTERM end a run after the current round, not within it.

An exception that a signal raises inside TensorFlow's code may come out of it as
another one, or be lost.
"""

from collections.abc import Iterator
import contextlib
import os
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTE = b'\nstopping after this round; press again to stop at once\n'


class GracefulStop:
  """A context that records the first signal; the second raises at once.

  Enter it in the main thread, as Python requires for signal handlers.

  Attributes:
    is_requested: Whether a signal has arrived.
  """

  def __init__(self):
    self.is_requested = False
    self._is_postponed = False
    self._handlers = {}

  def __enter__(self) -> 'GracefulStop':
    self._handlers = {n: signal.signal(n, self._record) for n in _SIGNALS}
    return self

  def __exit__(self, *exception):
    for number, handler in self._handlers.items():
      signal.signal(number, handler)

  @contextlib.contextmanager
  def postponed(self) -> Iterator[None]:
    """A context of a moment in which the second signal raises nothing."""
    self._is_postponed = True
    try:
      yield
    finally:
      self._is_postponed = False

  def _record(self, number, frame):
    del number, frame  # Unused.
    if not self.is_requested:
      self.is_requested = True
      # Not `print`, which fails if the signal has interrupted another `print`.
      os.write(2, _NOTE)
    elif not self._is_postponed:
      raise KeyboardInterrupt
