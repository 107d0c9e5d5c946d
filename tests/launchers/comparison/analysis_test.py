import json
import math

import numpy as np
import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers import measures

_MEAN, _VARIANCE = 'client_accuracy_mean', 'client_accuracy_variance'


def _of_scores(folder, scores, **facts):
  """Analyses accuracies `{method: [[of each client] of each seed]}`."""
  seeds = range(len(scores['fed_avg']))
  num_clients = len(scores['fed_avg'][0])
  return made_comparison.analyse(
    folder,
    made_comparison.rows(seeds, scores=scores),
    made_comparison.facts(seeds, num_clients, **facts),
  )


def test_estimates_by_hand(tmp_path):
  found = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.2, 0.6], [0.4, 0.6]],
      'ditto': [[0.5, 0.7], [0.6, 0.8]],
    },
  )
  assert found.methods == ('ditto', 'fed_avg')
  ditto = found.estimates['ditto', _MEAN]
  # The standard error is 0.05, and 12.7062 the quantile of two seeds.
  half = 12.7062 * 0.05
  ends = pytest.approx((0.65 - half, 0.65 + half), rel=1e-4)
  assert ditto.mean == pytest.approx(0.65)
  assert (ditto.low, ditto.high) == ends
  assert ditto.values == pytest.approx((0.6, 0.7))
  # 0.6 - 0.4 and 0.7 - 0.5: the interval has no length.
  gap = found.differences['ditto', _MEAN]
  assert (gap.mean, gap.low, gap.high) == pytest.approx((0.2, 0.2, 0.2))
  # Variances: 0.04 and 0.01 against 0.01 twice; the second does not differ.
  gap = found.differences['ditto', _VARIANCE]
  assert gap.values == pytest.approx((-0.03, 0))
  assert found.verdict('ditto', _VARIANCE) == 0


def test_what_differs_by_little_is_equivalent(tmp_path):
  scores = {
    'fed_avg': [[0.5], [0.6], [0.7]],
    'ditto': [[0.501], [0.602], [0.703]],
    'cffl': [[0.496], [0.592], [0.688]],
  }
  found = _of_scores(tmp_path / 'three', scores)
  # Ditto's mean is .002, its error .001 / sqrt(3): up to .01 t is 13.9, so p is
  # .0026. CFFL's mean is -.008, its error .004 / sqrt(3): t is .87, p .24.
  assert found.equivalent(_MEAN) == ('ditto',)
  few = {method: values[:2] for method, values in scores.items()}
  # Of two seeds, t is 17 with one degree of freedom: p is .019, twice .037.
  assert _of_scores(tmp_path / 'two', few).equivalent(_MEAN) == ('ditto',)
  few['afl'] = [[0.4], [0.8]]
  # Three times that.
  assert not _of_scores(tmp_path / 'of_three', few).equivalent(_MEAN)
  rows = made_comparison.rows(scores=scores)
  rows = [r for r in rows if (r['method'], r['seed']) != ('fed_avg', 1)]
  found = made_comparison.analyse(tmp_path / 'without', rows)
  assert found.equivalent(_MEAN) == ()


def test_lower_is_better_for_the_variance(tmp_path):
  found = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.2, 0.6], [0.4, 0.8], [0.3, 0.7]],
      'ditto': [[0.4, 0.5], [0.4, 0.6], [0.4, 0.5]],
      'cffl': [[0.1, 0.9], [0.1, 0.8], [0.1, 0.9]],
    },
  )
  assert found.order(_VARIANCE) == ('ditto', 'fed_avg', 'cffl')
  assert found.best(_VARIANCE) == 'ditto'
  assert found.differences['ditto', _VARIANCE].mean < 0
  # Ditto's differences are -0.0375, -0.03 and -0.0375: t is -14, and the
  # smaller p of two is doubled. CFFL's are 0.12, 0.0825 and 0.12: t is 8.6.
  ditto, cffl = (1 - t / math.sqrt(2 + t * t) for t in (14, 8.6))
  p_values = [found.p_values[m, _VARIANCE] for m in ('ditto', 'cffl')]
  assert p_values == pytest.approx([2 * ditto, cffl])
  verdicts = [found.verdict(m, _VARIANCE) for m in ('ditto', 'fed_avg', 'cffl')]
  assert verdicts == [1, 0, -1]
  # A cost has no best.
  assert found.verdict('ditto', 'seconds_ratio') == 0
  assert found.best('seconds_ratio') is None


