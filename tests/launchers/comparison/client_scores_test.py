import math

import numpy as np
import pandas as pd
import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import reading


class TestWorstByChance:
  @pytest.mark.parametrize(
    ('sizes', 'accuracy', 'expected'),
    [
      ([5], 0.8, 0.8),  # The lowest of one is its mean.
      ([1, 1], 0.5, 1 / 4),  # 1 if both are right.
      # The second has 0, 1/2 or 1 where the first has 1, and 0 counts else.
      ([1, 2], 0.5, 1 / 4),
      ([1, 0, 1], 0.5, 1 / 4),  # Who has no test examples is left out.
      ([7, 31], 1.0, 1.0),
      ([7, 31], 0.0, 0.0),
      # The two lowest of eleven: both 1 if all are right, one if ten are.
      ([1] * 11, 0.9, 0.9**11 + 11 * 0.9**10 * 0.1 / 2),
      ([], 0.5, math.nan),
      ([0], 0.5, math.nan),
      ([3], math.nan, math.nan),
    ],
  )
  def test_by_hand(self, sizes, accuracy, expected):
    found = client_scores.worst_by_chance(sizes, accuracy)
    assert found == pytest.approx(expected, nan_ok=True)

  def test_is_what_draws_have_on_average(self):
    sizes = np.array([7, 7, 10, 11, 14, 16, 16, 20, 22, 23, 24, 27, 31])
    draws = np.random.default_rng(0).binomial(sizes, 0.9, (20_000, 13)) / sizes
    expected = np.sort(draws)[:, :2].mean()
    found = client_scores.worst_by_chance(sizes, 0.9)
    assert found == pytest.approx(expected, abs=0.001)
    found = client_scores.by_chance([0, *sizes], 0.9)
    assert found == {
      'worst10_by_chance': client_scores.worst_by_chance(sizes, 0.9),
      'min_by_chance': pytest.approx(draws.min(axis=1).mean(), abs=0.001),
      'variance_by_chance': pytest.approx(draws.var(axis=1).mean(), rel=0.02),
    }

  def test_of_two_clients_by_hand(self):
    found = client_scores.by_chance([1, 1], 0.5)
    # Right and right, right and wrong twice, wrong and wrong.
    assert found['min_by_chance'] == pytest.approx(1 / 4)
    assert found['variance_by_chance'] == pytest.approx((0 + 2 / 4 + 0) / 4)
    assert client_scores.by_chance([5], 0.5)['variance_by_chance'] == 0
    assert all(map(math.isnan, client_scores.by_chance([0], 0.5).values()))


# Two seeds of three clients; the third one has 9 test examples in the first.
_SCORES = {
  'fed_avg': [[0.5, 0.6, 1.0], [0.5, 0.6, 0.1]],
  'standalone': [[0.4, 0.6, 0.0], [0.6, 0.4, 0.0]],
}


def _rescored(folder, **facts):
  rows = made_comparison.rows((0, 1), tune=1, scores=_SCORES)
  rows[1]['client_accuracy_jain'] = 0.125  # Of the second seed.
  about = made_comparison.facts((0, 1), 3, **facts)
  frame, about = reading.read(*made_comparison.write(folder, rows, about))
  results = reading.results(frame)
  found = client_scores.rescored(results, about)
  return results.set_index(['method', 'seed']), found.set_index(
    ['method', 'seed']
  )


