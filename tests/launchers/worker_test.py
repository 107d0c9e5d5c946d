"""Workers for `--runtime=remote`, and runs on them."""

import contextlib
import pathlib
import signal
import subprocess
import sys

from absl import flags
import pandas as pd
import portpicker
import pytest

from launchers import worker
from launchers.options import settings as settings_lib
from launchers.options import train_flags
from launchers.runs import training
from tff_fair import worker_process

pytestmark = pytest.mark.full

ROUNDS = 4
_ROOT = pathlib.Path(__file__).parents[2]


def _settings(addresses):
  arguments = [
    '--preset=fedaboost_digits',
    '--client_fraction=0.2',
    f'--rounds={ROUNDS}',
    '--runtime=remote',
    f'--workers={",".join(addresses)}',
  ]
  flag_values = train_flags.parse(arguments)
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _train(addresses, path, on_round=lambda row: None):
  path.mkdir(exist_ok=True)
  settings = _settings(addresses)
  run = training.Run(settings, path, settings_lib.to_text(settings, None))
  run.train(on_round)
  run.finish()


@contextlib.contextmanager
def _workers(ports):
  workers = [worker_process.WorkerProcess(port) for port in ports]
  try:
    yield workers
  finally:
    for one in workers:
      one.stop()


def _read(path, name):
  return pd.read_csv(path / name).drop(columns='seconds', errors='ignore')


@pytest.mark.usefixtures('runtime_as_before')
def test_a_killed_worker_is_named_and_the_resumed_run_ends_the_same(tmp_path):
  ports = [portpicker.pick_unused_port() for _ in range(2)]
  addresses = [f'localhost:{port}' for port in ports]
  broken, whole = tmp_path / 'broken', tmp_path / 'whole'
  with _workers(ports) as workers:
    rows = []

    def kill_one(row):
      rows.append(row)
      if len(rows) == 2:
        workers[1].stop()

    with pytest.raises(
      training.RunError,
      match=rf'{addresses[1]} .* stopped after round 2 of {ROUNDS}; run the sa',
    ):
      _train(addresses, broken, kill_one)
  with _workers(ports):
    _train(addresses, broken)
    _train(addresses, whole)
  for name in ('metrics.csv', 'reports.csv', 'clients.csv'):
    pd.testing.assert_frame_equal(_read(broken, name), _read(whole, name))


@pytest.mark.usefixtures('runtime_as_before')
def test_bad_addresses_are_named_before_any_work(tmp_path, monkeypatch):
  from tff_fair.runtime import workers

  monkeypatch.setattr(workers, '_CONNECT_SECONDS', 0.2)
  silent = f'localhost:{portpicker.pick_unused_port()}'
  for addresses, message in (
    ([silent], f'{silent} must answer'),
    ([], '^--workers must'),
    (['localhost'], '^--workers must'),
    (['a:1', 'a:1'], '^--workers must'),
  ):
    with pytest.raises(training.USER_ERRORS, match=message):
      training.Run(_settings(addresses), tmp_path, '')
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_worker_cleanly(number):
  port = portpicker.pick_unused_port()
  process = subprocess.Popen(
    [sys.executable, '-m', 'launchers.worker', f'--port={port}'],
    cwd=_ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
  )
  assert process.stdout.readline().decode().startswith('a worker listens on')
  process.send_signal(number)
  # The output ends when no process holds it any more.
  output, _ = process.communicate(timeout=60)
  assert (process.returncode, output) == (0, b'')
  assert worker._is_free(port)


def test_a_dead_worker_ends_its_launcher(monkeypatch):
  start = worker_process.WorkerProcess

  def start_and_kill(port):
    process = start(port)
    process.stop()
    return process

  monkeypatch.setattr(worker_process, 'WorkerProcess', start_and_kill)
  handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
  with pytest.raises(SystemExit, match='until it is stopped, found it dead'):
    _launch(f'--port={portpicker.pick_unused_port()}')
  for number, handler in handlers.items():
    signal.signal(number, handler)


def test_bad_input():
  port = portpicker.pick_unused_port()
  with _workers([port]), pytest.raises(SystemExit, match=f'{port} is in use'):
    _launch(f'--port={port}')
  with pytest.raises(SystemExit, match="must be a flag, found 'here'"):
    _launch('here')


def _launch(*arguments):
  flag_values = flags.FlagValues()
  worker.define_flags(flag_values)
  worker.main(flag_values(['launchers.worker', *arguments]), flag_values)
