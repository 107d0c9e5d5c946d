"""Which runs are queued when, with a pool that trains nothing."""

import pytest

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import schedule as schedule_lib
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.execution import worker
from tff_fair.launchers.options import settings as settings_lib

_METHODS = ('fed_avg', 'standalone')
_DIVERGED = outcomes.Outcome(outcomes.DIVERGED, 'the run has diverged.')


class _Pool:
  """Ends one run after the other; after `most`, the deadline has passed.

  Attributes:
    queued: `(method, learning rate, seeds)` of each group, in order.
  """

  def __init__(self, end, most=1000):
    """`end` maps a run to its outcome, or to its report."""
    self._end, self._most = end, most
    self.queued = []

  def train(self, queue, on_end, measure):
    assert measure
    while queue:
      runs = queue.popleft()
      self.queued.append((*_key(runs[0])[:2], [run.seed for run in runs]))
      for run in runs:
        report = self._report(run)
        on_end(run.output_dir, report)
        if report.kind == worker.CANNOT:
          break

  def _report(self, run):
    if not self._most:
      return worker.Report(worker.NOT_STARTED)
    self._most -= 1
    result = self._end(run)
    if isinstance(result, worker.Report):
      return result
    _write(run, result)
    return worker.Report(
      worker.TRAINED if result.status == outcomes.FINISHED else worker.DIVERGED
    )


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


def _train(schedule, end, most=1000):
  pool = _Pool(end, most)
  schedule.train(pool)
  return pool


def _by_rate(accuracies):
  """The outcome of a run by its learning rate; None: diverged."""

  def end(run):
    accuracy = accuracies[_key(run)[1]]
    return _DIVERGED if accuracy is None else _finished(accuracy)

  return end


# Of four trials, in their order: the first of the two best is chosen.
_PEAK = {0.01: 0.2, 0.14: 0.8, 0.037: 0.8, 0.52: None}


def test_all_trials_of_a_method_then_the_other_seeds_of_the_best(
  tmp_path, capsys
):
  schedule = _schedule(tmp_path)
  pool = _train(schedule, _by_rate(_PEAK))
  assert pool.queued == [
    (method, *rest)
    for method in _METHODS
    for rest in (*((rate, [0]) for rate in _PEAK), (0.14, [1, 2]))
  ]
  assert capsys.readouterr().out.splitlines() == [
    f'{title}: --client_learning_rate=0.14 (holdout accuracy 0.800; 1 of 4'
    ' trials diverged)'
    for title in ('FedAvg', 'Standalone')
  ]
  # Two methods, each with four trials and two more seeds, of ten rounds.
  assert pool.total == 2 * 6 * 10
  assert not schedule.excluded and not schedule.left()
  found = [(e.method, e.trial, e.run.seed, e.chosen) for e in schedule.ended()]
  of_one = [(t, 0, t == 1) for t in range(4)] + [(1, 1, True), (1, 2, True)]
  assert found == [(method, *rest) for method in _METHODS for rest in of_one]


def test_what_the_deadline_leaves_is_told_and_trained_by_the_next_call(
  tmp_path,
):
  schedule = _schedule(tmp_path)
  # All of the baseline's six runs, and two trials of Standalone.
  pool = _train(schedule, _by_rate(_PEAK), most=8)
  assert [e.method for e in schedule.ended()] == [
    *['fed_avg'] * 6,
    *['standalone'] * 2,
  ]
  # Two trials, and two seeds of a trial that is not known yet.
  assert schedule.left() == ['standalone'] * 4
  assert pool.total == 120
  # The same command goes on.
  again = _schedule(tmp_path)
  pool = _train(again, _by_rate(_PEAK))
  assert pool.queued == [
    ('standalone', 0.037, [0]),
    ('standalone', 0.52, [0]),
    ('standalone', 0.14, [1, 2]),
  ]
  assert pool.total == 40 and not again.left()


