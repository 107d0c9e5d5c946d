"""Pairs, outcomes and verdicts, worked by hand."""

import math

import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts

_ABOVE = made_rows.parse('above fed_avg')
_BELOW = made_rows.parse('below fed_avg')
_TRANSCRIBED = {'source': 'transcribed'}
_NAN = math.nan


def _both(ours, other, **others):
  return [
    *made_rows.rows('fedquad', ours, **others),
    *made_rows.rows('fed_avg', other, **others),
  ]


def _measure(*groups, comparison=_ABOVE):
  return verdicts.measure(comparison, made_rows.group(*groups))


def _differences(measured):
  return {
    seed: left.value - right.value
    for seed, (left, right) in measured.pairs.items()
  }


def test_seeds_are_paired_by_their_number():
  found = _measure(_both({'2': 5.0, '0': 1.0, '10': 9.0}, {'0': 0.5, '2': 7.0}))
  assert list(_differences(found).items()) == [('0', 0.5), ('2', -2.0)]
  assert found.means == (3.0, 3.75)
  assert found.setting == ('cifar10', 1.0, 20)
  assert verdicts.count_seeds(found.pairs) == 2


@pytest.mark.parametrize(
  'other',
  [{'scale': 0.5}, {'rounds': 10}, {'data': 'x'}, {'cell': 'cifar10_iid_c10'}],
)
def test_other_settings_do_not_meet(other):
  ours = made_rows.rows('fedquad', [1.0])
  others = made_rows.rows('fed_avg', [1.0], **other)
  assert _measure(ours, others).outcome == 'missing'
  found = _measure(ours, others, made_rows.rows('fed_avg', [2.0]))
  assert found.means == (1, 2)


def test_other_rounds_meet_where_a_claim_says_so():
  """Each with its longest, and never of other data or another share of them."""
  comparison = _ABOVE._replace(any_rounds=True)
  found = _measure(
    made_rows.rows('fedquad', [1.0, 2.0], rounds=5),
    made_rows.rows('fedquad', [3.0, 4.0], rounds=9),
    made_rows.rows('fed_avg', [1.5, 1.5], rounds=20),
    made_rows.rows('fed_avg', [9.0, 9.0], rounds=7),
    comparison=comparison,
  )
  assert _differences(found) == {'0': 1.5, '1': 2.5}
  assert {number.rounds for number in found.numbers} == {9, 20}
  for other in ({'scale': 0.5}, {'data': 'x'}):
    groups = (
      made_rows.rows('fedquad', [1.0]),
      made_rows.rows('fed_avg', [1.0], **other),
    )
    assert _measure(*groups, comparison=comparison).outcome == 'missing'


def test_other_seeds_do_not_meet():
  assert _measure(_both({'0': 1.0}, {'1': 1.0})).outcome == 'missing'
  assert _measure(_both({'0-2': 1.0}, {'0': 1.0})).outcome == 'missing'


@pytest.mark.parametrize(
  ('better', 'worse'),
  [
    # Two seeds before all else, though the scale is less.
    (({'scale': 0.1}, 2), ({}, 1)),
    # The paper's data before what stands in for them.
    (({'scale': 0.1}, 1), ({'data': 'mnist'}, 1)),
    # A larger share of the data, then more rounds.
    (({'scale': 0.4, 'rounds': 5}, 2), ({'scale': 0.1}, 3)),
    (({'rounds': 20}, 2), ({'rounds': 19}, 4)),
  ],
)
def test_choice_of_the_setting(better, worse):
  for order in (1, -1):
    groups = [
      _both([float(place)] * seeds, [0.0] * seeds, **others)
      for place, (others, seeds) in (((1, better), (2, worse))[::order])
    ]
    assert _measure(*groups).means[0] == 1.0


def test_a_seed_that_is_undefined_does_not_count_as_one():
  found = _measure(
    _both([1.0, _NAN], [0.0, 0.0], scale=1.0),
    _both([2.0, 2.0], [0.0, 0.0], scale=0.5),
  )
  assert found.means[0] == 2.0
  found = _measure(_both([_NAN], [1.0]))
  assert verdicts.count_seeds(found.pairs) == 0 and found.support == math.inf


def test_transcribed_means_have_no_seeds():
  rows = _both({'0-2': 41.0}, {'0-2': 40.0}, **_TRANSCRIBED)
  found = _measure(rows)
  assert _differences(found) == {'0-2': 1.0} and found.outcome == 'open'
  assert verdicts.count_seeds(found.pairs) == 0
  # Seeds of their own come first, also in the same setting.
  found = _measure(rows, _both([7.0, 8.0], [1.0, 1.0]))
  assert _differences(found) == {'0': 6.0, '1': 7.0}


