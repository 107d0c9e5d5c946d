"""The facts of the five papers stand once: in docs/methods/*.csv."""

import pathlib
import re

import pandas as pd
import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_METHODS = _ROOT / 'docs' / 'methods'
_PAPERS = pd.read_csv(_METHODS / 'papers.csv', dtype=str).set_index('method')
_EQUATIONS = pd.read_csv(
  _METHODS / 'equations.csv', dtype=str, keep_default_na=False
)
_NAMES = {title.lower().replace('-', ''): title for title in _PAPERS.index}
_NUMBERS = re.compile(r'[Ee]quations? (\d+)(?:(?:,| and| to) (\d+))?')
# "equation 6, [`samme_alpha`](...)" or "[`samme_alpha`](...), equation 6".
_LINKED = re.compile(
  r'equation (\d+),\s+\[`(\w+)`\]|\[`(\w+)`\]\([^)]*\),\s+equation (\d+)'
)


def _page(name):
  return (_METHODS / f'{name}.md').read_text()


def _source(name):
  return (_ROOT / 'tff_fair' / 'algorithms' / f'{name}.py').read_text()


def _known(name):
  return _EQUATIONS[_EQUATIONS['method'] == name].set_index('equation')


@pytest.mark.parametrize('name', _NAMES)
def test_a_page_begins_with_its_paper(name):
  title = _NAMES[name]
  fact = _PAPERS.loc[title]
  cited = (
    f'# {title}\n\n{fact.authors}: **{fact.title}**. {fact.venue} {fact.year}.'
    f' [Paper]({fact.paper}), [code]({fact.code}).\n\n'
  )
  assert _page(name).startswith(cited)


@pytest.mark.parametrize('name', _NAMES)
def test_a_module_names_its_paper(name):
  flat = ' '.join(_source(name).split())
  assert f'"{_PAPERS.loc[_NAMES[name]].title}"' in flat


@pytest.mark.parametrize('name', _NAMES)
def test_equations_are_numbered_as_in_the_paper(name):
  known = set(_known(name).index)
  for text in (_page(name), _source(name)):
    found = {n for pair in _NUMBERS.findall(text) for n in pair if n}
    assert found <= known


@pytest.mark.parametrize('name', _NAMES)
def test_an_equation_is_linked_to_its_function(name):
  functions = _known(name)['function']
  for before, after, function, number in _LINKED.findall(_page(name)):
    assert functions[before or number] == (after or function)
