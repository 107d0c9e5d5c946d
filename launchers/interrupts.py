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
import time

from tff_fair import stopped

# Seconds; destructors are short.
_MOMENT = 0.02
_SENTENCE = b'Error: interrupted.\n'
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# After a second signal; whoever presses a key twice does not wait for long.
_END_SECONDS = 8.0
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


def end_in_any_case() -> None:
  """Makes a second signal end the program within ten seconds.

  It may be in code that never comes back to Python, where no handler runs, such
  as a wait for a process that does not answer. Processes that it has started
  are ended, too. Call it in the main thread.
  """
  reader, writer = os.pipe()
  os.set_blocking(writer, False)
  signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
  threading.Thread(target=_count, args=(reader,), daemon=True).start()


def ignore() -> None:
  """Makes these signals have no effect, for a program that has ended.

  What is left, such as ending the workers, takes a moment; an exception in the
  midst of it would print a traceback, and leave workers behind. But see
  `end_in_any_case`: here the first signal is enough.
  """
  _is_ending.set()
  for number in _SIGNALS:
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, lambda number, frame: None)


_is_ending = threading.Event()


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


def _count(reader):
  """Reads the signals as they come, in a thread of its own."""
  count = 0
  while count < (1 if _is_ending.is_set() else 2):
    count += sum(number in _SIGNALS for number in os.read(reader, 1))
  time.sleep(_END_SECONDS)
  stopped.end_all()
  os.write(2, _SENTENCE)
  os._exit(1)


def _end(number, frame):
  del number, frame  # Unused.
  # Not `print`, which fails if the signal has interrupted another `print`.
  os.write(2, _SENTENCE)
  os._exit(1)
