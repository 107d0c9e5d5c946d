"""Ctrl-C and SIGTERM end a run after the current round, not within it.

An exception that a signal raises in the middle of TensorFlow's own code comes
out of it as another one, or not at all.
"""

import os
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTE = b'\nstopping after this round; press again to stop at once\n'


class GracefulStop:
  """A context in which the first signal is noted and the second one acts.

  To be entered in the main thread, as Python demands of signal handlers.

  Attributes:
    is_requested: Whether a signal has arrived.
  """

  def __init__(self):
    self.is_requested = False
    self._handlers = {}

  def __enter__(self) -> 'GracefulStop':
    self._handlers = {n: signal.signal(n, self._note) for n in _SIGNALS}
    return self

  def __exit__(self, *exception):
    self._restore()

  def _note(self, number, frame):
    self.is_requested = True
    self._restore()
    # Not `print`, which fails if it is what the signal has interrupted.
    os.write(2, _NOTE)

  def _restore(self):
    for number, handler in self._handlers.items():
      signal.signal(number, handler)
