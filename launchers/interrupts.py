"""Signal handling: end at once during start-up, raise once work has begun.

An import takes seconds. An exception in the middle of one prints a long
traceback, or comes out as another one, or is lost in the code of an extension.
"""

import functools
import os
import signal
import sys
import threading

# Seconds; destructors are short.
_MOMENT = 0.02
_SENTENCE = b'Error: interrupted.\n'


def end_at_once(*numbers: int) -> None:
  """Makes signals end the program in one sentence, with exit code 1.

  One that is ignored, as in the background, stays so.
  """
  for number in numbers:
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, _end)


def raise_again() -> None:
  """Makes these signals raise KeyboardInterrupt, also out of a destructor."""
  for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) == _end:
      signal.signal(number, signal.default_int_handler)
      sys.unraisablehook = functools.partial(_raise_later, sys.unraisablehook)


def ignore() -> None:
  """Makes these signals have no effect, for a program that has ended.

  What is left, such as ending the workers, takes a moment; an exception in the
  midst of it would print a traceback, and leave workers behind.
  """
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)


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
