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
    queued: `(method, learning rate, rounds, seeds)` of each group, in order.
  """

  def __init__(self, end, most=1000):
    """`end` maps a run to its outcome, or to its report."""
    self._end, self._most = end, most
    self.queued = []

  def train(self, queue, on_end, measure):
    assert measure
    while queue:
      runs = queue.popleft()
      rounds = runs[0].settings['rounds']
      seeds = [run.seed for run in runs]
      self.queued.append((*_key(runs[0])[:2], rounds, seeds))
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


# Of four trials, in their order. The second of the first three is the best (of
# equals the first), and has the highest rate: .14^2 / .037 follows, beyond it.
_PEAK = {0.01: 0.2, 0.14: 0.8, 0.037: 0.8, 0.53: None}
_TUNING = [100, 101, 102]
# Three of ten rounds; the better two in full; equal ones are chosen by the
# distance to the middle, .1.
_GROUPS = [
  *((rate, 3, [100]) for rate in _PEAK),
  *((rate, 10, _TUNING) for rate in (0.14, 0.037)),
  (0.14, 10, [0, 1, 2]),
]
_ROUNDS = 4 * 3 + 2 * 3 * 10 + 3 * 10


def test_short_trials_then_the_better_in_full_then_the_seeds_of_the_best(
  tmp_path, capsys
):
  schedule = _schedule(tmp_path)
  pool = _train(schedule, _by_rate(_PEAK))
  assert pool.queued == [(m, *group) for m in _METHODS for group in _GROUPS]
  assert capsys.readouterr().out.splitlines() == [
    f'{title}: --client_learning_rate=0.14 (holdout accuracy 0.800; 1 of 4'
    ' trials diverged; 1 of 4 trials beyond the range)'
    for title in ('FedAvg', 'Standalone')
  ]
  assert pool.total == 2 * _ROUNDS
  assert not schedule.excluded and not schedule.left()
  found = [
    (e.method, e.number, e.stage, e.run.seed, e.trial.is_widened, e.chosen)
    for e in schedule.ended()
  ]
  of_one = [
    *((t, 'screening', 100, t == 3, False) for t in range(4)),
    *((t, 'final', s, False, False) for t in (1, 2) for s in _TUNING),
    *((1, 'score', s, False, True) for s in range(3)),
  ]
  assert found == [(method, *rest) for method in _METHODS for rest in of_one]


def test_the_choice_is_by_all_tuning_seeds_and_never_by_a_score(tmp_path):
  # Best of the short ones and with the first seed: .14; over the seeds: .037.
  found = {0.14: {100: 0.9, 101: 0.5, 102: 0.5}, 0.037: {}, 0.01: {100: 0.1}}

  def end(run):
    _, rate, seed = _key(run)
    scored = 0.99 if rate == 0.14 and seed < 100 else 0.8
    return _finished(found.get(rate, {}).get(seed, scored))

  schedule = _schedule(tmp_path, ['fed_avg'])
  pool = _train(schedule, end)
  assert pool.queued[-1] == ('fed_avg', 0.037, 10, [0, 1, 2])


def test_outcomes_in_any_order_lead_to_the_same_runs(tmp_path):
  expected = _schedule(tmp_path / 'a')
  _train(expected, _by_rate(_PEAK))

  class Backwards(_Pool):
    def train(self, queue, on_end, measure):
      queue.reverse()
      super().train(queue, on_end, measure)

  found = _schedule(tmp_path / 'b')
  found.train(Backwards(_by_rate(_PEAK)))

  def described(schedule):
    return [e._replace(run=e.run.arguments) for e in schedule.ended()]

  assert described(found) == described(expected)


def test_what_the_deadline_leaves_is_told_and_trained_by_the_next_call(
  tmp_path,
):
  schedule = _schedule(tmp_path)
  # All of the baseline's 13 runs, and two trials of Standalone.
  pool = _train(schedule, _by_rate(_PEAK), most=15)
  assert [e.method for e in schedule.ended()] == [
    *['fed_avg'] * 13,
    *['standalone'] * 2,
  ]
  # Two trials, and the runs that are not known yet.
  assert schedule.left() == ['standalone'] * 11
  assert pool.total == 2 * _ROUNDS
  # The same command goes on.
  again = _schedule(tmp_path)
  pool = _train(again, _by_rate(_PEAK))
  assert pool.queued == [('standalone', *group) for group in _GROUPS[2:]]
  assert pool.total == _ROUNDS - 2 * 3 and not again.left()


def test_without_tuning_a_group_has_all_seeds_once(tmp_path, capsys):
  schedule = _schedule(tmp_path, tune=0)
  pool = _train(schedule, _by_rate({0.01: 0.5}), most=5)
  assert pool.queued == [(m, 0.01, 10, [0, 1, 2]) for m in _METHODS]
  assert pool.total == 2 * 3 * 10 and not capsys.readouterr().out
  assert all(e.chosen for e in schedule.ended())
  assert schedule.left() == ['standalone']
  pool = _train(_schedule(tmp_path, tune=0), _by_rate({0.01: 0.5}))
  assert pool.queued == [('standalone', 0.01, 10, [2])]


@pytest.mark.parametrize(
  ('tune', 'first', 'where'),
  [
    (2, [(0.01, 10, _TUNING), (0.14, 10, _TUNING)], ''),
    (4, [(0.01, 3, [100]), (0.14, 3, [100])], ''),
    (4, [(0.01, 3, [100]), (0.14, 3, [100])], ' with all rounds'),
  ],
)
def test_a_method_all_of_whose_trials_diverge_is_left_out(
  tmp_path, capsys, tune, first, where
):
  def end(run):
    lost = run.settings['rounds'] == 10 or not where
    return _DIVERGED if lost and _key(run)[0] == 'ditto' else _finished(0.5)

  schedule = _schedule(tmp_path, [*_METHODS, 'ditto'], tune=tune)
  pool = _train(schedule, end)
  of_ditto = [key[1:] for key in pool.queued if key[0] == 'ditto']
  assert of_ditto[:2] == first
  count = 2 if where else tune
  reason = (
    f'All of its {count} trials{where} diverged; the first: the run has'
    ' diverged.'
  )
  assert schedule.excluded == {'ditto': reason}
  assert f'Ditto is left out: {reason}\n' in capsys.readouterr().out
  # The rows of its trials are kept.
  rows = [e for e in schedule.ended() if e.method == 'ditto']
  assert len(rows) == sum(len(seeds) for *_, seeds in of_ditto)
  assert not any(e.chosen for e in rows) and not schedule.left()


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
  assert pool.total == 8 * 3 + 2 * 3 * 10 + 3 * 10 and not schedule.left()


def test_what_is_left_of_a_stopped_comparison_is_queued(tmp_path):
  before = _schedule(tmp_path)
  _train(before, _by_rate(_PEAK))
  pool = _train(_schedule(tmp_path), _by_rate({}))
  assert (pool.queued, pool.total) == ([], 0)
  for e in before.ended():
    path = e.run.output_dir / 'compared.json'
    if e.method == 'fed_avg' and e.run.seed in (2, 101):
      path.unlink()
    elif e.method == 'standalone' and e.number == 0:
      path.write_text('{')  # Damaged.
  again = _schedule(tmp_path)
  pool = _train(again, _by_rate(_PEAK))
  # Nothing that is chosen by what is missing is trained before it.
  assert pool.queued == [
    ('fed_avg', 0.14, 10, [101]),
    ('fed_avg', 0.037, 10, [101]),
    ('fed_avg', 0.14, 10, [2]),
    ('standalone', 0.01, 3, [100]),
  ]
  assert pool.total == 3 * 10 + 3
  assert [e._replace(run=None) for e in again.ended()] == [
    e._replace(run=None) for e in before.ended()
  ]


def test_flags_that_a_method_cannot_have_leave_it_out_before_training(tmp_path):
  names = ['fed_avg', 'standalone', 'fed_rdn']
  schedule = _schedule(tmp_path, names, split='server')
  assert list(schedule.excluded) == ['fed_rdn']
  pool = _train(schedule, _by_rate(_PEAK))
  assert {method for method, *_ in pool.queued} == {'fed_avg', 'standalone'}
  # Not so for the baseline: its flags are those of all.
  with pytest.raises(settings_lib.SettingsError, match='^--pca_dim must not'):
    _schedule(tmp_path, pca_dim=3)
