"""The rule by which trials are chosen, with examples worked by hand."""

import pytest

from tff_fair.launchers.comparison import tuning


@pytest.mark.parametrize(
  ('tune', 'screened', 'finalists', 'widened', 'rounds'),
  [
    (0, 0, 0, 0, 0),
    (2, 0, 2, 0, 2 * 3 * 60),
    (3, 3, 2, 0, 3 * 15 + 2 * 3 * 60),
    (4, 4, 2, 1, 4 * 15 + 2 * 3 * 60),
    (8, 8, 2, 2, 8 * 15 + 2 * 3 * 60),
    (9, 9, 3, 2, 9 * 15 + 3 * 3 * 60),
    (16, 16, 4, 4, 16 * 15 + 4 * 3 * 60),
  ],
)
def test_the_size_of_the_stages(tune, screened, finalists, widened, rounds):
  found = tuning.Protocol(tune, 60)
  assert (found.screened, found.finalists) == (screened, finalists)
  assert found.most_widened == widened
  facts = found.facts(cohort_size=20)
  assert (facts or {'client_updates': 0})['client_updates'] == 20 * rounds


def test_a_quarter_of_the_rounds_is_one_at_the_least():
  lengths = [tuning.Protocol(8, n).screening_rounds for n in (1, 4, 5, 60)]
  assert lengths == [1, 1, 2, 15]


def _next(rates, accuracies, planned=(0.01, 0.14, 0.037, 0.52, 0.019)):
  trials = [tuning.Trial({tuning.RATE: r, 'a': 7}) for r in rates]
  planned = [{tuning.RATE: r, 'a': 7} for r in planned]
  found = tuning.next_trial(planned, trials, accuracies)
  assert found.tried['a'] == 7
  return found.tried[tuning.RATE], found.is_widened


@pytest.mark.parametrize(
  ('rates', 'accuracies', 'expected'),
  [
    # .14^2 / .037 = .5297 and .01^2 / .037 = .0027.
    ((0.01, 0.14, 0.037), (0.1, 0.9, 0.8), (0.53, True)),
    ((0.01, 0.14, 0.037), (0.9, 0.1, 0.8), (0.0027, True)),
    # The best is inside, or nothing is known.
    ((0.01, 0.14, 0.037), (0.1, 0.8, 0.9), (0.52, False)),
    ((0.01, 0.14, 0.037), (None, None, None), (0.52, False)),
    # What diverged was tried.
    ((0.01, 0.14, 0.037), (0.1, None, 0.9), (0.52, False)),
    # One step after the other; .53^2 / .14 = 2.006.
    ((0.01, 0.14, 0.037, 0.53), (0.1, 0.8, 0.7, 0.9), (2.0, True)),
    # The planned ones that were tried are not tried again.
    ((0.01, 0.14, 0.037, 0.52, 1.9), (0.1, 0.8, 0.7, 0.9, 0), (0.019, False)),
  ],
)
def test_the_next_trial(rates, accuracies, expected):
  assert _next(rates, accuracies) == expected


def test_a_rate_within_those_of_the_planned_trials_is_not_beyond_them():
  planned = (0.01, 0.14, 0.037, 1.0)
  assert _next(planned[:3], (0.1, 0.9, 0.8), planned) == (0.53, False)


def test_the_order_of_trials():
  assert tuning.rank([0.2, None, 0.5, 0.5, 0.9]) == [4, 2, 3, 0]


def test_the_best_mean_is_chosen():
  rows = [[0.5, 0.6, 0.7], [0.8, 0.81, 0.82], [0.6, 0.7, 0.8]]
  assert tuning.choose([0.1, 1.0, 0.01], rows, 0.1) == 1


def test_ties_within_a_standard_error_go_to_the_middle():
  # The leads have the standard error .1 / sqrt(3) = .0577; of .05 and .06.
  best = [0.6, 0.7, 0.8]
  near, far = [0.65] * 3, [0.64] * 3
  assert tuning.choose([1.0, 0.2], [best, near], 0.1) == 1
  assert tuning.choose([1.0, 0.2], [best, far], 0.1) == 0
  # A lead with one seed alone is its standard error, whatever rounding says.
  for lead in (0.1, 0.005, 1 / 3):
    rows = [[0.6 + lead, 0.7, 0.8], [0.6, 0.7, 0.8]]
    assert tuning.choose([1.0, 0.2], rows, 0.1) == 1
  # Not if it is farther from the middle than the best.
  assert tuning.choose([0.2, 1.0], [best, near], 0.1) == 0
  # A fifth and five times the middle are as near: the better mean.
  assert tuning.choose([0.02, 0.5], [near, best], 0.1) == 1
  assert tuning.choose([0.02, 0.5], [best, best], 0.1) == 0
  # Seeds differ far more than the trials: the leads are .01, .02 and .01.
  alike = [[0.2, 0.5, 0.8], [0.19, 0.48, 0.79]]
  assert tuning.choose([1.0, 0.1], alike, 0.1) == 0


def test_who_diverges_with_a_seed_is_out():
  rows = [[0.9, None, 0.9], [0.1, 0.1, 0.1]]
  assert tuning.choose([0.1, 1.0], rows, 0.1) == 1
  assert tuning.choose([0.1], rows[:1], 0.1) is None
