"""Fitting a comparison into a time, with costs worked by hand."""

import pytest

from tests import refusals
from tff_fair.launchers.comparison import budget

# Ten seconds for a run of 60 rounds: 4 s, and 0.1 s a round.
_COSTS = {'a': budget.Cost(4.0, 0.1)}
_ASKED = budget.Size(rounds=60, seeds=5, tune=8)


def _fit(seconds, asked=_ASKED, costs=_COSTS, workers=1):
  return budget.fit(asked, costs, workers, seconds)


def _needed(rounds, seeds, tune):
  """Seconds of a size, with a tenth more, by hand."""
  runs = max(tune, 1) + seeds - 1
  return 1.1 * runs * (4 + rounds / 10) + 1e-6


def test_times():
  for text, expected in (
    ('2h', 7200),
    ('90min', 5400),
    ('1h30m', 5400),
    ('45s', 45),
    ('1.5 hours', 5400),
    ('1d', 86400),
  ):
    assert budget.parse(text) == expected, text


def test_what_is_no_time():
  unit = r'^--budget must be a time with its unit, such as 2h, found '
  positive = r'^--budget must be a positive time, such as 2h or 90min, found '
  refusals.check(
    budget.parse,
    [
      ({'text': '2'}, budget.BudgetError, f"{unit}'2'"),
      ({'text': '1e3'}, budget.BudgetError, unit),
      ({'text': 'nan'}, budget.BudgetError, unit),
      ({'text': 'inf'}, budget.BudgetError, unit),
      ({'text': ''}, budget.BudgetError, f"{positive}''"),
      ({'text': 'x'}, budget.BudgetError, f"{positive}'x'"),
      ({'text': '2 fortnights'}, budget.BudgetError, positive),
      ({'text': '-1h'}, budget.BudgetError, f"{positive}'-1h'"),
      ({'text': '0s'}, budget.BudgetError, f"{positive}'0s'"),
      ({'text': 'NaT'}, budget.BudgetError, f"{positive}'NaT'"),
      ({'text': '999999999999h'}, budget.BudgetError, positive),
    ],
  )


def test_the_trial_of_the_first_seed_is_its_run():
  for tune, seeds, runs in ((8, 5, 12), (2, 1, 2), (0, 5, 5), (0, 1, 1)):
    assert budget.Size(60, seeds, tune).runs == runs


def test_seconds_are_those_of_all_runs_on_all_workers():
  costs = {'a': budget.Cost(4.0, 0.1), 'b': budget.Cost(1.0, 0.5)}
  # (4 + 6) + (1 + 30) = 41 s, 12 runs, 3 workers.
  found = budget.seconds(_ASKED, costs, 3)
  assert found == pytest.approx(1.1 * 12 * 41 / 3)


@pytest.mark.parametrize(
  ('rounds', 'seeds', 'tune'),
  [
    (60, 5, 8),  # Nothing is cut.
    (60, 5, 7),  # Trials first,
    (60, 5, 4),
    (60, 4, 4),  # then seeds,
    (60, 3, 4),
    (59, 3, 4),  # then rounds,
    (30, 3, 4),
    (30, 3, 3),  # and again.
    (30, 3, 2),
    (30, 2, 2),
    (29, 2, 2),
    (6, 2, 2),
    (6, 2, 0),  # One trial alone chooses nothing.
    (6, 1, 0),
    (5, 1, 0),
    (1, 1, 0),
  ],
)
def test_what_is_cut_when(rounds, seeds, tune):
  size = budget.Size(rounds, seeds, tune)
  assert _fit(_needed(*size)) == size


def test_a_larger_budget_never_gives_less():
  """And one trial alone is never left."""
  found = [_fit(seconds / 4) for seconds in range(19, 600)]
  for smaller, larger in zip(found, found[1:], strict=False):
    assert all(a <= b for a, b in zip(smaller, larger, strict=True))
  assert found[0] != found[-1] == _ASKED
  assert 1 not in {size.tune for size in found}
  assert all(
    budget.seconds(size, _COSTS, 1) <= seconds / 4
    for seconds, size in enumerate(found, start=19)
  )


def test_what_is_spent_is_not_there_any_more():
  seconds = _needed(60, 3, 4)
  assert budget.fit(_ASKED, _COSTS, 1, seconds + 50, 50) == (60, 3, 4)
  assert budget.fit(_ASKED, _COSTS, 1, seconds + 50, 50.5) == (59, 3, 4)
  with pytest.raises(budget.BudgetError, match='at least 2 min .* found 1 min'):
    budget.fit(_ASKED, _COSTS, 1, 61, 60)


def test_what_was_not_asked_for_is_not_added():
  small = budget.Size(rounds=3, seeds=2, tune=0)
  assert _fit(1e9, small) == small
  assert _fit(_needed(1, 1, 0), small) == (1, 1, 0)


def test_a_budget_that_is_too_small_is_refused_with_the_needed_one():
  costs = {'a': budget.Cost(100.0, 20.0), 'b': budget.Cost(300.0, 180.0)}
  # 600 s, and a tenth more.
  with pytest.raises(
    budget.BudgetError,
    match=r'^--budget must be at least 11 min for one round of each of 2'
    r' methods, found 10 min\.$',
  ):
    _fit(600, costs=costs)
  assert _fit(660.001, costs=costs) == (1, 1, 0)
  # The time that is named is enough, and is not the one that was found.
  with pytest.raises(budget.BudgetError, match='least 12 min .* found 11 min'):
    _fit(budget.parse('11min'), costs={**costs, 'c': budget.Cost(1.0, 0.0)})
  with pytest.raises(budget.BudgetError, match='at least 5 s .* found 4 s'):
    _fit(4.5)


def test_what_is_cut_is_said_in_a_sentence():
  assert budget.cuts(_ASKED, _ASKED) == []
  assert budget.cuts(_ASKED, _ASKED._replace(tune=4)) == [
    'To keep to --budget, cut are trials from 8 to 4.'
  ]
  assert budget.cuts(_ASKED, budget.Size(30, 3, 0)) == [
    'To keep to --budget, cut are trials from 8 to 0, seeds from 5 to 3,'
    ' rounds from 60 to 30.'
  ]


def test_times_in_words():
  for seconds, words in (
    (5.4, '5 s'),
    (59.4, '59 s'),
    (59.6, '1 min'),
    (60, '1 min'),
    (3599, '1 h 0 min'),
    (5400, '1 h 30 min'),
  ):
    assert budget.in_words(seconds) == words
