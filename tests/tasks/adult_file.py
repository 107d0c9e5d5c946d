"""Small files in the format of UCI Adult."""

from unittest import mock

import numpy as np

from tff_fair.tasks.data_sets import adult

RECORD = {
  'age': '39',
  'workclass': 'State-gov',
  'fnlwgt': '77516',
  'education': 'Bachelors',
  'education-num': '13',
  'marital-status': 'Never-married',
  'occupation': 'Adm-clerical',
  'relationship': 'Not-in-family',
  'race': 'White',
  'sex': 'Male',
  'capital-gain': '2174',
  'capital-loss': '0',
  'hours-per-week': '40',
  'native-country': 'United-States',
}


def line(label='<=50K', **changes):
  """A record of a file; underscores in names stand for hyphens."""
  changes = {name.replace('_', '-'): value for name, value in changes.items()}
  assert changes.keys() <= RECORD.keys()
  fields = {**RECORD, **changes}
  return ', '.join([*map(str, fields.values()), label])


def lines(num_above, num_others, first_weight=0):
  """Random records, each named by its value of `fnlwgt`."""
  rng = np.random.default_rng(first_weight)
  labels = ['>50K'] * num_above + ['<=50K'] * num_others
  return [
    line(
      label,
      fnlwgt=first_weight + i,
      age=rng.integers(17, 91),
      sex=rng.choice(['Male', 'Female']),
    )
    for i, label in enumerate(rng.permutation(labels))
  ]


def numbers_of_records():
  """A context after which the task requires the real numbers again."""
  return mock.patch.dict(adult._NUM_RECORDS)


def write(folder, data_lines, test_lines):
  """Writes both files, with the comment and the dots of the second one.

  These are then the numbers of records that the task requires.
  """
  adult._NUM_RECORDS.update(
    {'adult.data': len(data_lines), 'adult.test': len(test_lines)}
  )
  (folder / 'adult.data').write_text('\n'.join(data_lines) + '\n\n')
  test_lines = ['|1x3 Cross validator', *(text + '.' for text in test_lines)]
  (folder / 'adult.test').write_text('\n'.join(test_lines) + '\n\n')
