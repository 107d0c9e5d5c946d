import pickle

import numpy as np
import pytest

from tff_fair import aggregators
from tff_fair import summary


def test_text_and_tables():
  rows = {'<u>': [f'<script>{i}' for i in range(12)], 'loss': [1 / 3] * 12}
  found = summary.Summary('<b>', [('a&b', '<i>')], rows)
  assert repr(found) == '<b>\n  a&b: <i>'
  html = found._repr_html_()
  assert all(text not in html for text in ('<i>', '<u>', '<script>', '<b><b>'))
  assert html.count('&lt;script&gt;') == 8 and '0.3333<' in html
  assert '12 rows' in html
  assert '<table' not in summary.Summary('title')._repr_html_()


@pytest.mark.parametrize(
  ('value', 'expected'),
  [
    (0.5, '0.5'),
    ('a', "'a'"),
    (None, 'None'),
    ((1, 'a'), "(1, 'a')"),
    (np.zeros([2, 3]), 'array [2, 3]'),
    (len, 'len'),
    (aggregators.SammeAlphaFactory(), 'SammeAlphaFactory()'),
  ],
)
def test_arguments_in_a_few_words(value, expected):
  assert summary.format_value(value) == expected


def test_factories_show_their_arguments_and_can_be_pickled():
  rule = aggregators.QFairFactory(
    2.0, aggregators.SammeAlphaFactory(fallback='fed_avg')
  )
  shown = (
    "QFairFactory(q=2.0, inner_agg_factory=SammeAlphaFactory(fallback='fed_avg'"
    '))'
  )
  assert repr(rule) == repr(pickle.loads(pickle.dumps(rule))) == shown
  with pytest.raises(TypeError, match='unexpected'):
    aggregators.QFairFactory(exponent=2.0)