def test_marks_are_corrected_for_the_number_of_methods(tmp_path):
  scores = {
    'fed_avg': [[0.50], [0.60], [0.70]],
    # 0.04, 0.05 and 0.07: t is 6.05, p is 0.026.
    'ditto': [[0.54], [0.65], [0.77]],
  }
  alone = _of_scores(tmp_path / 'alone', scores)
  assert alone.verdict('ditto', _MEAN) == 1
  scores['cffl'] = [[0.50], [0.61], [0.69]]
  # Clients that take turns are not compared, and do not count.
  scores['dssgd'] = [[0.60], [0.71], [0.82]]
  found = _of_scores(tmp_path / 'more', scores)
  own = alone.p_values['ditto', _MEAN]
  assert 0.025 < own < 0.05
  assert found.p_values['ditto', _MEAN] == pytest.approx(2 * own)
  assert found.verdict('ditto', _MEAN) == 0
  assert ('dssgd', _MEAN) not in found.p_values
  assert found.verdict('dssgd', _MEAN) == 0


def test_methods_in_turn_are_in_no_order_but_have_a_place(tmp_path):
  levels = {
    'fed_avg': 0.6,
    'ditto': 0.2,
    'dssgd': 0.9,
    'round_robin_fed_avg': 0.1,
  }
  scores = {method: [[level] * 4] * 2 for method, level in levels.items()}
  found = _of_scores(tmp_path / '4', scores)
  assert found.in_turn == ('dssgd', 'round_robin_fed_avg')
  assert found.ranked == found.order(_MEAN) == ('fed_avg', 'ditto')
  assert found.best(_MEAN) == 'fed_avg'
  assert found.front(_MEAN, 'client_accuracy_min') == ('fed_avg',)
  # 6 rounds are 1.5 rounds of 4 clients; the curves rise by a sixth of their
  # end in each round: 0.9 / 4 is above Ditto's end, and 0.1 / 4 below it.
  assert found.equal_depth == 1.5
  place = found.place_after('dssgd', 1.5)
  assert place == pytest.approx((0.225, 2, 3))
  place = found.place_after('round_robin_fed_avg', 1.5)
  assert place == pytest.approx((0.025, 3, 3))
  # Before the first evaluation.
  assert found.place_after('dssgd', 0.9) is None
  # A round of cohorts of 2 clients has half of the updates.
  assert found.equal_updates == 6
  found = _of_scores(tmp_path / '2', scores, cohort_size=2)
  assert found.equal_updates == 3


def test_kinds_of_methods_are_ranked_apart(tmp_path):
  levels = {
    'fed_avg': 0.6,
    'moon': 0.5,
    'ditto': 0.8,
    'cffl': 0.4,
    'dssgd': 0.9,
  }
  scores = {method: [[level] * 4] * 2 for method, level in levels.items()}
  found = _of_scores(tmp_path, scores)
  assert found.kinds == {
    'one model for all': ('fed_avg', 'moon'),
    'a model for each client': ('ditto', 'cffl'),
    'clients take turns': ('dssgd',),
  }
  one, own = (found.of(kind) for kind in [*found.kinds][:2])
  assert (one.best(_MEAN), one.runner_up(_MEAN)) == ('fed_avg', 'moon')
  assert (own.best(_MEAN), own.runner_up(_MEAN)) == ('ditto', 'cffl')
  # Both are corrected for the methods of both.
  assert one.p_values is own.p_values is found.p_values
  assert one.in_turn == ('dssgd',)