def test_what_never_happened_happened_after_the_last_round():
  (comparison,) = statements.parse(
    'cffl_freerider: isolation_round of cffl_u1 at most 5 in mnist_p5'
  )
  rows = made_rows.rows(
    'cffl_u1',
    [2.0, _NAN],
    table='cffl_freerider',
    cell='mnist_p5',
    metric='isolation_round',
    data='mnist',
    rounds=30,
  )
  found = _measure(rows, comparison=comparison)
  assert _differences(found) == {'0': -3.0, '1': 26.0}


def test_methods_with_rounds_of_their_own_meet():
  place = {'table': 'fedakd_protocols', 'cell': 'cifar10_pow'}
  (comparison,) = statements.parse(
    'fedakd_protocols: client_accuracy_mean of fedakd_own_protocol above'
    ' fed_avg in cifar10_pow'
  )

  def measure(rounds, of_other):
    ours, other = (
      made_rows.rows(
        method, [50.0, 51.0], metric='client_accuracy_mean', rounds=n, **place
      )
      for method, n in (('fedakd_own_protocol', rounds), ('fed_avg', of_other))
    )
    return _measure(ours, other, comparison=comparison).outcome

  assert measure(30, 20) == 'open'
  # A short look at one of them is not the same.
  assert measure(30, 19) == 'missing'


def test_a_difference_by_hand():
  # Differences 1, 2 and 6: their variance is 7, and t of 2 degrees 4.3027.
  found = _measure(_both([41.0, 42.0, 46.0], [40.0, 40.0, 40.0]))
  half = 4.3027 * math.sqrt(7 / 3)
  estimate = found.estimate.mean, found.estimate.low, found.estimate.high
  assert estimate == pytest.approx((3, 3 - half, 3 + half), abs=1e-3)
  assert found.support == 3.0 / 40.0 and found.outcome == 'open'


@pytest.mark.parametrize(
  ('ours', 'other', 'above', 'outcome'),
  [
    ([3.0, 3.1], [1.0, 1.0], True, 'for'),
    ([3.0, 3.1], [1.0, 1.0], False, 'against'),
    ([0.0, 0.01], [1.0, 1.0], True, 'against'),
    ([0.0, 0.01], [1.0, 1.0], False, 'for'),
    ([0.0, 3.0], [1.0, 1.0], True, 'open'),
    ([0.0, 3.0], [1.0, 1.0], False, 'open'),
    ([1.0, 1.0], [1.0, 1.0], True, 'open'),
    ([2.0, 3.0], [1.0, 1.0], True, 'open'),
    # Three seeds do not decide what six do.
    ([1.0, 2.0, 3.0], [0.0] * 3, True, 'open'),
    ([1.0, 2.0, 3.0] * 2, [0.0] * 6, True, 'for'),
    # Far apart between the seeds, but always one ahead.
    ([10.0, 50.0, 90.0], [9.0, 49.0, 89.0], True, 'for'),
    ([9.0], [1.0], True, 'open'),
    ([9.0, _NAN], [1.0, 1.0], True, 'open'),
    ([_NAN, _NAN], [1.0, 1.0], True, 'open'),
    ([9.0, 9.0, _NAN], [1.0, 2.0, 3.0], True, 'for'),
  ],
)
def test_outcomes(ours, other, above, outcome):
  comparison = _ABOVE if above else _BELOW
  assert _measure(_both(ours, other), comparison=comparison).outcome == outcome


# Differences of 1.9 and 2.1: mean 2, half of the interval 12.706 * .1 = 1.27.
@pytest.mark.parametrize(
  ('relation', 'outcome', 'support'),
  [
    ('more than 0.7 above', 'for', 0.13),
    ('more than 0.8 above', 'open', 0.12),
    ('more than 3.2 above', 'open', -0.12),
    ('more than 3.3 above', 'against', -0.13),
    ('less than 3.3 above', 'for', 0.13),
    ('less than 3.2 above', 'open', 0.12),
    ('less than 0.7 above', 'against', -0.13),
  ],
)
def test_a_margin_by_hand(relation, outcome, support):
  found = _measure(
    _both([11.9, 12.1], [10.0, 10.0]),
    comparison=made_rows.parse(f'{relation} fed_avg'),
  )
  assert found.outcome == outcome
  assert found.support == pytest.approx(support)


def test_rounding_of_transcribed_values_decides_nothing():
  ours, other, far = [0.855, 0.863], [0.854, 0.862], [0.856, 0.864]
  assert _measure(_both(ours, other)).outcome == 'for'
  assert _measure(_both(ours, other, **_TRANSCRIBED)).outcome == 'open'
  assert _measure(_both(other, ours, **_TRANSCRIBED)).outcome == 'open'
  assert _measure(_both(far, other, **_TRANSCRIBED)).outcome == 'for'
  assert _measure(_both(other, far, **_TRANSCRIBED)).outcome == 'against'
  # Of a run the digits are known: those of the transcribed count.
  mixed = [
    *made_rows.rows('fedquad', [41.123, 41.123]),
    *made_rows.rows('fed_avg', [41.1, 41.1], **_TRANSCRIBED),
  ]
  assert _measure(mixed).outcome == 'open'


