"""The native runtime in separate processes: which of them remain at the end?"""

import contextlib
import pathlib
import signal
import subprocess
import sys

import grpc
import portpicker
import psutil
import pytest
from tensorflow_federated.proto.v0 import executor_pb2
from tensorflow_federated.proto.v0 import executor_pb2_grpc

from tff_fair import runtime
from tff_fair.runtime import native
from tff_fair.runtime import worker_process

pytestmark = pytest.mark.full

# Prints the ids of the processes that it has started: the guard and the worker.
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

def children():
  return psutil.Process().children(recursive=True)

assert total([1, 2, 3]) == 6
print(*[child.pid for child in children()], flush=True)
"""


def _start(script, stderr=subprocess.DEVNULL):
  return subprocess.Popen(
    [sys.executable, '-c', _START + script],
    stdout=subprocess.PIPE,
    stderr=stderr,
    text=True,
  )


def _children(line):
  """The processes named in a line, among them a worker."""
  assert len(line.split()) >= 2
  children = []
  for pid in map(int, line.split()):
    with contextlib.suppress(psutil.NoSuchProcess):
      children.append(psutil.Process(pid))
  return children


def _assert_gone(children):
  # A process that has ended may wait, as a zombie, for its parent to ask.
  _, left = psutil.wait_procs(children, timeout=60)
  assert not [p for p in left if p.status() != psutil.STATUS_ZOMBIE]


def test_nothing_is_left_and_nothing_said_at_the_end(monkeypatch):
  # A user has set nothing of what conftest.py sets.
  monkeypatch.delenv('TF_CPP_MIN_LOG_LEVEL', raising=False)
  process = _start('', subprocess.PIPE)
  # Returns only when no process holds the pipe, not even a worker.
  output, errors = process.communicate(timeout=300)
  assert process.returncode == 0
  assert 'grappler' not in errors, errors
  _assert_gone(_children(output))


def test_workers_are_replaced_and_end_with_a_killed_python():
  process = _start("""
[c.kill() for c in children() if c.name() == 'worker_binary']
time.sleep(1)
print(total([4, 5]), *[child.pid for child in children()], flush=True)
runtime.set_execution_context('native')
print('set', flush=True)
assert total([1, 2]) == 3
print(*[child.pid for child in children()], flush=True)
time.sleep(100)
""")
  first = _children(process.stdout.readline())
  result, _, pids = process.stdout.readline().partition(' ')
  assert result == '9'
  second = _children(pids)
  assert process.stdout.readline() == 'set\n'
  # Setting another context ends the worker of the one before.
  _assert_gone([*first, *second])
  third = _children(process.stdout.readline())
  assert any(child.name() == 'worker_binary' for child in third)
  process.send_signal(signal.SIGKILL)
  process.communicate(timeout=30)
  _assert_gone(third)


def test_what_waits_to_end_a_worker_may_be_stopped():
  process = _start("""
from tff_fair import stopped
stopped.SECONDS = 1
for number in range(3):
  found = children()
  guards = [c for c in found if c.name() != 'worker_binary']
  assert len(guards) == 3 and len(found) == 4
  guards[number].suspend()
  time.sleep(3)  # The worker goes on.
  assert total([4, number]) == 4 + number
  runtime.set_execution_context('native')
  assert total([1, 2]) == 3
  print(*[one.pid for one in found], flush=True)
""")
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 0
  lines = output.splitlines()
  assert len(lines) == 4
  for line in lines:
    _assert_gone(_children(line))


def test_a_worker_that_does_not_start_is_an_error_of_the_runtime(monkeypatch):
  """The launchers report it in its one sentence."""
  monkeypatch.setattr(
    worker_process, 'worker_binary', lambda: pathlib.Path('/bin/false')
  )
  with pytest.raises(runtime.WorkerError, match='must listen .* /bin/false'):
    native._Worker().stub()


def test_values_are_given_back_to_a_worker_that_is_gone():
  """As weak references do when Python ends, after the worker."""
  address = f'localhost:{portpicker.pick_unused_port()}'
  channel = grpc.intercept_channel(
    grpc.insecure_channel(address), native._NamedErrors(address)
  )
  stub = executor_pb2_grpc.ExecutorGroupStub(channel)
  stub.Dispose(executor_pb2.DisposeRequest())
  with pytest.raises(runtime.WorkerError, match='found that it is gone'):
    stub.Compute(executor_pb2.ComputeRequest())
