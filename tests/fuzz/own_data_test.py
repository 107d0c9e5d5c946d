"""Names in tables: texts that differ never become one client."""

import csv

import hypothesis
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from tff_fair.own_data import table as table_lib
from tff_fair.tasks import table_file

pytestmark = pytest.mark.full

# Numbers in several ways, blanks and commas, but nothing like 'NA'.
_NAMES = st.lists(
  st.one_of(
    st.text('0179+-.eE', min_size=1, max_size=20),
    st.text(' 07aA,ß\u0661', min_size=1, max_size=4),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(['7', '07', '7.0', '7.', '7e0', '10', '1e1', '0', '-0']),
  ),
  min_size=4,
  max_size=8,
).filter(lambda names: len(set(names)) > 1)


def _check_apart(names, table):
  """Two rows have one client if and only if they have one name."""
  found = table_lib.encode(table, client='client', label='label')
  names = np.array(names, object)
  same = names[:, np.newaxis] == names
  np.testing.assert_array_equal(
    found.owners[:, np.newaxis] == found.owners, same
  )
  assert len(set(found.client_names)) == len(set(names))


@hypothesis.settings(max_examples=100)
@given(_NAMES)
def test_in_a_csv_file(tmp_path_factory, names):
  path = tmp_path_factory.getbasetemp() / 'names.csv'
  with open(path, 'w', newline='') as file:
    rows = csv.writer(file, quoting=csv.QUOTE_ALL)
    rows.writerow(['client', 'label', 'x'])
    rows.writerows([name, 'ab'[i % 2], i % 3] for i, name in enumerate(names))
  try:
    _check_apart(names, table_file.read(path, ['client', 'label']))
  except ValueError as error:
    assert 'whole numbers of clients, found the number' in str(error)
    assert any(not float(name).is_integer() for name in names)
