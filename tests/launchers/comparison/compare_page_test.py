"""The pages about a comparison."""

import pytest

from tests.launchers import golden
from tests.launchers import nasty_names
from tests.launchers import web_page
from tests.launchers.comparison import made_comparison
from tff_fair.launchers.options import methods
from tff_fair.launchers.pages import compare_page

_MAX_BYTES = 400_000


def _page(folder, found=None, about=None):
  analysis = made_comparison.analyse(folder, found, about)
  return web_page.Page(compare_page.render(analysis))


def _tables(text):
  """The cells of the tables of a Markdown page."""
  return [
    [line.strip('| ').split(' | ') for line in block.splitlines()]
    for block in text.split('\n\n')
    if block.startswith('|')
  ]


@pytest.fixture(scope='module', name='all_methods')
def _all_methods(tmp_path_factory):
  """All methods with five seeds of twenty clients."""
  seeds, clients = range(5), 20
  return made_comparison.analyse(
    tmp_path_factory.mktemp('large'),
    made_comparison.rows(seeds, clients, methods=list(methods.METHODS)),
    made_comparison.facts(seeds, clients),
  )


@pytest.fixture(scope='module', name='large')
def _large(all_methods):
  return web_page.Page(compare_page.render(all_methods))


@pytest.fixture(scope='module', name='small')
def _small(tmp_path_factory):
  """With sizes of test parts, and a method in turn."""
  analysis = made_comparison.analyse(
    tmp_path_factory.mktemp('small'),
    made_comparison.rows(methods=(*made_comparison.LEVELS, 'dssgd')),
    made_comparison.facts(
      test_examples=[[50] * 4] * 3, notes=['A note.'], options={}
    ),
  )
  text = compare_page.render(analysis)
  return analysis, web_page.Page(text)


def test_the_web_page_is_as_it_was_read(small):
  _, page = small
  assert page.source.startswith(compare_page.MARK)
  golden.check('compare.txt', '\n'.join(page.lines) + '\n')


def test_the_page_of_all_methods_is_small_and_safe(large):
  assert len(large.source.encode()) < _MAX_BYTES
  large.check_is_safe()


def test_marks_are_on_their_numbers(small):
  analysis, page = small
  kinds = [analysis.of(kind) for kind in [*analysis.kinds][:2]]
  names = [cell[0] for cell in page.tables[0][0][1:]]
  for table, method in [
    (i, method) for i, kind in enumerate(kinds) for method in kind.ranked
  ]:
    (row,) = page.row(analysis.title(method), table)
    cells = dict(zip(names, row, strict=True))
    for heading, column in (
      ('Mean accuracy\xa0↑', 'client_accuracy_mean'),
      ('Variance\xa0↓', 'client_accuracy_variance'),
    ):
      text, style = cells[heading]
      verdict = analysis.verdict(method, column)
      assert ('separably better' in text) == (verdict > 0)
      assert ('separably worse' in text) == (verdict < 0)
      is_best = kinds[table].leaders(column) == (method,)
      assert ('(best)' in text) == (style == 'best') == is_best
      assert text.startswith(analysis.show(method, column))


def test_a_headline_has_the_baseline_the_papers_methods_and_the_best(
  all_methods,
):
  *ranked, in_turn = _tables(compare_page.render_headline(all_methods))
  headings = [table[0][0] for table in ranked]
  assert headings == ['One model for all', 'A model for each client']
  found = {row[0] for table in ranked for row in table[2:]}
  papers = {entry.title for entry in methods.PAPERS.values()}
  best = methods.title(all_methods.best('client_accuracy_worst10'))
  assert papers | {'**FedAvg**', best} <= found
  assert len(found) < len(methods.METHODS)
  assert ' to ' not in str([table[2:] for table in ranked])
  # Six rounds are .3 rounds of twenty clients, before the first evaluation.
  assert in_turn[0][0] == 'Clients take turns'
  assert in_turn[0][-1] == 'Mean accuracy at FedAvg’s depth (0.3 rounds)'
  assert [row[0] for row in in_turn[2:]] == [
    methods.title(m) for m in all_methods.in_turn
  ]
  assert not any(mark in str(in_turn) for mark in '▲▼*')


