"""Ctrl-C and SIGTERM as a wish: a run ends after a round, not within one.

An exception that a signal raises in the middle of TensorFlow's own code comes
out of it as another one, or not at all.
"""

import os
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTE = b'\nstopping after this round; once more stops at once\n'


class StopWish:
  """A context in which the first signal is noted, and the second one acts.

  To be entered in the main thread, as Python demands of signal handlers.

  Attributes:
    is_made: Whether there was a signal.
  """

  def __init__(self):
    self.is_made = False
    self._handlers = {}

  def __enter__(self) -> 'StopWish':
    self._handlers = {n: signal.signal(n, self._note) for n in _SIGNALS}
    return self

  def __exit__(self, *exception):
    self._restore()

  def _note(self, number, frame):
    self.is_made = True
    self._restore()
    # Not `print`, which fails if it is what the signal has interrupted.
    os.write(2, _NOTE)

  def _restore(self):
    for number, handler in self._handlers.items():
      signal.signal(number, handler)
