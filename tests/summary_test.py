import pickle

import pytest

from tff_fair import aggregators
from tff_fair import summary


def test_summary_escapes_what_it_shows_and_ends_after_some_rows():
  names = [f'<script>{i}' for i in range(12)]
  found = summary.Summary('<b>', [('a&b', '<i>')], {'<u>': names})
  assert found.text() == '<b>\n  a&b: <i>'
  html = found.html()
  assert all(text not in html for text in ('<i>', '<u>', '<script>', '<b><b>'))
  assert all(f'&lt;script&gt;{i}<' in html for i in range(5))
  assert '&lt;script&gt;5' not in html and '... 7 more' in html


@pytest.mark.parametrize(
  ('names', 'expected'),
  [
    (['a', 'b'], 'a, b'),
    (list('abcdefghijkl'), 'a, b, c, d, e, f, g, h, i, j, ... 2 more'),
  ],
)
def test_long_lists_are_cut(names, expected):
  assert summary.listed(names) == expected


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
