import json

import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import analysis
from tff_fair.launchers.comparison import answer
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.options import methods


def _say(folder, rows=None, facts=None):
  paths = made_comparison.write(folder, rows, facts)
  return answer.sentences(analysis.analyse(*analysis.read(*paths)))


def _of_scores(folder, scores, **facts):
  seeds = range(len(scores['fed_avg']))
  return _say(
    folder,
    made_comparison.rows(seeds, scores=scores),
    made_comparison.facts(seeds, len(scores['fed_avg'][0]), **facts),
  )


def test_in_full(tmp_path):
  # CF is 100 where the order of two clients is that of Standalone.
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.4, 0.6], [0.5, 0.7], [0.6, 0.8]],
      'ditto': [[0.7, 0.8], [0.8, 0.9], [0.8, 0.9]],
      'fed_prox': [[0.3, 0.8], [0.5, 0.6], [0.6, 0.9]],
      'standalone': [[0.3, 0.4], [0.4, 0.5], [0.5, 0.6]],
    },
    excluded={'fed_rdn': 'It needs images.'},
  )
  assert said == [
    'On digits with 2 clients, 6 rounds and 3 seeds, for the mean Ditto has the'
    ' highest number, 0.817 (95 % interval 0.673 to 0.960), against 0.600 with'
    ' FedAvg, not separable; next is FedProx with 0.617.',
    # 0.3, 0.3 and 0.2: t is 8, p 0.0153, and 0.046 for three methods.
    'For the worst 10 % of the clients Ditto has the highest number, 0.767 (95'
    ' % interval 0.623 to 0.910), against 0.500 with FedAvg, separably less.',
    'For collaborative fairness (CF coefficient) Ditto, FedProx and FedAvg tie'
    ' at 100.0.',
    'No method is called a leader: that takes 5 seeds, found 3; the mean'
    ' accuracy still rises in the last quarter of the rounds, by more than'
    ' 0.005, with FedAvg (0.150) and Ditto (0.204); no separable lead in mean'
    ' accuracy.',
    'Of 3 other methods, the mean is separably better than FedAvg’s with none'
    ' and worse with none; the worst 10 % are better with 1 and worse with'
    ' none.',
    'Nothing is separable from FedAvg in mean accuracy, variance, macro-F1, CF'
    ' coefficient, share of better-off clients and rounds to the target.',
    'With Ditto and FedAvg every client is better off in every run than when it'
    ' trains alone.',
    'Compared with a round of FedAvg, one of Ditto takes 2.00 times the seconds'
    ' and 1.00 times the bytes.',
    'The target (95 % of FedAvg’s final mean accuracy of the same seed) is best'
    ' reached with Ditto, after 5.0 rounds in 3 of 3 seeds; with FedAvg after'
    ' 3.5 rounds in 2 of 3 seeds.',
    'Separable is a difference by a paired t test over the 3 seeds at the 5 %'
    ' level, corrected for the number of methods (Holm).',
    'Left out of all this: FedRDN (It needs images).',
  ]


def _settled(rows):
  """The rows with curves that do not rise, all but one of their points."""
  for row in rows:
    if row['chosen']:
      mean = [row['client_accuracy_mean']] * 2
      curve = {'rounds': [3, 6], 'mean': mean, 'worst10': mean}
      row['curve'] = json.dumps(curve)
  return rows


def _of_two(folder, ditto, cffl, settled=True):
  """Ditto and CFFL against FedAvg with equal accuracies of two clients."""
  levels = {'fed_avg': (0.5, 0.6, 0.7, 0.6, 0.5), 'ditto': ditto, 'cffl': cffl}
  seeds = range(len(ditto))
  scores = {
    method: [[value, value] for value in values[: len(ditto)]]
    for method, values in levels.items()
  }
  rows = made_comparison.rows(seeds, scores=scores)
  rows = _settled(rows) if settled else rows
  return _say(folder, rows, made_comparison.facts(seeds, 2))


def _no_leader(said):
  return [sentence for sentence in said if 'called a leader' in sentence]


_ABOVE, _LOW = (0.6, 0.71, 0.8, 0.71, 0.6), (0.3,) * 5