def test_a_client_with_few_test_examples_counts_in_averages_only(tmp_path):
  sizes = [[10, 20, 9], [10, 20, 10]]
  recorded, found = _rescored(tmp_path, test_examples=sizes)
  first = found.loc['fed_avg', 0]
  assert first['client_accuracy_mean'] == pytest.approx(0.7)
  assert first['client_accuracy_mean_kept'] == pytest.approx(0.55)
  assert first['client_accuracy_worst10'] == 0.5
  assert first['client_accuracy_min'] == 0.5
  assert first['client_accuracy_variance'] == pytest.approx(0.0025)
  assert first['client_accuracy_jain'] == pytest.approx(1.1**2 / (2 * 0.61))
  assert first['cf'] == pytest.approx(100)
  assert first['better_off'] == 0.5  # Equal is not better.
  assert recorded.loc[('fed_avg', 0), 'better_off'] == pytest.approx(2 / 3)
  # Gains of .1 and 0.
  assert first['gain_mean'] == pytest.approx(0.05)
  assert first['gain_sd'] == pytest.approx(0.05)
  assert first['gain_min'] == 0
  assert first['harmed'] == 0
  chance = client_scores.worst_by_chance([10, 20], 0.55)
  assert first['worst10_by_chance'] == pytest.approx(chance)
  # .55 * .45 * (2 - 1) / 2^2 * (1 / 10 + 1 / 20).
  assert first['variance_by_chance'] == pytest.approx(0.00928125)
  # Nobody is left out with the second seed.
  second = found.loc['fed_avg', 1]
  assert second['client_accuracy_jain'] == 0.125
  assert second['client_accuracy_min'] == 0.1
  assert second['client_accuracy_mean_kept'] == pytest.approx(0.4)
  alone = found.loc['standalone', 0]
  assert alone['client_accuracy_min'] == 0.4
  assert np.isnan([alone['cf'], alone['better_off']]).all()


def test_after_fine_tuning_the_same_clients_count(tmp_path):
  rows = made_comparison.rows((0, 1), tune=1, scores=_SCORES)
  of_runs = ['[0.4, 0.9, 0.5]', '[0.7, 0.3, null]', None, None]
  for row, tuned in zip(rows, of_runs, strict=True):
    row['fine_tuned_accuracies'] = tuned
    if tuned:
      row['fine_tuned_accuracy_mean'] = row['fine_tuned_accuracy_min'] = 0.125
  about = made_comparison.facts(
    (0, 1), 3, test_examples=[[10, 20, 9], [10, 20, 10]]
  )
  frame, about = reading.read(*made_comparison.write(tmp_path, rows, about))
  found = client_scores.rescored(reading.results(frame), about)
  found = found.set_index(['method', 'seed'])
  first = found.loc['fed_avg', 0]
  assert first['fine_tuned_accuracy_mean'] == 0.125  # As it was written.
  assert first['fine_tuned_accuracy_worst10'] == 0.4
  assert first['fine_tuned_accuracy_min'] == 0.4
  # Alone .4 and .6; .4 is not better.
  assert first['fine_tuned_cf'] == pytest.approx(100)
  assert first['fine_tuned_better_off'] == 0.5
  assert first['fine_tuned_harmed'] == 0
  assert first['cf'] == pytest.approx(100)
  second = found.loc['fed_avg', 1]
  # Alone .6 and .4.
  assert second['fine_tuned_cf'] == pytest.approx(100)
  assert second['fine_tuned_accuracy_worst10'] == 0.3
  alone = found.loc['standalone', 0]
  assert alone.filter(like='fine_tuned').isna().all()


def test_without_sizes_nobody_is_left_out_and_nothing_is_by_chance(tmp_path):
  recorded, found = _rescored(tmp_path)
  names = [name for name in recorded if not name.startswith('gain')]
  pd.testing.assert_frame_equal(found[names], recorded[names])
  assert found['gain_mean'].notna().any()
  assert found.filter(like='_by_chance').isna().all(axis=None)
  assert found['client_accuracy_mean_kept'].isna().all()


def test_a_test_set_of_the_server_is_not_of_independent_clients(tmp_path):
  _, found = _rescored(
    tmp_path, test_examples=[[50] * 3] * 2, options={'split': 'server'}
  )
  assert found.filter(like='_by_chance').isna().all(axis=None)


def test_who_is_left_out():
  sizes = [[9, 10, 0], [2, 9, 11]]
  about = made_comparison.facts((0, 1), 3, test_examples=sizes)
  np.testing.assert_array_equal(
    client_scores.left_out(about), [[True, False, False], [True, True, False]]
  )
  assert not client_scores.left_out(made_comparison.facts()).any()
