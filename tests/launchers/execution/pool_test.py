"""The pool and its queue, with runs that do nothing."""

from collections import deque
from concurrent.futures import process
import os
import pathlib
import signal
import types

import pytest

from tests.launchers.execution import here
from tff_fair.launchers.execution import pool as pool_lib
from tff_fair.launchers.execution import train_all
from tff_fair.launchers.execution import worker
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import training


def _run(name, seed=0, rounds=2):
  output_dir = pathlib.Path('out', name, f'seed_{seed}')
  flags = {'algorithm': name, 'task': 'digits', 'rounds': rounds}
  return planned_run.plan(flags, seed, output_dir)


class _Training:
  """Takes the place of what a worker does with a run.

  Attributes:
    begun: The runs that have begun.
    shared: The runs that have the compiled rounds of another one.
    now: The time; a run takes a second.
  """

  def __init__(self, **ends):
    """`ends`: method -> its report, or the error that ends it."""
    self._ends = ends
    self.begun, self.shared, self.now = [], [], 0.0

  def __call__(self, run, compiled, measure):
    key = run.settings['algorithm'], run.seed
    if compiled:
      self.shared.append(key)
    compiled[:] = [run]
    self.begun.append(key)
    self.now += 1
    end = self._ends.get(key[0], worker.Report(worker.TRAINED, seconds=3.0))
    if isinstance(end, Exception):
      raise end
    return end


@pytest.fixture(name='start')
def _start(monkeypatch):
  """Starts a pool in this process whose runs end as they are told to."""
  monkeypatch.setattr(pool_lib, '_MOMENT', 0)

  def start(training_fn, **options):
    monkeypatch.setattr(worker, '_train', training_fn)
    clock = types.SimpleNamespace(monotonic=lambda: training_fn.now)
    for module in (worker, pool_lib):
      monkeypatch.setattr(module, 'time', clock)
    return here.Pool(2, **options)

  return start


def _train(pool, *groups):
  """The kind of each report."""
  found = {}

  def end(output_dir, report):
    assert output_dir not in found
    found[output_dir.parts[1], output_dir.name] = report.kind

  pool.train(deque(groups), end)
  return found


def test_every_run_is_reported_and_shares_rounds_with_its_group_alone(start):
  training_fn = _Training(ditto=worker.Report(worker.DIVERGED, 'wild.'))
  groups = [[_run('ditto', s) for s in range(3)], [_run('fed_avg')]]
  assert _train(start(training_fn), *groups) == {
    ('ditto', 'seed_0'): worker.DIVERGED,
    ('ditto', 'seed_1'): worker.DIVERGED,
    ('ditto', 'seed_2'): worker.DIVERGED,
    ('fed_avg', 'seed_0'): worker.TRAINED,
  }
  assert training_fn.shared == [('ditto', 1), ('ditto', 2)]


def test_what_is_queued_first_comes_next(start):
  training_fn = _Training()
  queue = deque([[_run(name)] for name in ('ditto', 'fed_avg', 'fed_prox')])

  def end(output_dir, report):
    if 'ditto' in output_dir.parts:
      queue.appendleft([_run('cffl')])

  pool = start(training_fn)
  pool._size = 1
  pool.train(queue, end)
  assert [name for name, _ in training_fn.begun] == [
    'ditto',
    'cffl',
    'fed_avg',
    'fed_prox',
  ]


def test_the_deadline_is_asked_before_every_run(start):
  training_fn = _Training()
  # Runs begin after 0, 1 and 2 seconds; the third is finished.
  pool = start(training_fn, budget=2.5)
  groups = [[_run('ditto', s) for s in range(4)], [_run('fed_avg')]]
  found = _train(pool, *groups)
  assert [*found.values()] == 3 * [worker.TRAINED] + 2 * [worker.NOT_STARTED]
  assert training_fn.begun == [('ditto', s) for s in range(3)]


def test_after_one_that_cannot_run_or_a_stop_no_run_of_a_group_begins(start):
  training_fn = _Training(ditto=worker.Report(worker.CANNOT, 'no images.'))
  group = [_run('ditto', 0), _run('ditto', 1)]
  assert _train(start(training_fn), group) == {
    ('ditto', 'seed_0'): worker.CANNOT
  }
  training_fn = _Training()
  pool = start(training_fn)
  pool._signals.stop.set()
  assert _train(pool, group) == {} and not training_fn.begun


@pytest.mark.parametrize(
  ('error', 'message'),
  [
    (training.RunError('no worker.'), '^no worker.$'),
    (OSError(28, 'No space left', 'metrics.csv'), '^metrics.csv: No space'),
    (process.BrokenProcessPool(), '^a worker process died, .* resume'),
  ],
)
def test_a_failure_ends_the_program_with_a_sentence(error, message, start):
  training_fn = _Training(ditto=error)
  groups = [[_run('fed_avg')], [_run('ditto')], [_run('fed_prox')]]
  with pytest.raises(pool_lib.PoolError, match=message):
    _train(start(training_fn), *groups)
  assert ('fed_prox', 0) not in training_fn.begun


@pytest.mark.full
def test_a_worker_that_ends_without_a_word_has_a_sentence():
  message = '^a worker process has ended without a word, with exit status 7, '
  with (
    pytest.raises(pool_lib.PoolError, match=message),
    pool_lib.Pool(1) as pool,
  ):
    pool.call(os._exit, 7)


