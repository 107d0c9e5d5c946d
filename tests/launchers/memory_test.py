"""The memory of a launcher stays constant."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).parents[2]
# TensorFlow 2.14 loses a little with every eager tensor on Python 3.11, which
# makes some of the 4 MiB measured here. With the threads of `asyncio.run` in
# every checkpoint it was 64.
_MOST_MIB = 10


@contextlib.contextmanager
def _training(*arguments):
  """Runs `launchers.train`, and kills it at the end."""
  process = subprocess.Popen(
    [sys.executable, '-m', 'launchers.train', *arguments],
    # A part of the C library's heap for each thread, as by default.
    env={n: v for n, v in os.environ.items() if n != 'MALLOC_ARENA_MAX'},
    cwd=_ROOT,
    stdout=subprocess.DEVNULL,
  )
  try:
    yield process
  finally:
    process.kill()
    process.wait()


def _resident_mib(process, metrics, round_number):
  """The memory of a run as soon as it has written a round."""
  deadline = time.monotonic() + 200
  while not metrics.exists() or metrics.read_text().count('\n') <= round_number:
    assert process.poll() is None and time.monotonic() < deadline
    time.sleep(0.05)
  return psutil.Process(process.pid).memory_info().rss / 2**20


def test_200_rounds_with_all_their_files(tmp_path):
  # Evaluations in every round and checkpoints in every tenth, as by default.
  flags = [
    '--algorithm=fedakd',
    '--task=digits',
    '--num_clients=3',
    '--data_fraction=0.2',
    '--rounds=400',
    f'--output_dir={tmp_path}',
  ]
  with _training(*flags) as process:
    metrics = tmp_path / 'metrics.csv'
    before = _resident_mib(process, metrics, 100)
    after = _resident_mib(process, metrics, 300)
  assert after - before < _MOST_MIB
