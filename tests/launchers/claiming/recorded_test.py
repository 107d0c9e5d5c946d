"""Which rows answer a comparison."""

import dataclasses
import math

import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import definitions

_AGAINST = made_rows.against()


def _pairs(*groups, comparison=_AGAINST):
  return made_rows.made(*groups).pairs(comparison)


def _both(ours, other, **others):
  return [
    *made_rows.rows('fedquad', ours, **others),
    *made_rows.rows('fed_avg', other, **others),
  ]


def test_seeds_are_paired_by_their_number():
  found = _pairs(_both({'2': 5.0, '0': 1.0, '10': 9.0}, {'0': 0.5, '2': 7.0}))
  assert found.differences == {'0': 0.5, '2': -2.0}
  assert (found.left, found.right) == (3.0, 3.75)
  assert found.setting == ('cifar10', 1.0, 20)
  assert (found.num_seeds, found.rounds, found.unit) == (2, (20,), 0.0)


@pytest.mark.parametrize('missing', ['fedquad', 'fed_avg'])
def test_without_rows_of_a_side_there_is_nothing(missing):
  rows = [r for r in _both([1.0], [2.0]) if r['method'] != missing]
  assert _pairs(rows) is None


def test_sides_of_other_settings_do_not_meet():
  ours = made_rows.rows('fedquad', [1.0], scale=0.5)
  for other in ({}, {'scale': 0.5, 'rounds': 10}, {'scale': 0.5, 'data': 'x'}):
    assert _pairs(ours, made_rows.rows('fed_avg', [1.0], **other)) is None


def test_sides_of_other_rounds_meet_where_a_claim_says_so():
  """Each with its longest, and never of other data or another share of them."""
  comparison = dataclasses.replace(_AGAINST, any_rounds=True)
  found = _pairs(
    made_rows.rows('fedquad', [1.0, 2.0], rounds=5),
    made_rows.rows('fedquad', [3.0, 4.0], rounds=9),
    made_rows.rows('fed_avg', [1.5, 1.5], rounds=20),
    made_rows.rows('fed_avg', [9.0, 9.0], rounds=7),
    comparison=comparison,
  )
  assert found.differences == {'0': 1.5, '1': 2.5}
  assert found.rounds == (9, 20)
  ours = made_rows.rows('fedquad', [1.0])
  for other in ({'scale': 0.5}, {'data': 'x'}):
    theirs = made_rows.rows('fed_avg', [1.0], **other)
    assert _pairs(ours, theirs, comparison=comparison) is None


def test_sides_of_other_seeds_do_not_meet():
  assert _pairs(_both({'0': 1.0}, {'1': 1.0})) is None
  assert _pairs(_both({'0-2': 1.0}, {'0': 1.0})) is None


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
    assert _pairs(*groups).left == 1.0


def test_a_seed_that_is_undefined_does_not_count_as_one():
  nan = math.nan
  found = _pairs(
    _both([1.0, nan], [0.0, 0.0], scale=1.0),
    _both([2.0, 2.0], [0.0, 0.0], scale=0.5),
  )
  assert found.left == 2.0
  found = _pairs(_both([nan], [1.0]))
  assert math.isnan(found.left) and found.num_seeds == 0


def test_transcribed_means_have_no_seeds():
  rows = _both({'0-2': 41.0}, {'0-2': 40.0}, source='transcribed')
  found = _pairs(rows)
  assert found.differences == {'0-2': 1.0} and found.num_seeds == 0
  assert found.transcribed
  # Two seeds of their own come first.
  assert _pairs(rows, _both([7.0, 8.0], [1.0, 1.0])).num_seeds == 2


def test_transcribed_values_are_rounded():
  transcribed = {'source': 'transcribed'}
  assert _pairs(_both([41.25], [40.0], **transcribed)).unit == 0.01
  assert _pairs(_both([41.0], [40.0], **transcribed)).unit == 1.0
  mixed = [
    *made_rows.rows('fedquad', [41.123]),
    *made_rows.rows('fed_avg', [40.5], **transcribed),
  ]
  assert _pairs(mixed).unit == 0.1


def test_a_number_is_compared_with_every_seed():
  comparison = made_rows.against(40.0)
  found = _pairs(made_rows.rows('fedquad', [41.0, 38.0]), comparison=comparison)
  assert found.differences == {'0': 1.0, '1': -2.0}
  assert (found.left, found.right) == (39.5, 40.0)


def test_what_never_happened_happened_after_the_last_round():
  side = definitions.Side(
    'cffl_freerider', 'mnist_p5', 'cffl_u1', 'isolation_round'
  )
  rows = made_rows.rows(
    'cffl_u1',
    [2.0, math.nan],
    table=side.table,
    cell=side.cell,
    metric=side.metric,
    data='mnist',
    rounds=30,
  )
  found = _pairs(rows, comparison=definitions.Comparison(side, 5.0, False))
  assert found.differences == {'0': -3.0, '1': 26.0}


def test_methods_with_rounds_of_their_own_meet():
  table, cell = 'fedakd_protocols', 'cifar10_pow'
  sides = [
    definitions.Side(table, cell, method, 'client_accuracy_mean')
    for method in ('fedakd_own_protocol', 'fed_avg')
  ]

  def rows(side, rounds):
    return made_rows.rows(
      side.method,
      [50.0, 51.0],
      table=table,
      cell=cell,
      metric=side.metric,
      rounds=rounds,
    )

  comparison = definitions.Comparison(*sides)
  own = _pairs(rows(sides[0], 30), rows(sides[1], 20), comparison=comparison)
  assert own.rounds == (30, 20)
  # A short look at one of them is not the same.
  assert (
    _pairs(rows(sides[0], 30), rows(sides[1], 19), comparison=comparison)
    is None
  )