def test_the_places_of_a_method_in_turn(tmp_path):
  rows = made_comparison.rows(methods=(*made_comparison.LEVELS, 'dssgd'))
  about = made_comparison.facts(cohort_size=2)
  analysis = made_comparison.analyse(tmp_path, rows, about)
  page = web_page.Page(compare_page.render(analysis))
  # Six rounds are 1.5 rounds of four clients, where a curve has a quarter, and
  # have as many updates of two clients as three rounds of all.
  accuracy = analysis.estimates['dssgd', 'client_accuracy_mean'].mean
  (row,) = page.row('DSSGD', table=2)
  assert [cell[0] for cell in row[-2:]] == [
    f'{accuracy / 4:.3f}, place 6 of 6',
    f'{accuracy / 2:.3f}, place 6 of 6',
  ]


def test_the_ranking_in_two_halves_is_on_the_page(small):
  analysis, page = small
  kind = 'one model for all'
  tau = analysis.of(kind).agreement('client_accuracy_mean')
  assert (
    'between the ranking of the methods with seeds 0 and 1 and that with 2:'
    f' mean accuracy {tau:.2f} ({kind}), '
  ) in page.text


def test_one_seed_has_no_intervals_and_says_so(tmp_path):
  page = _page(tmp_path, made_comparison.rows([0]), made_comparison.facts([0]))
  assert 'there are no intervals' in page.text
  assert 'Kendall' not in page.text
  assert 'separably better' not in ' '.join(page.lines[:20])
  assert '▲' not in page.text


def test_how_trials_were_chosen(tmp_path):
  about = made_comparison.facts(tuning=made_comparison.TUNING, tune=4)
  page = _page(tmp_path, made_comparison.staged_rows(), about)
  for expected in (
    'with seeds that are not scored (100, 101 and 102)',
    'Each method has 4 trials of 2 rounds with seed 100. The best 2 have 6'
    ' rounds with each of 3 seeds; the others were dropped.',
    'one of the last 1 goes beyond it',
    'up to 176 client updates, the same for all methods',
    'Methods whose range was widened: 5 of 5.',
    'that a better one may be beyond it: 5.',
    '0.0027 to 0.14 (chosen at the edge)',
  ):
    assert expected in page.text
  # A comparison of an older version says its own protocol.
  page = _page(tmp_path / 'old')
  assert 'runs with seed 0, which is scored, too.' in page.text
  assert 'Rates tried' not in page.text and 'widened' not in page.text


def test_without_a_result(tmp_path):
  found = [made_comparison.trial_row('fed_avg', 0, 0, 'diverged')]
  about = made_comparison.facts(
    notes=['--budget=1m left one trial.'], excluded={'fed_rdn': 'No images.'}
  )
  page = _page(tmp_path, found, about)
  for expected in (
    'No method has a result.',
    'FedAvg diverged in its only run.',
    'FedRDN: No images.',
    '--budget=1m left one trial.',
  ):
    assert expected in page.text


def test_texts_of_files_are_shown_and_not_run(tmp_path):
  bad = '<script>alert("1")</script> & <img src=x onerror=alert(2)>'
  scores = {
    name: [[0.5 + 0.01 * i, 0.6], [0.55 + 0.01 * i, 0.61]]
    for i, name in enumerate(['fed_avg', 'standalone', *nasty_names.NAMES])
  }
  found = made_comparison.rows([0, 1], 2, scores=scores)
  for row in found:
    row['parameters'] = row['command'] = bad
  about = made_comparison.facts(
    [0, 1],
    2,
    data=bad,
    notes=[bad],
    excluded={bad: bad},
    options={bad: bad},
    target_rule=bad,
    version=bad,
  )
  analysis = made_comparison.analyse(tmp_path, found, about)
  page = web_page.Page(compare_page.render(analysis))
  page.check_is_safe()
  assert page.source.count('<!--') == 1
  assert page.text.count(bad) > 6
  assert 'Zürich [31m 東京 | 😀' in page.text
