"""Cells, their marks, and tables as Markdown."""

from tff_fair.launchers import measures
from tff_fair.launchers import statistics
from tff_fair.launchers import summary
from tff_fair.launchers.pages import tables

_MEAN = measures.MEASURES['client_accuracy_mean']
_COST = measures.MEASURES['seconds_ratio']


class _Summary(summary.Summary):
  """Of several seeds, with a verdict."""

  def format(self, column, value):
    return measures.MEASURES[column].format(value)

  def verdict(self, name, column):
    return {'a': 1, 'c': -1}.get(name, 0)


def _summary(**values):
  estimates = {
    (name, measure.column): statistics.student(row)
    for name, row in values.items()
    for measure in (_MEAN, _COST)
  }
  return _Summary(ranked=tuple(values), estimates=estimates)


def test_marks_are_on_the_numbers_that_look_best():
  found = _summary(
    a=[0.5, 0.7], b=[0.5003, 0.7], c=[0.2, 0.4], d=[float('nan')] * 2
  )
  a, b, c, d = tables.make_cells(found, _MEAN, 'abcd')
  assert [cell.text for cell in (a, b, c, d)] == [
    '0.600',
    '0.600',
    '0.300',
    '–',
  ]
  assert [cell.best for cell in (a, b, c, d)] == [True, True, False, False]
  assert [cell.verdict for cell in (a, b, c, d)] == [1, 0, -1, 0]
  # 12.7062 is the quantile of two seeds, and 0.1 the standard error.
  assert a.detail == '-0.671 to 1.871'
  # A cost has no best.
  assert not any(c.best for c in tables.make_cells(found, _COST, 'abcd'))


def test_equal_numbers_are_not_marked():
  found = _summary(a=[0.5, 0.5], b=[0.5, 0.5])
  assert not any(c.best for c in tables.make_cells(found, _MEAN, 'ab'))


def test_details_say_what_a_number_is_worth():
  found = _summary(a=[0.5, float('nan')], b=[0.7, 0.7])
  one, both = tables.make_cells(found, _MEAN, 'ab')
  assert (one.detail, both.detail) == ('1 of 2 seeds', '0.700 to 0.700')
  # Of a cost that is always the same there is nothing to say.
  assert tables.make_cells(found, _COST, 'b')[0].detail == ''


def test_markdown_has_marks_and_no_markup_of_others():
  cells = [tables.Cell('0.5', '0.4 to 0.6', True, 1), tables.Cell('a|b')]
  rows = {
    'heading': [tables.Row('FedAvg', cells, mark='baseline')],
    '': [tables.Row('<b>', tables.texts('1', '2'))],
  }
  table = tables.Table('x', ['Method', 'Mean ↑', 'Other'], rows)
  assert tables.to_markdown(table).splitlines()[2:] == [
    r'| **FedAvg** | **0.5** ▲ (0.4 to 0.6) | a\|b |',
    '| &lt;b&gt; | 1 | 2 |',
  ]
  short = tables.to_markdown(table, with_details=False)
  assert '| **0.5** ▲ |' in short
