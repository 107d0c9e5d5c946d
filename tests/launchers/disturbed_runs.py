"""Stops or kills a process of a run at any moment, again and again.

  python -m tests.launchers.disturbed_runs --runtime=cluster --signal=STOP

prints a line for each try, and how often each outcome came. Whatever happens,
the run ends, nothing of it is left, and the same command then gives the files
of a run that nobody disturbed.
"""

import argparse
import collections
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import psutil

from tests.launchers import digits_run

_ROOT = pathlib.Path(__file__).parents[2]
# A worker of a cluster is lost after a minute without an answer.
_ENDS_WITHIN = 300
# As somebody who stops a program in the terminal, and lets it go on.
_PAUSE_SECONDS = 3


class Disturbed:
  """A run on the embedded digits, to be disturbed.

  Attributes:
    seconds: How long it takes if nobody does.
  """

  def __init__(self, folder: pathlib.Path, runtime: str, rounds: int = 60):
    """Trains it once, as it should be."""
    values = {**digits_run.SMALL, 'rounds': rounds, 'runtime': runtime}
    if runtime == 'cluster':
      values['num_workers'] = 2
    self._flags = [f'--{name}={value}' for name, value in values.items()]
    self._folder = folder
    self._count = 0
    start = time.monotonic()
    program, log = self._start('whole')
    assert not program.wait(_ENDS_WITHIN), log.read_text()
    self.seconds = time.monotonic() - start
    self._whole = _content(folder / 'whole')

  def disturb(self, number: signal.Signals, rng: random.Random) -> str:
    """Sends a signal to one of its processes, and says what came of it."""
    self._count += 1
    name = f'{number.name}_{self._count}'
    program, log = self._start(name)
    time.sleep(rng.uniform(0, self.seconds))
    processes = [program, *_children(program)]
    victim = rng.choice(processes)
    who = 'the program' if victim is program else _title(victim)
    try:
      victim.send_signal(number)
      if victim is program and number == signal.SIGSTOP:
        time.sleep(_PAUSE_SECONDS)
        victim.send_signal(signal.SIGCONT)
      status = program.wait(_ENDS_WITHIN)
    except psutil.NoSuchProcess:
      status = program.wait(_ENDS_WITHIN)
      who = f'{who}, which had ended'
    except psutil.TimeoutExpired:
      program.kill()
      raise AssertionError(f'{name}: {who} hangs: {log.read_text()}') from None
    _, left = psutil.wait_procs(processes, 60)
    left = [p for p in left if p.status() != psutil.STATUS_ZOMBIE]
    assert not left, (name, who, left)
    said = log.read_text()
    assert 'Traceback' not in said, (name, who, said)
    how = {0: 'finished', 1: 'one sentence', -9: 'killed'}[status]
    if status == 1:
      assert said.rstrip().splitlines()[-1].startswith('Error: '), said
    if status:
      program, log = self._start(name, 'again')
      assert not program.wait(_ENDS_WITHIN), log.read_text()
    assert _content(self._folder / name) == self._whole, (name, who)
    return f'{who}: {how}'

  def _start(self, name, which='first'):
    log = self._folder / f'{name}_{which}.log'
    with log.open('w') as file:
      program = psutil.Popen(
        [
          *(sys.executable, '-m', 'launchers.train', *self._flags),
          f'--output_dir={self._folder / name}',
        ],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=file,
        start_new_session=True,
      )
    return program, log


def _children(program):
  try:
    return program.children(recursive=True)
  except psutil.NoSuchProcess:
    return []


def _title(process):
  try:
    words = process.cmdline()
    scripts = [word for word in words if word.endswith('.py')]
    return pathlib.Path(scripts[0]).stem if scripts else process.name()
  except psutil.Error:
    return 'a process'


def _content(run):
  return {**digits_run.tables(run), **digits_run.models(run)}


def main() -> None:
  """Tries as often as the command says."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--runtime', default='device')
  parser.add_argument('--signal', choices=['STOP', 'KILL'], default='KILL')
  parser.add_argument('--tries', type=int, default=20)
  parser.add_argument('--rounds', type=int, default=60)
  parser.add_argument('--seed', type=int, default=0)
  found = parser.parse_args()
  rng, number = random.Random(found.seed), signal.Signals[f'SIG{found.signal}']
  counts = collections.Counter()
  with tempfile.TemporaryDirectory() as folder:
    run = Disturbed(pathlib.Path(folder), found.runtime, found.rounds)
    print(f'undisturbed: {run.seconds:.0f} s', flush=True)
    for i in range(found.tries):
      outcome = run.disturb(number, rng)
      print(f'{i + 1}: {outcome}', flush=True)
      counts[outcome] += 1
  for outcome, count in counts.most_common():
    print(f'{count} of {found.tries}: {outcome}')


if __name__ == '__main__':
  main()
