"""Programs end although a process that they have started never answers."""

import pathlib
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_ENDS_WITHIN = 60
_START = """
import sys
from tff_fair import stopped
from tff_fair.launchers import __main__
stopped.SECONDS = 2
sys.argv[0] = 'tff-fair'
__main__.main()
"""
_STUCK = """
import time
from tff_fair.launchers import cli, interrupts

interrupts._END_SECONDS = 0.5

def main(argv):
  cli.prepare_for_tensorflow()
  interrupts.raise_again()
  while True:
    try:
      print('waits', flush=True)  # The signal may come before the next line.
      time.sleep(60)
    except KeyboardInterrupt:
      pass

cli.run(main, lambda flag_values: None)
"""
_TRAIN = (
  'train --task=digits --num_clients=3 --rounds=100000 --algorithm=fed_avg'
  ' --eval_every=1000'
)
_COMPARE = (
  'compare --task=digits --num_clients=3 --rounds=100000 --methods=fedaboost'
  ' --tune=0 --seeds=1 --parallel=2'
)


@pytest.mark.parametrize(
  'numbers',
  [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)],
)
def test_a_second_signal_ends_what_is_stuck(numbers):
  program = subprocess.Popen(
    [sys.executable, '-c', _STUCK],
    cwd=_ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  assert program.stdout.readline() == 'waits\n'
  for number in numbers:
    program.send_signal(number)
    time.sleep(0.2)  # Two of one kind at once would be one.
  _, said = program.communicate(timeout=_ENDS_WITHIN)
  assert (program.returncode, said) == (1, 'Error: interrupted.\n')


@pytest.mark.full
@pytest.mark.parametrize(
  ('command', 'name', 'said'),
  [
    (_COMPARE, 'spawn_main', 'A worker'),
    (f'{_TRAIN} --runtime=native', 'worker_binary', "TFF's worker"),
    (f'{_TRAIN} --runtime=cluster', 'raylet/raylet', "Ray's raylet"),
    (f'{_TRAIN} --runtime=cluster', 'gcs/gcs_server', "Ray's gcs_server"),
  ],
)
def test_a_stopped_process_is_ended(command, name, said, tmp_path):
  log = tmp_path / 'log'
  with log.open('w') as file:
    program = psutil.Popen(
      [sys.executable, '-c', _START, *command.split(), '--output_dir=run'],
      cwd=tmp_path,
      stdout=file,
      stderr=file,
      start_new_session=True,
    )
  try:
    _wait_for(lambda: any(tmp_path.rglob('metrics.csv')), program)
    processes = program.children(recursive=True)
    named = [p for p in processes if name in ' '.join(p.cmdline()[:4])]
    one = next(p for p in named if p.name() != 'sh')  # Its guard.
    one.suspend()
    _wait_for(lambda: f'{said} (process {one.pid})' in log.read_text(), program)
    assert program.wait(_ENDS_WITHIN) == 1
    last = log.read_text().rstrip().splitlines()[-1]
    assert re.match('Error: .* run the same command again', last), last
    gone, alive = psutil.wait_procs(processes, _ENDS_WITHIN)
    assert not alive and gone
  finally:
    if program.is_running():
      program.kill()


def _wait_for(condition, program):
  end = time.monotonic() + 5 * _ENDS_WITHIN  # A busy machine starts late.
  while not condition() and program.is_running() and time.monotonic() < end:
    time.sleep(0.1)
  assert condition()
