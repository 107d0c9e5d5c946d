import numpy as np
import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import across
from tff_fair.launchers.pages import compare_docs

_MEAN, _VARIANCE, _CF = (
  'client_accuracy_mean',
  'client_accuracy_variance',
  'cf',
)


def _analysis(folder, num_seeds, leads, base=0.5, **more):
  """Two clients around `base`; `leads`: method -> the lead of each seed."""
  seeds = range(num_seeds)
  clients = np.array([-0.1, 0.1])
  scores = {'fed_avg': [(base + clients).tolist() for _ in seeds]}
  scores |= {
    method: [(base + lead + clients).tolist() for lead in of_seeds]
    for method, of_seeds in leads.items()
  }
  return made_comparison.analyse(
    folder,
    made_comparison.rows(seeds, scores=scores | more),
    made_comparison.facts(seeds, 2),
  )


def test_blocks_are_seeds_of_all_data(tmp_path):
  first = _analysis(
    tmp_path / 'a',
    5,
    {'ditto': [0.01, 0.02, 0.03, 0.04, 0.05], 'cffl': [-0.01] * 5},
  )
  second = _analysis(
    tmp_path / 'b',
    5,
    {
      'ditto': [0.06, 0.07, 0.08, 0.09, 0.1],
      'cffl': [0.02, -0.03, 0.04, -0.05, 0.06],
      'moon': [0.1] * 5,
      'dssgd': [0.3] * 5,
    },
    base=0.3,
  )
  found = across.compare([first, second], _MEAN)
  # Neither a method that one of them lacks, nor one in turn.
  assert [*found] == ['ditto', 'cffl']
  # All ten are above 0, and there are two methods.
  assert found['ditto'].medians == pytest.approx((0.03, 0.08))
  assert found['ditto'][1:] == pytest.approx((2 * 2 / 2**10, 1))
  assert found['cffl'].verdict == 0 and found['cffl'].p_value > 0.3
  alone = across.compare([first], _MEAN)
  assert alone['ditto'].p_value == pytest.approx(2 * 2 / 2**5)
  assert alone['ditto'].verdict == 0


def test_a_lower_variance_is_better(tmp_path):
  clients = [[0.5, 0.5 + 0.01 * seed] for seed in range(8)]
  found = across.compare(
    [_analysis(tmp_path, 8, {}, ditto=clients)], _VARIANCE
  )['ditto']
  assert found.medians[0] < 0 and found.verdict == 1


def test_the_cf_coefficient_of_one_model_is_not_compared(tmp_path):
  alone = [[0.2, 0.5], [0.3, 0.6]]
  analysis = _analysis(
    tmp_path,
    2,
    {'ditto': [0.1, 0.1], 'moon': [0.1, 0.1]},
    standalone=alone,
  )
  assert [*across.compare([analysis], _CF)] == ['ditto']


def test_few_seeds_take_no_part_and_the_page_says_so(tmp_path):
  leads = {'ditto': 4 * [0.1, 0.2], 'cffl': 4 * [-0.02, -0.04]}
  many = _analysis(tmp_path / 'a', 8, leads)
  few = _analysis(tmp_path / 'b', 4, {})
  assert [*across.with_enough_seeds({'few': few, 'many': many})] == ['many']
  results = {
    'few': compare_docs.Result(None, few),
    'many': compare_docs.Result(None, many),
  }
  page = compare_docs.render('<!-- compare across -->\n<!-- end -->', results)
  assert '- 8 pairs of a data set and a seed: many with 8 seeds.' in page
  assert '- few has fewer than 5 seeds, and is left out.' in page
  assert (
    '- Mean accuracy, 2 methods. Better than FedAvg: Ditto (0.150). Worse: CFFL'
    ' (-0.030).'
  ) in page
  # Without Standalone no CF coefficient is defined.
  assert 'CF coefficient, 0 methods. Better than FedAvg: none. Worse' in page
