"""Command-line programs."""

import signal
import sys

from tff_fair.launchers import interrupts

# What Python sets there while it looks for the program of `python -m`.
if sys.argv[0] == '-m':
  interrupts.end_at_once(signal.SIGINT)