def test_how_workers_ended():
  memory = ', possibly because it ran out of memory; '
  for statuses, words in (
    ([None, 0, -15], 'has ended without a word, with exit status 0, '),
    ([-15, 7, None], 'has ended without a word, with exit status 7, '),
    ([-15, -9], f'died by signal 9{memory}'),
    ([None, -15], f'died{memory}'),
    ([], f'died{memory}'),
  ):
    assert pool_lib._how_ended(statuses).startswith(words)


def test_a_bug_in_a_worker_is_raised(start):
  with pytest.raises(ZeroDivisionError):
    _train(start(_Training(ditto=ZeroDivisionError())), [_run('ditto')])


def test_processes_share_the_cores(monkeypatch):
  monkeypatch.setattr(os, 'cpu_count', lambda: 7)
  for size, threads in ((1, 7), (2, 3), (9, 1)):
    pool = pool_lib.Pool(size)
    monkeypatch.setattr(worker, '_threads', pool._executor._initargs[-1])
    assert worker._with_threads({'client_threads': None}) == {
      'client_threads': threads
    }
    assert worker._with_threads({'client_threads': 5}) == {'client_threads': 5}
    pool._executor.shutdown()


def test_what_a_call_reports_ends_the_program(start):
  pool = start(_Training())
  assert pool.call(abs, -3) == 3
  with pytest.raises(pool_lib.PoolError, match='^no data.$'):
    pool.call(worker.Report, worker.FAILED, 'no data.')


def test_leaving_stops_the_workers_and_says_so_after_ctrl_c(start, capsys):
  with start(_Training()) as pool:
    pass
  assert pool._signals.stop.is_set() and not capsys.readouterr().err
  with pytest.raises(KeyboardInterrupt), start(_Training()) as pool:
    raise KeyboardInterrupt
  assert pool._signals.stop.is_set()
  assert capsys.readouterr().err == 'stopping after the current rounds\n'


@pytest.fixture(name='train_all')
def _train_all(start, monkeypatch):
  """Calls `train_all` in this process; what was trained when it was told."""

  def call(training_fn, runs, parallel=1, budget=None):
    told = []
    monkeypatch.setattr(
      pool_lib, 'Pool', lambda size, budget: start(training_fn, budget=budget)
    )
    train_all.train_all(
      runs,
      parallel,
      budget,
      check=lambda checked: None,
      on_trained=lambda: told.append(len(training_fn.begun)),
      num_before=2,
    )
    return told

  return call


def test_each_run_has_its_line_and_is_told(train_all, capsys):
  # By seed, as they are planned; trained method by method.
  runs = [_run(name, s) for s in (0, 1) for name in ('ditto', 'fed_avg')]
  training_fn = _Training()
  assert len(train_all(training_fn, runs)) == 4
  assert training_fn.shared == [('ditto', 1), ('fed_avg', 1)]
  assert capsys.readouterr().out.splitlines() == [
    f'{number}/6 out/{name}/seed_{seed}: 3 s'
    for number, (name, seed) in enumerate(training_fn.begun, 3)
  ]
  # One group would leave processes without a run.
  training_fn = _Training()
  train_all(training_fn, [_run('ditto', s) for s in range(3)], parallel=2)
  assert len(training_fn.begun) == 3 and not training_fn.shared


def test_one_that_diverges_ends_no_other_and_one_that_cannot_does(
  train_all, capsys
):
  training_fn = _Training(ditto=worker.Report(worker.DIVERGED, 'wild.'))
  runs = [_run(name) for name in ('fed_prox', 'ditto', 'fed_avg')]
  with pytest.raises(
    pool_lib.PoolError, match='^1 of 3 runs diverged, .* out/ditto/seed_0: wild'
  ):
    train_all(training_fn, runs)
  assert len(training_fn.begun) == 3
  assert 'out/ditto/seed_0: wild.\n' in capsys.readouterr().out
  training_fn = _Training(ditto=worker.Report(worker.CANNOT, 'no images.'))
  with pytest.raises(pool_lib.PoolError, match='^no images.$'):
    train_all(training_fn, [_run('ditto')])


def test_what_the_deadline_left_is_an_error_in_the_end(train_all):
  runs = [_run(n, s) for n in ('ditto', 'fed_avg') for s in range(2)]
  with pytest.raises(
    pool_lib.PoolError, match='^not started within 0 s: 3 runs of 2 methods; '
  ):
    train_all(_Training(), runs, budget=0.5)


def test_ctrl_c_while_a_worker_starts_counts_once():
  """The second of two would end the program in the midst of its ending."""
  reader, writer = os.pipe()
  os.set_blocking(writer, False)
  before = signal.set_wakeup_fd(writer)
  pool = pool_lib.Pool(1)
  pool._executor = types.SimpleNamespace(
    submit=lambda *_: os.kill(os.getpid(), signal.SIGINT)
  )
  try:
    with pytest.raises(KeyboardInterrupt):
      pool._submit(abs, 1)
    assert os.read(reader, 9) == bytes([signal.SIGINT])
  finally:
    signal.set_wakeup_fd(before)
    os.close(reader)
    os.close(writer)
