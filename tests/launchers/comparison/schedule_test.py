"""Which runs are queued when, with a pool that trains nothing."""

from concurrent import futures
from concurrent.futures import process
import types

import pytest

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import pool as pool_lib
from tff_fair.launchers.comparison import schedule as schedule_lib
from tff_fair.launchers.comparison import worker
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.options import settings as settings_lib

_METHODS = ('fed_avg', 'standalone')
_TRAINED = worker.Report(worker.TRAINED)
_DIVERGED = outcomes.Outcome(outcomes.DIVERGED, 'the run has diverged.')


class _Pool(pool_lib.Pool):
  """Ends one job after the other; `size` of them have begun.

  Attributes:
    queued: `(method, trials' learning rates, seeds)` of each job, in order.
  """

  def __init__(self, end, size=1):
    """`end` maps a run to its outcome, or to the report of its job."""
    self._signals = types.SimpleNamespace(rounds=types.SimpleNamespace(value=0))
    self._end, self._size = end, size
    self._waiting, self._begun = [], []
    self.queued = []

  def submit(self, runs):
    future = futures.Future()
    self._waiting.append((future, runs))
    self.queued.append((*_key(runs[0])[:2], [run.seed for run in runs]))
    return future

  def step(self):
    """Ends the next job, as an executor does."""
    while self._waiting and len(self._begun) < self._size:
      future, runs = self._waiting.pop(0)
      if future.set_running_or_notify_cancel():
        self._begun.append((future, runs))
    if not self._begun:
      return
    future, runs = self._begun.pop(0)
    for run in runs:
      result = self._end(run)
      if isinstance(result, Exception):
        return future.set_exception(result)
      if isinstance(result, worker.Report):
        return future.set_result(result)
      _write(run, result)
    future.set_result(_TRAINED)


class _Progress:
  """Records what is shown, and lets the pool work meanwhile."""

  def __init__(self, pool):
    self._pool = pool
    self.chosen, self.excluded = {}, {}

  def expect(self, rounds):
    self.total = rounds

  def expect_less(self, rounds):
    self.total -= rounds

  def skip_but(self, rounds):
    self.left = rounds

  def show_rounds(self, done):
    self._pool.step()

  def say_chosen(self, method, tried, accuracy, trials):
    diverged = sum(trial.status == outcomes.DIVERGED for trial in trials)
    rate = tried.get('client_learning_rate')
    self.chosen[method] = (rate, accuracy, diverged)

  def say_excluded(self, method, reason):
    assert method not in self.excluded
    self.excluded[method] = reason


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
  monkeypatch.setattr(pool_lib, '_MOMENT', 0)


def _key(run):
  return (
    run.settings['algorithm'],
    run.settings['client_learning_rate'],
    run.seed,
  )


def _finished(accuracy):
  return outcomes.Outcome(outcomes.FINISHED, '', accuracy, 1, 2, 0.1)


def _write(run, outcome):
  run.output_dir.mkdir(parents=True, exist_ok=True)
  outcomes.write(outcome, run.output_dir)


def _schedule(folder, names=_METHODS, tune=4, seeds=(0, 1, 2), **shared):
  planner = plan.Planner(
    shared={'task': 'digits', **shared},
    rounds=10,
    tune=tune,
    output_dir=folder,
  )
  return schedule_lib.Schedule(planner, names, seeds)


def _train(schedule, end, size=1):
  pool = _Pool(end, size)
  progress = _Progress(pool)
  schedule.train(pool, progress)
  return pool, progress


def _by_rate(accuracies):
  """The outcome of a run by its learning rate; None: diverged."""

  def end(run):
    accuracy = accuracies[_key(run)[1]]
    return _DIVERGED if accuracy is None else _finished(accuracy)

  return end


# Of four trials, in their order: 0.01, 0.14, 0.037, 0.52.
_PEAK = {0.01: 0.2, 0.14: 0.8, 0.037: 0.7, 0.52: None}


def test_all_trials_then_the_other_seeds_of_the_best(tmp_path):
  schedule = _schedule(tmp_path)
  pool, progress = _train(schedule, _by_rate(_PEAK))
  # Trial by trial, so that what cannot run shows early.
  trials = [(method, rate, [0]) for rate in _PEAK for method in _METHODS]
  assert pool.queued == trials + [(m, 0.14, [1, 2]) for m in _METHODS]
  assert progress.chosen == {m: (0.14, 0.8, 1) for m in _METHODS}
  assert not schedule.excluded
  # Two methods, each with four trials and two more seeds, of ten rounds.
  assert progress.total == progress.left == 2 * 6 * 10
  found = [(e.method, e.trial, e.run.seed, e.chosen) for e in schedule.ended()]
  assert found == [
    (method, *rest)
    for method in _METHODS
    for rest in (
      (0, 0, False),
      (1, 0, True),
      (2, 0, False),
      (3, 0, False),
      (1, 1, True),
      (1, 2, True),
    )
  ]


def test_the_first_of_equally_good_trials_is_chosen(tmp_path):
  accuracies = {0.01: 0.2, 0.14: None, 0.037: 0.7, 0.52: 0.7}
  _, progress = _train(_schedule(tmp_path), _by_rate(accuracies))
  assert progress.chosen['fed_avg'] == (0.037, 0.7, 1)


def test_without_tuning_a_job_has_all_seeds(tmp_path):
  schedule = _schedule(tmp_path, tune=0)
  pool, progress = _train(schedule, _by_rate({0.01: 0.5}))
  assert pool.queued == [(m, 0.01, [0, 1, 2]) for m in _METHODS]
  assert progress.total == progress.left == 2 * 3 * 10
  assert all(e.chosen for e in schedule.ended())


