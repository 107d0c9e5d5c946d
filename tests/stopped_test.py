import signal
import subprocess
import time

import psutil
import pytest

from tff_fair import stopped


@pytest.fixture(name='sleeper')
def _sleeper():
  process = subprocess.Popen(['sleep', '60'])
  yield process
  process.kill()
  process.wait()


def test_what_is_stopped_for_long():
  clock = stopped.Clock()
  limit = int(stopped.SECONDS)
  for now in range(limit):
    assert clock.look({1, 2} if now else {1}, float(now)) == []
  assert clock.look({1, 2}, limit) == [1]
  # 2 went on for a moment.
  assert clock.look({3}, limit + 1) == []
  for now in range(limit + 2, 2 * limit + 1):
    assert clock.look({2, 3}, float(now)) == []
  # This process, too, has been stopped: all may go on now.
  assert clock.look({2, 3}, 1000.0) == []
  assert clock.look({2, 3}, 1001.0) == []


def test_a_process_that_stays_stopped_is_ended(sleeper, monkeypatch, capfd):
  monkeypatch.setattr(stopped, 'SECONDS', 1.5)
  stopped.watch(sleeper.pid, 'The sleeper')
  sleeper.send_signal(signal.SIGSTOP)
  assert sleeper.wait(20) == -signal.SIGKILL
  assert capfd.readouterr().err == (
    f'The sleeper (process {sleeper.pid}) was stopped, and is ended after 1.5'
    ' seconds\n'
  )


def test_all_that_are_watched_are_ended(sleeper):
  stopped.watch(sleeper.pid, 'The sleeper')
  stopped.watch(2**22 + 1, 'There is no such process')
  stopped.end_all()
  assert sleeper.wait(20) == -signal.SIGKILL


@pytest.mark.parametrize('name', ['none', 'sh', 'cat', 'sleep'])
def test_a_guard_ends_although_a_part_of_it_is_stopped(name, monkeypatch):
  monkeypatch.setattr(stopped, 'SECONDS', 0.5)
  guard = subprocess.Popen(
    ['sh', '-c', 'sleep 60 <&- & cat; kill -KILL $!; wait'],
    stdin=subprocess.PIPE,
    start_new_session=True,
  )
  shell = psutil.Process(guard.pid)
  # A child has the shell's name until it runs its own program.
  while {child.name() for child in shell.children()} != {'cat', 'sleep'}:
    time.sleep(0.01)
  processes = [shell, *shell.children()]
  for process in processes:
    if process.name() == name:
      process.suspend()
  stopped.end_guard(guard)
  assert guard.returncode == (-signal.SIGKILL if name in ('sh', 'cat') else 0)
  _, left = psutil.wait_procs(processes, 20)
  assert not [p for p in left if p.status() != psutil.STATUS_ZOMBIE]


def test_children():
  shell = subprocess.Popen(['sh', '-c', 'sleep 60 & wait'])
  try:
    for _ in range(100):
      found = stopped.children(shell.pid)
      if found:
        break
      time.sleep(0.05)
    assert len(found) == 1
    stopped.watch(found[0], 'A child')
    stopped.end_all()
  finally:
    assert shell.wait(20) == 0
