import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model

from tff_fair.tasks import ehr_records
from tff_fair.tasks import ehr_synthetic

_STATES = pd.read_csv(ehr_synthetic.STATES_PATH)


@pytest.fixture(name='tables', scope='module')
def _tables():
  return ehr_synthetic.generate(0.01, seed=3)


def test_the_published_numbers_of_records():
  assert len(_STATES) == 50
  assert _STATES['state'].tolist() == sorted(_STATES['state'])
  assert _STATES['total'].sum() == 238_576
  assert (_STATES['positive'] + _STATES['negative'] == _STATES['total']).all()


def test_sizes_are_scaled_and_at_least_20(tables):
  sizes = tables[0]['state'].value_counts()
  assert len(sizes) == 50
  # A hundredth of 20,040, 18,898, 4,164; and of 358, which is too few.
  assert sizes[['CA', 'FL', 'CO', 'WY']].tolist() == [200, 189, 42, 20]


def test_the_shares_of_positive_records(tables):
  records = ehr_records.label(*tables)
  positive = np.bincount(records.owners, records.labels)
  shares = (_STATES['positive'] / _STATES['total']).to_numpy()
  expected = np.round(shares * np.bincount(records.owners))
  np.testing.assert_array_equal(positive, expected)
  # 7,116 of 20,040 are 71 of 200.
  assert positive[records.states.index('CA')] == 71


def test_no_record_is_lost_to_the_removal_of_what_gives_it_away(tables):
  patients, events = tables
  records = ehr_records.label(patients, events)
  assert len(records.labels) == len(patients)
  assert not records.dropped_states
  counts = np.bincount(records.events['record'])
  assert (counts.min(), counts.max()) == (5, 40)
  # A diagnosis and two treatments.
  assert len(events) - len(records.events) == 3 * records.labels.sum()
  left = records.events['code'].unique()
  assert all(code.startswith('SYN-') for code in left)


def test_is_repeatable_and_the_seed_draws_the_patients(tables):
  again, other = (ehr_synthetic.generate(0.01, seed=seed) for seed in (3, 4))
  for ours, theirs in zip(tables, again, strict=True):
    pd.testing.assert_frame_equal(ours, theirs)
  assert len(other[0]) == len(tables[0])
  assert not other[1].equals(tables[1])


def test_the_loader_reads_the_tables_back(tables, tmp_path):
  paths = tmp_path / 'patients.csv', tmp_path / 'events.csv'
  for table, path in zip(tables, paths, strict=True):
    table.to_csv(path, index=False)
  ours, theirs = (
    ehr_records.pack(ehr_records.label(*found), training=np.arange(9))
    for found in (tables, ehr_records.read(*paths))
  )
  assert ours.vocabulary == theirs.vocabulary
  np.testing.assert_array_equal(ours.x, theirs.x)


def _bags(records):
  """How often each code occurs, and the sum of its values."""
  packed = ehr_records.pack(
    records, training=np.arange(len(records.labels)), max_events=40
  )
  shape = len(packed.x), packed.num_ids
  bags = np.zeros((2, *shape))
  rows = np.arange(len(packed.x))
  for event in packed.x[:, 1:].transpose(1, 0, 2):
    codes = event[:, 0].astype(int)
    np.add.at(bags[0], (rows, codes), 1)
    np.add.at(bags[1], (rows, codes), event[:, 2])
  bags[:, :, 0] = 0  # Padding.
  return np.hstack([*bags])


def test_labels_can_be_learned_and_are_not_trivial():
  records = ehr_records.label(*ehr_synthetic.generate(0.02, seed=0))
  bags, labels = _bags(records), records.labels
  order = np.random.default_rng(0).permutation(len(labels))
  train, test = np.split(order, [len(order) * 4 // 5])
  model = linear_model.LogisticRegression(C=0.03, max_iter=500)
  accuracy = model.fit(bags[train], labels[train]).score(
    bags[test], labels[test]
  )
  assert max(labels.mean(), 1 - labels.mean()) < 0.65
  assert 0.72 < accuracy < 0.85


def test_states_differ_in_their_codes_at_the_same_label():
  records = ehr_records.label(*ehr_synthetic.generate(0.02, seed=0))
  bags = _bags(records)[:, : 2 + 200]
  bags /= bags.sum(axis=1, keepdims=True)

  def negatives(state):
    own = records.owners == records.states.index(state)
    return bags[own & (records.labels == 0)]

  ours, theirs = negatives('CA'), negatives('FL').mean(axis=0)
  control = ours[::2].mean(axis=0) - ours[1::2].mean(axis=0)
  between = np.linalg.norm(ours.mean(axis=0) - theirs)
  assert between > 2 * np.linalg.norm(control)