def test_mean_accuracy_at_equal_bytes(tmp_path):
  rows = made_comparison.rows(
    methods=['fed_avg', 'ditto', 'cffl', 'standalone'], tune=1
  )
  # FedAvg sends 8,000 bytes in each of its 6 rounds; Ditto has sent as many
  # after 4.8 rounds, CFFL after 60.
  for row in rows:
    row['bytes_up'] = {'ditto': 6000, 'cffl': 100}.get(
      row['method'], row['bytes_up']
    )
    if row['method'] == 'cffl':
      row['bytes_down'] = 700
  found = made_comparison.analyse(tmp_path, rows)

  def shares(method):
    return [
      found.estimates[method, name].mean for name in ('equal_bytes_mean', _MEAN)
    ]

  # The curves rise in equal steps.
  at_bytes, at_end = shares('ditto')
  assert at_bytes == pytest.approx(0.8 * at_end)
  for method in ('fed_avg', 'cffl', 'standalone'):
    at_bytes, at_end = shares(method)
    assert at_bytes == pytest.approx(at_end)


def _of_curves(folder, curves, rounds):
  """FedAvg alone, with a curve for each seed."""
  seeds = range(len(curves))
  rows = made_comparison.rows(seeds, methods=['fed_avg'], tune=1)
  for row, mean in zip(rows, curves, strict=True):
    curve = {'rounds': rounds, 'mean': mean, 'worst10': mean}
    row['curve'] = json.dumps(curve)
  return made_comparison.analyse(folder, rows, made_comparison.facts(seeds))


def test_the_rise_in_the_last_fifth_and_its_standard_error(tmp_path):
  # 80 is half of the way from 60 to 100: rises of .02, .04 and .06.
  curves = [[0.1, 0.5, 0.5 + 2 * rise] for rise in (0.02, 0.04, 0.06)]
  found = _of_curves(tmp_path / 'a', curves, [20, 60, 100])
  assert found.rises['fed_avg'].values == pytest.approx((0.02, 0.04, 0.06))
  error = 0.02 / math.sqrt(3)
  assert found.error_of_rise('fed_avg') == pytest.approx(error)
  assert not found.is_flat('fed_avg')
  # .01, with rises of -.02, 0 and .05: sd .0361, standard error .0208.
  curves = [[0.1, 0.5, 0.5 + 2 * rise] for rise in (-0.02, 0, 0.05)]
  found = _of_curves(tmp_path / 'b', curves, [20, 60, 100])
  assert found.rises['fed_avg'].mean == pytest.approx(0.01)
  assert found.error_of_rise('fed_avg') == pytest.approx(0.0208, abs=1e-4)
  assert found.is_flat('fed_avg')
  falling = [[0.1, 0.5, 0.4]] * 3
  found = _of_curves(tmp_path / 'c', falling, [20, 60, 100])
  assert not found.is_flat('fed_avg')


@pytest.mark.parametrize(
  ('curves', 'rounds'),
  [([[0.5, 0.5]], [3, 6]), ([[0.6]] * 2, [8]), ([[]] * 2, [])],
)
def test_nobody_knows_whether_it_is_flat(tmp_path, curves, rounds):
  assert not _of_curves(tmp_path, curves, rounds).is_flat('fed_avg')


def test_the_seeds_that_it_takes_and_their_time(tmp_path):
  scores = {
    'fed_avg': [[0.5], [0.5], [0.5]],
    'ditto': [[0.51], [0.52], [0.60]],
    'cffl': [[0.4], [0.5], [0.45]],
  }
  found = _of_scores(tmp_path, scores)
  # The mean is .0433, the sd .0493: .88 sd. At 97.5 %, for two methods, t is
  # 2.752 for 9 seeds (.917 sd) and 2.685 for 10 (.849 sd).
  assert found.seeds_needed('ditto', _MEAN) == 10
  # Six rounds of .1, .2 and .1 seconds.
  assert found.seconds_a_seed == pytest.approx(2.4)


def test_seconds_are_those_of_the_least_disturbed_runs(tmp_path):
  rows = made_comparison.rows(methods=['fed_avg', 'cffl'])
  # A trial, which does not count, and three results of each.
  for row, seconds in zip(rows, (1, 2, 4, 9, 1, 3, 6, 12), strict=True):
    row['seconds_per_round'] = seconds
  found = made_comparison.analyse(tmp_path, rows)
  of_cffl = found.estimates['cffl', 'seconds_ratio']
  assert of_cffl.values == (1.5, 1.5, 1.5)
  assert (of_cffl.low, of_cffl.high) == (1.5, 1.5)
  assert found.estimates['fed_avg', 'seconds_ratio'].mean == 1


