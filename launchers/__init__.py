"""Command-line programs."""

import os
import signal
import sys

from tff_fair.launchers import interrupts

# The installed program, and what Python sets there while it looks for the
# program of `python -m`.
if os.path.basename(sys.argv[0]) in ('tff-fair', '-m'):
  interrupts.end_at_once(signal.SIGINT)
