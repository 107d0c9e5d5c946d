"""Outcomes of comparisons, worked by hand, and the verdicts that follow."""

import dataclasses
import math

import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import statistics
from tff_fair.launchers.claiming import verdicts

_TRANSCRIBED = {'source': 'transcribed'}


def _measured(comparison, *groups):
  return statistics.measure([comparison], made_rows.made(*groups))[comparison]


def _of(ours, other, *, above=True, **others):
  return _measured(
    made_rows.against(above=above),
    made_rows.rows('fedquad', ours, **others),
    made_rows.rows('fed_avg', other, **others),
  )


def test_a_difference_by_hand():
  # Differences 1, 2 and 6: their variance is 7, and t of 2 degrees 4.3027.
  found = _of([41.0, 42.0, 46.0], [40.0, 40.0, 40.0])
  assert found.estimate.mean == 3.0
  half = 4.3027 * math.sqrt(7 / 3)
  ends = found.estimate.low, found.estimate.high
  assert ends == pytest.approx((3 - half, 3 + half), abs=1e-3)
  assert found.support == 3.0 / 40.0


def test_seeds_are_paired_not_pooled():
  # Far apart between the seeds, but always one ahead.
  found = _of([10.0, 50.0, 90.0], [9.0, 49.0, 89.0])
  assert (found.estimate.low, found.estimate.high) == (1.0, 1.0)
  assert found.outcome == 'for'


def test_more_seeds_decide():
  differences = [1.0, 2.0, 3.0]
  assert _of(differences, [0.0] * 3).outcome == 'open'
  assert _of(differences * 2, [0.0] * 6).outcome == 'for'


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
    ([9.0], [1.0], True, 'open'),
    ([9.0, math.nan], [1.0, 1.0], True, 'open'),
    ([math.nan, math.nan], [1.0, 1.0], True, 'open'),
    ([9.0, 9.0, math.nan], [1.0, 2.0, 3.0], True, 'for'),
    ({'0-2': 9.0}, {'0-2': 1.0}, True, 'open'),
  ],
)
def test_outcomes(ours, other, above, outcome):
  assert _of(ours, other, above=above).outcome == outcome


# Differences of 1.9 and 2.1: mean 2, half of the interval 12.706 * .1 = 1.27.
@pytest.mark.parametrize(
  ('above', 'margin', 'outcome'),
  [
    (True, 0.7, 'for'),
    (True, 0.8, 'open'),
    (True, 3.2, 'open'),
    (True, 3.3, 'against'),
    (False, -3.3, 'for'),
    (False, -3.2, 'open'),
    (False, -0.7, 'against'),
  ],
)
def test_a_margin_by_hand(above, margin, outcome):
  comparison = dataclasses.replace(
    made_rows.against(above=above), margin=margin
  )
  found = _measured(
    comparison,
    made_rows.rows('fedquad', [11.9, 12.1]),
    made_rows.rows('fed_avg', [10.0, 10.0]),
  )
  assert found.outcome == outcome
  # What is beyond the margin speaks for the claim.
  lead = 2.0 if above else -2.0
  assert found.support == pytest.approx((lead - margin) / 10.0)


def test_rounding_of_transcribed_values_decides_nothing():
  ours, other = [0.855, 0.863], [0.854, 0.862]
  assert _of(ours, other).outcome == 'for'
  assert _of(ours, other, **_TRANSCRIBED).outcome == 'open'
  assert _of(other, ours, **_TRANSCRIBED).outcome == 'open'
  assert _of([0.856, 0.864], other, **_TRANSCRIBED).outcome == 'for'
  assert _of(other, [0.856, 0.864], **_TRANSCRIBED).outcome == 'against'


def test_without_rows_it_is_missing():
  found = _measured(made_rows.against('moon'), made_rows.rows('fedquad', [1.0]))
  assert found.outcome == 'missing' and found.support == math.inf


@pytest.mark.parametrize(
  ('values', 'above', 'outcome'),
  [
    ([100.0, 100.0], True, 'for'),
    ([100.0, 100.0], False, 'for'),
    ([100.0, 80.0], True, 'open'),
    ([81.0, 80.0], True, 'against'),
    ([101.0, 101.1], False, 'against'),
    ([100.0], True, 'open'),
  ],
)
def test_a_level_itself_is_enough(values, above, outcome):
  comparison = made_rows.against(100.0, above=above)
  found = _measured(comparison, made_rows.rows('fedquad', values))
  assert found.outcome == outcome


