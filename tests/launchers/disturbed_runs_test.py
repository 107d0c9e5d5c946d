"""Runs of which a process is stopped or killed, at random moments.

`python -m tests.launchers.disturbed_runs` tries more of them.
"""

import random
import signal

import pytest

from tests.launchers import disturbed_runs

pytestmark = pytest.mark.full


@pytest.mark.parametrize('runtime', ['device', 'cluster'])
def test_what_becomes_of_a_disturbed_run(runtime, tmp_path):
  run = disturbed_runs.Disturbed(tmp_path, runtime, rounds=20)
  rng = random.Random(runtime)
  for number in (signal.SIGKILL, signal.SIGSTOP):
    print(run.disturb(number, rng))
