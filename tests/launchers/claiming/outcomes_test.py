"""Differences and what they say, worked by hand."""

import math

import numpy as np
import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import outcomes
from tff_fair.launchers.claiming import statements

_ABOVE = made_rows.parse('above fed_avg')
_BELOW = made_rows.parse('below fed_avg')
_TRANSCRIBED = {'source': 'transcribed'}
_NAN = math.nan
_both = made_rows.both


def _measure(*groups, comparison=_ABOVE):
  return outcomes.measure(comparison, made_rows.group(*groups))


def test_a_difference_by_hand():
  # Differences 1, 2 and 6: their variance is 7, and t of 2 degrees 6.9646.
  found = _measure(_both([41.0, 42.0, 46.0], [40.0, 40.0, 40.0]))
  half = 6.9646 * math.sqrt(7 / 3)
  estimate = found.estimate.mean, found.estimate.low, found.estimate.high
  assert estimate == pytest.approx((3, 3 - half, 3 + half), abs=1e-3)
  assert (found.means, found.leads) == ((43.0, 40.0), (1.0, 2.0, 6.0))
  assert found.support == 3.0 / 40.0 and found.outcome == 'open'
  assert found.seeds == 3


def test_nothing_recorded_is_missing():
  assert _measure(_both([], [])).outcome == 'missing'


@pytest.mark.parametrize(
  ('ours', 'other', 'above', 'outcome'),
  [
    ([3.0, 3.1, 3.2], [1.0] * 3, True, 'for'),
    ([3.0, 3.1, 3.2], [1.0] * 3, False, 'against'),
    ([0.0, 0.01, 0.0], [1.0] * 3, True, 'against'),
    ([0.0, 0.01, 0.0], [1.0] * 3, False, 'for'),
    ([0.0, 3.0, 1.5], [1.0] * 3, True, 'open'),
    # Three seeds do not decide what six do.
    ([1.0, 2.0, 3.0], [0.0] * 3, True, 'open'),
    ([1.0, 2.0, 3.0] * 2, [0.0] * 6, True, 'for'),
    # Four and five are three.
    ([1.0, 2.0, 3.0, 2.0, 2.0], [0.0] * 5, True, 'open'),
    # Far apart between the seeds, but always about one ahead.
    ([10.0, 50.1, 90.0], [9.0, 49.0, 89.0], True, 'for'),
    # No look yet, however clear.
    ([9.0], [1.0], True, 'open'),
    ([9.0, 9.1], [1.0, 1.0], True, 'open'),
    ([9.0, _NAN], [1.0, 1.0], True, 'open'),
    ([_NAN, _NAN], [1.0, 1.0], True, 'open'),
    ([9.0, 9.0, _NAN, 9.0], [1.0, 1.1, 1.0, 1.2], True, 'for'),
    # Seeds that agree: the sign test, of which 2^-6 is above .01.
    ([2.0] * 6, [1.0] * 6, True, 'open'),
    ([2.0] * 9, [1.0] * 9, True, 'for'),
    ([1.0] * 9, [2.0] * 9, True, 'against'),
  ],
)
def test_outcomes(ours, other, above, outcome):
  comparison = _ABOVE if above else _BELOW
  assert _measure(_both(ours, other), comparison=comparison).outcome == outcome


def test_a_correction_opens_what_is_against():
  # Of -1, -1.1 and -1.2 t is 19.05: p = .00137.
  level = made_rows.parse('at least 1')
  rows = made_rows.rows('fedquad', [0.0, -0.1, -0.2])
  found = _measure(rows, comparison=level)
  assert found.outcome == 'against'
  assert found.tests.below == pytest.approx(0.00137, abs=1e-5)
  assert found.decided(7 * found.tests.below).outcome == 'against'
  assert found.decided(8 * found.tests.below).outcome == 'open'
  assert outcomes.Measured(_ABOVE).decided(0.0).outcome == 'missing'