def test_seconds_of_another_processor_are_not_compared(tmp_path):
  rows = made_comparison.rows(methods=['fed_avg', 'cffl', 'ditto', 'afl'])
  places = {
    'fed_avg': (None, 'old', 'new', 'old'),
    'cffl': (None, 'old', 'new', 'new'),
    'ditto': (None, 'other', 'other', 'other'),
    'afl': (None, '', '', ''),
  }
  seconds = {'fed_avg': (0, 4, 1, 2), 'cffl': (0, 5, 3, 7)}
  for row, i in zip(rows, 4 * [0, 1, 2, 3], strict=True):
    row['processor'] = places[row['method']][i]
    row['seconds_per_round'] = seconds.get(row['method'], 4 * [1])[i]
  found = made_comparison.analyse(tmp_path, rows)
  # 5 / 2 on the old one, 3 / 1 on the new one.
  assert found.estimates['cffl', 'seconds_ratio'].values == (2.5,) * 3
  for method in ('ditto', 'afl'):
    assert found.estimates[method, 'seconds_ratio'].reached == 0
    assert '–' in found.show(method, 'seconds_ratio')


def test_a_rare_success_is_not_the_best(tmp_path):
  rows = made_comparison.rows(methods=['fed_avg', 'ditto'])
  rounds = {('fed_avg', s): 5 for s in range(3)} | {('ditto', 1): 2}
  for row in rows:
    row['rounds_to_target'] = rounds.get((row['method'], row['seed']))
  found = made_comparison.analyse(tmp_path, rows)
  ditto = found.estimates['ditto', 'rounds_to_target']
  assert (ditto.mean, ditto.reached) == (2, 1)
  assert found.order('rounds_to_target') == ('fed_avg', 'ditto')
  assert found.verdict('ditto', 'rounds_to_target') == 0


def test_front_with_ties(tmp_path):
  # Points (mean, worst client): a and b are equal, c is beaten by both, d has
  # the best mean, e the best worst client.
  found = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.4, 0.6]],
      'ditto': [[0.4, 0.6]],
      'cffl': [[0.3, 0.7]],
      'fedakd': [[0.2, 1.0]],
      'fedquad': [[0.45, 0.45]],
    },
  )
  front = found.front(_MEAN, 'client_accuracy_min')
  assert front == ('fedakd', 'ditto', 'fed_avg', 'fedquad')
  assert found.leaders(_MEAN) == ('fedakd',)
  assert found.front(_MEAN, 'cf') == ()


def test_ties_have_several_leaders(tmp_path):
  # The means are 0.3 and 0.30000000000000004.
  found = _of_scores(
    tmp_path, {'fed_avg': [[0.3, 0.3]], 'ditto': [[0.1 + 0.2, 0.3]]}
  )
  assert set(found.leaders(_MEAN)) == {'fed_avg', 'ditto'}


def test_the_curve_has_the_rounds_of_all_seeds(tmp_path):
  rows = made_comparison.rows((0, 1), methods=['fed_avg'], tune=1)
  for row, rounds, mean in zip(
    rows,
    ([1, 3, 4], [1, 2, 3]),
    ([0.1, 0.3, 0.5], [0.2, 0.2, 0.4]),
    strict=True,
  ):
    row['curve'] = str(
      {'rounds': rounds, 'mean': mean, 'worst10': mean}
    ).replace("'", '"')
  about = made_comparison.facts((0, 1))
  curve = made_comparison.analyse(tmp_path, rows, about).curves['fed_avg']
  np.testing.assert_array_equal(curve.rounds, [1, 3])
  np.testing.assert_allclose(curve.mean, [0.15, 0.35])
  half = 12.7062 * 0.05
  ends = [[0.15 - half, 0.35 - half], [0.15 + half, 0.35 + half]]
  np.testing.assert_allclose([curve.low, curve.high], ends, rtol=1e-4)
  assert curve.at(2) == pytest.approx(0.25)
  assert math.isnan(curve.at(0.5))


