"""The native runtime, in processes of its own: what is left when they end?"""

import contextlib
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests import forked

# Prints the ids of the processes it has started: the guard and the worker.
_START = """
import os, sys, time
import numpy as np
import psutil
import tensorflow_federated as tff
from tff_fair import runtime
runtime.set_execution_context('native')

@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
def total(values):
  return tff.federated_sum(values)

assert total([1, 2, 3]) == 6
children = psutil.Process().children(recursive=True)
print(*[child.pid for child in children], flush=True)
"""


def _start(script):
  return forked.start(code=_START + script)


def _lines(process, number):
  """The first lines of what it writes, as soon as there are so many."""
  deadline = time.monotonic() + 120
  while process.stdout.count('\n') < number:
    assert process.returncode is None and time.monotonic() < deadline
    time.sleep(0.02)
  return process.stdout.splitlines()


def _children(line):
  """The processes named in the first line, among them a worker."""
  assert len(line.split()) >= 2
  children = []
  for pid in map(int, line.split()):
    with contextlib.suppress(psutil.NoSuchProcess):
      children.append(psutil.Process(pid))
  return children


def _assert_gone(children):
  # A process that has ended may wait, as a zombie, for its parent to ask.
  _, left = psutil.wait_procs(children, timeout=10)
  running = [p for p in left if p.status() != psutil.STATUS_ZOMBIE]
  assert not running


def test_nobody_holds_the_output_of_a_fresh_python_after_the_end():
  process = subprocess.Popen(
    [sys.executable, '-c', _START],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
  )
  # Ends only when nobody holds the pipe any more: a worker must not.
  output, _ = process.communicate(timeout=120)
  assert process.returncode == 0
  _assert_gone(_children(output))


@pytest.mark.parametrize(
  ('script', 'code'),
  [
    ('', 0),
    ('raise ValueError', 1),
    ('sys.exit(3)', 3),
    ('os._exit(4)', 4),
  ],
  ids=['return', 'exception', 'exit', 'abrupt_exit'],
)
def test_no_worker_is_left_after_the_end(script, code):
  process = _start(script)
  assert process.wait(120) == code
  _assert_gone(_children(process.stdout))


@pytest.mark.parametrize(
  'number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
)
def test_no_worker_is_left_after_a_signal(number):
  process = _start('time.sleep(100)')
  children = _children(_lines(process, 1)[0])
  assert any(child.name() == 'worker_binary' for child in children)
  process.send_signal(number)
  assert process.wait(30) != 0
  _assert_gone(children)


def test_no_worker_is_left_after_another_context_is_set():
  process = _start(
    "runtime.set_execution_context('native')\nprint('set', flush=True)\n"
    'time.sleep(100)'
  )
  first, second = _lines(process, 2)
  assert second == 'set'
  _assert_gone(_children(first))
  process.send_signal(signal.SIGKILL)
  process.wait(30)


def test_a_killed_worker_is_replaced():
  process = _start(
    "[c.kill() for c in children if c.name() == 'worker_binary']\n"
    'time.sleep(1)\nprint(total([4, 5]), flush=True)'
  )
  assert process.wait(120) == 0
  assert process.stdout.splitlines()[1:] == ['9']
