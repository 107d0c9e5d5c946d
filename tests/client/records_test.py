"""Clients of records: lists of mappings, and data sets like Hugging Face's."""

import numpy as np
import pandas as pd
from PIL import Image
import pytest

from tff_fair import client

_COUNT = 40
_KEYS = {'client': 'hospital', 'label': 'outcome'}


def _records(**entries):
  """Records of two hospitals; an entry is a function of the row."""
  return [
    {
      'hospital': ('Ulm', 'Bonn')[i % 2],
      'age': 20 + 7 * i % 30,
      'outcome': i // 2 % 2,
      **{name: make(i) for name, make in entries.items()},
    }
    for i in range(_COUNT)
  ]


class _ClassLabel:
  names = ('well', 'ill')


class _Dataset:
  """As much of `datasets.Dataset` as is used."""

  features = {'outcome': _ClassLabel()}  # noqa: RUF012

  def __init__(self, rows):
    self._rows = rows

  def __iter__(self):
    return iter(self._rows)

  def to_pandas(self):
    return pd.DataFrame(self._rows)


def test_records_are_the_table_of_them():
  expected = client.from_dataframe(pd.DataFrame(_records()), seed=3, **_KEYS)
  found = client.from_records(_records(), seed=3, **_KEYS)
  named = client.from_records(_Dataset(_records()), seed=3, **_KEYS)
  assert found.class_names == ('0', '1')
  assert named.class_names == ('ill', 'well')
  for clients in (found, named):
    assert clients.client_names == expected.client_names
    assert clients.feature_names == ('age',)
    np.testing.assert_array_equal(clients.test(0)[0], expected.test(0)[0])
  np.testing.assert_array_equal(named.test(0)[1], 1 - expected.test(0)[1])


@pytest.mark.parametrize('kind', [list, _Dataset])
def test_arrays_and_images(kind):
  def image(i):
    return Image.fromarray(np.full([2, 3], 5 * i, np.uint8))

  found = client.from_records(
    kind(_records(a=lambda i: [i, -1.0])), x='a', **_KEYS
  )
  assert found.input_shape == (2,)
  assert {i // 2 % 2 for i in found.test('Ulm')[0][:, 0]} == {0, 1}
  with pytest.warns(UserWarning, match='divided by 255, and its images get'):
    found = client.from_records(kind(_records(a=image)), x='a', **_KEYS)
  assert found.input_shape == (2, 3, 1)
  x, y = found.test('Bonn')
  rows = np.round(x[:, 0, 0, 0] * 255 / 5)
  expected = rows // 2 % 2
  np.testing.assert_array_equal(
    y, 1 - expected if kind is _Dataset else expected
  )


@pytest.mark.parametrize(
  ('records', 'options', 'message'),
  [
    ({'train': _records()}, {}, "found dict: choose one of 'train'"),
    ([1], {}, 'found int in record 1'),
    ([], {}, 'at least one record'),
    (3, {}, 'found int'),
    (_records(), {'label': 'outcom'}, 'Did you mean outcome'),
    (
      [*_records(), {'hospital': 'Ulm'}],
      {},
      "found 1 in 'outcome', 1 in 'age'",
    ),
    ([*_records(), {'hospital': 'Ulm'}], {'x': 'age'}, 'none in record 41'),
    (
      _records(a=lambda i: [0] * (1 + i // 9)),
      {'x': 'a'},
      r'\[2\] in record 10',
    ),
    (_records(a=lambda i: 'text'), {'x': 'a'}, 'of the shape .* in record 1'),
    (
      _records(a=lambda i: [i]),
      {'x': 'a', 'missing_values': 'drop'},
      'missing_values must be',
    ),
    (_Dataset(_records(outcome=lambda i: i % 3 - 1)), {}, "in 'outcome'"),
  ],
)
def test_mistakes_are_one_sentence(records, options, message):
  with pytest.raises((TypeError, ValueError), match=message):
    client.from_records(records, **{**_KEYS, **options})
