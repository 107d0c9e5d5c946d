import numpy as np
import pytest
from scipy import stats

from tff_fair.launchers.comparison import ranking


@pytest.mark.parametrize(
  'num_methods,num_blocks,expected',
  [
    # Demsar (2006), section 3.2.2: q is 2.569.
    (4, 14, 2.569 * (4 * 5 / (6 * 14)) ** 0.5),
    (10, 30, 3.164 * (10 * 11 / (6 * 30)) ** 0.5),
    (2, 96, 1.960 / 96**0.5),
  ],
)
def test_critical_difference_of_nemenyi(num_methods, num_blocks, expected):
  found = ranking.critical_difference(num_methods, num_blocks)
  assert found == pytest.approx(expected, rel=3e-4)


def test_average_ranks_with_ties():
  scores = np.array(
    [
      [0.9, 0.9, 0.1],  # Ranks 1.5, 1.5, 3
      [0.5, 0.7, 0.5],  # 2.5, 1, 2.5
      [0.2, 0.2, 0.2],  # 2, 2, 2
      [0.4, 0.3, 0.5],  # 2, 3, 1
    ]
  )
  found = ranking.rank(('a', 'b', 'c'), scores)
  assert found.methods == ('b', 'a', 'c')
  assert found.average_ranks == (7.5 / 4, 8 / 4, 8.5 / 4)
  assert found.num_blocks == 4
  # 12 / (n k (k + 1)) * sum of R^2 - 3 n (k + 1) = 0.125; 30 of the
  # n k (k^2 - 1) = 96 of the variance of ranks are lost to ties of two (6 each)
  # and of three (24).
  statistic = 0.125 / (1 - (6 + 6 + 24) / 96)
  assert found.p_value == pytest.approx(stats.chi2.sf(statistic, 2))


@pytest.mark.parametrize(
  'ranks,difference,expected',
  [
    ((1, 2, 3, 4), 1.5, ('ab', 'bc', 'cd')),
    ((1, 2, 3, 4), 1.0, ()),  # The difference itself is enough.
    ((1, 2, 3, 4), 9.0, ('abcd',)),
    ((1, 1, 3, 3.1), 1.0, ('ab', 'cd')),
    ((1, 1.5, 2.1, 4), 1.0, ('ab', 'bc')),
  ],
)
def test_groups_are_maximal(ranks, difference, expected):
  found = ranking.groups(tuple('abcd'), ranks, difference)
  assert tuple(''.join(group) for group in found) == expected


def test_two_methods_have_a_sign_test():
  # Three wins of three decided blocks: 2 / 2^3.
  scores = np.array([[1, 0], [1, 0], [1, 0], [1, 1]])
  assert ranking.rank(('a', 'b'), scores).p_value == pytest.approx(0.25)


@pytest.mark.parametrize('num_methods', [2, 3])
def test_equal_scores_do_not_differ(num_methods):
  methods = tuple('abc'[:num_methods])
  found = ranking.rank(methods, np.ones([5, num_methods]))
  assert found.p_value == 1
  assert found.groups == (methods,)


@pytest.mark.parametrize('shape', [(5, 1), (1, 5), (0, 2)])
def test_too_little_has_no_ranking(shape):
  assert ranking.rank(tuple('abcde'[: shape[1]]), np.ones(shape)) is None
