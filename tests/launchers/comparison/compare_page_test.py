"""The web page about a comparison."""

import collections
import re

import pytest

from tests.launchers import nasty_names
from tests.launchers import web_page
from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.options import methods
from tff_fair.launchers.pages import compare_page

_MAX_BYTES = 400_000


def _analyse(folder, found=None, about=None):
  paths = made_comparison.write(folder, found, about)
  return analysis_lib.analyse(*analysis_lib.read(*paths))


def _page(folder, found=None, about=None):
  text = compare_page.render(_analyse(folder, found, about))
  return text, web_page.Page(text)


@pytest.fixture(scope='module', name='large')
def _large(tmp_path_factory):
  """All methods with five seeds of twenty clients."""
  seeds, clients = range(5), 20
  found = made_comparison.rows(seeds, clients, methods=list(methods.METHODS))
  about = made_comparison.facts(seeds, clients)
  return _page(tmp_path_factory.mktemp('large'), found, about)


@pytest.fixture(scope='module', name='small')
def _small(tmp_path_factory):
  return _page(tmp_path_factory.mktemp('small'))


class TestPageOfAllMethods:
  def test_is_small(self, large):
    assert len(large[0].encode()) < _MAX_BYTES

  def test_nothing_comes_from_outside_and_nothing_runs(self, large):
    text, page = large
    assert '://' not in text
    assert not {'script', 'img', 'iframe'} & {tag for tag, _ in page.elements}
    for _, attributes in page.elements:
      target = attributes.get('href', '#')
      assert target.startswith('#') or target == 'data:,'
      assert not [n for n in attributes if n.startswith('on') or n == 'src']

  def test_ids_are_unique_and_what_is_referred_to_exists(self, large):
    text, page = large
    ids = collections.Counter(a['id'] for _, a in page.elements if 'id' in a)
    assert set(ids.values()) == {1}
    referred = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
    assert {one or other for one, other in referred} <= set(ids)

  def test_most_methods_have_no_curve_and_it_says_so(self, large):
    assert '19 of 27 methods are not drawn' in large[1].text

  def test_methods_in_turn_are_a_group_of_their_own(self, large):
    titles = [row[0][0] for row in large[1].tables[0][1:]]
    at = next(i for i, t in enumerate(titles) if t.startswith('Clients take'))
    assert at == len(methods.METHODS) - 2
    group = titles[at + 1 :]
    assert {title.split('Mean accuracy at')[0] for title in group} == {
      'DSSGD',
      'FedAvg, in turn',
    }
    assert all(', place ' in title or title.endswith('–') for title in group)


class TestPage:
  def test_starts_with_its_mark(self, small):
    assert small[0].startswith(compare_page.MARK)

  def test_is_the_same_for_the_same_files(self, small, tmp_path):
    assert _page(tmp_path)[0] == small[0]

  def test_methods_stand_by_their_mean_with_marks(self, small):
    table = small[1].tables[0]
    titles = [row[0][0] for row in table[1:]]
    assert titles == ['Ditto', 'q-FedAvg', 'FedProx', 'FedAvg', 'Standalone']
    (ditto,) = small[1].row('Ditto')[:1]
    marks = '▲ (separably better than FedAvg) (best)'
    assert ditto[0][0].startswith(f'0.769{marks}')
    assert ditto[0][2] == 'best'
    (alone,) = small[1].row('Standalone')[:1]
    assert '▼ (separably worse than FedAvg)' in alone[0][0]

  def test_what_is_not_defined_is_a_dash(self, small):
    page = small[1]
    names = [cell[0] for cell in page.tables[0][0][1:]]
    cells = dict(zip(names, page.row('Standalone')[0], strict=True))
    for name in ('CF coefficient\xa0↑', 'Global model\xa0↑'):
      assert cells[name][0] == '–'
    assert 'Not defined for Standalone.' in page.text

  def test_figures_have_text_alternatives(self, small):
    figures = [a for tag, a in small[1].elements if a.get('role') == 'img']
    words = [a['aria-label'] for a in figures]
    assert [w.split('. ')[0] for w in words] == [
      'Mean accuracy and worst 10 % of the methods',
      'Mean accuracy and CF coefficient of the methods',
      'Mean accuracy of the clients over the rounds at the end',
    ]
    assert 'On the Pareto front: Ditto' in words[0]


def test_one_seed_has_no_intervals_and_says_so(tmp_path):
  _, page = _page(
    tmp_path, made_comparison.rows([0]), made_comparison.facts([0])
  )
  assert 'With one seed there are no intervals' in page.text
  assert 'separably' not in page.text
  assert '▲' not in page.text and 'Thin crosses' not in page.text


def test_without_a_cf_coefficient(tmp_path):
  scores = {'fed_avg': [[0.5]], 'ditto': [[0.6]]}
  _, page = _page(
    tmp_path,
    made_comparison.rows([0], 1, scores=scores),
    made_comparison.facts([0], 1),
  )
  assert 'No method has a CF coefficient' in page.text


def test_without_a_result(tmp_path):
  found = [made_comparison.trial_row('fed_avg', 0, 0, 'diverged')]
  about = made_comparison.facts(
    notes=['--budget=1m left one trial.'], excluded={'fed_rdn': 'No images.'}
  )
  _, page = _page(tmp_path, found, about)
  assert 'No method has a learning curve.' in page.text
  for reason in (
    'FedAvg diverged in its only run.',
    'FedRDN: No images.',
    '--budget=1m left one trial.',
  ):
    assert reason in page.text


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
  text, page = _page(tmp_path, found, about)
  assert not {'script', 'img'} & {tag for tag, _ in page.elements}
  assert text.count('<!--') == 1
  assert page.text.count(bad) > 6
  assert 'Zürich [31m 東京 | 😀' in page.text
