import numpy as np
import pandas as pd

from tests import refusals
from tests.tasks import ehr_file
from tff_fair.tasks import ehr_records
from tff_fair.tasks import sources


def _label(folder, patients, events):
  paths = ehr_file.write_rows(folder, patients, events)
  return ehr_records.label(*ehr_records.read(*paths))


def _codes(records):
  """The codes of each record in order."""
  events = records.events
  return [
    events['code'][events['record'] == record].tolist()
    for record in range(len(records.labels))
  ]


def test_records_by_hand(tmp_path):
  records = _label(
    tmp_path,
    ['p3,NY,F,100', 'p1,ny,male,', 'p2,AK,,995', 'p4,AL,M,36'],
    [
      'p1,61.5,I10,',
      'p3,50,LAB1,7.5',
      'p1,60,E11.9,-2',
      'p2,44,Z00,',
      'p3,49,lab1,0',
      'p4,70,C25.9,',
    ],
  )
  # Sorted by state and patient: p2, p1, p3; p4 has nothing left.
  assert records.states == ('AK', 'NY')
  assert records.dropped_states == ('AL',)
  assert records.owners.tolist() == [0, 1, 1]
  assert records.sexes.tolist() == [0, 2, 1]
  assert records.labels.tolist() == [0, 0, 0]
  assert records.labels.dtype == np.int32
  assert _codes(records) == [['Z00'], ['E119', 'I10'], ['LAB1', 'LAB1']]
  assert records.events['age'].tolist() == [44, 60, 61.5, 49, 50]
  np.testing.assert_array_equal(
    records.events['value'], [np.nan, -2, np.nan, 0, 7.5]
  )
  buckets = records.postal_buckets
  assert buckets.min() >= 0 and buckets.max() < 1000
  assert len(set(buckets)) == 3


def test_postal_buckets_are_the_same_in_every_process(tmp_path):
  records = _label(tmp_path, ['a,AK,F,995', 'b,AK,F,996'], ['a,1,X,', 'b,1,X,'])
  assert records.postal_buckets.tolist() == [698, 355]


def test_a_diagnosis_and_all_after_it_are_removed(tmp_path):
  for code in [
    *('C25', 'C25.0', 'C25.1', 'C25.2', 'C25.3', 'C25.4', 'C25.7', 'C25.8'),
    *('C25.9', 'c25.9', 'C259', ' c25.1', 'C.25.4'),
    *('157', '157.0', '1570', '157.1', '157.2', '157.3', '157.4', '157.8'),
    '157.9',
  ]:
    records = _label(
      tmp_path,
      ['a,AK,F,1', 'b,AL,M,2'],
      [
        f'a,60,{code},',
        'a,59.9,BEFORE,',
        'a,60,SAME,',
        'a,60.1,AFTER,',
        f'a,62,{code},',
        'b,60,SAME,',
        'b,99,AFTER,',
      ],
    )
    assert records.labels.tolist() == [1, 0], code
    assert _codes(records) == [['BEFORE'], ['SAME', 'AFTER']], code
  # The first one counts wherever it stands.
  events = ['a,65,C25.9,', 'a,64,X,', 'a,50,157.1,', 'a,49,Y,']
  assert _codes(_label(tmp_path, ['a,AK,F,1'], events)) == [['Y']]


def test_other_codes_are_no_diagnosis(tmp_path):
  for code in [
    *('157.5', '157.6', '1577', 'C25.5', 'C25.6', 'C251X', 'C2', 'C26'),
    *('15', 'D25'),
  ]:
    records = _label(tmp_path, ['a,AK,F,1'], [f'a,60,{code},', 'a,61,AFTER,'])
    assert records.labels.tolist() == [0], code
    assert _codes(records) == [[code.replace('.', ''), 'AFTER']]


def test_records_without_events_are_dropped(tmp_path):
  records = _label(
    tmp_path,
    ['a,AK,F,1', 'b,AK,M,2', 'c,AL,F,3', 'd,WY,F,4'],
    ['a,60,X,', 'd,50,C25,', 'd,51,X,', 'b,60,C25,', 'b,59,Y,'],
  )
  assert records.states == ('AK',)
  assert records.dropped_states == ('AL', 'WY')
  assert records.owners.tolist() == [0, 0]
  assert records.labels.tolist() == [0, 1]
  assert _codes(records) == [['X'], ['Y']]


def test_the_order_of_rows_is_nothing_to_the_records(tmp_path):
  patients = ['a,AK,F,1', 'b,AL,M,2', 'c,AK,M,3']
  events = [
    *('a,60,X,1', 'a,60,X,', 'a,60,X,0', 'a,60,W,', 'a,59,Z,5'),
    *('b,50,X,3', 'b,51,C25,', 'c,40,W,'),
  ]
  first = _label(tmp_path, patients, events)
  other = _label(tmp_path, patients[::-1], events[::-1])
  assert first.states == other.states
  for ours, theirs in zip(first[2:6], other[2:6], strict=True):
    np.testing.assert_array_equal(ours, theirs)
  pd.testing.assert_frame_equal(first.events, other.events)


