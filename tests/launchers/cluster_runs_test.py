"""Runs on workers of Ray, stopped in the middle."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from tests.launchers import digits_run
from tff_fair.runtime.cluster import ray_session

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).parents[2]
_ROUNDS = 60
_START_SECONDS = 300


def _arguments(output_dir, **values):
  values = {
    **digits_run.SMALL,
    'rounds': _ROUNDS,
    'eval_every': 30,
    'output_dir': output_dir,
    **values,
  }
  return [f'--{name}={value}' for name, value in values.items()]


def _on_cluster(output_dir, num_workers=1):
  return _arguments(output_dir, runtime='cluster', num_workers=num_workers)


def _num_lines(file):
  return file.read_text().count('\n') if file.exists() else 0


def _start(output_dir, tmp_path):
  """A run that is 15 rounds on from where it was; all of its processes."""
  metrics = output_dir / 'metrics.csv'
  end = 15 + _num_lines(metrics)
  run = subprocess.Popen(
    [sys.executable, '-m', 'launchers.train', *_on_cluster(output_dir)],
    cwd=tmp_path,
    env={**os.environ, 'PYTHONPATH': str(_ROOT)},
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
    start_new_session=True,
  )
  deadline = time.monotonic() + _START_SECONDS
  while _num_lines(metrics) < end:
    assert run.poll() is None and time.monotonic() < deadline
    time.sleep(0.02)
  children = psutil.Process(run.pid).children(recursive=True)
  assert len(children) >= 5  # Ray's server, its manager, agents, a worker.
  return run, children


def _assert_ended(processes):
  assert not psutil.wait_procs(processes, 20)[1]


def test_a_run_is_interrupted_killed_and_resumed(tmp_path):
  whole, stopped = tmp_path / 'whole', tmp_path / 'stopped'
  digits_run.main_with(*_arguments(whole))
  # Ctrl-C goes to all processes of the terminal.
  run, processes = _start(stopped, tmp_path)
  start = time.monotonic()
  os.killpg(run.pid, signal.SIGINT)
  _, errors = run.communicate(timeout=60)
  _assert_ended(processes)
  assert time.monotonic() - start < 20
  assert 'run the same command again' in errors
  assert 'Traceback' not in errors
  # Killed after it was resumed.
  run, processes = _start(stopped, tmp_path)
  run.kill()
  run.communicate()
  _assert_ended(processes)
  assert _num_lines(stopped / 'metrics.csv') < _ROUNDS
  try:
    printed = digits_run.main_with(*_on_cluster(stopped, num_workers=2))
  finally:
    ray_session.disconnect()
  assert 'resuming after round' in printed
  assert digits_run.tables(stopped) == digits_run.tables(whole)
  expected = digits_run.variables(whole, _ROUNDS)
  for name, value in digits_run.variables(stopped, _ROUNDS).items():
    np.testing.assert_array_equal(value, expected[name])