# Differences of 1.9, 2 and 2.1: half of the interval is 6.9646 * .1 / 3^.5.
@pytest.mark.parametrize(
  ('relation', 'outcome', 'support'),
  [
    ('more than 1.5 above', 'for', 0.05),
    ('more than 1.7 above', 'open', 0.03),
    ('more than 2.3 above', 'open', -0.03),
    ('more than 2.5 above', 'against', -0.05),
    ('less than 2.5 above', 'for', 0.05),
    ('less than 2.3 above', 'open', 0.03),
    ('less than 1.5 above', 'against', -0.05),
  ],
)
def test_an_amount_by_hand(relation, outcome, support):
  found = _measure(
    _both([11.9, 12.0, 12.1], [10.0] * 3),
    comparison=made_rows.parse(f'{relation} fed_avg'),
  )
  assert found.outcome == outcome
  assert found.support == pytest.approx(support)


class TestNoDifference:
  """FedQuad's table 1, Dirichlet(.3): half of 80.13 less 74.05 is 3.04."""

  @pytest.mark.parametrize(
    ('differences', 'outcome'),
    [
      # Half of the interval is 4.02 times the step: 2.01, and 4.02.
      ([-0.5, 0.0, 0.5], 'tie'),
      ([-1.0, 0.0, 1.0], 'open'),
      ([1.5, 2.0, 2.5], 'open'),
      ([0.5, 0.55, 0.45], 'for'),  # It leads, by however little.
      ([-0.5, -0.55, -0.45], 'against'),
      ([0.0, 0.0], 'open'),
    ],
  )
  def test_within_half_of_the_papers_lead(self, differences, outcome):
    found = _measure(_both(differences, [0.0] * len(differences)))
    assert found.outcome == outcome

  def test_what_counts_is_fixed_by_the_claim(self):
    assert _ABOVE.published == (80.13, 74.05)
    assert _ABOVE.negligible == pytest.approx(3.04)
    # The paper does not lead, or the claim itself says by how much.
    assert math.isnan(_BELOW.negligible)
    for relation in ('at least 3', 'more than 0.1 above fed_avg'):
      assert math.isnan(made_rows.parse(relation).negligible)

  def test_without_the_papers_numbers_nothing_is_a_tie(self):
    (comparison,) = statements.parse(
      'fedaboost_text: global_f1 of fedaboost above fedaboost_without_boosting'
      ' in mnist'
    )
    assert comparison.published is None and math.isnan(comparison.negligible)
    place = {
      'table': 'fedaboost_text',
      'cell': 'mnist',
      'metric': 'global_f1',
      'data': 'mnist',
      'rounds': 260,
    }
    found = _measure(
      *(
        made_rows.rows(method, [0.5, 0.6, 0.7], **place)
        for method in ('fedaboost', 'fedaboost_without_boosting')
      ),
      comparison=comparison,
    )
    assert found.outcome == 'open'


class TestCorrelations:
  def test_are_compared_on_fishers_scale(self):
    """Always 1 ahead there, and 76.2, 63.5 and 12.1 points."""
    right = np.array([0.0, 0.5, 1.5])
    left = right + [1.0, 1.05, 0.95]
    comparison, recorded = made_rows.cf(
      [*(100 * np.tanh(left))], [*(100 * np.tanh(right))]
    )
    found = outcomes.measure(comparison, recorded)
    assert found.outcome == 'for'
    assert found.leads == pytest.approx((1.0, 1.05, 0.95))
    means = 100 * np.tanh([5 / 3, 2 / 3])
    assert found.means == pytest.approx(means)
    assert found.estimate.mean == pytest.approx(means[0] - means[1])
    assert 0 < found.estimate.low < found.estimate.mean < found.estimate.high

  def test_intervals_stay_within_what_is_possible(self):
    comparison, recorded = made_rows.cf([99.0, 20.0, 99.9], [50.0, 30.0, -80.0])
    found = outcomes.measure(comparison, recorded)
    assert -200 <= found.estimate.low < 0 < found.estimate.high <= 200

  def test_against_a_number(self):
    """All of the interval is on the left: at most 100 less the number."""
    comparison, recorded = made_rows.cf(
      [99.0, 99.1, 99.2], [0.0] * 3, 'at least 90'
    )
    found = outcomes.measure(comparison, recorded)
    assert found.outcome == 'for' and found.means[1] == pytest.approx(90)
    assert 0 < found.estimate.low < found.estimate.high < 10


