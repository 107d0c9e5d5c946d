import numpy as np

from tests import refusals
from tests.tasks import adult_file
from tff_fair.tasks import adult_records
from tff_fair.tasks import sources


def _read(tmp_path, *lines):
  path = tmp_path / 'adult.data'
  path.write_text('\n'.join(lines) + '\n')
  return adult_records.read(path)


def test_shapes_and_labels(tmp_path):
  x, y = _read(
    tmp_path,
    '|1x3 Cross validator',
    adult_file.line('<=50K'),
    adult_file.line('>50K'),
    adult_file.line('<=50K.'),
    adult_file.line('>50K.'),
    '',
  )
  assert x.shape == (4, 108)
  assert x.dtype == np.float32
  assert y.tolist() == [0, 1, 0, 1]
  assert y.dtype == np.int32


def test_features_by_hand(tmp_path):
  (x,), _ = _read(
    tmp_path, adult_file.line(native_country='?', age=17, fnlwgt=1484705)
  )
  # Where each column begins: 9 work classes, 16 levels of education, 7 states
  # of marriage, 15 occupations, 6 relationships, 5 races, 2 sexes, 42
  # countries. 'State-gov' is number 5, 'Bachelors' 0, 'Never-married' 2,
  # 'Adm-clerical' 8, 'Not-in-family' 3, 'White' 0, 'Male' 1, '?' 41.
  begins = np.cumsum([0, 9, 16, 7, 15, 6, 5, 2])
  ones = begins + [5, 0, 2, 8, 3, 0, 1, 41]
  assert np.flatnonzero(x[:102]).tolist() == ones.tolist()
  assert x[ones].tolist() == [1.0] * 8
  # Age, weight, years of education, gain, loss, hours.
  assert x[102:].tolist() == [17, 1484705, 13, 2174, 0, 40]
  assert adult_records.NUM_CATEGORICAL_FEATURES == 102


def test_says_what_is_wrong_with_a_file(tmp_path):
  path = tmp_path / 'adult.data'
  line = adult_file.line()
  for lines, found in [
    (['1, 2', '3, 4'], r'15 fields, found records of 2\.$'),
    ([line, line + ', 1'], 'line 2, saw 16'),
    ([line, line.rpartition(',')[0]], 'missing field in record 2'),
    ([line, adult_file.line(race='')], 'missing field in record 2'),
    # Only three columns have missing values.
    ([adult_file.line(education='?')], r"'education', found '\?'"),
    ([adult_file.line('>100K')], "'class', found '>100K'"),
    ([line, adult_file.line(age='old')], "'age', found 'old'"),
    ([adult_file.line(capital_gain='1e39')], "'capital-gain', found '1e39'"),
  ]:
    path.write_text('\n'.join(lines))
    message = rf"^The data file '{path}' must hold .*{found}"
    refusals.check(
      adult_records.read, [({'path': path}, sources.DataDamagedError, message)]
    )