def test_trials_in_two_stages(tmp_path):
  rows = made_comparison.staged_rows()
  about = made_comparison.facts(tuning=made_comparison.TUNING, tune=4)
  found = made_comparison.analyse(tmp_path, rows, about)
  # Trial 3 has .75, .8 and .85 in full; its rate is the lowest of all.
  tuned = found.tuned['ditto']
  assert tuned == pytest.approx((0.0027, '', 0.8, 4, 1, 2, 1, 0.0027, 0.14))
  assert tuned.is_at_edge
  assert not tuned._replace(learning_rate=0.01).is_at_edge
  # Trials are no results.
  expected = made_comparison.analyse(tmp_path / 'x', made_comparison.rows())
  assert found.methods == expected.methods
  assert found.estimates['ditto', _MEAN] == expected.estimates['ditto', _MEAN]


def test_the_ranking_in_two_halves_of_the_seeds(tmp_path):
  # Over seeds 0 and 1, and with seed 2.
  values = {
    'fed_avg': (0.1, 0.3, 0.5),  # .2, .5
    'ditto': (0.4, 0.2, 0.4),  # .3, .4
    'cffl': (0.3, 0.5, 0.6),  # .4, .6
    'moon': (0.5, 0.5, 0.7),  # .5, .7
  }
  scores = {m: [[v] for v in row] for m, row in values.items()}
  # Clients that take turns are not ranked.
  scores['dssgd'] = [[0.9], [0.9], [0.0]]
  found = _of_scores(tmp_path / 'a', scores)
  # Of six pairs, FedAvg and Ditto change places.
  assert found.agreement(_MEAN) == pytest.approx((5 - 1) / 6)
  # A tie in the second half: tau-b is (5 - 0) / sqrt(6 * 5).
  scores['ditto'][2] = [0.5]
  found = _of_scores(tmp_path / 'b', scores)
  assert found.agreement(_MEAN) == pytest.approx(5 / math.sqrt(30))
  assert math.isnan(found.agreement('cf'))
  single = {m: rows[:1] for m, rows in scores.items()}
  assert math.isnan(_of_scores(tmp_path / 'c', single).agreement(_MEAN))


class TestIncomplete:
  def test_says_why(self, tmp_path):
    rows = [
      row
      for row in made_comparison.rows()
      if (row['method'], row['seed']) not in (('fed_prox', 1), ('ditto', 2))
    ]
    rows += [
      {
        **made_comparison.trial_row('fed_prox', 1, 0, 'diverged'),
        'chosen': True,
      },
      made_comparison.trial_row('cffl', 0, 0, 'diverged'),
      made_comparison.trial_row('cffl', 0, 1, 'diverged'),
    ]
    about = made_comparison.facts(excluded={'fed_rdn': 'It needs images.'})
    found = made_comparison.analyse(tmp_path, rows, about)
    assert found.methods == ('q_fed_avg', 'fed_avg', 'standalone')
    assert found.incomplete == {
      'cffl': 'CFFL diverged in all 2 runs.',
      'ditto': 'Ditto has no result for seed 2.',
      'fed_prox': 'FedProx diverged with seed 1.',
      'fed_rdn': 'It needs images.',
    }
    lost = found.tuned['cffl']
    assert math.isnan(lost.learning_rate)
    assert (lost.num_trials, lost.num_diverged) == (2, 2)
    assert found.tuned['fed_prox'][:2] == (0.1, 'proximal_weight=0.1')
    assert found.tuned['fed_prox'].num_trials == 2

  def test_baseline_leaves_nothing_to_compare_with(self, tmp_path):
    rows = [
      row
      for row in made_comparison.rows()
      if (row['method'], row['seed']) != ('fed_avg', 1)
    ]
    found = made_comparison.analyse(tmp_path, rows)
    assert 'fed_avg' not in found.methods
    assert not any(
      found.verdict('ditto', m.column) for m in measures.OF_METHODS
    )
    # The two seeds that it has still say what a round takes.
    assert found.estimates['ditto', 'seconds_ratio'].mean == pytest.approx(2)

  def test_of_all_methods(self, tmp_path):
    rows = [made_comparison.trial_row('fed_avg', 0, 0, 'diverged')]
    found = made_comparison.analyse(tmp_path, rows)
    assert found.methods == ()
    assert found.incomplete == {'fed_avg': 'FedAvg diverged in its only run.'}