def _spread(tmp_path):
  """Three records of AK, of which the third alone has the code 'ODD'."""
  return _label(
    tmp_path,
    ['a,AK,F,1', 'b,AK,M,2', 'c,AK,,3'],
    [
      *('a,40,X,1', 'a,50,Y,', 'a,60,X,5'),
      'b,70,Z,3',
      *('c,90,ODD,100', 'c,80,X,'),
    ],
  )


def test_packed_records_by_hand(tmp_path):
  records = _spread(tmp_path)
  x, vocabulary = ehr_records.pack(
    records, training=np.array([0, 1]), max_events=4
  )
  assert x.shape == (3, 5, 4)
  assert x.dtype == np.float32
  assert vocabulary == ('X', 'Y', 'Z')
  packed = ehr_records.pack(records, training=np.array([0, 1]))
  # Padding and unknown count, too.
  assert (packed.num_ids, packed.x.shape) == (5, (3, 129, 4))
  buckets = records.postal_buckets
  np.testing.assert_array_equal(
    x[:, 0],
    [[1, buckets[0], 3, 0], [2, buckets[1], 1, 0], [0, buckets[2], 2, 0]],
  )
  # Ages 40, 50, 60, 70 and values 1, 5, 3 of a and b train.
  age = np.array([-15, -5, 5, 15]) / np.sqrt(125)
  value = np.array([-2, 2, 0, 97]) / np.sqrt(8 / 3)
  np.testing.assert_allclose(
    x[:, 1:],
    [
      [
        [2, age[0], value[0], 0],
        [3, age[1], 0, 1],
        [2, age[2], value[1], 0],
        [0, 0, 0, 0],
      ],
      [[4, age[3], value[2], 0], *np.zeros((3, 4))],
      [
        [2, 25 / np.sqrt(125), 0, 1],
        [1, 35 / np.sqrt(125), value[3], 0],
        *np.zeros((2, 4)),
      ],
    ],
    rtol=1e-5,
    atol=1e-6,
  )


def test_the_latest_events_are_kept(tmp_path):
  records = _spread(tmp_path)
  x, vocabulary = ehr_records.pack(
    records, training=np.array([0, 1]), max_events=2
  )
  whole, _ = ehr_records.pack(records, training=np.array([0, 1]), max_events=3)
  assert vocabulary == ('X', 'Y', 'Z')
  assert x[:, 0, 2].tolist() == [2, 1, 2]
  np.testing.assert_array_equal(x[:, 1:, 0], [[3, 2], [4, 0], [2, 1]])
  np.testing.assert_array_equal(x[0, 1:, 0], whole[0, 2:, 0])
  one, vocabulary = ehr_records.pack(
    records, training=np.array([0]), max_events=1
  )
  # Only what is kept of the training record makes the vocabulary.
  assert vocabulary == ('X',)
  np.testing.assert_array_equal(one[:, 1, 0], [2, 1, 1])


# Which file -> rows of both, and what is found.
_DAMAGED = [
  (0, ['a,AK,F,1', ',AK,F,1'], [], 'the patient_id .*, found none in row 2'),
  (0, ['a,,F,1'], [], 'the state in each row, found none in row 1'),
  (0, ['a,AK,F,1', 'a,AL,F,1'], [], "each patient once, found 'a' again"),
  *(
    (1, ['a,AK,F,1'], events, found)
    for events, found in [
      (['b,50,X,'], "the unknown patient 'b'"),
      (['a,5,X,', 'a,old,X,'], "the column 'age', found 'old'"),
      (['a,inf,X,'], "the column 'age', found inf"),
      (['a,True,X,'], "the column 'age', found True"),
      (['a,5,X,', 'a,,X,'], 'the age in each row, found none in row 2'),
      (['a,5,X,', 'a,5,,'], 'the code in each row, found none in row 2'),
      (['a,50,X,high'], "the column 'value', found 'high'"),
      (['a,50,X,1e39'], r"the column 'value', found 1e\+39"),
      (['"a,50,X,1'], 'found an unreadable file'),
    ]
  ),
]


def test_says_what_is_wrong_with_a_file(tmp_path):
  for number, patients, events, found in _DAMAGED:
    paths = ehr_file.write_rows(tmp_path, patients, events)
    _check_damaged(paths, number, found)
  for number, header in enumerate((ehr_file.PATIENTS, ehr_file.EVENTS)):
    paths = ehr_file.write_rows(tmp_path, [], [])
    name = header.split(',')[-1]
    paths[number].write_text(header.replace(name, 'other') + '\n')
    _check_damaged(paths, number, f"none that is called '{name}'")


def _check_damaged(paths, number, found):
  message = rf"^The data file '{paths[number]}' must hold .*{found}"
  arguments = dict(zip(('patients_path', 'events_path'), paths, strict=True))
  refusals.check(
    ehr_records.read, [(arguments, sources.DataDamagedError, message)]
  )