class TestLeader:
  # Each end of the sentence about the mean; Ditto's and CFFL's accuracies.
  @pytest.mark.parametrize(
    ('end', 'ditto', 'cffl'),
    [
      (
        'for the mean Ditto leads with 0.684 (95 % interval 0.578 to 0.790),'
        ' against 0.580 with FedAvg, separably less.',
        _ABOVE,
        _LOW,
      ),
      (
        ', against 0.580 with FedAvg, separably less; next is CFFL with 0.660.',
        _ABOVE,
        (0.9, 0.4, 0.9, 0.4, 0.7),
      ),
      ('for the mean all 3 methods tie at 0.580.', (0.58,) * 5, (0.58,) * 5),
    ],
  )
  def test_with_five_seeds_settled_curves_and_a_separable_lead(
    self, tmp_path, end, ditto, cffl
  ):
    said = _of_two(tmp_path, ditto, cffl)
    assert said[0].endswith(end)
    assert not _no_leader(said)

  def test_none_while_curves_rise(self, tmp_path):
    said = _of_two(tmp_path, _ABOVE, _LOW, settled=False)
    assert 'for the mean Ditto has the highest number, 0.684' in said[0]
    (why,) = _no_leader(said)
    assert why == (
      'No method is called a leader: the mean accuracy still rises in the last'
      ' quarter of the rounds, by more than 0.005, with FedAvg (0.145) and'
      ' Ditto (0.171).'
    )

  def test_none_with_four_seeds(self, tmp_path):
    said = _of_two(tmp_path, _ABOVE[:4], _LOW[:4])
    assert 'separably less' in said[0] and 'leads' not in said[0]
    (why,) = _no_leader(said)
    assert why == ('No method is called a leader: that takes 5 seeds, found 4.')

  def test_none_where_the_seeds_cannot_tell_it_from_the_baseline(
    self, tmp_path
  ):
    said = _of_two(tmp_path, (0.4, 0.8, 0.8, 0.7, 0.5), _LOW)
    assert said[0].endswith('against 0.580 with FedAvg, not separable.')
    (why,) = _no_leader(said)
    assert why == (
      'No method is called a leader: no separable lead in mean accuracy and'
      ' worst 10 %.'
    )

  def test_the_baseline_is_none(self, tmp_path):
    said = _of_two(tmp_path, (0.4, 0.5, 0.6, 0.5, 0.5), _LOW)
    assert said[0].endswith(
      'for the mean FedAvg itself has the highest number, 0.580 (95 % interval'
      ' 0.476 to 0.684); next is Ditto with 0.500.'
    )
    (why,) = _no_leader(said)
    assert why.endswith(
      'FedAvg itself is first in mean accuracy and worst 10 %.'
    )

  def test_none_where_no_curve_tells_whether_it_rises(self, tmp_path):
    rows = made_comparison.rows(
      range(5),
      scores={
        m: [[v] for v in values]
        for m, values in (
          ('fed_avg', (0.5, 0.6, 0.7, 0.6, 0.5)),
          ('ditto', _ABOVE),
        )
      },
    )
    for row in rows:
      row['curve'] = '{"rounds": [6], "mean": [0.7], "worst10": [0.7]}'
    said = _say(tmp_path, rows, made_comparison.facts(range(5), 1))
    (why,) = _no_leader(said)
    assert why.endswith('some curves do not tell whether they still rise.')

  def test_for_cf_standalone_must_have_settled_too(self, tmp_path):
    # CF is 100 for Ditto, and varies around -100 for FedAvg.
    alone = [[0.3, 0.4, 0.5]] * 5
    low = [[0.5, 0.4, 0.3 + 0.01 * seed] for seed in range(5)]
    scores = {
      'fed_avg': low,
      'ditto': [[0.6, 0.7, 0.8]] * 5,
      'standalone': alone,
    }
    rows = _settled(made_comparison.rows(range(5), scores=scores))
    about = made_comparison.facts(range(5), 3)
    said = _say(tmp_path / 'settled', rows, about)
    assert said[2].startswith(
      'For collaborative fairness (CF coefficient) Ditto leads'
    )
    for row in rows:
      if row['method'] == 'standalone':
        row['curve'] = (
          '{"rounds": [3, 6], "mean": [0.3, 0.4], "worst10": [0.3, 0.4]}'
        )
    said = _say(tmp_path / 'rising', rows, about)
    assert 'leads' in said[0] and 'leads' not in said[2]
    (why,) = _no_leader(said)
    assert why == (
      'No method is called a leader in CF coefficient: the mean accuracy still'
      ' rises in the last quarter of the rounds, by more than 0.005, with'
      ' Standalone (0.050).'
    )