def test_without_tuning_a_group_has_all_seeds_once(tmp_path, capsys):
  schedule = _schedule(tmp_path, tune=0)
  pool = _train(schedule, _by_rate({0.01: 0.5}), most=5)
  assert pool.queued == [(m, 0.01, [0, 1, 2]) for m in _METHODS]
  assert pool.total == 2 * 3 * 10 and not capsys.readouterr().out
  assert all(e.chosen for e in schedule.ended())
  assert schedule.left() == ['standalone']
  pool = _train(_schedule(tmp_path, tune=0), _by_rate({0.01: 0.5}))
  assert pool.queued == [('standalone', 0.01, [2])]


def test_a_method_all_of_whose_trials_diverge_is_left_out(tmp_path, capsys):
  def end(run):
    return _DIVERGED if _key(run)[0] == 'ditto' else _finished(0.5)

  schedule = _schedule(tmp_path, [*_METHODS, 'ditto'], tune=2)
  pool = _train(schedule, end)
  assert [key for key in pool.queued if key[0] == 'ditto'] == [
    ('ditto', 0.01, [0]),
    ('ditto', 0.14, [0]),
  ]
  reason = 'All of its 2 trials diverged; the first: the run has diverged.'
  assert schedule.excluded == {'ditto': reason}
  assert f'Ditto is left out: {reason}\n' in capsys.readouterr().out
  # The rows of its trials are kept.
  rows = [e for e in schedule.ended() if e.method == 'ditto']
  assert [(e.trial, e.chosen, e.is_result) for e in rows] == [
    (0, False, False),
    (1, False, False),
  ]
  assert not schedule.left() and pool.total == (2 * 4 + 2) * 10


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


def test_a_method_that_cannot_run_is_left_out_at_its_first_trial(
  tmp_path, capsys
):
  def end(run):
    if _key(run)[0] == 'fed_avg':
      return _finished(0.5)
    return worker.Report(worker.CANNOT, 'no images.')

  schedule = _schedule(tmp_path, ['fed_avg', 'ditto'], tune=8)
  pool = _train(schedule, end)
  assert [key[0] for key in pool.queued].count('ditto') == 1
  assert schedule.excluded == {'ditto': 'no images.'}
  assert capsys.readouterr().out.endswith('Ditto is left out: no images.\n')
  assert {e.method for e in schedule.ended()} == {'fed_avg'}
  assert pool.total == (8 + 2) * 10 and not schedule.left()


def test_what_is_left_of_a_stopped_comparison_is_queued(tmp_path):
  before = _schedule(tmp_path)
  _train(before, _by_rate(_PEAK))
  pool = _train(_schedule(tmp_path), _by_rate({}))
  assert (pool.queued, pool.total) == ([], 0)
  for e in before.ended():
    path = e.run.output_dir / 'compared.json'
    standalone = e.method == 'standalone'
    if e.run.seed == 2 or (standalone and e.trial == 3):
      path.unlink()
    elif standalone and e.run.seed == 1:
      path.write_text('{')  # Damaged.
  pool = _train(_schedule(tmp_path), _by_rate(_PEAK))
  assert pool.queued == [
    ('fed_avg', 0.14, [2]),
    ('standalone', 0.52, [0]),
    ('standalone', 0.14, [1, 2]),
  ]
  assert pool.total == 4 * 10


def test_flags_that_a_method_cannot_have_leave_it_out_before_training(tmp_path):
  names = ['fed_avg', 'standalone', 'fed_rdn']
  schedule = _schedule(tmp_path, names, split='server')
  assert list(schedule.excluded) == ['fed_rdn']
  pool = _train(schedule, _by_rate(_PEAK))
  assert {method for method, _, _ in pool.queued} == {'fed_avg', 'standalone'}
  # Not so for the baseline: its flags are those of all.
  with pytest.raises(settings_lib.SettingsError, match='^--pca_dim must not'):
    _schedule(tmp_path, pca_dim=3)
