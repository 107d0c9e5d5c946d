"""Command-line programs."""

import os
import signal
import sys

# What Python sets there while it looks for the program of `python -m`, or the
# name of our command.
_IS_PROGRAM = os.path.basename(sys.argv[0]) in ('-m', 'tff-fair')

try:
  from tff_fair.launchers import interrupts
except ImportError as error:  # Of another Python, and nothing is installed.
  if not _IS_PROGRAM:
    raise
  sys.exit(f'Error: {error}')

if _IS_PROGRAM:
  interrupts.end_at_once(signal.SIGINT)
