"""Signal handling: end at once during start-up, raise once work has begun.

An import takes seconds. An exception in the middle of one prints a long
traceback, or comes out as another one, or is lost in the code of an extension.
"""

from collections.abc import Iterator
import contextlib
import functools
import os
import signal
import sys
import threading

# Seconds; destructors are short.
_MOMENT = 0.02
_SENTENCE = b'Error: interrupted.\n'
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTE = b'\nstopping after this round; press again to stop at once\n'


def end_at_once(*numbers: int) -> None:
  """Makes signals end the program in one sentence, with exit code 1.

  One that is ignored, as in the background, stays so.
  """
  for number in numbers:
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, _end)


def raise_again() -> None:
  """Makes these signals raise KeyboardInterrupt, also out of a destructor."""
  for number in _SIGNALS:
    if signal.getsignal(number) == _end:
      signal.signal(number, signal.default_int_handler)
      sys.unraisablehook = functools.partial(_raise_later, sys.unraisablehook)


def ignore() -> None:
  """Makes these signals have no effect, for a program that has ended.

  What is left, such as ending the workers, takes a moment; an exception in the
  midst of it would print a traceback, and leave workers behind.
  """
  for number in _SIGNALS:
    signal.signal(number, signal.SIG_IGN)


class GracefulStop:
  """A context that records the first signal; the second raises at once.

  So a run ends after the current round: an exception that a signal raises
  inside TensorFlow's code may come out of it as another one, or be lost. Enter
  it in the main thread, as Python requires for signal handlers.

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


def _raise_later(previous_hook, lost):
  """Raises what is lost in a destructor again, when that has ended."""
  if lost.exc_type is not KeyboardInterrupt:
    previous_hook(lost)
    return
  # A signal, which also ends a wait of the main thread.
  main = threading.main_thread().ident
  timer = threading.Timer(_MOMENT, signal.pthread_kill, [main, signal.SIGINT])
  timer.daemon = True
  timer.start()


def _end(number, frame):
  del number, frame  # Unused.
  # Not `print`, which fails if the signal has interrupted another `print`.
  os.write(2, _SENTENCE)
  os._exit(1)