@pytest.mark.parametrize(
  ('outcomes', 'verdict'),
  [
    (['for'], verdicts.HOLDS),
    (['for', 'for'], verdicts.HOLDS),
    (['for', 'against'], verdicts.IN_PART),
    (['for', 'against', 'open', 'missing'], verdicts.IN_PART),
    (['against'], verdicts.FAILS),
    (['against', 'open', 'missing'], verdicts.FAILS),
    (['for', 'open'], verdicts.UNDECIDED),
    (['for', 'missing'], verdicts.UNDECIDED),
    (['open'], verdicts.UNDECIDED),
    (['missing'], verdicts.UNDECIDED),
  ],
)
def test_verdicts(outcomes, verdict):
  assert verdicts.verdict(outcomes) == verdict
  assert verdicts.verdict(outcomes[::-1]) == verdict


@pytest.mark.parametrize(
  ('outcomes', 'verdict'),
  [
    (['for', 'for', 'against'], verdicts.HOLDS),
    (['for', 'against'], verdicts.FAILS),
    (['against', 'against', 'for', 'open'], verdicts.FAILS),
    (['for', 'for', 'against', 'open'], verdicts.UNDECIDED),
    (['for', 'for', 'for', 'missing'], verdicts.HOLDS),
    (['for', 'missing', 'missing'], verdicts.UNDECIDED),
    (['missing'], verdicts.UNDECIDED),
  ],
)
def test_verdicts_of_most(outcomes, verdict):
  assert verdicts.verdict(outcomes, most=True) == verdict
  assert verdicts.verdict(outcomes[::-1], most=True) == verdict
  claim = dataclasses.replace(_claim('fed_avg'), most=True)
  assert (
    verdicts._judged(
      [_measured_as(outcome) for outcome in outcomes], claim
    ).verdict
    == verdict
  )


def _measured_as(outcome):
  return statistics.Measured(made_rows.against(), None, None, outcome)


def _claim(*baselines, reading=None):
  return definitions.Claim(
    place='table 1',
    text='It is best.',
    comparisons=tuple(map(made_rows.against, baselines)),
    reading=reading,
  )


def _result(claim, *groups):
  return verdicts.judge(made_rows.made(*groups), {'x-1': claim})['x-1']


def _values(**values):
  return [made_rows.rows(method, v) for method, v in values.items()]


def test_a_claim_is_judged_by_all_its_comparisons():
  claim = _claim('fed_avg', 'moon', 'triplet_fl')
  result = _result(
    claim, *_values(fedquad=[5.0, 5.1], fed_avg=[1.0, 1.0], moon=[9.0, 9.0])
  )
  assert result.ours.verdict == verdicts.IN_PART
  assert result.ours.counts == {'for': 1, 'against': 1, 'missing': 1}
  assert len(result.ours.run) == 2
  assert result.other is None


def test_the_telling_difference_speaks_most_against_the_claim():
  claim = _claim('fed_avg', 'moon', 'triplet_fl', 'supcon_fl')
  values = {
    'fedquad': [5.0, 5.1],
    'fed_avg': [1.0, 1.0],
    'moon': [9.0, 9.0],
    'triplet_fl': [19.0, 19.0],
  }
  # One seed is far ahead, but tells little.
  one = made_rows.rows('supcon_fl', [99.0])

  def telling(values):
    found = _result(claim, *_values(**values), one).ours.telling
    return found.comparison.right.method

  assert telling(values) == 'triplet_fl'
  assert telling({**values, 'triplet_fl': [0.1, 5.0]}) == 'moon'
  # What is open comes before what is for it.
  assert telling({**values, 'triplet_fl': [5.5, 5.5], 'moon': [1.0, 1.0]}) == (
    'triplet_fl'
  )
  only = {'fedquad': [5.0, 5.1], 'fed_avg': [1.0, 1.0], 'moon': [4.0, 4.0]}
  assert telling(only) == 'moon'
  assert telling({'fedquad': [5.0]}) == 'supcon_fl'
  assert _result(claim).ours.telling is None


def test_the_other_reading_is_judged_alike():
  reading = definitions.Reading('', {'triplet_fl': 'triplet_fl_without_ce'})
  claim = _claim('triplet_fl', reading=reading)
  values = {'fedquad': [5.0, 5.1], 'triplet_fl': [9.0, 9.0]}
  result = _result(claim, *_values(**values))
  assert result.ours.verdict == verdicts.FAILS
  assert result.other.verdict == verdicts.UNDECIDED and not result.other.run
  result = _result(claim, *_values(**values, triplet_fl_without_ce=[1.0, 1.0]))
  assert result.ours.verdict == verdicts.FAILS
  assert result.other.verdict == verdicts.HOLDS


def test_a_reading_without_answer_is_none():
  reading = definitions.Reading('', {'fedquad': 'no_such_method'})
  assert _result(_claim('moon', reading=reading)).other is None
