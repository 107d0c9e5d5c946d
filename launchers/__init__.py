"""Command-line programs."""

import os
import signal
import sys

from tff_fair.launchers import interrupts

# What Python sets there while it looks for the program of `python -m`, or the
# name of our command.
if os.path.basename(sys.argv[0]) in ('-m', 'tff-fair'):
  interrupts.end_at_once(signal.SIGINT)
