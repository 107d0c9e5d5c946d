"""The pages say of our comparisons what their files say."""

import re

import pytest

from tff_fair.launchers.options import methods
from tff_fair.launchers.pages import compare_docs

# Numbers that are no results: names of tests, of files and of commands.
_NO_RESULTS = re.compile(
  r'```.*?```|`[^`]*`|\]\([^)]*\)|<!-- compare.*?<!-- end -->'
  r'|95 %|10 %|1,797|F1',
  re.DOTALL,
)


@pytest.fixture(scope='module')
def results():
  return compare_docs.read_results(compare_docs.ROOT / 'results')


@pytest.mark.parametrize('path', compare_docs.PAGES, ids=lambda path: path.name)
def test_pages_have_the_numbers_of_the_results(path, results):
  text = path.read_text()
  assert '<!-- compare overview -->' in text
  assert compare_docs.render(text, results) == text


def test_the_page_about_comparisons_has_no_other_numbers():
  text = (compare_docs.ROOT / 'docs' / 'comparison.md').read_text()
  assert not re.findall(r'.*\d.*', _NO_RESULTS.sub('', text))


def test_every_comparison_has_its_blocks_and_pictures(results):
  text = (compare_docs.ROOT / 'docs' / 'comparison.md').read_text()
  for name in results:
    for kind in ('answer', 'table', 'cost'):
      assert f'<!-- compare {kind} of {name} -->' in text
    for picture in ('pareto', 'critical_difference'):
      path = f'images/compare_{name}_{picture}.png'
      assert path in text and (compare_docs.ROOT / 'docs' / path).is_file()


@pytest.mark.parametrize(
  ('name', 'seeds', 'tune'),
  [('adult', 5, 8), ('digits', 5, 8), ('mnist', 3, 4)],
)
def test_results_are_of_all_methods_trials_and_seeds(
  results, name, seeds, tune
):
  frame, analysis = results[name]
  assert {*analysis.methods, *analysis.incomplete} == {*methods.METHODS}
  assert (len(analysis.facts['seeds']), analysis.facts['tune']) == (seeds, tune)
  for method, rows in frame.groupby('method'):
    if method in analysis.methods:
      assert len(rows) == tune + seeds - 1
      assert rows['chosen'].sum() == seeds