class TestEverybody:
  """CFFL's table 2, five clients."""

  def _measure(self, shares, above):
    (comparison,) = statements.parse(
      'cffl_table2: above_standalone of cffl_u0.1 at least 100 in mnist_p5'
      if above
      else 'cffl_table2: below_standalone of cffl_u0.1 at most 0 in mnist_p5'
    )
    rows = made_rows.rows(
      'cffl_u0.1',
      shares,
      table='cffl_table2',
      cell='mnist_p5',
      metric=comparison.left.metric,
      data='mnist',
      rounds=30,
    )
    return _measure(rows, comparison=comparison)

  @pytest.mark.parametrize(
    ('shares', 'above', 'outcome', 'counted'),
    [
      ([100.0] * 3, True, 'for', 15),
      ([100.0] * 2, True, 'open', 10),
      # One counter-example may be an accident; two seeds with one refute it.
      ([100.0, 80.0, 100.0], True, 'open', 14),
      ([100.0, 80.0, 80.0], True, 'against', 13),
      ([0.0] * 3, False, 'for', 15),
      ([20.0, 0.0, 40.0], False, 'against', 12),
    ],
  )
  def test_is_counted(self, shares, above, outcome, counted):
    found = self._measure(shares, above)
    assert found.outcome == outcome
    assert found.counted == (counted, 5 * len(shares))
    assert found.estimate.mean == pytest.approx(
      np.mean(shares) - (100 if above else 0)
    )
    assert found.estimate.low <= found.estimate.mean <= found.estimate.high

  @pytest.mark.parametrize(
    ('share', 'above', 'ends'), [(100.0, True, (-1, 0)), (0.0, False, (0, 1))]
  )
  def test_the_interval_is_that_of_the_share(self, share, above, ends):
    # None of 15: 1 - .01^(1 / 15) is the other end.
    found = self._measure([share] * 3, above).estimate
    expected = [100 * end * (1 - 0.01 ** (1 / 15)) for end in ends]
    assert (found.low, found.high) == pytest.approx(expected)

  @pytest.mark.parametrize(
    'level', ['at least 100', 'at least 99', 'at most 0']
  )
  def test_what_is_no_share_of_the_clients_is_a_mean(self, level):
    """An accuracy of 100 says nothing of a number of clients."""
    found = _measure(
      made_rows.rows('fedquad', [81.0, 80.0, 80.5]),
      comparison=made_rows.parse(level),
    )
    assert found.counted is None and found.outcome == 'against'


def test_what_cannot_exist_is_undefined():
  (comparison,) = statements.parse(
    'fedakd_table5: cf of fedakd above fed_avg in cifar10_pow'
  )
  assert 'one model and one test set' in comparison.undefined
  found = outcomes.measure(comparison, made_rows.group(_both([1.0], [1.0])))
  assert found.outcome == 'undefined'
  assert not made_rows.cf([1.0], [1.0])[0].undefined


def test_rounding_of_transcribed_values_decides_nothing():
  """They may be .001 nearer: .0027 with a standard error of .0003."""
  other = [0.854, 0.862, 0.870]
  near, far = [0.857, 0.864, 0.873], [0.860, 0.867, 0.876]
  assert _measure(_both(near, other)).outcome == 'for'
  assert _measure(_both(near, other, **_TRANSCRIBED)).outcome != 'for'
  assert _measure(_both(far, other, **_TRANSCRIBED)).outcome == 'for'
  # Of a run the digits are known: those of the transcribed count.
  mixed = [
    *made_rows.rows('fedquad', near),
    *made_rows.rows('fed_avg', other, **_TRANSCRIBED),
  ]
  assert _measure(mixed).outcome != 'for'


def test_other_settings_are_passed_over_and_named():
  found = _measure(
    _both([1.0, 1.1, 1.2], [0.0] * 3, scale=0.15),
    _both([5.0], [0.0], scale=0.4),
  )
  assert found.evidence.setting.scale == 0.15 and found.outcome == 'for'
  assert [e.setting.scale for e in found.passed_over] == [0.4]
  assert found.evidence.size == evidence.REDUCED