@pytest.mark.parametrize(
  ('values', 'relation', 'outcome'),
  [
    ([100.0, 100.0], 'at least', 'for'),
    ([100.0, 100.0], 'at most', 'for'),
    ([100.0, 80.0], 'at least', 'open'),
    ([81.0, 80.0], 'at least', 'against'),
    ([101.0, 101.1], 'at most', 'against'),
    ([100.0], 'at least', 'open'),
  ],
)
def test_a_level_itself_is_enough(values, relation, outcome):
  comparison = made_rows.parse(f'{relation} 100')
  found = _measure(made_rows.rows('fedquad', values), comparison=comparison)
  assert found.outcome == outcome and found.means[1] == 100


@pytest.mark.parametrize(
  ('outcomes', 'verdict', 'of_most'),
  [
    ('for', verdicts.HOLDS, verdicts.HOLDS),
    ('for for', verdicts.HOLDS, verdicts.HOLDS),
    ('for against', verdicts.IN_PART, verdicts.FAILS),
    ('for for against', verdicts.IN_PART, verdicts.HOLDS),
    ('for against open missing', verdicts.IN_PART, verdicts.UNDECIDED),
    ('for for against open', verdicts.IN_PART, verdicts.UNDECIDED),
    ('for open against against', verdicts.IN_PART, verdicts.FAILS),
    ('against open missing', verdicts.FAILS, verdicts.UNDECIDED),
    ('against', verdicts.FAILS, verdicts.FAILS),
    ('for open', verdicts.UNDECIDED, verdicts.UNDECIDED),
    ('for for for missing', verdicts.UNDECIDED, verdicts.HOLDS),
    ('open', verdicts.UNDECIDED, verdicts.UNDECIDED),
    ('missing', verdicts.UNDECIDED, verdicts.UNDECIDED),
  ],
)
def test_verdicts(outcomes, verdict, of_most):
  for order in (1, -1):
    words = outcomes.split()[::order]
    assert verdicts.verdict(words) == verdict
    assert verdicts.verdict(words, most=True) == of_most


def _judge(claim, **values):
  rows = [made_rows.rows(method, v) for method, v in values.items()]
  return verdicts.judge(made_rows.group(*rows), {'x-1': claim})['x-1']


def test_a_claim_is_judged_by_all_its_comparisons():
  claim = made_rows.claim('above fed_avg', 'above moon', 'above triplet_fl')
  values = {'fedquad': [5.0, 5.1], 'fed_avg': [1.0, 1.0], 'moon': [9.0, 9.0]}
  result = _judge(claim, **values)
  assert result.ours.verdict == verdicts.IN_PART
  assert result.ours.counts == {'for': 1, 'against': 1, 'missing': 1}
  assert len(result.ours.run) == 2 and result.other is None
  most = claim._replace(most=True)
  assert _judge(most, **values).ours.verdict == verdicts.UNDECIDED
  uncounted = claim._replace(uncounted='Because.')
  assert _judge(uncounted, **values).ours.verdict == verdicts.UNCOUNTED


def test_the_telling_difference_speaks_most_against_the_claim():
  claim = made_rows.claim(
    'above fed_avg', 'above moon', 'above triplet_fl', 'above supcon_fl'
  )
  values = {
    'fedquad': [5.0, 5.1],
    'fed_avg': [1.0, 1.0],
    'moon': [9.0, 9.0],
    'triplet_fl': [19.0, 19.0],
    'supcon_fl': [99.0],  # One seed is far ahead, but tells little.
  }

  def telling(**others):
    found = _judge(claim, **{**values, **others}).ours.telling
    return found.comparison.right.method

  assert telling() == 'triplet_fl'
  assert telling(triplet_fl=[0.1, 5.0]) == 'moon'
  # What is open comes before what is for it.
  assert telling(triplet_fl=[5.5, 5.5], moon=[1.0, 1.0]) == 'triplet_fl'
  assert telling(triplet_fl=[], moon=[4.0, 4.0]) == 'moon'
  assert telling(fedquad=[5.0]) == 'supcon_fl'
  assert _judge(claim, fedquad=[1.0]).ours.telling is None


def test_the_other_reading_is_judged_alike():
  claim = made_rows.claim(
    'above triplet_fl', others=['above triplet_fl_without_ce']
  )
  values = {'fedquad': [5.0, 5.1], 'triplet_fl': [9.0, 9.0]}
  result = _judge(claim, **values)
  assert result.ours.verdict == verdicts.FAILS
  assert result.other.verdict == verdicts.UNDECIDED and not result.other.run
  result = _judge(claim, **values, triplet_fl_without_ce=[1.0, 1.0])
  assert result.ours.verdict == verdicts.FAILS
  assert result.other.verdict == verdicts.HOLDS
