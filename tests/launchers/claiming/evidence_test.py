"""Pairs, looks and sizes, by hand."""

import math

import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import statements

_ABOVE = made_rows.parse('above fed_avg')
_NAN = math.nan
_both = made_rows.both


def _find(*groups, comparison=_ABOVE, sizes=evidence.SIZES):
  return evidence.find(comparison, made_rows.group(*groups), sizes)


def _differences(found):
  return {
    seed: left.value - right.value
    for seed, (left, right) in found.pairs.items()
  }


def test_seeds_are_paired_by_their_number():
  (found,) = _find(_both({'2': 5.0, '0': 1.0, '10': 9.0}, {'0': 0.5, '2': 7.0}))
  assert list(_differences(found).items()) == [('0', 0.5), ('2', -2.0)]
  assert found.setting == ('cifar10', 1.0, 20, 1.0)


@pytest.mark.parametrize(
  'other',
  [
    {'scale': 0.5},
    {'clients': 0.5},
    {'rounds': 10},
    {'data': 'x'},
    {'cell': 'cifar10_iid_c10'},
  ],
)
def test_other_settings_do_not_meet(other):
  ours = made_rows.rows('fedquad', [1.0])
  others = made_rows.rows('fed_avg', [1.0], **other)
  assert not _find(ours, others)
  (found,) = _find(ours, others, made_rows.rows('fed_avg', [2.0]))
  assert _differences(found) == {'0': -1.0}


def test_other_rounds_meet_where_a_claim_says_so():
  """Each with its longest, and never of other data or another share of them."""
  comparison = _ABOVE._replace(any_rounds=True)
  longest, _ = _find(
    made_rows.rows('fedquad', [1.0, 2.0], rounds=5),
    made_rows.rows('fedquad', [3.0, 4.0], rounds=9),
    made_rows.rows('fed_avg', [1.5, 1.5], rounds=20),
    made_rows.rows('fed_avg', [9.0, 9.0], rounds=7),
    comparison=comparison,
  )
  assert _differences(longest) == {'0': 1.5, '1': 2.5}
  rounds = {number.rounds for number in evidence.numbers_of(longest.pairs)}
  assert rounds == {9, 20}
  for other in ({'scale': 0.5}, {'clients': 0.5}, {'data': 'x'}):
    groups = (
      made_rows.rows('fedquad', [1.0]),
      made_rows.rows('fed_avg', [1.0], **other),
    )
    assert not _find(*groups, comparison=comparison)


def test_other_seeds_do_not_meet():
  assert not _find(_both({'0': 1.0}, {'1': 1.0}))
  assert not _find(_both({'0-2': 1.0}, {'0': 1.0}))


@pytest.mark.parametrize(
  ('number', 'used', 'left_aside'),
  [
    (1, 1, 0),
    (2, 2, 0),
    (3, 3, 0),
    (5, 3, 2),
    (6, 6, 0),
    (8, 6, 2),
    (11, 9, 2),
  ],
)
def test_only_planned_numbers_of_seeds_are_used(number, used, left_aside):
  """The first ones, in their order."""
  (found,) = _find(_both([float(n) for n in range(number)], [0.0] * number))
  assert [*found.used] == [str(seed) for seed in range(used)]
  assert found.left_aside == left_aside


def test_a_seed_that_is_undefined_does_not_count_as_one():
  (found,) = _find(_both([1.0, _NAN, 2.0, 3.0, 4.0], [0.0] * 5))
  assert [*found.used] == ['0', '2', '3'] and found.left_aside == 1
  (found,) = _find(_both([_NAN, _NAN], [1.0, 2.0]))
  assert not found.defined and found.left_aside == 0


def test_transcribed_means_have_no_seeds():
  rows = _both({'0-2': 41.0}, {'0-2': 40.0}, source='transcribed')
  (found,) = _find(rows)
  assert _differences(found) == {'0-2': 1.0} and not found.defined
  # Seeds of their own come first, also in the same setting.
  (found,) = _find(rows, _both([7.0, 8.0], [1.0, 1.0]))
  assert _differences(found) == {'0': 6.0, '1': 7.0}


@pytest.mark.parametrize(
  ('place', 'size'),
  [
    ({}, evidence.PAPERS),
    ({'rounds': 30}, evidence.PAPERS),
    ({'rounds': 19}, evidence.REDUCED),
    ({'scale': 0.99}, evidence.REDUCED),
    ({'clients': 0.99}, evidence.REDUCED),
    ({'data': 'mnist'}, evidence.STAND_IN),
    ({'data': 'mnist', 'scale': 0.1, 'rounds': 5}, evidence.STAND_IN),
  ],
)
def test_sizes(place, size):
  (found,) = _find(_both([1.0], [0.0], **place))
  assert found.size == size


def test_a_size_is_of_both_sides():
  comparison = _ABOVE._replace(any_rounds=True)
  (found,) = _find(
    made_rows.rows('fedquad', [1.0], rounds=20),
    made_rows.rows('fed_avg', [1.0], rounds=19),
    comparison=comparison,
  )
  assert found.size == evidence.REDUCED


def test_the_first_size_with_numbers_answers():
  groups = [
    _both([1.0] * 3, [0.0] * 3, data='mnist'),
    _both([2.0] * 3, [0.0] * 3, scale=0.5),
  ]
  for sizes, expected in (
    (evidence.SIZES, evidence.REDUCED),
    (evidence.SIZES[::-1], evidence.STAND_IN),
    ([evidence.PAPERS, evidence.STAND_IN], evidence.STAND_IN),
  ):
    (found,) = _find(*groups, sizes=sizes)
    assert found.size == expected
  assert not _find(*groups, sizes=[evidence.PAPERS])


@pytest.mark.parametrize(
  ('better', 'worse'),
  [
    # The seeds of a look, though the share is less.
    (({'scale': 0.1}, 3), ({'scale': 0.4}, 2)),
    # A larger share of the data, then more rounds.
    (({'scale': 0.4, 'rounds': 5}, 3), ({'scale': 0.1}, 6)),
    (({'scale': 0.4}, 1), ({'scale': 0.1}, 2)),
    (({'clients': 0.4}, 1), ({'scale': 0.3}, 2)),
    (({'rounds': 19}, 3), ({'rounds': 18}, 9)),
  ],
)
def test_settings_of_one_size_in_their_order(better, worse):
  """None is left out."""
  for order in (1, -1):
    groups = [
      _both([float(place)] * seeds, [0.0] * seeds, **others)
      for place, (others, seeds) in (((1, better), (2, worse))[::order])
    ]
    found = [_differences(evidence)['0'] for evidence in _find(*groups)]
    assert found == [1.0, 2.0]


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
  (found,) = _find(rows, comparison=comparison)
  assert _differences(found) == {'0': -3.0, '1': 26.0}


def test_methods_with_rounds_of_their_own_meet():
  place = {'table': 'fedakd_protocols', 'cell': 'cifar10_pow'}
  (comparison,) = statements.parse(
    'fedakd_protocols: client_accuracy_mean of fedakd_own_protocol above'
    ' fed_avg in cifar10_pow'
  )

  def find(rounds, of_other):
    ours, other = (
      made_rows.rows(
        method, [50.0, 51.0], metric='client_accuracy_mean', rounds=n, **place
      )
      for method, n in (('fedakd_own_protocol', rounds), ('fed_avg', of_other))
    )
    return _find(ours, other, comparison=comparison)

  (found,) = find(30, 20)
  assert found.size == evidence.PAPERS
  # A short look at one of them is not the same.
  assert not find(30, 19)
