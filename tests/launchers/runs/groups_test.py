"""Groups of people in the files of a run, with numbers worked by hand."""

import numpy as np
import pytest

from tff_fair import metrics
from tff_fair import splits
from tff_fair import tasks
from tff_fair.launchers.runs import groups
from tff_fair.own_data import encoded

# Of each client ten examples of one group and ten, or five, of another; the
# last client has no training data.
_SIZES = (20, 15, 20)
_SEX = np.repeat([0, 1, 0, 1, 0, 1], [10, 10, 10, 5, 10, 10])
_YOUNG = np.tile([1, 0], 28)[:55]
_HAS_DATA = (True, True, False)


def _task(*sensitive):
  ends = np.cumsum(_SIZES)
  nothing = np.empty(0, np.int64)
  # Behind an example that tests nobody.
  tests = [1 + np.arange(e - n, e) for e, n in zip(ends, _SIZES, strict=True)]
  y = np.concatenate([[0], np.ones(55)]).astype(np.int32)
  return tasks.Task(
    name='made',
    num_classes=2,
    model_fn=None,
    data=tasks.Examples(np.zeros([56, 1], np.float32), y),
    splits=tuple(splits.Split(nothing, nothing, test) for test in tests),
    sensitive=sensitive,
    positive_class=1,
    class_names=('no', 'yes'),
  )


def _groups(column, codes):
  codes = np.concatenate([[0], codes])
  return encoded.Groups(column, ('a', 'b'), codes)


def _measure(*sensitive):
  # All are positive, and found but for the first group of the first client and
  # half of the second one.
  predicted = np.ones(55, int)
  predicted[:10] = 0
  predicted[10:15] = 0
  scores = metrics.ClientScores(*[None] * 6, pooled={}, predicted=predicted)
  return groups.measure(_task(*sensitive), scores, _HAS_DATA)


def test_the_tables_of_two_columns():
  found = _measure(_groups('sex', _SEX), _groups('young', _YOUNG))
  sex = found.groups[found.groups['column'] == 'sex']
  assert sex['client_id'].tolist() == ['all', 'all', 0, 0, 1, 1]
  assert sex['group'].tolist() == [*'ababab']
  assert sex['count'].tolist() == [20, 15, 10, 10, 10, 5]
  expected = [0.5, 10 / 15, 0, 0.5, 1, np.nan]
  for name in ('accuracy', 'selection_rate', 'true_positive_rate'):
    np.testing.assert_allclose(sex[name], expected)
  assert sex['false_positive_rate'].isna().all()
  differences = found.differences.set_index(['column', 'client_id'])
  assert differences.loc['sex', 'num_small_groups'].tolist() == [0, 0, 1]
  column = differences['demographic_parity_difference']
  assert column['sex', 'all'] == pytest.approx(1 / 6)
  assert column['sex', 0] == pytest.approx(0.5)
  assert np.isnan(column['sex', 1])


def test_the_measures_are_the_worst_ones_of_the_columns():
  found = groups.metric_columns(
    _measure(_groups('sex', _SEX), _groups('young', _YOUNG))
  )
  assert tuple(found) == groups.COLUMNS
  # Of the young 17 and of the others 18 count, 7 and 8 of whom are not found.
  assert found['group_accuracy_min'] == pytest.approx(0.5)
  assert found['demographic_parity_difference'] == pytest.approx(1 / 6)
  assert found['demographic_parity_ratio'] == pytest.approx(0.75)
  assert np.isnan(found['equalized_odds_difference'])  # Nobody is negative.
  # Sex: the first client alone.
  assert found['clients_demographic_parity_difference'] == pytest.approx(0.5)
  # Sex and age at the second client, whose groups are of 10 and 5, 8 and 7.
  assert found['num_small_groups'] == 3


def test_the_summary_names_groups_and_the_positive_class():
  found = groups.describe(_measure(_groups('sex', _SEX)), 'yes')['groups']
  assert (found['positive_class'], found['fewest_examples']) == ('yes', 10)
  of_sex = found['columns']['sex']
  assert of_sex['groups']['a']['count'] == 20
  assert of_sex['groups']['a']['accuracy'] == 0.5
  assert of_sex['differences']['demographic_parity_ratio'] == 0.75
  counts = ('clients', 'clients_compared', 'small_groups_of_clients')
  assert [of_sex[name] for name in counts] == [2, 1, 1]


def test_without_groups_there_is_nothing():
  assert _measure() is None
  assert groups.metric_columns(None) == groups.describe(None, None) == {}