def test_a_tie_with_a_separable_lead(tmp_path):
  said = _of_two(tmp_path, _ABOVE, _ABOVE)
  assert said[0].endswith(
    'for the mean CFFL and Ditto tie at 0.684, against 0.580 with FedAvg, from'
    ' which CFFL and Ditto can be separated.'
  )


def test_a_cf_coefficient_is_told_with_the_share_of_better_off_clients(
  tmp_path,
):
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5, 0.6, 0.5], [0.5, 0.6, 0.4]],
      'ditto': [[0.3, 0.4, 0.5], [0.4, 0.5, 0.6]],
      'standalone': [[0.3, 0.4, 0.5], [0.3, 0.4, 0.5]],
    },
  )
  assert (
    '; better off than alone are 0.50 of its clients (FedAvg 0.67)'
  ) in said[2]


class TestChance:
  def _say(self, folder, lowest):
    # Ten clients, of which one is worse, on 100 test examples each.
    scores = {m: [[lowest, *[0.9] * 9]] * 2 for m in ('fed_avg', 'ditto')}
    said = _of_scores(folder, scores, test_examples=[[100] * 10] * 2)
    return [sentence for sentence in said if 'By chance' in sentence]

  def test_may_be_the_reason(self, tmp_path):
    (said,) = self._say(tmp_path, 0.85)
    chance = client_scores.worst_by_chance([100] * 10, 0.895)
    assert abs(chance - 0.85) < 0.02
    assert said == (
      'By chance alone, if all clients had the same true accuracy, FedAvg’s'
      f' worst 10 % would be {chance:.3f}; found is 0.850, no sign of clients'
      ' that are treated worse. Within 0.02 of chance: 2 of 2 methods.'
    )

  def test_is_not_the_reason(self, tmp_path):
    (said,) = self._say(tmp_path, 0.3)
    assert said.endswith(
      'found is 0.300. Within 0.02 of chance: 0 of 2 methods.'
    )

  def test_is_not_told_without_sizes(self, tmp_path):
    assert 'By chance' not in ''.join(_say(tmp_path))


class TestSmallTestParts:
  _SCORES = {
    'fed_avg': 2 * [[0.5, 0.6, 1.0]],
    'ditto': 2 * [[0.7, 0.7, 0.0]],
  }

  def _say(self, folder, sizes, names=('a', 'b', 'Armed\nForces')):
    said = _of_scores(
      folder, self._SCORES, test_examples=sizes, client_names=[*names]
    )
    return [x for x in said if 'averages only' in x]

  def test_are_named(self, tmp_path):
    assert self._say(tmp_path, [[50, 60, 9]] * 2) == [
      'Having fewer than 10 test examples, Armed Forces counts in averages'
      ' only; without such clients the highest mean is 0.700 with Ditto,'
      ' against 0.550 with FedAvg.'
    ]

  @pytest.mark.parametrize(
    ('sizes', 'names', 'told'),
    [
      ([[50, 9, 9], [50, 60, 9]], 'abc', '1 to 2 of 3 clients, by seed, count'),
      ([[50, 9, 9], [9, 60, 9]], 'abc', '2 of 3 clients count'),
      ([[50, 9, 60]] * 2, '', '1 of 3 clients counts'),
      ([[50, 9, 9]] * 2, 'abc', 'b and c count'),
    ],
  )
  def test_are_counted(self, tmp_path, sizes, names, told):
    (said,) = self._say(tmp_path, sizes, names)
    assert said.startswith(f'Having fewer than 10 test examples, {told} in')

  def test_are_not_told_where_there_are_none(self, tmp_path):
    assert not self._say(tmp_path, [[50, 60, 10]] * 2)


