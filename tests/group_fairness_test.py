"""Measures of groups of people, against numbers worked by hand."""

import numpy as np
import pytest

from tests import refusals
from tff_fair import group_fairness

_NAMES = ('a', 'b')
# client, group, label, prediction
_ROWS = np.array(
  [
    [0, 0, 1, 1],
    [0, 0, 1, 0],
    [0, 0, 0, 0],
    [0, 1, 1, 1],
    [0, 1, 0, 1],
    [0, 1, 0, 0],
    [1, 0, 1, 1],
    [1, 0, 0, 1],
    [1, 0, 0, 1],
    [1, 1, 0, 0],
    [1, 1, 0, 0],
    [1, 1, 0, 1],
  ]
)
_NAN = np.nan
# Accuracy, selection rate, true and false positive rate.
_GROUPS = {
  ('all', 'a'): [3 / 6, 4 / 6, 2 / 3, 2 / 3],
  ('all', 'b'): [4 / 6, 3 / 6, 1, 2 / 5],
  (0, 'a'): [2 / 3, 1 / 3, 1 / 2, 0],
  (0, 'b'): [2 / 3, 2 / 3, 1, 1 / 2],
  (1, 'a'): [1 / 3, 1, 1, 1],
  # Nobody is truly positive.
  (1, 'b'): [2 / 3, 1 / 3, _NAN, 1 / 3],
}
# Accuracy difference, demographic parity difference and ratio, equalised odds.
_DIFFERENCES = {
  'all': [1 / 6, 1 / 6, 3 / 4, 1 / 3],
  0: [0, 1 / 3, 1 / 2, 1 / 2],
  1: [1 / 3, 2 / 3, 1 / 3, _NAN],
}


def _measure(rows=_ROWS, positive=1, **options):
  clients, codes, labels, predicted = rows.T
  return group_fairness.measure(
    labels, predicted, codes, _NAMES, clients, positive, **options
  )


def _groups(measured):
  table = measured.groups.set_index(['client_id', 'group'])
  return table[[*group_fairness.MEASURES]]


def _differences(measured):
  table = measured.differences.set_index('client_id')
  return table[[*group_fairness.DIFFERENCES]]


def test_twelve_rows_by_hand():
  found = _measure(fewest=3)
  assert found.groups['count'].tolist() == [6, 6, 3, 3, 3, 3]
  for of, expected in (
    (_groups(found), _GROUPS),
    (_differences(found), _DIFFERENCES),
  ):
    assert of.index.tolist() == [*expected]
    np.testing.assert_allclose(of, [*expected.values()], rtol=1e-12)


def test_the_other_class_is_positive():
  found = _groups(_measure(positive=0, fewest=3))
  expected = np.array([*_GROUPS.values()])
  accuracy, selected, true, false = expected.T
  np.testing.assert_allclose(
    found, np.stack([accuracy, 1 - selected, 1 - false, 1 - true], axis=1)
  )


def test_a_small_group_is_counted_and_not_compared():
  # The first client loses an example of group b.
  found = _measure(np.delete(_ROWS, 5, axis=0), fewest=3)
  assert found.groups['count'].tolist() == [6, 5, 3, 2, 3, 3]
  assert _groups(found).loc[(0, 'b')].isna().all()
  differences = found.differences.set_index('client_id')
  assert differences['num_groups'].to_dict() == {'all': 2, 0: 1, 1: 2}
  assert differences['num_small_groups'].to_dict() == {'all': 0, 0: 1, 1: 0}
  assert _differences(found).loc[0].isna().all()
  np.testing.assert_allclose(_differences(found).loc[1], _DIFFERENCES[1])
  # No group is large enough by default.
  found = _measure()
  assert _groups(found).isna().all(axis=None)
  assert found.differences['num_small_groups'].tolist() == [2, 2, 2]


def test_a_client_may_lack_a_group():
  found = _measure(_ROWS[:9], fewest=3)
  assert found.groups['group'].tolist() == ['a', 'b', 'a', 'b', 'a']
  assert found.differences['num_groups'].tolist() == [2, 2, 1]
  assert _differences(found).loc[1].isna().all()
  assert _differences(found).loc['all'].notna().all()


def test_of_more_classes_only_the_accuracy_is_measured():
  rows = _ROWS.copy()
  rows[0, 2:] = 2
  found = _measure(rows, positive=None, fewest=3)
  expected = [values[0] for values in _GROUPS.values()]
  np.testing.assert_allclose(_groups(found)['accuracy'], expected)
  assert _groups(found)[[*group_fairness.RATES]].isna().all(axis=None)
  gaps = _differences(found)
  np.testing.assert_allclose(
    gaps['group_accuracy_difference'], [v[0] for v in _DIFFERENCES.values()]
  )
  assert gaps.iloc[:, 1:].isna().all(axis=None)


def test_refuses():
  refusals.check_values(_measure, {'fewest': [0, 1.5]})
  for rows in (_ROWS[:0],):
    with pytest.raises(ValueError, match='at least one example'):
      _measure(rows)
  with pytest.raises(ValueError, match='codes must have the shape'):
    group_fairness.measure([0, 1], [0, 1], [0], _NAMES, [0, 0], 1)
