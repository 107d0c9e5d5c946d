"""Verdicts, worked by hand."""

import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import verdicts

_PAPERS, _REDUCED, _STAND_IN = evidence.SIZES


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
    ('tie', verdicts.TIE, verdicts.TIE),
    ('tie tie', verdicts.TIE, verdicts.TIE),
    ('tie open', verdicts.UNDECIDED, verdicts.TIE),
    ('tie for', verdicts.IN_PART, verdicts.TIE),
    ('tie for for', verdicts.IN_PART, verdicts.HOLDS),
    ('tie against', verdicts.FAILS, verdicts.FAILS),
    # What cannot exist does not count.
    ('for undefined', verdicts.HOLDS, verdicts.HOLDS),
    ('tie undefined undefined', verdicts.TIE, verdicts.TIE),
    ('undefined', verdicts.UNDECIDED, verdicts.UNDECIDED),
  ],
)
def test_verdicts(outcomes, verdict, of_most):
  for order in (1, -1):
    words = outcomes.split()[::order]
    assert verdicts.verdict(words) == verdict
    assert verdicts.verdict(words, most=True) == of_most


def _judge(claim, *others, **values):
  rows = [made_rows.rows(method, v) for method, v in values.items()]
  return verdicts.judge(made_rows.group(*rows, *others), {'x-1': claim})['x-1']


_AHEAD, _BEHIND, _FAR = [5.0, 5.1, 5.2], [9.0, 9.1, 9.3], [19.0, 19.2, 19.6]


def test_a_claim_is_judged_by_all_its_comparisons():
  claim = made_rows.claim('above fed_avg', 'above moon', 'above triplet_fl')
  values = {'fedquad': _AHEAD, 'fed_avg': [1.0] * 3, 'moon': _BEHIND}
  result = _judge(claim, **values)
  ours = result.sizes[_PAPERS]
  assert result.verdict == ours.verdict == verdicts.IN_PART
  assert ours.counts == {'for': 1, 'against': 1, 'missing': 1}
  assert len(ours.run) == 2 and not result.others
  assert [*result.sizes] == [_PAPERS]
  most = claim._replace(most=True)
  assert _judge(most, **values).verdict == verdicts.UNDECIDED
  uncounted = claim._replace(uncounted='Because.')
  assert _judge(uncounted, **values).verdict == verdicts.UNCOUNTED
  assert _judge(claim).verdict == verdicts.UNDECIDED


def test_one_of_many_against_a_claim_must_be_clear():
  """-1, -1.2 and -1.4: t is 10.4 and p .0046, of one comparison only."""
  values = {'fedquad': [0.0, -0.2, -0.4], 'fed_avg': [1.0] * 3}
  names = ['moon', 'triplet_fl']
  for number, verdict in ((0, verdicts.FAILS), (2, verdicts.UNDECIDED)):
    # The others count, though they are not run.
    relations = ['above fed_avg', *(f'above {n}' for n in names[:number])]
    assert _judge(made_rows.claim(*relations), **values).verdict == verdict
  # A clear one makes the next one easier (Holm): .01 / 3, then .01 / 2.
  claim = made_rows.claim('above fed_avg', 'above moon', 'above triplet_fl')
  result = _judge(claim, **values, moon=[9.0, 8.8, 8.61])
  assert result.sizes[_PAPERS].counts == {'against': 2, 'missing': 1}


class TestSizes:
  def test_each_has_a_verdict_and_the_largest_that_decides_counts(self):
    claim = made_rows.claim('above fed_avg')
    reduced = made_rows.both(_BEHIND, _FAR, scale=0.1)
    stand_in = made_rows.both(_AHEAD, [1.0] * 3, data='mnist')
    result = _judge(claim, reduced, stand_in, fedquad=[5.0], fed_avg=[1.0])
    found = {size: j.verdict for size, j in result.sizes.items()}
    assert list(found.items()) == [
      (_PAPERS, verdicts.UNDECIDED),
      (_REDUCED, verdicts.FAILS),
      (_STAND_IN, verdicts.HOLDS),
    ]
    assert result.decided_at == _REDUCED
    assert result.verdict == verdicts.FAILS
    result = _judge(claim, reduced, fedquad=_AHEAD, fed_avg=[1.0] * 3)
    assert (result.decided_at, result.verdict) == (_PAPERS, verdicts.HOLDS)

  def test_a_larger_one_answers_what_a_size_lacks(self):
    claim = made_rows.claim('above fed_avg', 'above moon')
    stand_in = made_rows.both(_AHEAD, [1.0] * 3, data='mnist')
    result = _judge(claim, stand_in, fedquad=_AHEAD, moon=[1.0] * 3)
    found = {size: j.verdict for size, j in result.sizes.items()}
    assert found == {
      _PAPERS: verdicts.UNDECIDED,
      _STAND_IN: verdicts.HOLDS,
    }


def test_the_telling_difference_speaks_most_against_the_claim():
  claim = made_rows.claim(
    'above fed_avg', 'above moon', 'above triplet_fl', 'above supcon_fl'
  )
  values = {
    'fedquad': _AHEAD,
    'fed_avg': [1.0] * 3,
    'moon': _BEHIND,
    'triplet_fl': _FAR,
    'supcon_fl': [99.0],  # One seed is far ahead, but tells little.
  }

  def telling(**others):
    found = _judge(claim, **{**values, **others}).sizes[_PAPERS].telling
    return found.comparison.right.method

  assert telling() == 'triplet_fl'
  assert telling(triplet_fl=[0.1, 5.0, 20.0]) == 'moon'
  # What is open comes before what is for it.
  assert telling(triplet_fl=[5.5, 5.0, 5.6], moon=[1.0] * 3) == 'triplet_fl'
  assert telling(triplet_fl=[], moon=[4.0] * 3) == 'moon'
  assert telling(fedquad=[5.0]) == 'supcon_fl'


def test_the_other_reading_is_judged_alike():
  claim = made_rows.claim(
    'above triplet_fl', others=['above triplet_fl_without_ce']
  )
  values = {'fedquad': _AHEAD, 'triplet_fl': _BEHIND}
  result = _judge(claim, **values)
  assert result.verdict == verdicts.FAILS and not result.others
  result = _judge(claim, **values, triplet_fl_without_ce=[1.0] * 3)
  assert result.verdict == verdicts.FAILS
  assert result.others[_PAPERS].verdict == verdicts.HOLDS
