"""Inputs of tables with gaps, against a plain pipeline of pandas."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pandas as pd

from tests import properties
from tff_fair.own_data import table as table_lib
from tff_fair.tasks import table_file

_ROWS = 12
_VALUES = {
  'object': st.booleans(),  # As a csv file with empty fields is read.
  'boolean': st.booleans(),
  'int64': st.integers(-5, 5),
  'Int64': st.integers(-5, 5),
  'float64': st.floats(-1e3, 1e3, allow_subnormal=False),
  'Float64': st.sampled_from([-2.5, 0.0, 1e-3]),
  'string': st.sampled_from('uvw'),
  'category': st.sampled_from('uvw'),
}
# No gaps; some in the training rows, in the others, or in both; gaps alone.
_GAPS = ('none', 'training', 'test', 'both', 'all')


@st.composite
def _columns(draw):
  """A type, values, and which are missing."""
  dtype = draw(st.sampled_from([*_VALUES]))
  values = draw(st.lists(_VALUES[dtype], min_size=_ROWS, max_size=_ROWS))
  gaps = 'none' if dtype == 'int64' else draw(st.sampled_from(_GAPS))
  drawn = draw(st.lists(st.booleans(), min_size=_ROWS, max_size=_ROWS))
  is_training = np.arange(_ROWS) % 3 > 0
  missing = {
    'none': np.zeros(_ROWS, bool),
    'training': drawn & is_training,
    'test': drawn & ~is_training,
    'both': np.array(drawn),
    'all': np.ones(_ROWS, bool),
  }[gaps]
  column = pd.Series(values, dtype=dtype)
  return column.mask(missing, None if dtype == 'object' else pd.NA)


def _expected(column, training, from_file):
  """The inputs of a column, float64 [n, d]."""
  missing = column.isna()
  if missing.all() and (from_file or column.dtype == 'object'):
    # What has no value and no type is a number.
    column = pd.Series(np.nan, column.index)
  if column.dtype in ('string', 'category'):
    return pd.get_dummies(column.astype(object), dummy_na=missing.any())
  numbers = column.astype('Float64')
  if column.dtype in ('object', 'boolean') and not missing.any():
    return numbers.to_frame()
  known = numbers[training].mean()
  filled = numbers.fillna(0.0 if pd.isna(known) else known).astype(float)
  mean, deviation = filled[training].mean(), filled[training].std(ddof=0)
  is_constant = filled[training].nunique() == 1
  scaled = 0 * filled if is_constant else (filled - mean) / deviation
  parts = [scaled, missing] if missing.any() else [scaled]
  return pd.concat(parts, axis=1)


@hypothesis.settings(properties.SETTINGS)
@hypothesis.given(st.lists(_columns(), min_size=1, max_size=3), st.booleans())
def test_every_column_is_filled_in_every_part(
  tmp_path_factory, columns, from_file
):
  rows = np.arange(_ROWS)
  keys = {'client': rows % 2, 'label': np.where(rows % 4 < 2, 'a', 'b')}
  table = pd.DataFrame({**keys, **dict(zip('fgh', columns, strict=False))})
  training = np.flatnonzero(rows % 3 > 0)
  read = table
  if from_file:
    # A file says no types: there, a column of gaps has none.
    path = tmp_path_factory.getbasetemp() / 'gaps.csv'
    table.to_csv(path, index=False)
    read = table_file.read(path, ['client', 'label'])
  encoded = table_lib.encode(
    read, client='client', label='label', missing_values='fill'
  )
  x, _ = encoded.to_inputs(training)
  expected = [
    _expected(table[name], training, from_file) for name in table.columns[2:]
  ]
  expected = pd.concat(expected, axis=1).to_numpy(float)
  assert x.dtype == np.float32 and np.isfinite(x).all()
  np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)
