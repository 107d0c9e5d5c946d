"""A comparison as Markdown."""

import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.options import methods
from tff_fair.launchers.pages import compare_markdown


def _analyse(folder, found=None, about=None):
  paths = made_comparison.write(folder, found, about)
  return analysis_lib.analyse(*analysis_lib.read(*paths))


def _tables(text):
  """The cells of the tables of a page."""
  return [
    [line.strip('| ').split(' | ') for line in block.splitlines()]
    for block in text.split('\n\n')
    if block.startswith('|')
  ]


@pytest.fixture(scope='module', name='small')
def _small(tmp_path_factory):
  return _analyse(tmp_path_factory.mktemp('small'))


def test_is_the_same_for_the_same_files(small, tmp_path):
  text = compare_markdown.render(small)
  assert text == compare_markdown.render(_analyse(tmp_path))
  assert text.startswith(compare_markdown.MARK)


def test_tables_have_the_numbers_and_their_marks(small):
  measures, tuned = _tables(compare_markdown.render(small))
  widths = {len(row) for row in measures}
  assert widths == {9}
  rows = {row[0]: row[1:] for row in measures}
  estimate = small.estimates['ditto', 'client_accuracy_mean']
  low, high = (f'{end:.3f}' for end in (estimate.low, estimate.high))
  assert rows['Ditto'][0] == f'**{estimate.mean:.3f}** ▲ ({low} to {high})'
  assert rows['Standalone'][2] == '–'
  assert '**FedAvg**' in rows
  values = {row[0]: row[1:] for row in tuned}
  assert values['FedProx'][0] == '0.1'
  assert values['FedProx'][2:] == ['2', '0', r'proximal\_weight=0.1']


def test_a_headline_has_the_baseline_the_papers_methods_and_the_best(tmp_path):
  names = list(methods.METHODS)
  analysis = _analyse(
    tmp_path,
    made_comparison.rows([0, 1], methods=names),
    made_comparison.facts([0, 1]),
  )
  table, in_turn = _tables(compare_markdown.headline_table(analysis))
  found = {row[0] for row in table[2:]}
  papers = {entry.title for entry in methods.PAPERS.values()}
  best = methods.title(analysis.best('client_accuracy_worst10'))
  assert papers | {'**FedAvg**', best} <= found
  assert len(found) < len(names)
  assert ' to ' not in ''.join(sum(table[2:], []))
  # Six rounds are 1.5 rounds of four clients, where a curve has a quarter.
  assert in_turn[0][0] == 'Clients take turns'
  assert in_turn[0][-1] == 'Mean accuracy at FedAvg’s depth (1.5 rounds)'
  assert [row[0] for row in in_turn[2:]] == [
    methods.title(m) for m in analysis.in_turn
  ]
  dssgd = analysis.estimates['dssgd', 'client_accuracy_mean'].mean
  count = len(names) - 1
  assert [row[-1] for row in in_turn[2:] if row[0] == 'DSSGD'] == [
    f'{dssgd / 4:.3f}, place {count} of {count}'
  ]
  assert not any(mark in str(in_turn) for mark in '▲▼*')


def test_what_chance_gives_stands_beside_the_worst_clients(tmp_path):
  about = made_comparison.facts(test_examples=[[50] * 4] * 3)
  analysis = _analyse(tmp_path, about=about)
  header, _, *rows = _tables(compare_markdown.headline_table(analysis))[0]
  assert header[3] == 'The same by chance'
  values = {row[0]: row[3] for row in rows}
  expected = analysis.estimates['fed_avg', 'worst10_by_chance'].mean
  assert values['**FedAvg**'] == f'{expected:.3f}'


def test_the_answer_is_a_list_without_markup_of_others(tmp_path):
  about = made_comparison.facts(data='<b>a|b</b>\n# `x` [y](z)')
  text = compare_markdown.answer_list(_analyse(tmp_path, about=about))
  shown = r'&lt;b&gt;a\|b&lt;/b&gt; # \`x\` \[y\](z)'
  assert text.splitlines()[0].startswith(f'- On {shown} with 4 clients')
  assert all(line.startswith('- ') for line in text.splitlines())