def test_a_method_all_of_whose_trials_diverge_is_left_out(tmp_path):
  def end(run):
    return _DIVERGED if _key(run)[0] == 'ditto' else _finished(0.5)

  schedule = _schedule(tmp_path, [*_METHODS, 'ditto'], tune=2)
  pool, progress = _train(schedule, end)
  assert [key for key in pool.queued if key[0] == 'ditto'] == [
    ('ditto', 0.01, [0]),
    ('ditto', 0.14, [0]),
  ]
  reason = 'All of its 2 trials diverged; the first: the run has diverged.'
  assert schedule.excluded == progress.excluded == {'ditto': reason}
  # The rows of its trials are kept.
  rows = [e for e in schedule.ended() if e.method == 'ditto']
  assert [(e.trial, e.chosen, e.is_result) for e in rows] == [
    (0, False, False),
    (1, False, False),
  ]


def test_a_chosen_trial_may_diverge_with_another_seed(tmp_path):
  def end(run):
    return _DIVERGED if run.seed == 2 else _finished(0.5)

  schedule = _schedule(tmp_path, tune=2)
  _train(schedule, end)
  assert not schedule.excluded
  rows = [e for e in schedule.ended() if e.method == 'fed_avg' and e.chosen]
  assert [(e.run.seed, e.is_result) for e in rows] == [
    (0, True),
    (1, True),
    (2, False),
  ]


@pytest.mark.parametrize('size', [1, 3])
def test_a_method_that_cannot_run_is_left_out_at_its_first_trial(
  size, tmp_path
):
  begun = []

  def end(run):
    if _key(run)[0] != 'ditto':
      return _finished(0.5)
    begun.append(run)
    return worker.Report(worker.CANNOT, 'no images.')

  schedule = _schedule(tmp_path, ['fed_avg', 'ditto'], tune=8)
  _, progress = _train(schedule, end, size)
  # The others are cancelled, except those that have begun.
  assert len(begun) == (size + 1) // 2
  assert schedule.excluded == progress.excluded == {'ditto': 'no images.'}
  assert {e.method for e in schedule.ended()} == {'fed_avg'}
  assert len(schedule.ended()) == 8 + 2
  assert progress.total == (8 + 2) * 10


def test_runs_that_have_ended_are_not_queued_again(tmp_path):
  _train(_schedule(tmp_path), _by_rate(_PEAK))
  schedule = _schedule(tmp_path)
  pool, progress = _train(schedule, _by_rate({}))
  assert pool.queued == []
  assert (progress.left, len(schedule.ended())) == (0, 12)


def test_what_is_left_of_a_stopped_comparison_is_queued(tmp_path):
  before = _schedule(tmp_path)
  _train(before, _by_rate(_PEAK))
  for e in before.ended():
    standalone = e.method == 'standalone'
    if (
      e.run.seed == 2
      or (standalone and e.trial == 3)
      or (standalone and e.run.seed == 1)
    ):
      (e.run.output_dir / 'compared.json').unlink()
  pool, progress = _train(_schedule(tmp_path), _by_rate(_PEAK))
  assert pool.queued == [
    ('standalone', 0.52, [0]),
    ('fed_avg', 0.14, [2]),
    ('standalone', 0.14, [1, 2]),
  ]
  assert progress.left == 4 * 10


def test_a_damaged_outcome_is_trained_again(tmp_path):
  schedule = _schedule(tmp_path, tune=2, seeds=[0])
  _train(schedule, _by_rate(_PEAK))
  (schedule.first_runs[1].output_dir / 'compared.json').write_text('{')
  pool, _ = _train(_schedule(tmp_path, tune=2, seeds=[0]), _by_rate(_PEAK))
  assert pool.queued == [('standalone', 0.01, [0])]


@pytest.mark.parametrize(
  ('result', 'message'),
  [
    (worker.Report(worker.FAILED, 'the disk is full.'), 'the disk is full'),
    (process.BrokenProcessPool(), 'a worker process has ended, .* res'),
  ],
)
def test_a_failure_ends_the_comparison(result, message, tmp_path):
  def end(run):
    return result if _key(run)[0] == 'standalone' else _finished(0.5)

  schedule = _schedule(tmp_path)
  with pytest.raises(pool_lib.PoolError, match=message):
    _train(schedule, end)
  # What has ended is not lost.
  assert {e.method for e in schedule.ended()} == {'fed_avg'}


def test_flags_that_a_method_cannot_have_leave_it_out_before_training(tmp_path):
  names = ['fed_avg', 'standalone', 'fed_rdn']
  schedule = _schedule(tmp_path, names, split='server')
  assert list(schedule.excluded) == ['fed_rdn']
  pool, _ = _train(schedule, _by_rate(_PEAK))
  assert {method for method, _, _ in pool.queued} == {'fed_avg', 'standalone'}
  # Not so for the baseline: its flags are those of all.
  with pytest.raises(settings_lib.SettingsError, match='^--pca_dim must not'):
    _schedule(tmp_path, pca_dim=3)


def test_a_directory_of_other_flags_is_refused(tmp_path):
  run = _schedule(tmp_path).first_runs[1]
  run.output_dir.mkdir(parents=True)
  (run.output_dir / 'flags.txt').write_text(
    run.flags_text.replace('--rounds=10', '--rounds=7')
  )
  with pytest.raises(settings_lib.SettingsError, match='--rounds is 7 there'):
    _schedule(tmp_path)