def test_methods_in_turn_are_not_ranked(tmp_path):
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5] * 4] * 2,
      'ditto': [[0.2] * 4] * 2,
      'dssgd': [[0.9] * 4] * 2,
      'round_robin_fed_avg': [[0.7] * 4] * 2,
    },
  )
  assert said[0].endswith(
    'for the mean FedAvg itself has the highest number, 0.500 (95 % interval'
    ' 0.500 to 0.500); next is Ditto with 0.200.'
  )
  # A quarter of 0.9 and of 0.7: after 1.5 of 6 rounds on a straight line.
  assert (
    'Not ranked, since clients take turns and a round is 4 updates in a row:'
    ' DSSGD; FedAvg, in turn. After 6 updates in a row, as many as with FedAvg'
    ' (1.5 of their rounds), their mean accuracy is: DSSGD 0.225, place 2 of 3;'
    ' FedAvg, in turn 0.175, place 3 of 3.'
  ) in said
  assert sum('DSSGD' in sentence for sentence in said) == 1


def test_equal_runs(tmp_path):
  said = _of_scores(
    tmp_path, {m: 2 * [[0.5, 0.5]] for m in ('fed_avg', 'ditto', 'cffl')}
  )
  assert said == [
    'On digits with 2 clients, 6 rounds and 2 seeds, for the mean all 3 methods'
    ' tie at 0.500.',
    'For the worst 10 % of the clients all 3 methods tie at 0.500.',
    'For collaborative fairness (CF coefficient) there is no answer: no method'
    ' has a defined CF coefficient.',
    'Nothing is separable from FedAvg in any measure.',
    'No method reaches the target (95 % of FedAvg’s final mean accuracy of the'
    ' same seed).',
    'Separable is a difference by a paired t test over the 2 seeds at the 5 %'
    ' level, corrected for the number of methods (Holm).',
  ]


def test_of_one_seed_claims_nothing(tmp_path):
  rows, about = made_comparison.rows((0,)), made_comparison.facts((0,))
  said = _say(tmp_path, rows, about)
  assert 'interval' not in ''.join(said[:-1])
  assert 'separable' not in ''.join(said)
  assert said[-1] == (
    'With one seed there is no interval, and another seed may turn any order'
    ' round.'
  )


def test_a_measure_that_the_baseline_lacks(tmp_path):
  # FedAvg serves all alike, so that its CF coefficient is not defined.
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': 2 * [[0.5, 0.5]],
      'ditto': 2 * [[0.5, 0.7]],
      'standalone': 2 * [[0.3, 0.5]],
    },
  )
  assert said[2] == (
    'For collaborative fairness (CF coefficient) Ditto has the highest number,'
    ' 100.0 (95 % interval 100.0 to 100.0); FedAvg has no defined value; better'
    ' off than alone are 1.00 of its clients (FedAvg 0.50).'
  )


def test_nobody_gains_from_taking_part(tmp_path):
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5, 0.6, 0.3, 0.4], [0.5, 0.6, 0.7, 0.4]],
      'standalone': 2 * [[0.4, 0.5, 0.6, 0.4]],
    },
  )
  # 2 and 3 of 4; an equal accuracy is no gain.
  assert (
    'With no method every client is better off in every run than when it trains'
    ' alone; the largest share of clients is 0.62, with FedAvg.'
  ) in said


def test_of_an_incomplete_baseline(tmp_path):
  rows = [
    row
    for row in made_comparison.rows()
    if (row['method'], row['seed']) != ('fed_avg', 1)
  ]
  rows.append(made_comparison.trial_row('fed_avg', 1, 0, 'diverged'))
  said = _say(tmp_path, rows)
  assert said[4] == (
    'FedAvg lacks a result for some seed, so no method is compared with it.'
  )
  assert said[-1] == 'Left out of all this: FedAvg diverged with seed 1.'
  assert not any('against' in sentence for sentence in said)


@pytest.mark.parametrize(
  'found,end',
  [
    (['fed_avg'], 'there is nothing to compare it with.'),
    ([], 'no method has a result for every seed.'),
  ],
)
def test_nothing_to_compare(tmp_path, found, end):
  rows = made_comparison.rows(methods=found)
  rows.append(made_comparison.trial_row('fed_avg', 1, 5, 'diverged'))
  assert _say(tmp_path, rows)[0].endswith(end)


def test_of_all_methods_names_a_few_of_them(tmp_path):
  seeds = range(5)
  rows = made_comparison.rows(seeds, methods=tuple(methods.METHODS))
  said = _say(tmp_path, rows, made_comparison.facts(seeds))
  assert 6 <= len(said) <= 12
  assert max(map(len, said)) < 260
  assert not any('_' in sentence or 'nan' in sentence for sentence in said)
